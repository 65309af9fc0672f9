"""DPhyp: the best join order, by dynamic programming over the connected subgraphs of a hypergraph.

The best tree for a set of relations joins the best trees of two halves of it. Most halvings are cross products. Wanted
are the pairs of a connected subgraph and a connected complement that a predicate connects (csg-cmp-pairs). Take

    SELECT * FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.z = d.z          (the chain a - b - c - d)

Of the 25 ways to halve the subsets of this chain, 10 are such pairs. Spark's own search tries all 25, and takes a
minute for twelve relations. DPhyp enumerates the pairs alone (Moerkotte and Neumann 2006, section 3; for hypergraphs
2008, section 3):

1. Every connected subgraph is grown from its smallest vertex by adding neighbours. Vertices smaller than that one are
   excluded, and neighbours that were passed over once stay excluded further down, so each subgraph is made once. Start
   vertices are taken from the last to the first.
2. The complements of a subgraph are grown in the same way from its neighbours, none smaller than its smallest vertex,
   so each pair appears once.
3. Subgraphs come after their subsets, so when a pair appears, both halves are final.

**Hyperedges.** A predicate over three or more relations, or one that must wait for others, is a set of vertices that
can be split anywhere: it ties two sets that together complete it. For growing, such an edge lends its smallest
missing vertex as a stand-in neighbour. A set grown over a stand-in may not hang together (yet), which shows in that
no plan is known for it; such a set is grown further but joined with nothing. Standing in by one vertex keeps the
argument of 1-3: the rest of the edge is never among the vertices that are out of bounds.

**Outer, semi and anti joins** allow some pairs and not others, which is asked of each pair that is tied. What the
answer depends on are the two sets, so the best order of a set stays the best part of any order.

Vertices are numbered canonically first (see `canonical_order`) and only a strictly better plan replaces one, so equal
costs end in the same tree, whatever the order in which the query was written. A budget bounds the pairs that are looked
at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyjoinopt.cost.model import CostModel
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.canonical_order import canonical_order
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.dphyp_enumerator import DPhyp, Exhausted
from pyjoinopt.joins.search.interesting_partitionings import Partitionings
from pyjoinopt.joins.search.pair_budget import certainly_over_budget


@dataclass(frozen=True, slots=True)
class Exact:
    """The best tree, its cost, and the number of pairs that were compared for it."""

    tree: JoinTree
    cost: float
    pairs: int


def exact(
    graph: JoinGraph,
    estimates: GraphEstimates,
    cost: CostModel,
    budget: int,
    within: int | None = None,
    canonical: Sequence[int] | None = None,
    stop: Callable[[], bool] | None = None,
    partitionings: Partitionings | None = None,
) -> Exact | None:
    """The cheapest tree without needless cross products.

    Args:
        graph: the join graph.
        estimates: sizes of its sets of vertices.
        cost: the cost model.
        budget: pairs of sets to compare at most.
        within: only these vertices; None for all.
        canonical: all vertices in canonical order, if that is known.
        stop: asked now and then; True to give up.
        partitionings: prices of plans that join on one key in a row, if those are to be looked for, too.

    Returns:
        None if the budget did not suffice, on `stop`, or if the vertices do not hang together.
    """
    chosen = graph.everything if within is None else within
    if certainly_over_budget(graph, chosen, budget):
        return None
    order = [v for v in canonical or canonical_order(graph, estimates) if chosen >> v & 1]
    search = DPhyp(graph, estimates, cost, budget, order, stop)
    if partitionings is not None:
        search.recorded = []
    try:
        search.run()
    except Exhausted:
        return None
    found = search.result(partitionings)
    return None if found is None else Exact(*found, search.pairs)
