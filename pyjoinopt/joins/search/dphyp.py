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
can be split anywhere: it connects two sets that together complete it. While a set grows, such an edge contributes its
smallest missing vertex as a stand-in neighbour. A set that was grown over a stand-in may not be connected (yet): no
plan is known for it then, and it is grown further but joined with nothing. A single stand-in keeps the argument of 1-3
valid: the rest of the edge is never among the excluded vertices.

**Outer, semi and anti joins** make some pairs illegal. Whether a pair is legal depends on its two sets alone, so the
best order of a set remains the best part of any order.

Vertices are numbered canonically first (`joins.graph.canonical_order`), and only a strictly cheaper plan replaces
another. So plans of equal cost end in the same tree, in whatever order the query was written. A budget limits the pairs
that are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyjoinopt.cost.size import Size
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.dphyp_enumerator import DPhyp
from pyjoinopt.joins.search.pair_budget import Exhausted, certainly_over_budget
from pyjoinopt.joins.search.search_context import SearchContext


@dataclass(frozen=True, slots=True)
class Exact:
    """What DPhyp has found.

    Attributes:
        tree: the best tree.
        cost: its cost.
        pairs: pairs that were compared for it.
        sizes: all sets that have a tree, and their sizes.
    """

    tree: JoinTree
    cost: float
    pairs: int
    sizes: Mapping[int, Size]


def exact(
    context: SearchContext, budget: int, within: int | None = None, partitioned: bool = False
) -> Exact | None:
    """The cheapest tree without needless cross products.

    Args:
        context: the group.
        budget: pairs to compare at most.
        within: only these vertices; None for all.
        partitioned: whether to compare plans that reuse a partitioning, too, if there can be any.

    Returns:
        None if the budget did not suffice, if the deadline passed, or if the vertices are not connected.
    """
    chosen = context.graph.everything if within is None else within
    if certainly_over_budget(context.graph, chosen, budget):
        return None
    run = DPhyp(context, [v for v in context.canonical if chosen >> v & 1], budget, partitioned)
    try:
        run.run()
    except Exhausted:
        return None
    found = run.result()
    return None if found is None else Exact(*found, run.pairs, run.sizes)
