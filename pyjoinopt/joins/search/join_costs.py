"""What the joins of one graph cost under a cost model, and what a whole order costs.

A cost model offers up to three views of one formula (`cost.model`). The cheapest of them that is right for a graph is
chosen once, so that no search has to choose for each pair:

* **sides**: all joins are inner joins and the model prices each side by itself. A side is priced once, however many
  pairs it is in;
* **joins**: all joins are inner joins; the model prices each pair;
* **operators**: the type of each join, and which set belongs on which side, is looked up first. If the types differ in
  what they may build only, a side is priced once for each limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from pyjoinopt.cost.model import CostModel, Side, join_cost_of_sides, optional_method
from pyjoinopt.cost.size import BROADCAST_HASH, Size
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge
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
        side_of = optional_method(model, "side")
        self._most_built = optional_method(model, "most_built") if side_of is not None else None
        self._by_sides = side_of is not None and (not graph.operators or self._most_built is not None)
        #: The model's price of a side; None if it prices joins only.
        self.side_of: Callable[[Size], Side] | None = side_of
        #: By the most that may be built: set -> side.
        self._sides: tuple[dict[int, Side], ...] = tuple({} for _ in range(BROADCAST_HASH + 1))
        self._most_of = {id(edge): self._most_built(edge.join_type) for edge in graph.operators if self._most_built}
        #: What the join of two disjoint sets costs, its inputs' own cost not included.
        self.join = self._of_operators if graph.operators else self._of_sides if self._by_sides else self._of_joins

    @property
    def by_sides(self) -> bool:
        """Whether all joins are inner joins of which each side is priced by itself."""
        return self._by_sides and not self._graph.operators

    @cached_property
    def partitionings(self) -> Partitionings | None:
        """Costs of plans that reuse a partitioning; None if no two joins of the graph can share one."""
        return self._partitioned if self._partitioned.any_shared_key else None

    def side(self, relations: int, most: int = BROADCAST_HASH) -> Side:
        """What a set costs as a side of a join that may build so much of it; only if the model prices sides."""
        side = self._sides[most].get(relations)
        if side is None:
            assert self.side_of is not None
            size = self._size(relations)
            if size.build > most:
                size = size._replace(build=most)
            side = self._sides[most][relations] = self.side_of(size)
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
        return self.typed(one, other, self._graph.operator(one, other))

    def typed(self, one: int, other: int, edge: OperatorEdge | None) -> float:
        """What the join of two disjoint sets costs that is this operator; None for an inner join."""
        if edge is None:
            return self._of_sides(one, other) if self._by_sides else self._of_joins(one, other)
        if not edge.fits(one, other):
            one, other = other, one
        if not self._by_sides:
            return self._model.join(self._size(one), self._size(other), self._size(one | other), edge.join_type)
        left, right = self._most_of[id(edge)]
        return join_cost_of_sides(self.side(one, left), self.side(other, right)) + self._size(one | other).rows
