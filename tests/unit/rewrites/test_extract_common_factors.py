"""Common factors of ORs."""

from __future__ import annotations

import itertools

import pytest

from pyjoinopt.plan.expressions import Expression, call, conjunction, conjuncts
from pyjoinopt.plan.nodes import INNER, Filter, Join
from pyjoinopt.rewrites.extract_common_factors import extract_common_factors, factors
from tests.support.letters import Letters


@pytest.fixture
def w() -> Letters:
    return Letters()


def test_the_join_condition_comes_out(w):
    t, u = w.relation("t", "a1 a2"), w.relation("u", "b1 b2")
    plan = Filter(w("a1 = b1 and a2 = 1 or a2 = 2 and a1 = b1"), Join(t, u, INNER, None))
    found = extract_common_factors(plan)
    assert [repr(e) for e in conjuncts(found.condition)] == [repr(w("a1 = b1")), repr(w("a2 = 1 or a2 = 2"))]


def test_nothing_in_common(w):
    t = w.relation("t", "a1 a2")
    plan = Filter(w("a1 = 1 or a2 = 2"), t)
    assert extract_common_factors(plan) is plan
    assert extract_common_factors(t) is t


def test_an_alternative_that_demands_no_more(w):
    w.relation("t", "a1 a2")
    assert [e.key for e in factors(w("a1 = 1 or a1 = 1 and a2 = 2"))] == [w("a1 = 1").key]


def test_what_may_fail_stays_where_others_are_tested_first(w):
    w.relation("t", "a1 a2")
    before = w("a1 = 1 and raise_error(a2) or a1 = 2 and raise_error(a2)")
    assert factors(before) == [before]


def evaluate(e: Expression, row: dict[int, int | None]) -> bool | None:
    """Of AND, OR and equalities between columns."""
    if e.kind == "EqualTo":
        left, right = (row[c.attribute.bit] for c in e.children)
        return None if left is None or right is None else left == right
    one, two = (evaluate(c, row) for c in e.children)
    if e.kind == "And":
        return False if one is False or two is False else None if None in (one, two) else True
    return True if one is True or two is True else None if None in (one, two) else False


def test_the_same_with_nulls(w):
    """All rows over three columns with NULLs; the value itself is the same, not only which rows pass."""
    t = w.relation("t", "a1 a2 a3")
    atoms = [w("a1 = a2"), w("a2 = a3"), w("a1 = a3")]
    changed = 0
    for p, q, r, s in itertools.product(atoms, repeat=4):
        before = call("Or", call("And", p, q), call("Or", call("And", r, s), call("And", q, r)))
        after = conjunction(factors(before))
        changed += after is not before
        for values in itertools.product((None, 0, 1), repeat=3):
            row = dict(zip((a.bit for a in t.output), values))
            assert evaluate(before, row) == evaluate(after, row)
    assert changed > 20
