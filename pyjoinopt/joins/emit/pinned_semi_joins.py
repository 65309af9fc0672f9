"""Semi and anti joins that are pinned above other joins.

    SELECT * FROM sales JOIN item ON … JOIN day ON … WHERE EXISTS (SELECT 1 FROM returns WHERE returns.id = sales.id)

An order may probe `returns` late, with the few rows that the other joins leave. Spark would undo that: its rule
PushLeftSemiLeftAntiThroughJoin pushes a semi or anti join below inner and outer joins, to the relation whose columns it
reads, however many rows that relation has. No rule pushes an existence join. It marks each row of its left side with
whether it has a partner, so with a filter on the mark it equals the semi or anti join, and it remains where the order
has it. Spark itself makes existence joins, of an EXISTS under an OR.

In a group with a fallible predicate nothing is pinned: as written, Spark evaluates an IN or EXISTS right above the
relation that it reads, and that may be what keeps `a.k = 0` from a join on `10 / a.k = b.k`.

An existence join has a price: Spark does not split a skewed one at run time, and the keys of its right side prune no
partitions of its left side. So a join is pinned only if it is probed with at most half of the rows that it would be
probed with otherwise, and the JVM makes no existence join by a partition column. Where a native engine is loaded
nothing is pinned: Comet has no existence join, so everything above one would fall back to Spark. The search is the same
then, and Spark may push the join down.
"""

from __future__ import annotations

from collections.abc import Container

from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.nodes import ANTI, INNER, LEFT, SEMI

#: A join is pinned if it is probed with at most this part of the rows that it would be probed with where Spark moves
#: it.
FEWER = 0.5


def should_pin(
    graph: JoinGraph, edge: OperatorEdge, left: JoinTree, estimates: GraphEstimates, pinned: Container[int] = ()
) -> bool:
    """Whether to emit a semi or anti join as an existence join, so that Spark cannot push it down.

    Args:
        graph: the join graph of the group.
        edge: the join.
        left: the order of its left side.
        estimates: rows of the joins of sets of relations.
        pinned: sets of relations below whose join Spark can push nothing, because it is pinned.
    """
    if edge.join_type not in (SEMI, ANTI) or not _has_key(edge) or edge.subquery is not None or graph.is_fallible:
        return False
    pushed = _pushed_to(graph, edge, left, pinned)
    return estimates.rows(left.relations) <= FEWER * estimates.rows(pushed.relations)


def _has_key(edge: OperatorEdge) -> bool:
    """True if some equality connects its sides; an anti join of a NOT IN has none but an own operator."""
    left = edge.ses & ~edge.semi_right
    return bool(left) and any(True for _ in equalities(edge.predicate))


def _pushed_to(graph: JoinGraph, edge: OperatorEdge, tree: JoinTree, pinned: Container[int]) -> JoinTree:
    """The part of its left side that Spark would move a semi or anti join to."""
    reads = edge.ses & ~edge.semi_right
    while tree.left is not None and tree.right is not None and tree.relations not in pinned:
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
