"""Outer joins inside a join group: their eligibility sets, their conflicts, and the resulting plans."""

from __future__ import annotations

import pytest

from pyjoinopt.cost import COut
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.join_tree import join, leaf
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join
from pyjoinopt.util.bitset import members
from tests.support.regions import estimates, graph_of, joins


def letters(graph: JoinGraph, relations: int) -> str:
    return "".join(sorted(graph.names[v] for v in members(relations)))


def sides(graph: JoinGraph, edge: Edge) -> str:
    """What an operator must hold left and right."""
    return "|".join(letters(graph, side) for side in (edge.left_tes, edge.right_tes))


def test_a_left_join_is_one_edge_with_two_sides(w, abcd):
    a, b, c, _ = abcd
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, LEFT, w("a2 = c1 and c2 = 1"))
    graph, written, _ = graph_of(plan)
    (edge,) = graph.operators
    assert sides(graph, edge) == "a|c" and describe(edge.predicate) == "((a2 = c1) AND (c2 = 1))"
    assert written.show(graph.names, graph.sign) == "((a ⋈ b) ⟕ c)"
    assert graph.allows_join(0b001, 0b100) and graph.allows_join(0b100, 0b011)
    assert not graph.allows_join(0b001, 0b110)  # b does not belong to what is padded


def test_a_right_join_is_a_left_join_the_other_way_round(w, abcd):
    a, b, c, _ = abcd
    graph, written, region = graph_of(Join(Join(a, b, INNER, w("a1 = b1")), c, RIGHT, w("a2 = c1")))
    assert written.show(graph.names, graph.sign) == "(c ⟕ (a ⋈ b))"
    assert sides(graph, graph.operators[0]) == "c|ab"
    (top, _) = joins(emit(graph, written, region).plan)
    assert top.join_type == LEFT and top.left is c


@pytest.mark.parametrize(
    ("join_type", "below", "above", "expected"),
    [
        (LEFT, "a1 = b1", "b1 = c1", "b|c"),  # rejects NULLs on b, so it may go below
        (LEFT, "a1 = b1", "b1 <=> c1", "ab|c"),
        (LEFT, "a1 <=> b1", "b1 = c1", "b|c"),
        (FULL, "a1 = b1", "b1 = c1", "ab|c"),  # rows of c that meet none have no a either
        (LEFT, "a1 = b1", "a1 <=> c1", "a|c"),
    ],
)
def test_what_a_join_above_a_left_join_waits_for(w, abcd, join_type, below, above, expected):
    a, b, c, _ = abcd
    graph, _, _ = graph_of(Join(Join(a, b, LEFT, w(below)), c, join_type, w(above)))
    assert sides(graph, graph.operators[-1]) == expected


@pytest.mark.parametrize(("on", "expected"), [("a1 = b1", "b|c"), ("a1 <=> b1", "ab|c")])
def test_full_joins_in_a_row_where_both_reject_nulls(w, abcd, on, expected):
    a, b, c, _ = abcd
    graph, _, _ = graph_of(Join(Join(a, b, FULL, w(on)), c, FULL, w("b2 = c1")))
    assert sides(graph, graph.operators[-1]) == expected


def test_a_filter_on_what_is_padded_waits_and_goes_on_top(w, abcd):
    a, b, c, _ = abcd
    plan = Join(Filter(w("b2 is null"), Join(a, b, LEFT, w("a1 = b1"))), c, INNER, w("a2 = c1"))
    graph, _, region = graph_of(plan)
    (waiting,) = (e for e in graph.edges if describe(e.predicate) == "(b2 IS NULL)")
    assert letters(graph, waiting.tes) == "ab" and not any(graph.filters)
    result = emit(graph, join(join(leaf(0), leaf(2)), leaf(1)), region).plan
    assert isinstance(result, Filter) and isinstance(result.child, Join) and result.child.join_type == LEFT


def test_a_filter_on_what_is_preserved_goes_down(w, abcd):
    a, b, c, _ = abcd
    plan = Filter(w("a2 is null"), Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a1 = c1")))
    graph, _, _ = graph_of(plan)
    assert [len(own) for own in graph.filters] == [1, 0, 0]


def test_a_column_computed_from_what_is_padded_is_computed_on_top(w, abcd):
    a, b, c, d = abcd
    below = w.project("a1 a2", Join(a, b, LEFT, w("a1 = b1")), w.alias("x", "coalesce(b2, 0)"), w.alias("y", "b2"))
    plan = Join(below, c, INNER, w("x = c1"))
    graph, _, region = graph_of(plan)
    assert [describe(alias) for alias in region.deferred.values()] == ["coalesce(b2, 0) AS x"]  # y only renames
    (waiting,) = (e for e in graph.edges if e.join_type == INNER)
    assert describe(waiting.predicate) == "(coalesce(b2, 0) = c1)" and letters(graph, waiting.tes) == "abc"
    # Where it would be padded itself, the group ends.
    outer = Join(d, Join(below, c, INNER, w("x = c1")), LEFT, w("d1 = a1"))
    found = find_groups(outer)
    assert sorted(len(group.items) for group in found.groups.values()) == [2, 3]
    assert [refusal.reason.partition(" that")[0] for refusal in found.refusals] == ["a column"]


def test_a_constant_beside_what_is_padded_is_not_padded(w, abcd):
    a, b, c, _ = abcd
    below = w.project("a1 b2", Join(b, a, RIGHT, w("a1 = b1")), w.alias("one", "1"))
    _, _, region = graph_of(Join(below, c, INNER, w("a1 = c1")))
    assert [item.plan for item in region.items.values() if item.columns] == [a]
    full = w.project("a1 b2", Join(b, a, FULL, w("a1 = b1")), w.alias("two", "1"))
    _, _, region = graph_of(Join(full, c, INNER, w("a1 = c1")))
    assert len(region.deferred) == 1


def test_a_side_without_predicates_gets_the_products_it_needs(w, abcd):
    a, b, c, d = abcd
    plan = Join(Join(a, Join(b, c, CROSS), LEFT, w("a1 = b1")), d, INNER, w("a2 = d1"))
    graph, _, region = graph_of(plan)
    found = search(graph, estimates(graph, [1000, 2, 3, 10]), COut())
    assert found.strategy == "exact" and graph.allows_order(found.tree)
    assert found.tree.show(graph.names, graph.sign) == "((a ⋈ d) ⟕ (c ⋈ b))"
    (product,) = (node for node in joins(emit(graph, found.tree, region).plan) if node.condition is None)
    assert product.join_type == CROSS


@pytest.mark.parametrize("join_type", [LEFT, RIGHT, FULL])
@pytest.mark.parametrize("on", [None, "a1 = 1", "b1 = 1"])
def test_a_condition_on_one_side_or_none_keeps_both_sides(w, abcd, join_type, on):
    a, b, c, _ = abcd
    inner = Join(a, c, INNER, w("a1 = c1"))
    plan = Join(inner, b, join_type, w(on) if on else None)
    graph, _, region = graph_of(plan)
    (edge,) = graph.operators
    assert letters(graph, edge.tes) == ("ab" if on == "a1 = 1" and join_type == LEFT else "abc")
    found = search(graph, estimates(graph, [10, 100, 1000]), COut())
    assert found.strategy == "exact" and graph.allows_order(found.tree)
    top = joins(emit(graph, found.tree, region).plan)
    assert sum(1 for node in top if node.join_type != INNER) == 1


def test_a_condition_that_may_fail_keeps_both_sides(w, abcd):
    a, b, c, _ = abcd
    graph, _, _ = graph_of(Join(Join(a, c, INNER, w("a1 = c1")), b, LEFT, w("ansi_cast(a2) = b1")))
    assert sides(graph, graph.operators[0]) == "ac|b"


def test_a_semi_join_inside_what_is_padded_stays_inside(w, abcd):
    a, b, c, d = abcd
    plan = Join(a, Join(Join(b, c, INNER, w("b1 = c1")), d, SEMI, w("b2 = d1")), LEFT, w("a1 = b1"))
    graph, _, _ = graph_of(plan)
    assert sides(graph, graph.operators[-1]) == "a|bcd"


def test_estimates_never_lose_what_is_preserved(w, abcd):
    a, b, c, d = abcd
    inner = Join(Join(a, b, LEFT, w("a1 = b1")), Join(c, d, INNER, w("c1 = d1")), FULL, w("a2 = c2"))
    graph, _, _ = graph_of(inner)
    sizes = estimates(graph, [5000, 20, 3000, 40], 4000)
    assert sizes.rows(0b0011) == pytest.approx(5000)
    assert sizes.rows(0b1111) >= max(sizes.rows(0b0011), sizes.rows(0b1100))
    assert sizes.upper_bound(0b0011) == 5001 * 21  # a full join above may pad both
    empty = estimates(graph, [5000, 0, 3000, 40])
    assert empty.upper_bound(0b0011) > 0


def test_a_small_inner_join_above_a_left_join_comes_first(w, abcd):
    """Two left joins of a large table, and an inner one above that keeps little of it."""
    a, b, c, d = abcd
    left = Join(Join(a, b, LEFT, w("a1 = b1")), c, LEFT, w("b2 = c1"))
    graph, _, region = graph_of(Join(left, d, INNER, w("a2 = d1")))
    found = search(graph, estimates(graph, [1e6, 1e4, 1e4, 3], 1e4), COut())
    assert found.tree.show(graph.names, graph.sign) in ("(((a ⋈ d) ⟕ b) ⟕ c)", "((a ⋈ d) ⟕ (b ⟕ c))")
    plan = emit(graph, found.tree, region).plan
    assert sorted(j.join_type for j in joins(plan)) == [INNER, LEFT, LEFT], show(plan)


def test_an_order_with_the_sides_exchanged_is_refused(w, abcd):
    a, b, c, _ = abcd
    graph, _, region = graph_of(Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a2 = c1")))
    with pytest.raises(ValueError, match="other rows"):
        emit(graph, join(join(leaf(1), leaf(0)), leaf(2)), region)
