"""Joins of which every row of the result fulfils the same equalities.

    o JOIN l ON o_orderkey = l_orderkey JOIN c ON c_custkey = o_custkey LEFT JOIN x ON x.k = l_orderkey

Every row has one value for `o_orderkey` and `l_orderkey`, and one for `c_custkey` and `o_custkey`. A row of `l` whose
key is no key of `o` is in no row of the result. The right side of a semi join belongs to it like an input of an inner
join: each row of the result has a partner there, and only such partners matter.

The rows of `x` may be missing, so what the region equates is not true of them. But they matter only where they have a
partner: `x` has a region of its own below, whose rows of interest have a key that the region above equates with others.
Where one of its columns has a value and no NULL, its row is there, with that value in the other column of its join.
That says nothing of rows with NULL, so it serves only to filter plans outside of that join. A filter of `o LEFT JOIN x`
by a column of `x` would take away the rows of `o` without a partner.

The same is true of the rows below an aggregate, whose groups have a grouping key that the region above equates:

    p LEFT JOIN (SELECT k, max(a) FROM ps JOIN y ON y.k = ps.k GROUP BY k) x ON x.k = p.k

A row of `y` whose key is no key of `p` is only in groups that have no partner.

Two plans can have the same column, for Spark copies `a IN (SELECT k FROM t)` with its columns. As a semi join hides
them, a row of the result may have two values for such a column; it equates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyjoinopt.optimizer.prefilter.places import grouping_keys, groups
from pyjoinopt.optimizer.prefilter.safety import is_exact, is_safe
from pyjoinopt.optimizer.prefilter.sources import Source, joined_source, relation_source
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import Attribute, Expression, conjuncts
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, INNER_LIKE, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Join types whose right side may be missing.
_RIGHT_IS_OPTIONAL = frozenset({LEFT, ANTI, EXISTENCE})
#: Regions above that are looked at. Each level has its own sources, and a query has few levels or is a generated one.
_MOST_LEVELS = 8
#: Aggregate functions that have a value for all values of their arguments.
_TOTAL_FUNCTIONS = frozenset({"Count", "Max", "Min"})
#: Columns that are equal: one of a plan, and one of another.
Pairs = tuple[tuple[Attribute, Attribute], ...]


@dataclass(frozen=True)
class Input:
    """An aggregate of which groups without a partner are not in the result.

    Attributes:
        plan: the aggregate.
    """

    plan: LogicalPlan


@dataclass(frozen=True)
class Side:
    """A side of a join whose rows without a partner are not in the result.

    Attributes:
        join: the join.
        plan: its side.
        pairs: for a side that may be missing, the equalities that its own join requires of it alone.
    """

    join: Join
    plan: LogicalPlan
    pairs: Pairs = ()


@dataclass
class Region:
    """Joins of which every row of the result fulfils the equalities.

    Attributes:
        above: the region of the join or aggregate of which this one is an input; None if its rows all matter.
        pairs: a column of this region and one of the region above, equal wherever a row of this one matters.
        optional: whether rows of the region above remain where rows of this one are missing.
        fallible: whether something between this region and the one above may fail.
        equal: columns that are equal in every row of the result.
        partners: bit of a column of an optional side -> the columns that equal it where it is not NULL.
        ambiguous: columns that two of its plans have, as bits.
        relations: the filtered relations whose rows it joins or tests.
        joined: the joins whose rows it joins or tests.
        aggregates: the inputs that are aggregates.
        sides: of its joins.
    """

    above: Region | None = None
    pairs: Pairs = ()
    optional: bool = False
    fallible: bool = False
    equal: list[tuple[Attribute, Attribute]] = field(default_factory=list)
    partners: dict[int, list[Attribute]] = field(default_factory=dict)
    ambiguous: int = 0
    relations: list[Source] = field(default_factory=list)
    joined: list[LogicalPlan] = field(default_factory=list)
    aggregates: list[Input] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)

    @cached_property
    def _classes(self) -> Mapping[int, Sequence[Attribute]]:
        columns: dict[int, Attribute] = {}
        sets: DisjointSets[int] = DisjointSets()
        for one, other in self.equal:
            if not (one.mask | other.mask) & self.ambiguous:
                columns.setdefault(one.bit, one)
                columns.setdefault(other.bit, other)
                sets.union(one.bit, other.bit)
        classes = [[columns[bit] for bit in group] for group in sets.groups()]
        return {a.bit: group for group in classes for a in group}

    @cached_property
    def sources(self) -> Sequence[Source]:
        """The filtered relations, and the joins with some."""
        return [*self.relations, *filter(None, map(joined_source, self.joined))]

    def unite(self, pairs: Iterable[tuple[Attribute, Attribute]]) -> None:
        """Add columns that are equal."""
        self.equal += filter(is_exact, pairs)

    def sources_of(self, filtered: Input | Side) -> Iterator[tuple[Source, Attribute, Attribute]]:
        """Each source with a column of the plan and one of its own that are equal wherever the plan has a partner."""
        own = filtered.plan.output_set
        pairs = filtered.pairs if isinstance(filtered, Side) else ()
        inside = self._columns_inside(filtered.plan)
        for column, other in pairs or tuple((a, a) for a in filtered.plan.output):
            for source, key in self._equal_keys(other, bool(pairs), inside):
                if not key.mask & own and column.type == key.type:
                    yield source, column, key

    def _columns_inside(self, plan: LogicalPlan) -> int:
        """The columns of a plan and of all plans below it as bits, if some region has optional sides; else none."""
        region: Region | None = self
        while region is not None and not region.partners:
            region = region.above
        return 0 if region is None else _columns(plan)[id(plan)]

    def _equal_keys(self, column: Attribute, optional: bool, inside: int) -> Iterator[tuple[Source, Attribute]]:
        """Each source of this region and those above with a column that equals one of this region.

        Args:
            column: a column of this region.
            optional: whether rows of this region remain, with other values, where the rows to be filtered are missing.
            inside: the columns inside of the plan to be filtered.
        """
        region, columns = self, [column]
        for _ in range(_MOST_LEVELS):
            alike = region._alike(columns, inside)
            for source in region.sources if alike else ():
                for key in alike.values():
                    if key.mask & source.plan.output_set:
                        yield source, key
            optional = optional or region.optional
            columns = [above for own, above in region.pairs if own.bit in alike]
            if region.above is None or not columns or (optional and region.fallible):
                return
            region = region.above

    def _alike(self, columns: Iterable[Attribute], inside: int) -> Mapping[int, Attribute]:
        """The columns, by bit, that have the same value as one of these in each row that the plan to be filtered is in.

        Where a column of an optional side outside of that plan is NULL, the plan's own column has no equal.
        """
        found: dict[int, Attribute] = {}
        stack = list(columns)
        while stack:
            column = stack.pop()
            if column.bit not in found and not column.mask & self.ambiguous:
                found[column.bit] = column
                stack += self._classes.get(column.bit, ())
                stack += () if column.mask & inside else self.partners.get(column.bit, ())
        return found


def regions(root: LogicalPlan) -> Iterator[Region]:
    """The regions of a plan in which something may be filtered."""
    columns = _columns(root)
    stack = [(root, Region())]
    while stack:
        plan, region = stack.pop()
        stack += _explore(plan, region, columns)
        if region.aggregates or region.sides:
            yield region


def _columns(root: LogicalPlan) -> Mapping[int, int]:
    """The columns of each plan and of all plans below it as bits, by the id of the plan."""
    found: dict[int, int] = {}
    for node in post_order(root):
        bits = node.output_set
        for child in () if node.cached else node.children:
            bits |= found[id(child)]
        found[id(node)] = bits
    return found


def _explore(top: LogicalPlan, region: Region, columns: Mapping[int, int]) -> list[tuple[LogicalPlan, Region]]:
    """Fill a region below its topmost plan; returns the plans below it with their regions, which are still empty."""
    below: list[tuple[LogicalPlan, Region]] = []
    stack = [top]
    while stack:
        node = without_aliases(stack.pop())
        if node.cached:
            continue
        if isinstance(node, Join) and is_safe(conjuncts(node.condition)):
            inside, apart = _sides(node, region)
            if inside:
                region.ambiguous |= columns[id(node.left)] & columns[id(node.right)]
                stack += inside
                below += apart
                continue
        source = relation_source(node)
        if source is not None:
            region.relations.append(source)
        elif isinstance(node, (Filter, Project)) and is_safe(node.expressions):
            region.unite(_renamed(node) if isinstance(node, Project) else equal_columns(node.condition))
            stack += node.children
        elif groups(node):
            below.append(_grouped(node, region))
        else:
            below += ((child, Region()) for child in node.children)
    return below


def _sides(join: Join, region: Region) -> tuple[Sequence[LogicalPlan], list[tuple[LogicalPlan, Region]]]:
    """The sides of a join that belong to its region, none if it has another one, and those that have their own."""
    pairs = tuple(pair for pair in equal_columns(join.condition) if is_exact(pair))
    if join.join_type in INNER_LIKE or join.join_type == SEMI:
        region.unite(pairs)
        region.joined.append(join)
        if join.subquery is None:
            region.sides += (Side(join, child) for child in join.children)
            return join.children, []
        # It becomes a predicate again, with the plan of the subquery as it was.
        source = relation_source(join.right)
        region.relations += () if source is None else (source,)
        region.joined.append(join.right)
        region.sides.append(Side(join, join.left))
        return (join.left,), []
    if join.join_type in _RIGHT_IS_OPTIONAL:
        kept, optional = join.children
    elif join.join_type == RIGHT:
        optional, kept = join.children
    else:
        return (), []
    region.sides.append(Side(join, kept))
    if join.subquery is not None:
        return (kept,), []
    both = [pair for one, other in pairs for pair in ((one, other), (other, one))]
    own = tuple(pair for pair in both if pair[0].mask & optional.output_set and not pair[1].mask & optional.output_set)
    if own:
        region.sides.append(Side(join, optional, own))
        for one, other in own if join.join_type in (LEFT, RIGHT) else ():
            region.partners.setdefault(one.bit, []).append(other)
    return (kept,), [(optional, Region(region, own, optional=True) if own else Region())]


def _grouped(node: LogicalPlan, region: Region) -> tuple[LogicalPlan, Region]:
    """Add an aggregate to a region; returns the plan below it with its region."""
    region.aggregates.append(Input(node))
    (child,) = node.children
    keys = tuple(filter(is_exact, grouping_keys(node)))
    source = relation_source(child) or joined_source(child)
    if source is not None:  # A group has the key of a row below it, whatever it is filtered by afterwards.
        region.relations.append(source)
        region.unite(keys)
    if not keys or not all(e.deterministic for e in node.expressions):
        return child, Region()
    return child, Region(region, keys, fallible=not all(map(_cannot_fail, node.expressions)))


def _cannot_fail(listed: Expression) -> bool:
    """Whether what is grouped or aggregated has a value for all rows, such as those that get NULL for a column."""
    value = listed.children[0] if listed.kind == "Alias" else listed
    if value.kind != "AggregateExpression":
        return is_safe([value])
    function, *further = value.children
    return function.kind in _TOTAL_FUNCTIONS and is_safe([*function.children, *further])


def _renamed(node: Project) -> Iterator[tuple[Attribute, Attribute]]:
    """The columns of a projection that are columns of its child under other names."""
    for e in node.projections:
        if e.kind == "Alias" and e.attribute is not None and e.children[0].kind == "AttributeReference":
            before = e.children[0].attribute
            assert before is not None
            yield e.attribute, before
