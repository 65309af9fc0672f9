"""Which joins form a group, which operators end it, and that a new order applies every predicate once."""

from __future__ import annotations

import random

import pytest

from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.groups.barriers import reorder_barriers
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import join as joined
from pyjoinopt.joins.join_tree import leaf
from pyjoinopt.plan.expressions import PYTHON_UDF, Attribute, Expression, call, conjuncts, describe, reference
from pyjoinopt.plan.nodes import (
    CROSS,
    EXISTENCE,
    INNER,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
    SubqueryAlias,
    relation,
)  # fmt: skip
from pyjoinopt.plan.traversal import post_order
from tests.support.letters import Letters
from tests.support.regions import graph_of, only_region, predicates_of


def regions(plan: LogicalPlan) -> list[JoinGroup]:
    return list(find_groups(plan).groups.values())


class TestWalls:
    def test_what_stands_between_joins_is_named_and_what_stands_elsewhere_is_not(self, w, abc):
        a, b, c = abc
        lower = Join(a, b, INNER, w("a1 = b1"))
        limited = LogicalPlan("GlobalLimit", (Filter(w("a1 = 1"), lower),), lower.output)
        plan = Join(Filter(w("a1 = 2"), limited), LogicalPlan("Sort", (c,), c.output), INNER, w("a1 = c1"))
        assert reorder_barriers(LogicalPlan("Sort", (plan,), plan.output)) == ["GlobalLimit"]
        assert reorder_barriers(Join(Filter(w("a1 = 1"), lower), c, INNER, w("a1 = c1"))) == []

    def test_sides_of_a_union_and_joins_that_stay(self, w, abc):
        a, b, c = abc
        exists = w.attribute("e", "boolean", nullable=False)
        marked = Join(a, b, EXISTENCE, w("a1 = b1"), exists=exists)
        assert reorder_barriers(marked) == []
        union = LogicalPlan("Union", (marked, marked), marked.output)
        assert reorder_barriers(Join(union, c, INNER, w("a1 = c1"))) == [EXISTENCE, "Union"]

    def test_cached_joins_are_none(self, w, abc):
        a, b, c = abc
        lower = Join(a, b, INNER, w("a1 = b1"))
        cached = LogicalPlan("Sort", (lower,), lower.output, info={"cached": True})
        assert reorder_barriers(Join(cached, c, INNER, w("a1 = c1"))) == []


class TestExtraction:
    def test_inner_and_cross_joins_of_any_shape_are_one_group(self, w, abc):
        a, b, c = abc
        plan = Filter(w("a1 = c1"), Join(a, Join(b, c, INNER, w("b1 = c1")), CROSS))
        graph, written, _ = graph_of(plan)
        assert graph.names == ("a", "b", "c")
        assert written.show(graph.names) == "(a ⋈ (b ⋈ c))"
        assert [describe(e.predicate) for e in graph.edges if not e.implied] == ["(b1 = c1)", "(a1 = c1)"]

    def test_other_joins_are_items(self, w, abc):
        a, b, c = abc
        exists = w.attribute("e", "boolean", nullable=False)
        marked = Join(a, b, EXISTENCE, w("a1 = b1"), exists=exists)
        region = only_region(Join(marked, c, INNER, w("a1 = c1")))
        assert {type(item.plan) for item in region.items.values()} == {Join, LogicalPlan}

    def test_a_renaming_projection_does_not_end_the_group(self, w, abc):
        a, b, c = abc
        below = w.project("b1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "a2"))
        plan = Join(below, c, INNER, w("x = c1"))
        graph, _, region = graph_of(plan)
        assert graph.names == ("a", "b", "c")
        assert isinstance(graph.relations[0], Project)
        assert not region.deferred

    def test_a_column_computed_from_one_side_is_computed_there(self, w, abc):
        a, b, c = abc
        below = w.project("b1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "coalesce(a2, 0)"))
        graph, _, region = graph_of(Join(below, c, INNER, w("x = c1")))
        assert describe(graph.relations[0].expressions[-1]) == "coalesce(a2, 0) AS x"
        assert not region.deferred

    def test_a_column_computed_from_two_sides_is_computed_on_top(self, w, abc):
        a, b, c = abc
        below = w.project("a1 b1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "coalesce(a2, b2)"))
        plan = Join(below, c, INNER, w("x = c1"))
        graph, written, region = graph_of(plan)
        assert [describe(e.predicate) for e in graph.edges if not e.implied] == ["(a1 = b1)", "(coalesce(a2, b2) = c1)"]
        result = emit(graph, joined(joined(leaf(1), leaf(0)), leaf(2)), region).plan
        assert isinstance(result, Project) and describe(result.expressions[-1]) == "coalesce(a2, b2) AS x"
        assert plan.output_set & ~result.output_set == 0

    def test_a_column_that_may_throw_is_computed_on_top(self, w, abc):
        a, b, c = abc
        below = w.project("a1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "risky(a2)"))
        _, _, region = graph_of(Join(below, c, INNER, w("a1 = c1")))
        assert len(region.deferred) == 1

    def test_columns_computed_from_computed_columns(self, w, abc):
        a, b, c = abc
        one = w.project("a1 a2 b1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "coalesce(a2, 0)"))
        two = w.project("a1 b1", one, w.alias("y", "coalesce(x, 1)"))
        graph, _, region = graph_of(Join(two, c, INNER, w("y = c1")))
        assert [n.kind for n in post_order(graph.relations[0])] == ["LocalRelation", "Project", "Project"]
        assert not region.deferred

    def test_a_projection_with_a_udf_ends_the_group(self, w, abc):
        a, b, c = abc
        udf = Expression("PythonUDF", (w("a2"),), "int", 1 | PYTHON_UDF)
        below = w.project("a1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", udf))
        found = find_groups(Join(below, c, INNER, w("a1 = c1")))
        groups = found.groups
        assert sorted(len(r.items) for r in groups.values()) == [2, 2]
        assert [r.reason.partition(",")[0] for r in found.refusals] == ["it calls a Python UDF"]

    def test_a_hinted_join_keeps_its_place(self, w, abc):
        a, b, c = abc
        hinted = LogicalPlan("ResolvedHint", (b,), b.output, info={"hint": "BROADCAST"})
        found = find_groups(Join(Join(a, hinted, INNER, w("a1 = b1")), c, INNER, w("a1 = c1")))
        groups = found.groups
        assert [len(r.items) for r in groups.values()] == [2]
        assert "hint" in found.refusals[0].reason

    def test_a_cached_join_is_an_item(self, w, abc):
        a, b, c = abc
        cached = Join(a, b, INNER, w("a1 = b1"), info={"cached": True})
        region = only_region(Join(cached, c, INNER, w("a1 = c1")))
        assert any(item.plan is cached for item in region.items.values())

    def test_aliases_and_views_are_only_names(self, w, abc):
        a, b, c = abc
        inner = Join(SubqueryAlias("x", a), b, INNER, w("a1 = b1"))
        view = LogicalPlan("View", (inner,), inner.output, info={"name": "v"})
        graph, _, _ = graph_of(Join(SubqueryAlias("s", view), c, INNER, w("a1 = c1")))
        assert graph.names == ("x", "b", "c")

    def test_a_self_join_behind_a_projection_is_not_looked_into(self, w, abc):
        a, b, _ = abc
        below = w.project("b1", Join(a, b, INNER, w("a1 = b1")), w.alias("x", "a2"))
        found = find_groups(Join(below, a, INNER, w("x = a1")))  # attribute ids of `a` on both sides
        assert sorted(len(r.items) for r in found.groups.values()) == [2, 2]
        assert [r.reason for r in found.refusals] == [
            "both sides of it have the same columns, which a projection hides"
        ]

    def test_a_sub_plan_under_two_parents_belongs_to_both_groups(self, w, abc):
        a, b, c = abc
        d = w.relation("d", "d1")
        shared = Join(a, b, INNER, w("a1 = b1"))
        plan = LogicalPlan(
            "Union", (Join(shared, c, INNER, w("a1 = c1")), Join(shared, d, INNER, w("a1 = d1"))), shared.output
        )
        assert sorted(build_graph(r, {})[0].names for r in regions(plan)) == [("a", "b", "c"), ("a", "b", "d")]

    def test_two_thousand_joins(self, w):
        plan = w.relation("r0", "x0")
        for i in range(1, 2000):
            plan = Join(plan, w.relation(f"r{i}", f"x{i}"), INNER, w(f"x{i - 1} = x{i}"))
        assert len(only_region(plan).items) == 2000


class TestEdges:
    def test_one_sided_conjuncts_become_filters(self, w, abc):
        a, b, _ = abc
        graph, _, _ = graph_of(Join(a, b, INNER, w("a1 = b1 and a2 > 3")))
        assert [describe(p) for p in graph.filters[0]] == ["(a2 > 3)"]
        assert isinstance(graph.relations[0], Filter)

    def test_transitive_equalities_connect(self, w, abc):
        a, b, c = abc
        graph, _, region = graph_of(Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1")))
        assert graph.connected(0b001, 0b100)
        result = emit(graph, joined(joined(leaf(0), leaf(2)), leaf(1)), region).plan
        assert predicates_of(result) == ["(a1 = b1)", "(a1 = c1)"]
        written = emit(graph, joined(joined(leaf(0), leaf(1)), leaf(2)), region).plan
        assert predicates_of(written) == ["(a1 = b1)", "(b1 = c1)"]

    def test_a_large_class_is_tied_alike_however_it_is_written(self):
        seen = set()
        for seed in range(3):
            places = random.Random(seed).sample(range(30), 30)
            keys = {i: Attribute(i, i, f"k{i}") for i in range(30)}
            plan = relation(f"r{places[0]}", [keys[places[0]]])
            for n, i in enumerate(places[1:]):
                tie = call("EqualTo", reference(keys[places[n // 2]]), reference(keys[i]))
                plan = Join(plan, relation(f"r{i}", [keys[i]]), INNER, tie)
            graph, _, _ = graph_of(plan)
            seen.add(frozenset(frozenset(graph.names_of(edge.ses)) for edge in graph.edges))
        assert len(seen) == 1 and len(*seen) == 30 * 29 / 2

    def test_null_safe_equalities_imply_nothing(self, w, abc):
        a, b, c = abc
        graph, _, _ = graph_of(Join(Join(a, b, INNER, w("a1 <=> b1")), c, INNER, w("b1 <=> c1")))
        assert not any(e.implied for e in graph.edges)

    def test_a_predicate_that_may_fail_waits_for_what_stood_below_it(self, w, abc):
        a, b, c = abc
        plan = Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1 and risky(a2) = c2"))
        graph, _, region = graph_of(plan)
        edge = next(e for e in graph.edges if "risky" in describe(e.predicate))
        assert (edge.ses, edge.tes) == (0b101, 0b111)
        result = emit(graph, joined(joined(leaf(0), leaf(2)), leaf(1)), region).plan
        assert isinstance(result, Join) and describe(conjuncts(result.condition)[-1]) == "(risky(a2) = c2)"

    def test_a_predicate_without_columns_is_kept(self, w, abc):
        a, b, c = abc
        plan = Join(Join(a, b, INNER, w("a1 = b1 and false")), c, INNER, w("b1 = c1"))
        graph, written, region = graph_of(plan)
        assert predicates_of(emit(graph, written, region).plan) == ["(a1 = b1)", "(b1 = c1)", "false"]

    @pytest.mark.parametrize("order", ["abc", "acb", "bca", "cba", "bac", "cab"])
    def test_every_order_applies_every_predicate_once(self, w, abc, order):
        a, b, c = abc
        plan = Filter(
            w("coalesce(a2, b2) = c2 and a2 > 0"), Join(Join(a, b, CROSS), c, INNER, w("a1 = c1 and a1 < b1"))
        )
        graph, _, region = graph_of(plan)
        tree = leaf("abc".index(order[0]))
        for letter in order[1:]:
            tree = joined(tree, leaf("abc".index(letter)))
        result = emit(graph, tree, region).plan
        assert predicates_of(result) == sorted(["(a2 > 0)", "(a1 = c1)", "(a1 < b1)", "(coalesce(a2, b2) = c2)"])
        for node in post_order(result):
            if isinstance(node, (Join, Filter)):
                available = sum(1 << b.bit for child in node.children for b in child.output)
                assert node.references & ~available == 0

    def test_an_order_must_cover_the_group(self, w, abc):
        a, b, c = abc
        graph, _, region = graph_of(Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1")))
        with pytest.raises(ValueError, match="covers"):
            emit(graph, joined(leaf(0), leaf(1)), region)


def test_aggregates_separate_groups(w, abc):
    a, b, c = abc
    below = Join(a, b, INNER, w("a1 = b1"))
    grouped = Aggregate((w("a1"),), (w("a1"),), below, (w.attribute("a1"),))
    assert sorted(len(r.items) for r in regions(Join(grouped, c, INNER, w("a1 = c1")))) == [2, 2]


def test_each_class_that_ties_two_relations_is_tested_when_they_meet(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    """a and c share two classes through b; joined first, they must not be joined on one of them alone."""
    a, b, c = abc
    plan = Join(Join(a, b, INNER, w("a1 = b1 and a2 = b2")), c, INNER, w("b1 = c1 and b2 = c2"))
    graph, _, region = graph_of(plan)
    emitted = emit(graph, joined(joined(leaf(0), leaf(2)), leaf(1)), region).plan
    inner = emitted.children[0]
    assert isinstance(inner, Join) and inner.condition is not None
    assert sorted(map(describe, conjuncts(inner.condition))) == ["(a1 = c1)", "(a2 = c2)"]


@pytest.mark.parametrize("by_filter", [True, False])
@pytest.mark.parametrize(("kind", "looks_through"), [("RLike", False), ("Upper", True)])
def test_a_costly_column_that_may_fail_is_not_written_out(
    w: Letters, kind: str, looks_through: bool, by_filter: bool
) -> None:
    """Spark tests `a1 RLIKE a2 AS m` above the joins below it; written out, it would test all of `a`."""
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1"), w.relation("c", "c1")
    body = Expression(kind, (w("a1 = a1").children[0], w("a2 = a2").children[0]))
    computed = w.project("a1 b1", Join(a, b, INNER, w("a1 = b1")), w.alias("m", body))
    if by_filter:
        plan: LogicalPlan = Join(Filter(w("m = a1"), computed), c, INNER, w("b1 = c1"))
    else:
        plan = Join(computed, c, INNER, w("m = a1 and b1 = c1"))
    largest = max(len(region.items) for region in find_groups(plan).groups.values())
    assert largest == (3 if looks_through else 2)
