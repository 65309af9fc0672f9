"""What every search method reads: the join graph, its estimates, the cost model, the limits and the deadline.

The record is made once a group (`optimizer.reorder`). It is immutable; what a search counts on its way is in its own
`EnumerationBudget` or in its result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyjoinopt.cost.model import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.join_costs import JoinCosts


@dataclass(frozen=True)
class SearchLimits:
    """How far each search method goes. All are counts but where another unit is named.

    Attributes:
        pairs: csg-cmp-pairs that DPhyp compares in one group; about sixty milliseconds.
        always_exact: components of at most so many relations have at most 261,625 pairs and are always searched
            exactly: with `always_exact_factor` times the budget.
        always_exact_factor: see there.
        sets_per_pair: sets that DPhyp may grow for each pair of the budget; a set without a pair takes time, too.
        recorded_pairs: pairs that may be priced a second time, for interesting partitionings; about a tenth of a
            second.
        partitioned_relations: relations that share keys with others; in larger groups no partitioning is tracked.
        halves_per_pair: halves of intervals that linearized DP may compare for each pair of the budget; they are
            cheaper than pairs.
        interval_relations: longest order that linearized DP takes where a graph is sparse: few of its intervals have a
            tree then.
        sparse, dense: edges for each relation of a graph that counts as sparse (a grid has two) and of one that counts
            as dense. In a dense graph the estimates of intervals take longer than their halves, so fewer are compared.
        subtree_relations: sub-trees of a greedy order of at most so many relations are ordered exactly.
        ikkbz_roots: roots for which IKKBZ makes an order.
        products: components that are put together in the best order; six have 301 ways to join two sets of them.
        greedy_steps: the greedy search looks at the deadline every so many steps; fewer take milliseconds.
    """

    pairs: int = 25_000
    always_exact: int = 12
    always_exact_factor: int = 14
    sets_per_pair: int = 4
    recorded_pairs: int = 25_000
    partitioned_relations: int = 64
    halves_per_pair: int = 8
    interval_relations: int = 300
    sparse: int = 2
    dense: int = 8
    subtree_relations: int = 10
    ikkbz_roots: int = 6
    products: int = 6
    greedy_steps: int = 128


@dataclass(frozen=True, eq=False)
class SearchContext:
    """One join group that is to be ordered.

    Attributes:
        graph: the join graph.
        estimates: rows and bytes of its sets of vertices.
        cost: the cost model that is minimised.
        deadline: when to stop.
        limits: how far to go.
    """

    graph: JoinGraph
    estimates: GraphEstimates
    cost: CostModel
    deadline: Deadline = field(default_factory=Deadline)
    limits: SearchLimits = SearchLimits()

    @cached_property
    def costs(self) -> JoinCosts:
        """What joins and orders of the graph cost."""
        return JoinCosts(self.graph, self.estimates, self.cost, self.limits.partitioned_relations)

    @cached_property
    def canonical(self) -> tuple[int, ...]:
        """All vertices in canonical order (`joins.graph.canonical_order`)."""
        return tuple(canonical_order(self.graph, self.estimates))

    def bytes(self, relations: int) -> float:
        """Estimated bytes of the join of a set of vertices."""
        return self.estimates.size(relations).bytes
