"""By which columns the rows of a plan are partitioned already, so that Spark need not shuffle them again.

A shuffled join leaves its rows partitioned by its keys, an aggregate by its groups. An aggregate takes rows that are
partitioned by some of its keys; a join wants both sides partitioned by all of its keys, as Spark comes
(spark.sql.requireAllClusterKeysForCoPartition).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.catalyst.planner.join_selection import BROADCAST_HASH, SHUFFLED_HASH, SORT_MERGE, JoinOperator
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)
from pyjoinopt.plan.operator_kinds import is_only_a_name

#: Sets of columns, as bits; the rows are partitioned by each of them. None if that is not known.
Partitioning = tuple[int, ...]
UNKNOWN: Partitioning = ()
#: Spark's choice for a join.
OperatorOf = Callable[[Join], JoinOperator]
_SHUFFLED = (SORT_MERGE, SHUFFLED_HASH)
#: The sides of a join of each type whose columns are in its result and are never padded with NULLs.
UNPADDED = {RIGHT: (1,), **dict.fromkeys((LEFT, SEMI, ANTI, EXISTENCE), (0,)), **dict.fromkeys(INNER_LIKE, (0, 1))}


def satisfies(partitioning: Partitioning, columns: int) -> bool:
    """Whether rows that agree in all of these columns are in one partition."""
    return any(not by & ~columns for by in partitioning)


def join_keys(join: Join) -> tuple[int, int]:
    """The columns that are keys of the left and of the right side; 0 if one of them is computed, or there is none."""
    found = extract_equi_keys(join)
    return (0, 0) if found is None else (columns_of(found.left), columns_of(found.right))


def after_join(join: Join, operator: JoinOperator, streamed: Partitioning) -> Partitioning:
    """How the result of a join is partitioned.

    Args:
        join, operator: the join, and Spark's choice for it.
        streamed: how the side is partitioned that a broadcast join does not build.
    """
    if operator.name == BROADCAST_HASH:
        return streamed
    if operator.name not in _SHUFFLED:
        return UNKNOWN
    sides = join_keys(join)
    return tuple(sides[i] for i in UNPADDED.get(join.join_type, ()) if sides[i])


def partitioning_of(plan: LogicalPlan, operator: OperatorOf) -> Partitioning:
    """How the rows of a plan are partitioned.

    Args:
        plan: any plan.
        operator: Spark's choice for a join.
    """
    while not plan.cached:
        if isinstance(plan, (Filter, Project)) or is_only_a_name(plan):
            plan = plan.children[0]
        elif isinstance(plan, Aggregate):
            by = columns_of(plan.grouping)
            return (by,) if by else UNKNOWN
        elif isinstance(plan, Join):
            found = operator(plan)
            if found.name != BROADCAST_HASH:
                return after_join(plan, found, UNKNOWN)
            plan = plan.right if found.build == "left" else plan.left
        else:
            break
    return UNKNOWN


def columns_of(expressions: Sequence[Expression]) -> int:
    """These columns as bits; 0 if one of them is computed."""
    if any(e.kind != "AttributeReference" for e in expressions):
        return 0
    mask = 0
    for e in expressions:
        mask |= e.references
    return mask
