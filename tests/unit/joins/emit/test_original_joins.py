"""The set of vertices that each operator of a written plan joins, with all predicates that can be tested there."""

from __future__ import annotations

from pyjoinopt.joins.emit.original_joins import original_joins
from pyjoinopt.plan.nodes import INNER, LEFT, Filter, Join, LogicalPlan
from tests.support.letters import Letters
from tests.support.regions import graph_of


def made(plan: LogicalPlan) -> dict[str, int]:
    """Kind of an operator and names of its columns -> the set that it makes, in letters of the relations."""
    graph, _, region = graph_of(plan)
    names = "".join(name[0] for name in graph.names)
    return {
        f"{type(node).__name__} {' '.join(a.name for a in node.output)}": "".join(
            name for v, name in enumerate(names) if relations >> v & 1
        )
        for node, relations in original_joins(graph, region)
    }


def three(w: Letters) -> tuple[LogicalPlan, LogicalPlan, LogicalPlan]:
    return w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1")


def test_every_join_of_a_chain(w: Letters) -> None:
    a, b, c = three(w)
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b2 = c1"))
    assert made(plan) == {"Join a1 a2 b1 b2": "ab", "Join a1 a2 b1 b2 c1": "abc"}


def test_not_below_a_predicate_that_comes_late(w: Letters) -> None:
    a, b, c = three(w)
    plan = Filter(w("a2 = b2"), Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b2 = c1")))
    assert made(plan) == {"Filter a1 a2 b1 b2 c1": "abc"}


def test_not_where_only_an_implied_equality_ties_them(w: Letters) -> None:
    """a1 = c1 follows, but no operator tests it below the upper join: there a and b are a product."""
    a, b, c = three(w)
    plan = Join(Join(a, b, INNER), c, INNER, w("a1 = c1 and b1 = c1"))
    assert made(plan) == {"Join a1 a2 b1 b2 c1": "abc"}


def test_filters_of_one_relation_that_stand_above(w: Letters) -> None:
    a, b, c = three(w)
    plan = Join(Filter(w("a2 > b2"), Join(a, b, INNER, w("a1 = b1"))), c, LEFT, w("b2 = c1"))
    assert made(plan) == {"Filter a1 a2 b1 b2": "ab", "Join a1 a2 b1 b2 c1": "abc"}


def test_the_top_makes_everything(w: Letters) -> None:
    """Either because one relation occurs twice, or because no operator tests the derived equality."""
    a, b, c = three(w)
    twice = Join(Join(a, b, INNER, w("a1 = b1")), w.project("", b, w.alias("x", "b2")), INNER, w("a2 = x"))
    assert made(twice)["Join a1 a2 b1 b2 x"] == "abb"
    product = Join(Join(a, b, INNER), c, INNER, w("a1 = c1"))
    untested = Join(product, w.relation("d", "d1"), INNER, w("b1 = c1 and d1 = a1"))
    assert made(untested) == {"Join a1 a2 b1 b2 c1 d1": "abcd"}
