"""Equivalent parts of plans are found: expressions, conditions, relations."""

from __future__ import annotations

from pyjoinopt.plan.nodes import FULL, LEFT, Filter, Join
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher, column
from tests.support.letters import Letters


def test_numbers_identify_relations(w: Letters) -> None:
    a, b = w.relation("a", "a1 a2", alike=1), w.relation("b", "b1 b2", alike=1)
    c, d = w.relation("c", "c1 c2", alike=2), w.relation("d", "d1 d2")
    alike = PlanMatcher()
    known = alike.columns(a, b)
    assert known is not None and [column(known, x).name for x in b.output] == ["a1", "a2"]
    assert alike.columns(a, c) is None and alike.columns(d, d) is None
    narrow = w.relation("e", "e1", alike=1)
    assert alike.columns(a, narrow) is None


def test_sets_of_conditions(w: Letters) -> None:
    a, b = w.relation("a", "a1 a2", alike=1), w.relation("b", "b1 b2", alike=1)
    alike = PlanMatcher()
    assert alike.columns(Filter(w("a1 > 1 and a2 = a1"), a), Filter(w("b1 = b2 and 1 < b1"), b)) is not None
    assert alike.columns(Filter(w("a1 > 1 and a1 > 1"), a), Filter(w("b1 > 1 and b2 > 1"), b)) is None
    assert alike.columns(Filter(w("a1 > 1 and a2 > 1"), a), Filter(w("b1 > 1 and b1 > 1"), b)) is None
    assert alike.columns(Filter(w("a1 > 1"), a), b) is None


def test_what_is_cached_or_outer(w: Letters) -> None:
    a, b = w.relation("a", "a1", alike=1), w.relation("b", "b1", alike=1)
    c, d = w.relation("c", "c1", alike=2), w.relation("d", "d1", alike=2)
    assert PlanMatcher().columns(Join(a, c, LEFT, w("a1 = c1")), Join(b, d, LEFT, w("d1 = b1"))) is not None
    assert PlanMatcher().columns(Join(a, c, LEFT, w("a1 = c1")), Join(b, d, FULL, w("b1 = d1"))) is None
    cached = w.relation("e", "e1", alike=1, cached=True)
    assert PlanMatcher().columns(a, cached) is None
