"""The partitioning of a join's result, and its benefit: single cases of `interesting_partitionings`."""

from __future__ import annotations

from itertools import permutations

import pytest

from pyjoinopt.cost import COut, SparkCost
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.join_tree import join, leaf
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.joins.search.interesting_partitionings import Partitionings, partitioned_by
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, Aggregate, Filter, Join, LogicalPlan, Project, relation
from tests.support.letters import Letters
from tests.support.regions import region_of


def three_on_one_key(tables: int) -> tuple[JoinGraph, GraphEstimates]:
    """A fact table with two join columns; one of them joins two tables."""
    columns = [[Attribute(v * 8 + c, v * 8 + c, "ab"[c]) for c in range(2)] for v in range(4)]
    edges = []
    for number, pairs in ((0, [(0, 1), (0, 3)]), (1, [(0, 2)])):
        for i, j in pairs:
            a, b = reference(columns[i][number]), reference(columns[j][number])
            both = 1 << i | 1 << j
            edges.append(Edge(call("EqualTo", a, b), both, both, ((1 << i, a), (1 << j, b)), equality_class=number))
    known = [
        RelationStatistics(1e7, 4e8, "test", True, {a.bit: ColumnStatistics(ndv=1e7) for a in own}) for own in columns
    ]
    relations = tuple(relation(name, own) for name, own in zip("FGHK", columns))
    graph = JoinGraph(relations, ("F", "G", "H", "K"), tuple(edges), ((),) * 4)
    estimates = GraphEstimates(graph, known)
    estimates = estimates.with_buildable(lambda relations, bytes, _: tables)
    return graph, estimates


def test_joins_on_one_key_come_in_a_row() -> None:
    graph, estimates = three_on_one_key(NO_BUILD)
    partitionings = Partitionings(graph, estimates, SparkCost())
    assert partitionings.any_shared_key
    tree = search(graph, estimates, SparkCost()).tree
    above_h = next(n for n in tree.post_order() if not n.is_leaf and n.relations & 0b0100)
    assert above_h.relations in (0b1111, 0b0101), tree.show(graph.names)  # H comes last, or before G and K
    between = join(join(join(leaf(0), leaf(1)), leaf(2)), leaf(3))
    assert partitionings.price(between) > partitionings.price(tree)


def test_nothing_to_gain() -> None:
    for tables, model in ((BROADCAST_HASH, SparkCost()), (NO_BUILD, COut())):
        graph, estimates = three_on_one_key(tables)
        assert not Partitionings(graph, estimates, model).any_shared_key


@pytest.mark.parametrize("lower", [LEFT, FULL, SEMI, ANTI])
def test_what_lies_by_the_key_of_an_outer_join(w: Letters, lower: str) -> None:
    """The result of a full join has no partitioning, since padded rows have no key; the other joins keep theirs."""
    a, b, c, d = (w.relation(name) for name in "abcd")
    plan = Join(Join(Join(a, b, INNER, w("a = b")), c, lower, w("a = c")), d, LEFT, w("a = d"))
    graph, written = build_graph(region_of(plan), {})
    estimates = GraphEstimates(graph, [RelationStatistics(1e6, 4e7, "test", True, {}) for _ in graph.relations])
    estimates = estimates.with_buildable(lambda relations, bytes, _: NO_BUILD)
    assert written.left is not None and written.right is not None
    size, model = estimates.size, SparkCost()
    parts = model.parts(size(written.left.relations), size(written.right.relations), size(written.relations), LEFT)
    last = JoinCosts(graph, estimates, model).order(written) - JoinCosts(graph, estimates, model).order(written.left)
    assert last == pytest.approx(parts.work + parts.right + (parts.left if lower == FULL else 0.0))


def test_relations_that_come_partitioned() -> None:
    a, b, total = Attribute(0, 0, "a"), Attribute(1, 1, "b"), Attribute(2, 2, "total")
    table = relation("t", [a, b])
    grouped = Aggregate((reference(a),), (reference(a), reference(b)), table, (a, total))
    assert partitioned_by(grouped) == (0,)
    assert partitioned_by(Filter(call("IsNotNull", reference(a)), grouped)) == (0,)
    renamed = Attribute(3, 3, "c")
    assert partitioned_by(Project((Expression("Alias", (reference(a),), attribute=renamed),), grouped)) == (3,)
    assert partitioned_by(Project((reference(total),), grouped)) == ()
    assert partitioned_by(table) == ()
    bucketed: LogicalPlan = relation("t", [a, b])
    bucketed.info["rel"]["buckets"] = [1]
    assert partitioned_by(Filter(call("IsNotNull", reference(a)), bucketed)) == (1,)


def test_left_joins_on_one_key_move_the_left_side_once(w: Letters) -> None:
    """No inner join makes the key a class; three large tables are moved, the fourth by another key."""
    a, b, c, d = (w.relation(name, f"{name}0 {name}1") for name in "abcd")
    plan = Join(Join(Join(a, b, LEFT, w("a0 = b0")), d, LEFT, w("a1 = d1")), c, LEFT, w("a0 = c0"))
    graph, written = build_graph(region_of(plan), {})
    unique = ColumnStatistics(ndv=1e7)
    known = [
        RelationStatistics(1e7, 4e8, "test", True, {column.bit: unique for column in plan.output})
        for plan in graph.relations
    ]
    estimates = GraphEstimates(graph, known)
    estimates = estimates.with_buildable(lambda relations, bytes, _: NO_BUILD)
    priced = Partitionings(graph, estimates, SparkCost())
    assert priced.any_shared_key
    prices = {last: priced.price(join(join(join(leaf(0), leaf(one)), leaf(two)), leaf(last)))
              for one, two, last in permutations((1, 2, 3))}  # fmt: skip
    assert graph.names == ("a", "b", "d", "c") and min(prices.values()) == prices[3] < priced.price(written)
    assert search(graph, estimates, SparkCost(), written=written).cost == pytest.approx(prices[3])


@pytest.mark.parametrize("more", ["", "aj < cj", "aj <=> cj", "aj = cj + 1"])
def test_an_equality_that_no_class_has_is_part_of_the_key(w: Letters, more: str) -> None:
    """Spark hashes by every equality of a join, so the left side, partitioned by `ak` alone, is shuffled again."""
    a, b, c = (w.relation(name, f"{name}k {name}j") for name in "abc")
    last = w("ak = ck" + (f" and {more}" if more else ""))
    graph, written = build_graph(region_of(Join(Join(a, b, INNER, w("ak = bk")), c, INNER, last)), {})
    estimates = GraphEstimates(graph, [RelationStatistics(1e6, 4e7, "test", True, {}) for _ in graph.relations])
    estimates = estimates.with_buildable(lambda relations, bytes, _: NO_BUILD)
    assert written.left is not None and written.right is not None
    size, model = estimates.size, SparkCost()
    parts = model.parts(size(written.left.relations), size(written.right.relations), size(written.relations))
    priced = JoinCosts(graph, estimates, model).order(written) - JoinCosts(graph, estimates, model).order(written.left)
    assert priced == pytest.approx(parts.work + parts.right + (parts.left if "=" in more else 0.0))
