"""How far down a filter by a column may go, and what it may not be put below.

A column comes up from a relation through filters, projections, joins and, if it is a grouping key, aggregates. A filter
by it drops the same rows anywhere on that way, and the fewest are left to work on if it is at the lower end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyjoinopt.optimizer.prefilter.safety import is_safe
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import Attribute, Expression, conjuncts, walk
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
from pyjoinopt.plan.operator_kinds import is_only_a_name, without_aliases
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher


@dataclass(frozen=True)
class Place:
    """Where a semi join may go.

    Attributes:
        node: what it filters.
        column: by this column.
        aggregate: the lowest aggregate above it, if there is one.
    """

    node: LogicalPlan
    column: Attribute
    aggregate: LogicalPlan | None


def groups(node: LogicalPlan) -> bool:
    """Whether the rows of a node are groups of its child's rows."""
    return isinstance(node, Aggregate) or node.kind == "Distinct"


def grouping_keys(node: LogicalPlan) -> Iterator[tuple[Attribute, Attribute]]:
    """The columns by which a node groups its rows: each as a column of its child, and as one of its own."""
    if not isinstance(node, Aggregate):
        yield from ((a, a) for a in node.output)
        return
    keys = {g.attribute.bit for g in node.grouping if g.kind == "AttributeReference" and g.attribute is not None}
    for e in node.aggregates:
        value = e.children[0] if e.kind == "Alias" else e
        if value.kind == "AttributeReference" and value.attribute is not None and value.attribute.bit in keys:
            assert e.attribute is not None
            yield value.attribute, e.attribute


def is_grouped(plan: LogicalPlan) -> bool:
    """Whether a plan is the result of an aggregate or a DISTINCT, under names, projections and filters."""
    while not plan.cached and (isinstance(plan, (Filter, Project)) or is_only_a_name(plan)):
        plan = plan.children[0]
    return groups(plan)


class SharedPlans:
    """Sub-plans that a plan has twice."""

    def __init__(self, root: LogicalPlan) -> None:
        self._nodes: dict[tuple[int, int], list[LogicalPlan]] = {}
        self._read: dict[int, tuple[int, int]] = {}
        for node in post_order(root):
            self._read[id(node)] = read = self._reads(node)
            if isinstance(node, Join) or groups(node):
                self._nodes.setdefault(read, []).append(node)
        self._matcher = PlanMatcher(any_order=False)

    def __call__(self, node: LogicalPlan) -> bool:
        """Whether Spark computes this join once for several places, or what it shuffles for this aggregate."""
        alike = self._nodes.get(self._read.get(id(node), (0, 0)), ())
        return any(other is not node and self._same(node, other) for other in alike)

    def _reads(self, node: LogicalPlan) -> tuple[int, int]:
        """A number of leaves, and a number for what they read: only plans that share both can be the same."""
        if node.cached or not node.children:
            return 1, hash(node.info.get("alike"))
        below = [self._read[id(child)] for child in node.children]
        return sum(leaves for leaves, _ in below), sum(number for _, number in below)

    def _same(self, node: LogicalPlan, other: LogicalPlan) -> bool:
        if not isinstance(node, Aggregate) or not isinstance(other, Aggregate):
            return node.kind == other.kind and self._matcher.columns(node, other) is not None
        # What is shuffled are the functions' states; results that are computed of them may differ.
        known = self._matcher.columns(node.child, other.child)
        mine, theirs = _shuffled(node), _shuffled(other)
        return (
            known is not None
            and len(mine) == len(theirs)
            and all(self._matcher.same(x, y, known) for x, y in zip(mine, theirs, strict=True))
        )


def _shuffled(node: Aggregate) -> list[Expression]:
    """The grouping keys and the aggregate functions."""
    return [*node.grouping, *(e for listed in node.aggregates for e in walk(listed) if e.kind == "AggregateExpression")]


def lowest_place(plan: LogicalPlan, column: Attribute, shared: SharedPlans) -> Place | None:
    """The lowest plan that has a column of `plan`; None if a semi join tests the column already."""
    node, aggregate = plan, None
    while True:
        step = None if node.cached else _below(node, column)
        if step is None or ((isinstance(node, Join) or groups(node)) and shared(node)):
            return Place(node, column, aggregate)
        if _is_filtered_by(node, column):
            return None
        if groups(node):
            aggregate = node
        node, column = step


def _is_filtered_by(node: LogicalPlan, column: Attribute) -> bool:
    """Whether a semi join tests the column already, such as one that was put there before."""
    tested = equal_columns(node.condition) if isinstance(node, Join) and node.join_type == SEMI else ()
    return any(column.bit in (one.bit, other.bit) for one, other in tested)


def _below(node: LogicalPlan, column: Attribute) -> tuple[LogicalPlan, Attribute] | None:
    """The child that has the rows with a value of the column in the same way, and its column."""
    bare = without_aliases(node)
    if bare is not node:
        return bare, column
    if isinstance(node, Filter):
        child = without_aliases(node.child)
        # The filters of a relation are cheaper than a join.
        return (child, column) if child.children and is_safe(node.expressions) else None
    if isinstance(node, Project):
        return _through(node, node.projections, column) if all(e.deterministic for e in node.projections) else None
    if isinstance(node, Aggregate):
        if not all(e.deterministic for e in node.expressions):
            return None
        return next(((node.child, key) for key, own in grouping_keys(node) if own.bit == column.bit), None)
    if node.kind == "Distinct":
        return node.children[0], column
    if isinstance(node, Join) and is_safe(conjuncts(node.condition)):
        sides = {RIGHT: (1,), **dict.fromkeys((LEFT, SEMI, ANTI, EXISTENCE), (0,)), **dict.fromkeys(INNER_LIKE, (0, 1))}
        for side in sides.get(node.join_type, ()):
            if column.mask & node.children[side].output_set:
                return node.children[side], column
    return None


def _through(
    node: LogicalPlan, listed: Iterable[Expression], column: Attribute
) -> tuple[LogicalPlan, Attribute] | None:
    """The child of a list of expressions, and its column of which `column` is the name."""
    for e in listed:
        if e.attribute is not None and e.attribute.bit == column.bit:
            value = e.children[0] if e.kind == "Alias" else e
            if value.kind == "AttributeReference" and value.attribute is not None:
                return node.children[0], value.attribute
    return None
