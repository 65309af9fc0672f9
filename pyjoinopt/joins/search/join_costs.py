"""What the joins of an order cost, each of whatever type it is."""

from __future__ import annotations

from collections.abc import Callable

from pyjoinopt.cost.model import CostModel
from pyjoinopt.cost.size import Size
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.interesting_partitionings import Partitionings


def price(graph: JoinGraph, size_of: Callable[[int], Size], cost: CostModel, one: int, other: int) -> float:
    """What the join of two disjoint sets costs."""
    edge = graph.operator(one, other)
    if edge is None:
        return cost.join(size_of(one), size_of(other), size_of(one | other))
    if not edge.fits(one, other):
        one, other = other, one
    return cost.join(size_of(one), size_of(other), size_of(one | other), edge.join_type)


def cost_of(tree: JoinTree, estimates: GraphEstimates, cost: CostModel, graph: JoinGraph) -> float:
    """What an order costs under the model; it may hold cross products."""
    partitionings = Partitionings(graph, estimates, cost)
    if partitionings.worth and not tree.is_leaf:
        return partitionings.price(tree)
    total = 0.0
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            total += price(graph, estimates.size, cost, node.left.relations, node.right.relations)
    return total
