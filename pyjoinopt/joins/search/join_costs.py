"""What the joins of one graph cost under a cost model, and what a whole order costs.

A cost model offers up to three views of one formula (`cost.model`). The cheapest of them that is right for a graph is
chosen once, so that no search has to choose for each pair:

* **sides**: all joins are inner joins and the model prices each side by itself. A side is priced once, however many
  pairs it is in;
* **joins**: all joins are inner joins; the model prices each pair;
* **operators**: the type of each join, and which set belongs on which side, is looked up first.
"""

from __future__ import annotations

from functools import cached_property

from pyjoinopt.cost.model import CostModel, Side, join_cost_of_sides, optional_method
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.interesting_partitionings import Partitionings


class JoinCosts:
    """Costs of the joins of a graph, in row units or in whatever unit the model has.

    Args:
        graph: the join graph.
        estimates: rows and bytes of its sets of vertices.
        model: the cost model.
        partitioned_relations: see `SearchLimits`.
    """

    def __init__(
        self, graph: JoinGraph, estimates: GraphEstimates, model: CostModel, partitioned_relations: int = 64
    ) -> None:
        self._graph = graph
        self._size = estimates.size
        self._model = model
        self._partitioned = Partitionings(graph, estimates, model, partitioned_relations)
        side_of = None if graph.operators else optional_method(model, "side")
        self._side_of = side_of
        self._sides: dict[int, Side] = {}
        #: What the join of two disjoint sets costs, its inputs' own cost not included.
        self.join = self._of_operators if graph.operators else self._of_joins if side_of is None else self._of_sides

    @property
    def by_sides(self) -> bool:
        """Whether each side is priced by itself."""
        return self._side_of is not None

    @cached_property
    def partitionings(self) -> Partitionings | None:
        """Costs of plans that reuse a partitioning; None if no two joins of the graph can share one."""
        return self._partitioned if self._partitioned.any_shared_key else None

    def side(self, relations: int) -> Side:
        """What a set costs as a side of an inner join; only if `by_sides`."""
        side = self._sides.get(relations)
        if side is None:
            assert self._side_of is not None
            side = self._sides[relations] = self._side_of(self._size(relations))
        return side

    def order(self, tree: JoinTree) -> float:
        """What an order costs; it may have cross products."""
        if self.partitionings is not None and not tree.is_leaf:
            return self.partitionings.price(tree)
        total = 0.0
        for node in tree.post_order():
            if node.left is not None and node.right is not None:
                total += self._of_operators(node.left.relations, node.right.relations)
        return total

    def _of_sides(self, one: int, other: int) -> float:
        return join_cost_of_sides(self.side(one), self.side(other)) + self._size(one | other).rows

    def _of_joins(self, one: int, other: int) -> float:
        return self._model.join(self._size(one), self._size(other), self._size(one | other))

    def _of_operators(self, one: int, other: int) -> float:
        edge = self._graph.operator(one, other)
        if edge is None:
            return self._of_joins(one, other)
        if not edge.fits(one, other):
            one, other = other, one
        return self._model.join(self._size(one), self._size(other), self._size(one | other), edge.join_type)
