"""Which columns identify the rows of a plan.

*Distinct keys* are sets of columns that no two output rows share: the grouping columns of an aggregate, all columns
of a DISTINCT, any column of a single row. They survive whatever only drops rows; a join keeps those of one side if it
matches at most one row of the other. They are computed on demand, once per node.

Source: Catalyst's `DistinctKeyVisitor`, except that a null-safe equality is no key of a join here, and that keys pass a
WindowGroupLimit and names (`catalyst.planner.distinct_keys` is exact). Keys that statistics prove are propagated in
`estimation.plans.unique_keys`, because they come with bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pyjoinopt.plan.equi_keys import hash_keys
from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import ANTI, INNER, LEFT, RIGHT, SEMI, Aggregate, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import NAMES
from pyjoinopt.util.node_memo import NodeMemo

#: Operators that keep the keys of their child: those of Catalyst's DistinctKeyVisitor, names, which Catalyst has
#: removed, and WindowGroupLimit, which it adds after the rules that read keys.
_KEEP_KEYS = NAMES | frozenset(
    "Filter Sort Window WindowGroupLimit GlobalLimit LocalLimit Offset Tail".split()
    + "Repartition RepartitionByExpression RebalancePartitions".split()
)
_NONE: frozenset[frozenset[Any]] = frozenset()

Keys = frozenset[Any]
_K = TypeVar("_K")


class DistinctKeys:
    """Distinct keys of the nodes of one plan, remembered by node."""

    keeps = _KEEP_KEYS

    def __init__(self) -> None:
        self._keys = NodeMemo[LogicalPlan, frozenset[Keys]]()

    def __call__(self, plan: LogicalPlan) -> frozenset[Keys]:
        """Sets of expression keys (`Expression.key`), each unique over the rows of `plan`; the empty set: one row."""
        return self._keys.filled(plan, lambda node: node.children, self._keys_of)

    def _keys_of(self, node: LogicalPlan) -> frozenset[Keys]:
        below = [self._keys[child] for child in node.children]
        if isinstance(node, Aggregate):
            return projected_keys(_added(below[0], frozenset(g.key for g in node.grouping)), node.aggregates)
        if isinstance(node, Project):
            return projected_keys(below[0], node.projections)
        if isinstance(node, Join):
            return self._keys_of_join(node, below[0], below[1])
        if node.kind == "Distinct" or (node.kind in ("Except", "Intersect") and not node.info.get("all", True)):
            return frozenset({frozenset(_column(a) for a in node.output)})
        if node.kind == "GlobalLimit" and node.info.get("limit") in (0, 1):
            return frozenset(frozenset({_column(a)}) for a in node.output)
        if node.kind == "Sample":
            return _NONE if node.info.get("replacement", True) else below[0]
        if node.kind == "WithCTE":
            return below[-1]
        return below[0] if node.kind in self.keeps and below else _NONE

    def _keys_of_join(self, node: Join, left: frozenset[Keys], right: frozenset[Keys]) -> frozenset[Keys]:
        if node.join_type in (SEMI, ANTI):
            return left
        of_left, of_right = self.compared(node) if left or right else ((), ())
        return joined_keys(node.join_type, left, right, is_unique(left, of_left), is_unique(right, of_right))

    def compared(self, join: Join) -> tuple[Sequence[Expression], Sequence[Expression]]:
        """The expressions over either side that a join requires to be equal, pair by pair."""
        pairs = hash_keys(join)
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _added(keys: frozenset[Keys], new: Keys) -> frozenset[Keys]:
    """With one more key, unless a smaller one is known; without the keys that contain it."""
    return keys if any(key <= new for key in keys) else frozenset({key for key in keys if not new <= key} | {new})


def _column(attribute: Attribute) -> Any:
    return reference(attribute).key


def joined_keys(
    join_type: str, left: frozenset[_K], right: frozenset[_K], left_unique: bool, right_unique: bool
) -> frozenset[_K]:
    """The keys of the result of an inner or outer join: a row repeats only if it has several partners.

    Args:
        join_type: its type; semi and anti joins have the keys of their left side, whatever is unique.
        left, right: keys of the sides, in any form.
        left_unique, right_unique: whether the side has at most one row for each value of the join keys.

    >>> sorted(joined_keys("Inner", frozenset("a"), frozenset("b"), True, True))
    ['a', 'b']
    >>> joined_keys("LeftOuter", frozenset("a"), frozenset("b"), True, False)
    frozenset()
    """
    kept: frozenset[_K] = frozenset()
    if right_unique and join_type in (INNER, LEFT):
        kept |= left
    if left_unique and join_type in (INNER, RIGHT):
        kept |= right
    return kept


def is_unique(keys: frozenset[Keys], columns: Iterable[Expression]) -> bool:
    """True if some distinct key is among the columns, so that no two rows share all their values; False for none."""
    have = frozenset(c.key for c in columns)
    return bool(have) and any(key <= have for key in keys)


def projected_keys(keys: frozenset[Keys], listed: tuple[Expression, ...]) -> frozenset[Keys]:
    """The distinct keys that a list of columns and aliases still holds, renamed where it renames."""
    names: dict[Any, Any] = {}
    kept = set()
    for e in listed:
        if e.attribute is None:
            continue
        column = reference(e.attribute).key
        kept.add(column)
        if e.kind == "Alias":
            names[e.children[0].key] = column  # of several names the last, as Catalyst has it
    found = {key for key in keys if key <= kept}
    return frozenset(
        found | {renamed for renamed in (frozenset(names.get(k, k) for k in key) for key in keys) if renamed <= kept}
    )
