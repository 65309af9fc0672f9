"""An aggregate gets only the rows of groups that a join above it can use (sideways information passing).

    SELECT * FROM lineitem l JOIN part p ON p_partkey = l_partkey
             JOIN (SELECT l_partkey AS k, avg(l_quantity) AS a FROM lineitem GROUP BY l_partkey) x ON k = p_partkey
    WHERE p_brand = 'Brand#23' AND l_quantity < 0.2 * a

    before  x: Aggregate(lineitem)
    after   x: Aggregate(lineitem LEFT SEMI JOIN (SELECT p_partkey FROM part WHERE p_brand = 'Brand#23') ON ...)

The semi join keeps or drops whole groups, for it compares a grouping key. Groups that it drops have no partner in a
result of the joins above, so no result changes, and no other value of an aggregate. The filtered relation is read
twice, which is cheap where it is small: its keys are broadcast, and nothing is shuffled that was not before.

**Legal** where all of this holds:

* the aggregate is an input of inner joins, or a side of an outer, semi, anti or existence join whose rows without a
  partner go nowhere;
* a column of it that is a grouping key is equal to a key of the filtered relation in every row that the joins above
  keep: by equalities of inner and semi joins, and by one of the aggregate's own join;
* nothing between is nondeterministic or can fail, for an outer join above may see NULL where it saw a value;
* the relation is files, whose rows are the same when they are read again, and its filter can neither fail nor read
  other relations. Its key is of a type that equality compares exactly, and no fallible predicate reads a column that
  equals it, because Spark copies predicates across the new equality.

**Where** it goes: as far down as its column comes unchanged, below joins and further aggregates. It is not put below a
sub-plan that the query has twice, because Spark computes such a one once.

**Price**, in the units of the cost model: the rows that need not be hashed for groups, and the groups that need not be
shuffled, against one broadcast, the second scan and the probes. Done if the aggregate becomes cheaper by a third.

Source: magic sets (Mumick and others, SIGMOD 1990) for this kind of subquery; Spark's runtime filters do it for joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyjoinopt.catalyst.planner.build_side import BROADCAST, JoinConf
from pyjoinopt.cost.constants import DEFAULT, Constants
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf, row_width
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.plan.constructors import ColumnFactory, project
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import Attribute, Expression, call, conjunction, conjuncts, reference, substitute, walk
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
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
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher, without_aliases
from pyjoinopt.util.disjoint_sets import DisjointSets

#: By this name it can be switched off.
PREFILTER = "prefilter_aggregates"
#: Types whose equality compares exactly.
_EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)|string|date|timestamp|timestamp_ntz")
#: The aggregate must become cheaper by this factor: estimates err, and the second scan may find a cold cache.
_MARGIN = 1.5
#: Join types whose right side matters only where it has a partner.
_RIGHT_IS_OPTIONAL = frozenset({LEFT, SEMI, ANTI, EXISTENCE})


@dataclass(frozen=True)
class Prefilter:
    """What decides about a plan.

    Attributes:
        estimate: statistics of any sub-plan.
        fresh: gives out columns.
        sensitive: attributes that a fallible predicate reads, or that equal one of them.
        conf: Spark's settings.
        allowance: what may be proved of a side that is built; 0 for no hints.
        constants: of the cost model.
    """

    estimate: StatisticsOf
    fresh: ColumnFactory
    sensitive: int
    conf: JoinConf
    allowance: MemoryAllowance
    constants: Constants = DEFAULT

    def apply(self, root: LogicalPlan) -> tuple[LogicalPlan, list[str]]:
        """The plan with these semi joins, `root` itself if there are none, and one sentence for each."""
        if self.conf.threshold <= 0 or not any(map(_groups, post_order(root))):
            return root, []
        found: dict[int, _Chosen] = {}
        shared = _SharedPlans(root)
        for region in _regions(root):
            for aggregate in region.aggregates:
                chosen = self._best(region, aggregate, shared)
                if chosen is not None:
                    found.setdefault(id(chosen.place.node), chosen)
        if not found:
            return root, []
        return _replaced(root, {at: self._joined(c) for at, c in found.items()}), [str(c) for c in found.values()]

    def _best(self, region: _Region, aggregate: _Input, shared: _SharedPlans) -> _Chosen | None:
        found = [
            chosen
            for source, column, key in region.sources_of(aggregate)
            if not (column.mask | key.mask) & self.sensitive
            and (place := _place(aggregate.plan, column, shared)) is not None
            and (chosen := self._priced(source, key, place)) is not None
        ]
        return min(found, key=lambda c: c.share, default=None)

    def _priced(self, source: _Source, key: Attribute, place: _Place) -> _Chosen | None:
        rows, built = self.estimate(place.node), self.estimate(source.plan)
        width = row_width([key], built.columns)
        fits = built.rows * width <= self.conf.threshold
        if not fits or built.likely_bound * width > self.conf.threshold * self.allowance.broadcast:
            return None
        condition = call("EqualTo", reference(place.column), reference(key))
        kept = self.estimate(Join(place.node, source.plan, SEMI, condition))
        share = min(1.0, kept.rows / max(1.0, rows.rows))
        groups = self.estimate(place.aggregate)
        c = self.constants
        grouped = rows.rows * c.hashed_row + groups.rows * (1.0 + c.shuffled_row + groups.width * c.shuffled_byte)
        broadcast = c.broadcast + built.rows * (c.broadcast_row + width * c.broadcast_byte)
        after = broadcast + self.estimate(source.leaf).rows + rows.rows + share * grouped
        return _Chosen(source, key, place, share, rows) if after * _MARGIN < grouped else None

    def _joined(self, chosen: _Chosen) -> LogicalPlan:
        """The place with the semi join on top of it."""
        leaf = chosen.source.leaf
        new = tuple(self.fresh.attribute(a.name, a.type, a.nullable) for a in leaf.output)
        copies = {old.bit: reference(copy) for old, copy in zip(leaf.output, new, strict=True)}
        info = {**leaf.info, "again": True, "narrowed": True}
        plan = LogicalPlan(leaf.kind, (), new, (), None, leaf.number, info)
        predicate = conjunction(substitute(p, copies) for p in chosen.source.predicates)
        filtered = plan if predicate is None else Filter(predicate, plan)
        key = copies[chosen.key.bit].attribute
        assert key is not None
        condition = call("EqualTo", reference(chosen.place.column), reference(key))
        return Join(chosen.place.node, project([key], filtered), SEMI, condition, (None, BROADCAST))


@dataclass(frozen=True)
class _Source:
    """A filtered relation of files.

    Attributes:
        plan: the relation with its filters.
        leaf: the relation itself.
        predicates: its filters.
    """

    plan: LogicalPlan
    leaf: LogicalPlan
    predicates: tuple[Expression, ...]


@dataclass(frozen=True)
class _Input:
    """An input of a region with an aggregate on top, and the equalities that its own join requires of it alone."""

    plan: LogicalPlan
    pairs: tuple[tuple[Attribute, Attribute], ...] = ()


@dataclass(frozen=True)
class _Place:
    """Where a semi join goes.

    Attributes:
        node: what it filters.
        column: by this column.
        aggregate: the lowest aggregate above it.
    """

    node: LogicalPlan
    column: Attribute
    aggregate: LogicalPlan


@dataclass(frozen=True)
class _Chosen:
    source: _Source
    key: Attribute
    place: _Place
    share: float
    rows: RelationStatistics

    def __str__(self) -> str:
        name = (self.source.leaf.info.get("rel") or {}).get("name") or self.source.leaf.info.get("name") or "files"
        return (
            f"the aggregate by {self.place.column.name} gets only rows whose {self.key.name} is in the filtered "
            f"{name}: about {self.share:.1%} of {self.rows.rows:,.0f}"
        )


@dataclass
class _Region:
    """Joins of which every row of the result fulfils the equalities.

    Attributes:
        equal: bits of columns that are equal in every row of the result.
        columns: these columns, by bit.
        sources: the filtered relations whose rows it joins or tests.
        aggregates: the inputs of which rows without a partner are not in the result.
    """

    equal: DisjointSets[int] = field(default_factory=DisjointSets)
    columns: dict[int, Attribute] = field(default_factory=dict)
    sources: list[_Source] = field(default_factory=list)
    aggregates: list[_Input] = field(default_factory=list)

    @cached_property
    def _classes(self) -> Mapping[int, Sequence[Attribute]]:
        classes = [[self.columns[bit] for bit in group] for group in self.equal.groups()]
        return {a.bit: group for group in classes for a in group}

    def unite(self, pairs: Iterable[tuple[Attribute, Attribute]]) -> None:
        """Add columns that are equal."""
        for one, other in filter(_is_exact, pairs):
            self.columns.setdefault(one.bit, one)
            self.columns.setdefault(other.bit, other)
            self.equal.union(one.bit, other.bit)

    def sources_of(self, aggregate: _Input) -> Iterator[tuple[_Source, Attribute, Attribute]]:
        """Each source with the aggregate's column and its own that are equal wherever the aggregate has a partner."""
        own = aggregate.plan.output_set
        linked = aggregate.pairs or tuple((a, a) for a in aggregate.plan.output if a.bit in self._classes)
        for column, other in linked:
            for key in self._classes.get(other.bit, (other,)):
                for source in self.sources:
                    if key.mask & source.leaf.output_set and not key.mask & own and key.type == column.type:
                        yield source, column, key


def _regions(root: LogicalPlan) -> Iterator[_Region]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.cached:
            continue
        if isinstance(node, Join):
            region = _Region()
            stack += _explore(node, region)
            if region.aggregates and region.sources:
                yield region
        else:
            stack += node.children


def _explore(top: Join, region: _Region) -> list[LogicalPlan]:
    """Fill the region below its topmost join; returns the plans below it, which may have regions of their own."""
    below: list[LogicalPlan] = []
    stack: list[LogicalPlan] = [top]
    while stack:
        plan = stack.pop()
        node = without_aliases(plan)
        if isinstance(node, Join) and not node.cached and _is_safe(conjuncts(node.condition)):
            pairs = [pair for pair in equal_columns(node.condition) if _is_exact(pair)]
            match node.join_type:
                case kind if kind in INNER_LIKE:
                    region.unite(pairs)
                    stack += node.children
                    continue
                case kind if kind in _RIGHT_IS_OPTIONAL:
                    if kind == SEMI:
                        region.unite(pairs)
                        _add_source(region, node.right)
                    _add_aggregate(region, node.right, pairs)
                    below.append(node.right)
                    stack.append(node.left)
                    continue
                case kind if kind == RIGHT:
                    _add_aggregate(region, node.left, pairs)
                    below.append(node.left)
                    stack.append(node.right)
                    continue
        source = _source(node)
        if source is not None:
            region.sources.append(source)
        elif isinstance(node, (Filter, Project)) and not node.cached and _is_safe(node.expressions):
            region.unite(_renamed(node) if isinstance(node, Project) else equal_columns(node.condition))
            if _tops_an_aggregate(node):
                region.aggregates.append(_Input(node))
                below.append(node)
            else:
                stack += node.children
        else:
            if _groups(node):
                region.aggregates.append(_Input(node))
            below.append(node)
    return [each for each in below if each is not top] if top not in below else list(top.children)


def _add_source(region: _Region, plan: LogicalPlan) -> None:
    source = _source(without_aliases(plan))
    if source is not None:
        region.sources.append(source)


def _add_aggregate(region: _Region, plan: LogicalPlan, pairs: Iterable[tuple[Attribute, Attribute]]) -> None:
    if _tops_an_aggregate(plan):
        both = [pair for one, other in pairs for pair in ((one, other), (other, one))]
        own = tuple(pair for pair in both if pair[0].mask & plan.output_set and not pair[1].mask & plan.output_set)
        if own:
            region.aggregates.append(_Input(plan, own))


def _tops_an_aggregate(plan: LogicalPlan) -> bool:
    """Whether there is an aggregate below names, projections and filters."""
    node = without_aliases(plan)
    while isinstance(node, (Filter, Project)) and not node.cached and _is_safe(node.expressions):
        node = without_aliases(node.child if isinstance(node, Filter) else node.children[0])
    return _groups(node)


def _groups(node: LogicalPlan) -> bool:
    return isinstance(node, Aggregate) or node.kind == "Distinct"


def _is_exact(pair: tuple[Attribute, Attribute]) -> bool:
    one, other = pair
    return one.type == other.type and _EXACT.fullmatch(one.type) is not None


def _is_safe(expressions: Iterable[Expression]) -> bool:
    """Whether expressions have the same value everywhere, and cannot fail."""
    return all(e.deterministic and not may_throw(e) for e in expressions)


def _renamed(node: Project) -> Iterator[tuple[Attribute, Attribute]]:
    """The columns of a projection that are columns of its child under other names."""
    for e in node.projections:
        if e.kind == "Alias" and e.attribute is not None and e.children[0].kind == "AttributeReference":
            before = e.children[0].attribute
            assert before is not None
            yield e.attribute, before


def _source(plan: LogicalPlan) -> _Source | None:
    """A filtered relation of files; None for any other plan, and for one without a filter."""
    predicates: list[Expression] = []
    node = plan
    while isinstance(node, (Filter, Project)) and not node.cached:
        if isinstance(node, Filter):
            predicates += conjuncts(node.condition)
        elif not all(e.kind == "AttributeReference" for e in node.projections):
            return None
        node = without_aliases(node.children[0])
    is_files = node.kind == "LogicalRelation" and (node.info.get("rel") or {}).get("kind") == "file"
    if not is_files or node.cached or node.number is None or not _is_safe(predicates):
        return None
    selective = any(p.kind != "IsNotNull" for p in predicates)
    return _Source(plan, node, tuple(predicates)) if selective and all(map(is_movable, predicates)) else None


class _SharedPlans:
    """Sub-plans that a plan has twice."""

    def __init__(self, root: LogicalPlan) -> None:
        self._nodes = [node for node in post_order(root) if isinstance(node, Join) or _groups(node)]
        self._matcher = PlanMatcher()

    def __call__(self, node: LogicalPlan) -> bool:
        """Whether Spark computes this join once for several places, or what it shuffles for this aggregate."""
        return any(other is not node and self._same(node, other) for other in self._nodes)

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


def _place(plan: LogicalPlan, column: Attribute, shared: _SharedPlans) -> _Place | None:
    """The lowest plan that has the column of an aggregate; None if the column is no grouping key."""
    node, aggregate = plan, None
    while True:
        step = None if node.cached else _below(node, column)
        if step is None or ((isinstance(node, Join) or _groups(node)) and shared(node)):
            break
        if _is_filtered_by(node, column):
            return None
        if _groups(node):
            aggregate = node
        node, column = step
    return None if aggregate is None else _Place(node, column, aggregate)


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
        return (child, column) if child.children and _is_safe(node.expressions) else None
    if isinstance(node, Project):
        return _through(node, node.projections, column) if all(e.deterministic for e in node.projections) else None
    if isinstance(node, Aggregate):
        found = _through(node, node.aggregates, column) if all(e.deterministic for e in node.expressions) else None
        keys = {g.attribute.bit for g in node.grouping if g.kind == "AttributeReference" and g.attribute is not None}
        return found if found is not None and found[1].bit in keys else None
    if node.kind == "Distinct":
        return node.children[0], column
    if isinstance(node, Join) and _is_safe(conjuncts(node.condition)):
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


def _replaced(root: LogicalPlan, new: Mapping[int, LogicalPlan]) -> LogicalPlan:
    done: dict[int, LogicalPlan] = {}
    for node in post_order(root):
        made = node if node.cached else node.with_children(tuple(done[id(child)] for child in node.children))
        semi = new.get(id(node))
        done[id(node)] = made if semi is None else semi.with_children((made, semi.children[1]))
    return done[id(root)]
