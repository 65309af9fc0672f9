"""What operators with one child do to its rows: one table, which every room reads.

An operator that is not in the table may do anything. The columns of the table:

| field | meaning |
|---|---|
| rows | EACH: every row of the child comes once; SOME: some of them, each once; OTHER: not so |
| columns | a column of the child keeps its identity and, in each row, its value (a column may be added) |
| adds | the operator adds columns |
| is_name | it changes nothing at all: a name, or a hint |
| filters | a filter on the child's columns gives the same rows above and below it (Catalyst pushes it through) |
| duplicates | which rows there are above, duplicates aside, depends only on which there are below, duplicates aside |
| partitioning | rows remain in their partitions |

Reimplementations of Catalyst classes keep the lists that those classes have, which differ on purpose:
`plan.facts.max_rows` (`maxRows`), `plan.facts.distinct_keys`, `catalyst.planner.*`, `catalyst.rules.*`. Catalyst sees
no names there, and what it leaves out (such as CollectMetrics in its DistinctKeyVisitor) decides about its plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyjoinopt.plan.nodes import LogicalPlan


class Rows(Enum):
    """How the rows of an operator relate to those of its child."""

    EACH = "every row once"
    SOME = "some rows, each once"
    OTHER = "other rows"


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """One row of the table; see the module's text for the fields."""

    rows: Rows = Rows.OTHER
    columns: bool = False
    adds: bool = False
    is_name: bool = False
    filters: bool = False
    duplicates: bool = False
    partitioning: bool = False


_EACH, _SOME = Rows.EACH, Rows.SOME
_NAME = OperatorKind(_EACH, columns=True, is_name=True, filters=True, duplicates=True, partitioning=True)
_SHUFFLE = OperatorKind(_EACH, columns=True, filters=True, duplicates=True)
_LIMIT = OperatorKind(_SOME, columns=True)

#: Kind of an operator (Catalyst's class name) -> what it does. HintScope is the session extension's.
OPERATOR_KINDS: dict[str, OperatorKind] = {
    "SubqueryAlias": _NAME,
    "View": _NAME,
    "ResolvedHint": _NAME,
    "UnresolvedHint": _NAME,
    "HintScope": _NAME,
    # Several references may read a definition, so nothing that one reader does may be done below it.
    "CTERelationDef": OperatorKind(_EACH, columns=True, duplicates=True, partitioning=True),
    "WithWindowDefinition": OperatorKind(_EACH, columns=True, filters=True, duplicates=True, partitioning=True),
    # Its aggregates are reported to the user: no row may be added or dropped below it.
    "CollectMetrics": OperatorKind(_EACH, columns=True, partitioning=True),
    "EventTimeWatermark": OperatorKind(_EACH, columns=True, partitioning=True),
    "Sort": _SHUFFLE,
    "Repartition": _SHUFFLE,
    "RepartitionByExpression": _SHUFFLE,
    "RebalancePartitions": _SHUFFLE,
    "Project": OperatorKind(_EACH, duplicates=True, partitioning=True),
    # Its functions read the other rows of a window.
    "Window": OperatorKind(_EACH, columns=True, adds=True),
    "Filter": OperatorKind(_SOME, columns=True, filters=True, duplicates=True, partitioning=True),
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "Limit": _LIMIT,
    "Offset": _LIMIT,
    "Tail": _LIMIT,
    "WindowGroupLimit": _LIMIT,
    "Distinct": OperatorKind(_SOME, columns=True, filters=True, duplicates=True),
    # Which of the rows with one key it keeps is not defined.
    "Deduplicate": OperatorKind(_SOME, columns=True),
}
_UNKNOWN = OperatorKind()


def operator_kind(node: LogicalPlan) -> OperatorKind:
    """What an operator does to the rows of its child; of one that is not in the table: anything."""
    return OPERATOR_KINDS.get(node.kind, _UNKNOWN)


def _those(*, rows: tuple[Rows, ...] = (Rows.EACH, Rows.SOME), **wanted: bool) -> frozenset[str]:
    return frozenset(
        name
        for name, kind in OPERATOR_KINDS.items()
        if kind.rows in rows and all(getattr(kind, field) == value for field, value in wanted.items())
    )


#: Operators that are only names or hints.
NAMES = _those(is_name=True)
#: Operators that join hints are; a join takes those of its sides (Catalyst's EliminateResolvedHint).
HINTS = frozenset({"ResolvedHint", "UnresolvedHint"})
#: Operators that compare or match whole rows by position, so they read every column of their children.
COMPARES_ROWS = frozenset({"Distinct", "Union", "Intersect", "Except", "UnionLoop", "CTERelationDef"})
#: Every row comes once, with its columns; there may be others.
ROWS_ONE_TO_ONE = _those(rows=(Rows.EACH,), columns=True)
#: Some or all rows, each once, with exactly the columns of the child.
ROW_SUBSETS = _those(columns=True, adds=False)
#: At most as many rows as the child has.
NEVER_MORE_ROWS = _those()
#: A filter on the child's columns may be evaluated above or below.
PASSES_FILTERS = _those(filters=True)
#: Where duplicates do not matter above, they do not matter below.
IGNORES_DUPLICATES = _those(duplicates=True)
#: Rows remain in their partitions.
KEEPS_PARTITIONING = _those(partitioning=True)


def is_only_a_name(node: LogicalPlan) -> bool:
    """True for a subquery alias, and for a view that gives its child's columns as they are.

    The plan without the node is the same to Catalyst (`EliminateSubqueryAliases`, `EliminateView`). Hints are not among
    these: Catalyst moves them into joins first.
    """
    return node.kind == "SubqueryAlias" or (
        node.kind == "View" and len(node.children) == 1 and node.output == node.children[0].output
    )


def without_aliases(plan: LogicalPlan) -> LogicalPlan:
    """The plan without the aliases and views on top of it."""
    while is_only_a_name(plan) and not plan.cached:
        (plan,) = plan.children
    return plan
