"""Which operator Spark picks for a join, and which side it builds: the mirror of `JoinSelection` (SparkStrategies).

Five operators can join. With **keys** (`equi_keys`) rows are brought together by value:

* *broadcast hash join*: one side becomes a hash table on every executor, the other streams past it;
* *shuffled hash join*: both sides are shuffled by key, one becomes a hash table partition by partition;
* *sort merge join*: both sides are shuffled and sorted by key. Keys must have an order, sizes may be anything.

Without keys every pair of rows is looked at:

* *broadcast nested loop join*: one side is copied to every executor;
* *Cartesian product*: every partition is joined with every other one; inner joins only.

Hints decide first, in a fixed order; a hint that the type or the keys forbid is passed over. Then sizes:

    keys        BROADCAST  >  SHUFFLE_MERGE  >  SHUFFLE_HASH  >  SHUFFLE_REPLICATE_NL
                fits the threshold: broadcast; much smaller and sort merge not preferred: shuffled hash;
                keys can be sorted: sort merge; inner: Cartesian; else nested loop
    NOT IN      one column, right side within its own limit: broadcast hash, right, whatever the hints
    no keys     BROADCAST: nested loop  >  SHUFFLE_REPLICATE_NL: Cartesian
                fits the threshold: nested loop; inner: Cartesian; else nested loop

It works from Spark's *estimates* of sizes (`size_in_bytes`), which need not be true, and it is what Spark plans
before the query runs; adaptive execution may change its mind when it has seen real sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyjoinopt.catalyst.planner.build_side import (
    BROADCAST,
    BROADCASTS_LEFT,
    BROADCASTS_RIGHT,
    HASH,
    MERGE,
    NO_BROADCAST,
    REPLICATE,
    JoinConf,
    broadcast_side,
    desired_loop_side,
    hash_side,
    loop_side,
    required_loop_side,
    smaller_side,
)
from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys, null_aware_anti_keys
from pyjoinopt.catalyst.planner.key_types import is_binary_stable, is_orderable
from pyjoinopt.catalyst.planner.size_in_bytes import LeafBytes, SparkSizes, exported_bytes
from pyjoinopt.plan.expressions import SUBQUERY, Expression
from pyjoinopt.plan.nodes import INNER_LIKE, NO_HINT, SINGLE, Hint, Join, LogicalPlan

__all__ = [
    "BROADCAST", "BROADCASTS_LEFT", "BROADCASTS_RIGHT", "BROADCAST_HASH", "CARTESIAN", "HASH", "MERGE", "NESTED_LOOP",
    "REPLICATE", "SHUFFLED_HASH", "SORT_MERGE", "JoinConf", "JoinOperator", "predict_joins", "select", "select_join",
    "version_of",
]  # fmt: skip

BROADCAST_HASH = "BroadcastHashJoin"
SHUFFLED_HASH = "ShuffledHashJoin"
SORT_MERGE = "SortMergeJoin"
CARTESIAN = "CartesianProduct"
NESTED_LOOP = "BroadcastNestedLoopJoin"

#: Which Spark decides: (major, minor).
Version = tuple[int, int]


def version_of(spark: str) -> Version:
    """Major and minor version of a text such as "4.0.1"; the newest for any other text.

    >>> version_of("3.5.9"), version_of("")
    ((3, 5), (4, 3))
    """
    parts = spark.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else (4, 3)


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """A physical operator; `build` is the side that is built or broadcast ("left", "right"), if any."""

    name: str
    build: str | None = None


def predict_joins(
    root: LogicalPlan,
    conf: Mapping[str, str],
    sizes: LeafBytes = exported_bytes,
    spark: Version = (4, 3),
) -> list[tuple[Join, JoinOperator]]:
    """The operator that Spark will choose for every join of a plan, and the side that it builds.

    Args:
        root: an optimised plan: what Spark's planner is given.
        conf: Spark's settings as strings; those that are missing count as Spark comes. Estimates of the cost-based
            optimizer (spark.sql.cbo.enabled) are not made here.
        sizes: bytes of a leaf, None where Spark does not know them.
        spark: the version of Spark, (major, minor).

    Returns:
        Each join once, in plan order: a join before those below it, left before right; the joins of subquery plans
        after all others.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> small, large = relation("small", [a], rows=10), relation("large", [b], rows=10_000_000)
    >>> join = Join(small, large, "Inner", call("EqualTo", reference(a), reference(b)))
    >>> [operator for _, operator in predict_joins(join, {})]
    [JoinOperator(name='BroadcastHashJoin', build='left')]
    >>> [operator for _, operator in predict_joins(join, {"spark.sql.autoBroadcastJoinThreshold": "-1"})]
    [JoinOperator(name='SortMergeJoin', build=None)]
    """
    settings, spark_sizes = JoinConf.of(conf), SparkSizes(conf, None, sizes)
    found = []
    seen: set[int] = set()
    roots = [root]
    for plan in roots:
        stack = [plan]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Join):
                found.append((node, select(node, spark_sizes(node.left), spark_sizes(node.right), settings, spark)))
            roots.extend(_subqueries(node))
            stack.extend(() if node.cached else reversed(node.children))
    return found


def select(
    node: Join, left_bytes: float, right_bytes: float, conf: JoinConf, spark: Version = (4, 3)
) -> JoinOperator:  # fmt: skip
    """The operator for a join of a plan whose sides have these sizes; see `predict_joins`."""
    keys = extract_equi_keys(node)
    if keys is None:
        null_aware = null_aware_anti_keys(node) is not None
        return select_join(
            node.join_type, left_bytes, right_bytes, conf, False, node.hint, null_aware=null_aware, spark=spark
        )
    sortable = all(is_orderable(e.type) for e in keys.left)
    hashable = spark < (4, 0) or all(is_binary_stable(e.type) for e in keys.left + keys.right)
    return select_join(
        node.join_type, left_bytes, right_bytes, conf, True, node.hint, sortable, hashable, spark=spark
    )  # fmt: skip


def select_join(
    join_type: str,
    left_bytes: float,
    right_bytes: float,
    conf: JoinConf,
    equi: bool = True,
    hint: Hint = NO_HINT,
    sortable: bool = True,
    hashable: bool = True,
    null_aware: bool = False,
    spark: Version = (4, 3),
) -> JoinOperator:
    """The operator for a join.

    Args:
        join_type: the type, as `Join.join_type` has it.
        left_bytes, right_bytes: sizes as Spark estimates them.
        conf: the settings.
        equi: True if it has keys.
        hint: strategies of the two sides.
        sortable: False if the keys have no order (maps).
        hashable: False if the keys do not compare byte by byte (a collation).
        null_aware: True for a NOT IN over one column: `a = b OR (a = b) IS NULL`.
        spark: the version of Spark, (major, minor).

    >>> select_join("Inner", 1e9, 1e6, JoinConf())
    JoinOperator(name='BroadcastHashJoin', build='right')
    >>> select_join("LeftOuter", 1e6, 1e9, JoinConf())
    JoinOperator(name='SortMergeJoin', build=None)
    """
    if equi:
        return _with_keys(join_type, left_bytes, right_bytes, conf, hint, sortable, hashable, spark)
    if null_aware and conf.null_aware and (spark < (4, 2) or conf.fits_null_aware(right_bytes)):
        return JoinOperator(BROADCAST_HASH, "right")
    return _without_keys(join_type, left_bytes, right_bytes, conf, hint)


def _with_keys(
    kind: str, left: float, right: float, conf: JoinConf, hint: Hint, sortable: bool, hashable: bool, spark: Version
) -> JoinOperator:
    sortable = sortable and kind != SINGLE
    if hashable and (build := broadcast_side(kind, left, right, conf, hint, True)):
        return JoinOperator(BROADCAST_HASH, build)
    if MERGE in hint and sortable:
        return JoinOperator(SORT_MERGE)
    if hashable and (build := hash_side(kind, left, right, conf, hint, True)):
        return JoinOperator(SHUFFLED_HASH, build)
    cartesian = _can_be_cartesian(kind, hint)
    if REPLICATE in hint and cartesian:
        return JoinOperator(CARTESIAN)
    if hashable and (build := broadcast_side(kind, left, right, conf, hint, False)):
        return JoinOperator(BROADCAST_HASH, build)
    if hashable and (build := hash_side(kind, left, right, conf, hint, False, spark)):
        return JoinOperator(SHUFFLED_HASH, build)
    if sortable:
        return JoinOperator(SORT_MERGE)
    if cartesian:
        return JoinOperator(CARTESIAN)
    return JoinOperator(NESTED_LOOP, required_loop_side(kind, hint) or smaller_side(left, right))


def _without_keys(kind: str, left: float, right: float, conf: JoinConf, hint: Hint) -> JoinOperator:
    if build := loop_side(kind, left, right, conf, hint, True):
        return JoinOperator(NESTED_LOOP, build)
    cartesian = _can_be_cartesian(kind, hint)
    if REPLICATE in hint and cartesian:
        return JoinOperator(CARTESIAN)
    if build := loop_side(kind, left, right, conf, hint, False):
        return JoinOperator(NESTED_LOOP, build)
    if cartesian:
        return JoinOperator(CARTESIAN)
    return JoinOperator(NESTED_LOOP, required_loop_side(kind, hint) or desired_loop_side(kind, left, right))


def _can_be_cartesian(kind: str, hint: Hint) -> bool:
    return kind in INNER_LIKE and NO_BROADCAST not in hint


def _subqueries(node: LogicalPlan) -> list[LogicalPlan]:
    """The plans of a node's own subquery expressions, in Catalyst's order: an expression before its operands."""
    found = []
    stack: list[Expression] = [e for e in reversed(node.expressions) if e.contains & SUBQUERY]
    while stack:
        e = stack.pop()
        if e.plan is not None:
            found.append(e.plan)
        stack.extend(child for child in reversed(e.children) if child.contains & SUBQUERY)
    return found
