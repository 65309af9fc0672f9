"""Semi and anti joins that have to be held above other joins.

An order may ask for an IN or EXISTS late, of the few rows that other joins leave. Spark would undo that: its rule
PushLeftSemiLeftAntiThroughJoin moves a semi or anti join below inner and outer joins, to the relation that it reads,
however many rows that has. No rule moves an existence join. It marks each row of its left side by whether it has a
partner, so with a filter on the mark it is the semi or anti join, and stays where it was put; Spark itself makes the
like of an EXISTS under an OR.

Where a predicate of the group may fail, none is held: as written, Spark tests an IN or EXISTS on the relation that it
reads, and that may be what keeps `a.k = 0` from a join on `10 / a.k = b.k`.

An existence join costs a little in return: a skewed one is not split at run time, and the keys of its right side prune
no partitions of its left side. So only those are held which are asked at most half the rows that way, and the JVM makes
none of a join by a column that tables are partitioned by. Where a native engine is loaded, none is held at all: Comet
has no existence join, so everything above one would go back to Spark. The search is the same then, and Spark may move
the join down.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.nodes import ANTI, INNER, LEFT, SEMI

#: Held are joins that are asked at most this part of the rows that they would be asked where Spark moves them.
FEWER = 0.5


def should_pin(
    graph: JoinGraph, edge: Edge, left: JoinTree, rows: Callable[[int], float], held: Container[int] = ()
) -> bool:
    """Should a join of an order be held where it is?

    Args:
        graph: of the group.
        edge: the join.
        left: the order of its left side.
        rows: of a set of vertices.
        held: the sets below which Spark can move nothing: results of other joins that are held.
    """
    if edge.join_type not in (SEMI, ANTI) or not _has_key(edge) or edge.subquery is not None or graph.is_fallible:
        return False
    return rows(left.relations) <= FEWER * rows(_pushed_to(graph, edge, left, held).relations)


def _has_key(edge: Edge) -> bool:
    """True if some equality ties its sides; an anti join made of NOT IN has none, but an operator of its own."""
    left = edge.relations & ~edge.right
    return bool(left) and any(p.kind in ("EqualTo", "EqualNullSafe") for p in conjuncts(edge.predicate))


def _pushed_to(graph: JoinGraph, edge: Edge, tree: JoinTree, held: Container[int]) -> JoinTree:
    """The part of its left side that Spark would move a semi or anti join to."""
    reads = edge.relations & ~edge.right
    while tree.left is not None and tree.right is not None and tree.relations not in held:
        left, right = tree.left, tree.right
        below = graph.operator(left.relations, right.relations)
        kind = INNER if below is None else below.join_type
        if not reads & ~left.relations and kind in (INNER, LEFT, SEMI, ANTI):
            tree = left
        elif not reads & ~right.relations and kind == INNER:
            tree = right
        else:
            break
    return tree
