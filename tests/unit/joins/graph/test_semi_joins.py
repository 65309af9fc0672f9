"""Semi and anti joins inside a join group: their legal places, and that no other place is used."""

from __future__ import annotations

import pytest

from pyjoinopt.cost import COut
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.join_tree import join, leaf
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, CROSS, INNER, SEMI, Filter, Join, LogicalPlan, Project
from tests.support.letters import Letters
from tests.support.regions import estimates, joins, only_region


@pytest.fixture
def abcs(w: Letters) -> tuple[LogicalPlan, ...]:
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abcs")


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_its_left_side_belongs_to_the_group_and_its_right_side_is_one_item(w, abcs, kind):
    a, b, c, s = abcs
    below = Join(Join(a, b, INNER, w("a1 = b1")), s, kind, w("a2 = s1"))
    region = only_region(Join(below, c, INNER, w("b2 = c1")))
    assert [item.plan for item in region.items.values()] == [a, b, s, c] and region.semi_right == s.output_set
    graph, written = build_graph(region, {})
    (edge,) = graph.semi_rights.values()
    assert (edge.join_type, edge.semi_right, edge.tes) == (kind, 0b100, 0b101)
    sign = "⋉" if kind == SEMI else "▷"
    assert written.show(graph.names, graph.sign) == f"(((a ⋈ b) {sign} s) ⋈ c)"


def test_what_it_looks_into_may_be_a_group_of_its_own(w, abcs):
    a, b, c, s = abcs
    inner = Join(s, c, INNER, w("s2 = c1"))
    plan = Join(Join(a, b, INNER, w("a1 = b1")), inner, SEMI, w("a2 = s1"))
    assert sorted(len(region.items) for region in find_groups(plan).groups.values()) == [2, 3]


@pytest.mark.parametrize("where", ["item", "looked into twice"])
def test_columns_that_are_also_looked_into_keep_it_out(w, abcs, where):
    """Two occurrences of one relation have the same columns, so they would be ambiguous in one join."""
    a, b, c, s = abcs
    if where == "item":
        plan = Join(Join(Join(a, b, INNER, w("a1 = b1")), s, SEMI, w("a2 = s1")), s, INNER, w("b2 = s2"))
    else:
        twice = Project((w("a1"), w("a2")), Join(Join(a, s, SEMI, w("a2 = s1")), b, INNER, w("a1 = b1")))
        plan = Join(Join(twice, s, INNER, w("a1 = s1")), c, INNER, w("s2 = c1"))
    for region in find_groups(plan).groups.values():
        columns = [item.plan.output_set for item in region.items.values()]
        assert sum(columns) == sum(1 << bit for bit in range(64) if any(m >> bit & 1 for m in columns)), show(plan)


def test_it_is_applied_first_where_it_keeps_little(w, abcs):
    a, b, c, s = abcs
    plan = Join(Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b2 = c1")), s, SEMI, w("a2 = s1"))
    region = only_region(plan)
    graph, written = build_graph(region, {})
    sizes = estimates(graph, [10_000, 10_000, 10_000, 5], 1000)
    found = search(graph, sizes, COut())
    assert found.tree.show(graph.names, graph.sign) == "(c ⋈ (b ⋈ (a ⋉ s)))"
    assert sizes.rows(0b1001) == pytest.approx(10_000 * 5 / 1000)
    result = emit(graph, found.tree, region).plan
    kinds = [(n.join_type, describe(n.condition)) for n in joins(result)]
    assert kinds == [(INNER, "(b2 = c1)"), (INNER, "(a1 = b1)"), (SEMI, "(a2 = s1)")]
    assert result.output_set == plan.output_set


def test_it_waits_for_all_that_it_compares(w, abcs):
    """Columns of two relations that only a cross product brings together: never before that."""
    a, b, c, s = abcs
    crossed = Join(Join(a, b, CROSS), c, INNER, w("b2 = c1"))
    region = only_region(Join(crossed, s, ANTI, w("a1 = s1 and b1 = s2")))
    graph, _ = build_graph(region, {})
    found = search(graph, estimates(graph, [3, 30, 2, 1], 1000), COut())
    text = found.tree.show(graph.names, graph.sign)
    assert text.count("▷ s") == 1
    (looking,) = (n for n in found.tree.post_order() if n.right is not None and n.right.relations in graph.semi_rights)
    assert looking.left.relations & 0b11 == 0b11, text
    emit(graph, found.tree, region)


def test_an_order_that_looks_too_early_is_refused(w, abcs):
    a, b, _, s = abcs
    region = only_region(Join(Join(a, b, INNER, w("a1 = b1")), s, SEMI, w("a2 = s1")))
    graph, _ = build_graph(region, {})
    with pytest.raises(ValueError, match="where it would give other rows"):
        emit(graph, join(join(leaf(1), leaf(2)), leaf(0)), region)


def test_a_predicate_that_waited_for_it_goes_on_top(w, abcs):
    """A cast that can fail must see only rows that the semi join keeps, and must not become part of its condition."""
    a, b, c, s = abcs
    below = Join(Join(a, b, INNER, w("a1 = b1")), s, SEMI, w("a2 = s1"))
    plan = Filter(w("ansi_cast(a2) = b2"), Join(below, c, INNER, w("b2 = c1")))
    region = only_region(plan)
    graph, _ = build_graph(region, {})
    late = join(join(join(leaf(0), leaf(1)), leaf(3)), leaf(2))
    result = emit(graph, late, region).plan
    assert isinstance(result, Filter) and isinstance(result.child, Join) and result.child.join_type == SEMI
    assert describe(result.child.condition) == "(a2 = s1)"
