"""Which joins may be ordered together: the join groups of a plan.

A group is a connected set of joins, together with all operators between them that need not remain between them:

    Project [c.name, total]                       not part of the group: it is on top of it
      Join  o.key = i.key AND i.qty > o.min   \\
        Project [o.key, o.min, upper(o.tag)]   |  the group: two joins, a filter and a projection;
          Join o.cust = c.cust                 |  its inputs are c, o and i
            Filter (o.total > 5)               |
            ...                               /

* A **filter** gives its conjuncts to the group. One with a subquery becomes a filter again, of an input if it reads
  only that.
* A **projection** that renames or drops columns disappears (expression ids identify columns). A computed column that
  reads one input is computed on that input. One that reads several, or that could throw on rows that a later join
  removes, is *deferred*: computed once on top of the whole group. Predicates over it are rewritten in terms of what it
  is computed from.
* A **subquery alias or view** is only a name.
* A **semi or anti join** filters by another relation: it may be applied as soon as all columns that it compares are
  there, and adds no columns. Its left side belongs to the group, its right side is one input.
* A **left, right or full join** has both sides in the group. `joins.graph.eligibility` works out what must be joined
  before it, and what must not. A column that is computed above it from columns that it pads is deferred. Where that
  group is itself a side that another outer join pads, the group ends there instead.

Anything else ends the group and becomes an *input*: scans, aggregates, limits, cached frames, existence joins, hinted
joins, and any operator with an expression that must not move (a Python UDF, `rand()`, an outer reference). Ending a
group is always safe; each place where it might surprise a user is recorded as a refusal with its reason.

Groups are found in one bottom-up walk. An input's place in the written order is an interval of leaf positions, so "the
relations below this join" is an interval, too, and merging two groups costs the size of the smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyjoinopt.joins.groups.fallible_order import spark_decides_order
from pyjoinopt.joins.groups.join_group import JoinGroup, JoinInput
from pyjoinopt.joins.groups.merge_groups import (
    computes_deferred,
    exceeds_inline_limit,
    guard,
    merged,
    outer_joined,
    place_column,
    semi_right,
    tests_costly,
    with_conjuncts,
)  # fmt: skip
from pyjoinopt.joins.groups.open_group import OpenGroup
from pyjoinopt.plan.expressions import CORRELATED, Expression, conjuncts, describe, walk
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import (
    ANTI,
    FULL,
    INNER_LIKE,
    LEFT,
    NO_HINT,
    OUTER,
    RIGHT,
    SEMI,
    Filter,
    Join,
    LogicalPlan,
    Project,
    SubqueryAlias,
)  # fmt: skip
from pyjoinopt.plan.outer_references import row_references
from pyjoinopt.plan.traversal import post_order

#: Marks that the session extension puts on joins in the place of a hint.
_WHY_KEPT = {
    "KEEP_JOIN_ORDER": "the hint KEEP_JOIN_ORDER keeps it in place",
    "NOT_ASKED": "the session is switched off, and no OPTIMIZE_JOINS hint covers it",
}
#: No predicates.
NOTHING: Mapping[int, Sequence[Expression]] = MappingProxyType({})
_PADDED = "a column that is computed below it is NULL in the rows that it pads, so it cannot be computed above it"
_SAME_COLUMNS = "both sides of it have the same columns, which a projection hides"
_COSTLY = "it tests a computed column that is costly and may fail"
_SAME_PLACE = "two predicates of it may fail on the same rows, and which one Spark evaluates first depends on its plan"
_VARIANT = "it extracts a value from a VARIANT, which Spark may do below the join, on rows for which it fails"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was left as written, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class FoundGroups:
    """The join groups of a plan.

    Attributes:
        groups: the id of each group's top node -> the group.
        refusals: what ended a group although it is a join or is between joins.
    """

    groups: dict[int, JoinGroup]
    refusals: tuple[Refusal, ...]


def find_groups(root: LogicalPlan, from_above: Mapping[int, Sequence[Expression]] = NOTHING) -> FoundGroups:
    """The join groups of a plan; plans of subqueries are not entered.

    Args:
        root: the plan.
        from_above: id of a node -> predicates that Spark moves down to it from above other operators.
    """
    finder = _GroupFinder(from_above)
    return FoundGroups(finder.find(root), tuple(finder.refusals))


class _GroupFinder:
    """One bottom-up walk; the groups of nodes whose parents are still to come are open."""

    def __init__(self, from_above: Mapping[int, Sequence[Expression]]) -> None:
        self._from_above = from_above
        self.groups: dict[int, JoinGroup] = {}
        self.refusals: list[Refusal] = []
        self._positions = 0
        self._hinted: dict[int, bool] = {}
        self._open_groups: dict[int, OpenGroup | None] = {}
        self._shared: set[int] = set()

    def find(self, root: LogicalPlan) -> dict[int, JoinGroup]:
        """The groups by the id of their top node; subquery plans are not entered."""
        nodes = list(post_order(root))
        parents = Counter(id(child) for node in nodes if not node.cached for child in node.children)
        self._shared = {key for key, count in parents.items() if count > 1}
        for node in nodes:
            if node.cached:
                self._open_groups[id(node)] = None
                continue
            self._hinted[id(node)] = self._carries_hint(node)
            group = self._group_at(node)
            if group is None:
                for child in node.children:
                    self._guard(child, node.condition if isinstance(node, (Filter, Join)) else None)
                    self._close(child)
            self._open_groups[id(node)] = group
        self._close(root)
        return self.groups

    def refuse(self, node: LogicalPlan, reason: str) -> None:
        """Record that a group ends at `node`."""
        text = f"{node.kind} {describe(node.expressions[0], 80)}" if node.expressions else node.kind
        self.refusals.append(Refusal(text, reason))

    # -- one node ----------------------------------------------------------------------------------------------

    def _group_at(self, node: LogicalPlan) -> OpenGroup | None:
        if isinstance(node, Join):
            return self._join(node)
        if len(node.children) != 1:
            return None
        below = self._below(node.children[0])
        if below is None:
            return None
        if isinstance(node, Filter):
            return self._filter(node, below)
        if isinstance(node, (Project, SubqueryAlias)) or node.kind in ("View", "HintScope"):
            below.pending.append(node)
            return below
        return None

    def _below(self, child: LogicalPlan) -> OpenGroup | None:
        group = self._open_groups[id(child)]
        return group.copy() if group is not None and id(child) in self._shared else group

    def _join(self, node: Join) -> OpenGroup | None:
        is_semi_or_anti = node.join_type in (SEMI, ANTI)
        if node.join_type not in INNER_LIKE | OUTER and not (is_semi_or_anti and node.condition is not None):
            return None
        if node.hint != NO_HINT or any(self._hinted.get(id(c)) for c in node.children):
            yours = "it carries a join hint of yours, which keeps it in place"
            self.refuse(node, _WHY_KEPT.get(node.hint[0] or "", yours))
            return None
        for predicate in conjuncts(node.condition):
            if not fallibility.is_movable(predicate):
                self.refuse(node, fallibility.why_not_movable(predicate))
                return None
        if node.condition is not None and fallibility.extracts_variant(node.condition):
            self.refuse(node, _VARIANT)
            return None
        left, right = self._sides(node, is_semi_or_anti)
        for child, open_ in ((node.left, left), (node.right, right)):
            if open_ is None:
                self._guard(child, node.condition)
        opened = self._open(node.left, left), self._open(node.right, right)
        inlined_size = opened[0].inlined_size + opened[1].inlined_size
        if exceeds_inline_limit({**opened[0].deferred, **opened[1].deferred}, node.condition, inlined_size):
            self.refuse(node, "its condition would grow too long with its columns replaced by their expressions")
            opened = self._open(node.left, None), self._open(node.right, None)
        if is_semi_or_anti:
            return semi_right(node, *opened)
        if node.join_type in OUTER:
            return outer_joined(node, *opened)
        return with_conjuncts(merged(node, *opened), node)

    def _sides(self, node: Join, is_semi_or_anti: bool) -> tuple[OpenGroup | None, OpenGroup | None]:
        """The groups of a join's sides; None for a side at which the group of the join ends."""
        left = self._below(node.left)
        right = None if is_semi_or_anti else self._below(node.right)
        if left is not None and node.join_type in (RIGHT, FULL) and computes_deferred(left):
            self.refuse(node, _PADDED)
            left = None
        if right is not None and node.join_type in (LEFT, FULL) and computes_deferred(right):
            self.refuse(node, _PADDED)
            right = None
        visible = [r.visible if r else c.output_set for r, c in zip((left, right), node.children, strict=True)]
        if visible[0] & visible[1]:
            if left is not None or right is not None:
                self.refuse(node, _SAME_COLUMNS)
            left = right = None
        if tests_costly(left, node.condition) or tests_costly(right, node.condition):
            self.refuse(node, _COSTLY)
            left = right = None
        if node.subquery is not None and left is not None and _reads_computed(left, node.condition):
            left = None  # the predicate reads its columns by their ids
        return left, right

    def _filter(self, node: Filter, below: OpenGroup) -> OpenGroup | None:
        for predicate in conjuncts(node.condition):
            if not fallibility.is_movable(predicate) and not _may_move_into_inputs(predicate, below):
                if not below.pending:
                    self.refuse(node, fallibility.why_not_movable(predicate))
                return None
        if fallibility.extracts_variant(node.condition):
            # Spark makes it a part of the join below, which must get no projection then, either.
            self.refuse(node, _VARIANT)
            self._open_groups[id(node.child)] = None
            return None
        if tests_costly(below, node.condition):
            self.refuse(node, _COSTLY)
            return None
        if not self._absorb(below) or exceeds_inline_limit(below.deferred, node.condition, below.inlined_size):
            return None
        below.top = node
        return with_conjuncts(below, node)

    def _open(self, child: LogicalPlan, group: OpenGroup | None) -> OpenGroup:
        """The child's group without its projections, or else the child as an input."""
        if group is not None and self._absorb(group):
            return group
        self._close(child)
        position, self._positions = self._positions, self._positions + 1
        owners = {attribute.bit: position for attribute in child.output}
        items = {position: JoinInput(child)}
        return OpenGroup(child, items, position, position, position + 1, child.output_set, owners)

    def _guard(self, child: LogicalPlan, condition: Expression | None) -> None:
        """Record in the group below a condition what Spark will move into it."""
        group = self._open_groups.get(id(child))
        if group is not None:
            guard(group, [p for p in conjuncts(condition) if not row_references(p) & ~child.output_set])

    def _close(self, node: LogicalPlan) -> None:
        """The group that ends at `node`, if any, is complete."""
        group = self._open_groups.get(id(node))
        if group is not None and len(group.items) > 1:
            guard(group, self._from_above.get(id(node), ()))
            closed = group.closed()
            if spark_decides_order(closed):
                self.refuse(group.top, _SAME_PLACE)
            else:
                self.groups[id(group.top)] = closed

    # -- projections in between --------------------------------------------------------------------------------

    def _absorb(self, group: OpenGroup) -> bool:
        """Absorb the pending projections; False, and nothing done, if one of them must be kept."""
        computed = 0
        for node in group.pending:
            for e in node.expressions:
                if e.kind not in ("Alias", "AttributeReference") or not fallibility.is_movable(e):
                    self.refuse(node, fallibility.why_not_movable(e))
                    return False
                if fallibility.extracts_variant(e):
                    self.refuse(node, _VARIANT)
                    return False
                if e.kind == "Alias":
                    if e.attribute is None or e.attribute.mask & (group.attributes | computed):
                        return False
                    computed |= e.attribute.mask
        for node in group.pending:
            group.hidden.extend(node.info.get("hidden", ()))
            for e in node.expressions:
                if e.kind == "Alias":
                    place_column(group, e)
        group.pending.clear()
        return True

    def _carries_hint(self, node: LogicalPlan) -> bool:
        """True if a join above would get a hint from this side (Catalyst's EliminateResolvedHint)."""
        if node.kind in ("ResolvedHint", "UnresolvedHint"):
            return True
        if len(node.children) == 1 or node.kind in ("Intersect", "Except"):
            return self._hinted.get(id(node.children[0]), False)
        return False


def _may_move_into_inputs(predicate: Expression, below: OpenGroup) -> bool:
    """True if a predicate with subqueries could be evaluated by a filter on some inputs of the group.

    The outer references of a correlated subquery cannot be rewritten in terms of other columns, and no two columns may
    have one id.
    """
    if not fallibility.has_movable_subquery(predicate):
        return False
    if predicate.contains & CORRELATED and _reads_computed(below, predicate):
        return False
    return not any(e.plan is not None and e.plan.output_set & below.visible for e in walk(predicate))


def _reads_computed(group: OpenGroup, predicate: Expression | None) -> bool:
    """True if a predicate reads a column that is, or has to be, deferred."""
    computed = sum(1 << bit for bit in group.deferred)
    for node in group.pending:
        computed |= sum(e.attribute.mask for e in node.expressions if e.kind == "Alias" and e.attribute is not None)
    return predicate is not None and bool(predicate.references & computed)
