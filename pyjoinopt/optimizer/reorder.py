"""Orders every join group of a plan: find the groups, order each, emit the orders that were found.

Groups inside a group's inputs are ordered first, so that a group is ordered over what its inputs will be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.emit.original_joins import original_joins
from pyjoinopt.joins.groups.eliminate_joins import drop_unused_left_joins, semi_to_inner_joins
from pyjoinopt.joins.groups.find_groups import Refusal, find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.groups.rank_predicates import with_ranks
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.optimizer.join_rows import OperatorRows, below_semi_joins, join_rows
from pyjoinopt.optimizer.order_group import (
    Above,
    EstimatedGroup,
    OrderedGroup,
    OrderingContext,
    as_written,
    order_group,
)
from pyjoinopt.optimizer.predicates_from_above import predicates_from_above
from pyjoinopt.plan.expressions import EQUALITIES, Expression, conjuncts, reference
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys
from pyjoinopt.plan.facts.never_null import never_null_above
from pyjoinopt.plan.fallible.window_ranks import ranks
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.traversal import parents_of, post_order

_DISCERNED = (
    "a predicate distinguishes values of its join keys that compare as equal (0.0 and -0.0, or strings under a "
    "collation), and the join order determines to which columns Spark copies it"
)


@dataclass(frozen=True)
class ChangedGroup:
    """A group that was ordered, and whether its plan is another one now.

    Attributes:
        ordered: what was found.
        changed: whether another plan is emitted for it: in another order, or without a join that is not needed.
    """

    ordered: OrderedGroup
    changed: bool


@dataclass
class Reordered:
    """What came of the groups of a plan.

    Attributes:
        plan: the plan with its groups in the best orders found; the very object that was given if none changed.
        groups: those of three relations or more.
        pairs: those of two relations, which have one order.
        refusals: what was left as written, and why.
        dropped: one sentence for every outer join that was found to be redundant.
        expected: the groups, to be recognised when they have run.
    """

    plan: LogicalPlan
    groups: list[ChangedGroup] = field(default_factory=list)
    pairs: list[OrderedGroup] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    expected: list[ExpectedGroup] = field(default_factory=list)


def reorder(root: LogicalPlan, context: OrderingContext) -> Reordered:
    """Order the join groups of a plan; plans of subquery expressions are not entered.

    Args:
        root: the plan, with its predicates pushed down.
        context: what groups are ordered with. Its `estimate` takes over the rows of the joins that are made or kept.
    """
    return _Run(root, context).run()


class _Run:
    """One plan. What is known of the written plan is worked out before any group is ordered."""

    def __init__(self, root: LogicalPlan, context: OrderingContext) -> None:
        self._context = context
        self._nodes = nodes = list(post_order(root))
        found = find_groups(root, predicates_from_above(nodes))
        self._groups = found.groups
        self._result = Reordered(root, refusals=list(found.refusals))
        self._positional = _read_by_position(nodes, root)
        self._needed, self._never_null = needed_columns(root), never_null_above(root)
        self._read: dict[int, int] = {}  # by the parents alone
        for node in nodes:
            for child in node.children:
                self._read[id(child)] = self._read.get(id(child), 0) | node.references
        self._early_reads = reduce(or_, (node.early_reads for node in nodes if isinstance(node, Join)), 0)
        self._parents, self._defined = parents_of(nodes), _in_definitions(nodes)
        self._keys, self._ranks = DistinctKeys(), ranks(nodes)
        self._below_semi = below_semi_joins(nodes)

    def run(self) -> Reordered:
        done: dict[int, LogicalPlan] = {}
        for node in self._nodes:
            group = self._groups.get(id(node))
            if group is not None and _equates(group, self._context.discerning):
                self._result.refusals.append(Refusal(relation_name(node), _DISCERNED))
                group = None
            made = _NOTHING if group is None else self._of_group(node, group, done)
            plan = made.plan
            if plan is None:
                plan = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
            done[id(node)] = plan
            self._context.estimate.add_ctes([plan])  # its readers are estimated by what it has become
            for operator, rows in made.rows:
                self._context.estimate.override_rows(done.get(id(operator), operator), rows)
        self._result.plan = done[id(self._nodes[-1])]
        return self._result

    def _above(self, node: LogicalPlan) -> Above:
        shared = id(node) in self._defined
        right_above = None if shared else conjuncts_above(node, self._parents)
        return Above(self._needed[id(node)], self._never_null[id(node)], right_above)

    def _of_group(self, node: LogicalPlan, group: JoinGroup, done: Mapping[int, LogicalPlan]) -> _Made:
        """What becomes of one group, of whatever size."""
        plans = {id(item.plan): done[id(item.plan)] for item in group.items.values()}
        above = self._above(node)
        if len(group.items) < 3:
            if len(group.items) == 2:
                pair = as_written(group, plans, above, self._context)
                self._result.pairs.append(pair)
                if self._context.watch_pairs:
                    self._expect(pair.estimated, above, pair.chosen)
                return self._kept(pair, node)
            return _NOTHING
        restore = id(node) in self._positional
        read = self._read.get(id(node), 0) | self._early_reads
        reduced = group if restore or group.hidden else self._without_unread(group, read)
        reduced = semi_to_inner_joins(reduced, self._keys, self._context.sensitive)
        ordered = order_group(with_ranks(reduced, self._ranks), plans, above, self._context)
        changed = ordered.moved or len(ordered.group.items) < len(group.items)
        self._result.groups.append(ChangedGroup(ordered, changed))
        if ordered.why_not:
            names = ", ".join(ordered.estimated.graph.names)
            self._result.refusals.append(Refusal(f"the group of {names}", ordered.why_not))
        if ordered.pinned is not None and ordered.why_not_pinned:
            self._result.refusals.append(Refusal(f"the baseline {ordered.pinned.baseline}", ordered.why_not_pinned))
        self._expect(ordered.estimated, above, ordered.estimated.written, ordered.chosen)
        return self._emitted(ordered, restore, node) if changed else self._kept(ordered, node)

    def _emitted(self, ordered: OrderedGroup, restore: bool, node: LogicalPlan) -> _Made:
        graph, estimates, group = ordered.estimated.graph, ordered.estimated.estimates, ordered.group
        emitted = emit(graph, ordered.chosen, group, estimates if self._context.pin else None)
        plan = emitted.plan
        if group.hidden or (restore and plan.output != group.top.output):
            columns = tuple(reference(a) for a in group.top.output)
            plan = Project(columns, plan, info={"hidden": sorted(set(group.hidden))})
        return _Made(plan, self._rows(emitted.joins, ordered, node))

    def _kept(self, ordered: OrderedGroup, node: LogicalPlan) -> _Made:
        return _Made(None, self._rows(original_joins(ordered.estimated.graph, ordered.group), ordered, node))

    def _rows(
        self, joins: Iterable[tuple[LogicalPlan, int]], ordered: OrderedGroup, node: LogicalPlan
    ) -> OperatorRows:
        group, below_semi = ordered.estimated, id(node) in self._below_semi
        return join_rows(joins, group.graph, group.estimates, group.synopses, self._context.estimate, below_semi)

    def _without_unread(self, group: JoinGroup, read: int) -> JoinGroup:
        """The group without left joins that make no difference."""
        smaller, gone = drop_unused_left_joins(group, read, self._keys)
        for left, right in gone:
            names = relation_name(group.items[left].plan), relation_name(group.items[right].plan)
            why = f"dropped: no column of {names[1]} is read, and it has one row per join key"
            self._result.dropped.append(f"left join of {names[0]} and {names[1]} {why}")
        return smaller

    def _expect(self, group: EstimatedGroup, above: Above, *orders: JoinTree) -> None:
        """Note a group that may be seen to run."""
        rows = {n.relations: group.estimates.rows(n.relations) for order in orders for n in order.post_order()}
        expected = self._context.memory.expected(group.graph, rows, above.conjuncts)
        if expected is not None:
            self._result.expected.append(expected)


@dataclass(frozen=True)
class _Made:
    """What becomes of a group.

    Attributes:
        plan: its new plan; None if its order is kept.
        rows: operators with what was estimated of them from the whole group.
    """

    plan: LogicalPlan | None = None
    rows: OperatorRows = ()


_NOTHING = _Made()


def _equates(group: JoinGroup, columns: int) -> bool:
    """True if Spark could copy predicates over some columns across an equality of the group."""
    read = (conjunct.predicate for conjunct in group.conjuncts if conjunct.subquery is None)
    equalities = (e for predicate in read for e in conjuncts(predicate) if e.kind in EQUALITIES)
    return bool(columns) and any(e.references & columns for e in equalities)


def _read_by_position(nodes: Sequence[LogicalPlan], root: LogicalPlan) -> frozenset[int]:
    """Ids of nodes whose column order or choice matters to a parent; projections and aggregates read by id."""
    ids = {id(root)}
    for node in nodes:
        if not isinstance(node, (Project, Aggregate)):
            ids.update(id(child) for child in node.children)
    return frozenset(ids)


def _in_definitions(nodes: Sequence[LogicalPlan]) -> frozenset[int]:
    """Ids of nodes of common table expressions that have several readers, each of which Spark filters by itself."""
    found: set[int] = set()
    for node in reversed(nodes):
        if node.kind == "CTERelationDef" or id(node) in found:
            found.update(id(child) for child in node.children)
    return frozenset(found)


def conjuncts_above(node: LogicalPlan, parents: Mapping[int, list[LogicalPlan]]) -> list[Expression]:
    """The conjuncts of filters right above a node, also through projections that only choose columns."""
    found: list[Expression] = []
    while len(above := parents.get(id(node), [])) == 1:
        node = above[0]
        if isinstance(node, Filter):
            found += conjuncts(node.condition)
        elif not (isinstance(node, Project) and node.only_attributes):
            break
    return found
