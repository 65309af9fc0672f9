"""Joins of which every row of the result fulfils the same equalities.

    o JOIN l ON o_orderkey = l_orderkey JOIN c ON c_custkey = o_custkey LEFT JOIN x ON x.k = l_orderkey

Every row has one value for `o_orderkey` and `l_orderkey`, and one for `c_custkey` and `o_custkey`. A row of `l` whose
key is no key of `o` is in no row of the result, nor is one of `x`, for `x` matters only where it has a partner. What
follows is not true of the rows of `x`: they may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyjoinopt.optimizer.prefilter.places import groups
from pyjoinopt.optimizer.prefilter.safety import is_exact, is_safe
from pyjoinopt.optimizer.prefilter.sources import Source, joined_source, relation_source
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import Attribute, conjuncts
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, INNER_LIKE, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.rewrites.plan_equivalence import without_aliases
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Join types whose right side matters only where it has a partner.
_RIGHT_IS_OPTIONAL = frozenset({LEFT, SEMI, ANTI, EXISTENCE})
#: Columns that are equal: one of an input, and one of another.
Pairs = tuple[tuple[Attribute, Attribute], ...]


@dataclass(frozen=True)
class Input:
    """A plan of which rows without a partner are not in the result.

    Attributes:
        plan: the input.
        pairs: for a side that may be missing, the equalities that its own join requires of it alone.
    """

    plan: LogicalPlan
    pairs: Pairs = ()


@dataclass(frozen=True)
class Side:
    """A side of a join whose rows without a partner are not in the result.

    Attributes:
        join: the join.
        plan: its side.
        pairs: as of an `Input`.
    """

    join: Join
    plan: LogicalPlan
    pairs: Pairs = ()


@dataclass
class Region:
    """Joins of which every row of the result fulfils the equalities.

    Attributes:
        equal: bits of columns that are equal in every row of the result.
        columns: these columns, by bit.
        relations: the filtered relations whose rows it joins or tests.
        joined: the joins whose rows it joins or tests.
        aggregates: the inputs with an aggregate on top.
        sides: of its joins.
    """

    equal: DisjointSets[int] = field(default_factory=DisjointSets)
    columns: dict[int, Attribute] = field(default_factory=dict)
    relations: list[Source] = field(default_factory=list)
    joined: list[LogicalPlan] = field(default_factory=list)
    aggregates: list[Input] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)

    @cached_property
    def _classes(self) -> Mapping[int, Sequence[Attribute]]:
        classes = [[self.columns[bit] for bit in group] for group in self.equal.groups()]
        return {a.bit: group for group in classes for a in group}

    @cached_property
    def sources(self) -> Sequence[Source]:
        """The filtered relations, and the joins with some."""
        return [*self.relations, *filter(None, map(joined_source, self.joined))]

    def unite(self, pairs: Iterable[tuple[Attribute, Attribute]]) -> None:
        """Add columns that are equal."""
        for one, other in filter(is_exact, pairs):
            self.columns.setdefault(one.bit, one)
            self.columns.setdefault(other.bit, other)
            self.equal.union(one.bit, other.bit)

    def sources_of(self, filtered: Input | Side) -> Iterator[tuple[Source, Attribute, Attribute]]:
        """Each source with a column of the plan and one of its own that are equal wherever the plan has a partner."""
        own = filtered.plan.output_set
        linked = filtered.pairs or tuple((a, a) for a in filtered.plan.output if a.bit in self._classes)
        for column, other in linked:
            keys = [a for a in self._classes.get(other.bit, (other,)) if not a.mask & own and a.type == column.type]
            for source in self.sources if keys else ():
                for key in keys:
                    if key.mask & source.plan.output_set:
                        yield source, column, key


def regions(root: LogicalPlan) -> Iterator[Region]:
    """The regions of a plan in which something may be filtered."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.cached:
            continue
        if isinstance(node, Join):
            region = Region()
            stack += _explore(node, region)
            if region.relations or region.joined:
                yield region
        else:
            stack += node.children


def _explore(top: Join, region: Region) -> list[LogicalPlan]:
    """Fill the region below its topmost join; returns the plans below it, which may have regions of their own."""
    below: list[LogicalPlan] = []
    stack: list[LogicalPlan] = [top]
    while stack:
        plan = stack.pop()
        node = without_aliases(plan)
        if isinstance(node, Join) and not node.cached and is_safe(conjuncts(node.condition)):
            pairs = tuple(pair for pair in equal_columns(node.condition) if is_exact(pair))
            match node.join_type:
                case kind if kind in INNER_LIKE:
                    region.unite(pairs)
                    region.joined.append(node)
                    region.sides += (Side(node, child) for child in node.children)
                    stack += node.children
                    continue
                case kind if kind in _RIGHT_IS_OPTIONAL:
                    if kind == SEMI:
                        region.unite(pairs)
                        region.joined.append(node)
                        _add_source(region, node.right)
                    region.sides.append(Side(node, node.left))
                    _add_optional(region, node, node.right, pairs)
                    below.append(node.right)
                    stack.append(node.left)
                    continue
                case kind if kind == RIGHT:
                    region.sides.append(Side(node, node.right))
                    _add_optional(region, node, node.left, pairs)
                    below.append(node.left)
                    stack.append(node.right)
                    continue
        source = relation_source(node)
        if source is not None:
            region.relations.append(source)
        elif isinstance(node, (Filter, Project)) and not node.cached and is_safe(node.expressions):
            region.unite(_renamed(node) if isinstance(node, Project) else equal_columns(node.condition))
            if _tops_an_aggregate(node):
                region.aggregates.append(Input(node))
                below.append(node)
            else:
                stack += node.children
        else:
            if groups(node):
                region.aggregates.append(Input(node))
            below.append(node)
    return [each for each in below if each is not top] if top not in below else list(top.children)


def _add_source(region: Region, plan: LogicalPlan) -> None:
    source = relation_source(plan)
    if source is not None:
        region.relations.append(source)
    else:
        region.joined.append(plan)


def _add_optional(region: Region, join: Join, side: LogicalPlan, pairs: Pairs) -> None:
    """Add a side whose rows matter only where they have a partner."""
    both = [pair for one, other in pairs for pair in ((one, other), (other, one))]
    own = tuple(pair for pair in both if pair[0].mask & side.output_set and not pair[1].mask & side.output_set)
    if own:
        region.sides.append(Side(join, side, own))
        if _tops_an_aggregate(side):
            region.aggregates.append(Input(side, own))


def _tops_an_aggregate(plan: LogicalPlan) -> bool:
    """Whether there is an aggregate below names, projections and filters."""
    node = without_aliases(plan)
    while isinstance(node, (Filter, Project)) and not node.cached and is_safe(node.expressions):
        node = without_aliases(node.child if isinstance(node, Filter) else node.children[0])
    return groups(node)


def _renamed(node: Project) -> Iterator[tuple[Attribute, Attribute]]:
    """The columns of a projection that are columns of its child under other names."""
    for e in node.projections:
        if e.kind == "Alias" and e.attribute is not None and e.children[0].kind == "AttributeReference":
            before = e.children[0].attribute
            assert before is not None
            yield e.attribute, before
