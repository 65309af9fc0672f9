"""Inner joins of which only one side is read become semi joins, where duplicates do not matter.

    before  SELECT DISTINCT p.title FROM posts p JOIN comments c ON c.post = p.id JOIN votes v ON v.post = p.id
    after   SELECT DISTINCT p.title FROM posts p LEFT SEMI JOIN comments c ON c.post = p.id
                                                 LEFT SEMI JOIN votes v ON v.post = p.id

A post with a hundred comments and a thousand votes makes a hundred thousand rows, and all of them give one title.

In a region of inner joins the relations that are read above it are the *core*. The others fall into *branches*, the
parts that remain connected without the core: `comments` is one, `votes` another. A branch becomes the right side of a
semi join with the core, whatever it joins inside:

    posts p JOIN tagged t ON t.post = p.id JOIN tags g ON g.id = t.tag       branch: tagged JOIN tags

Queries often compare everything with everything (`t.id = mk.movie AND t.id = mi.movie AND mk.movie = mi.movie`), which
would make one branch of all. So columns that are equal are each compared with one of the core, where it has one.

Legal if

* the region is duplicate-insensitive (`plan.facts.duplicate_insensitivity`), and nothing above it reads a column of the
  branch, not by name either (hidden columns of a join USING);
* the branch is joined with one connected part of the core, by an equality: otherwise it is what connects the core;
* no predicate of the region, or of a filter or join above it, can throw, nor runs a user's function: Spark moves these
  down to where it finds what they read, which may be below the semi join;
* no two relations have a column of one id, and no join has a hint or is cached;
* the plan is not that of a correlated subquery, which Spark could not decorrelate then.

Whether it pays is not decided here (`optimizer.alternatives`): Spark builds only the right side of a semi join, and
a small core may be better built.

Source: Dayal, "Of nests and trees" (VLDB 1987), on joins with their duplicates removed as semi joins; the branches
are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from pyjoinopt.plan.equi_keys import equal_columns, equi_keys
from pyjoinopt.plan.expressions import (
    PYTHON_UDF,
    SUBQUERY,
    Attribute,
    Expression,
    call,
    conjunction,
    conjuncts,
    reference,
)
from pyjoinopt.plan.facts.duplicate_insensitivity import duplicate_insensitive
from pyjoinopt.plan.facts.equality_substitution import equality_is_identity
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.nodes import CROSS, INNER, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import HINTS, without_aliases
from pyjoinopt.plan.outer_references import has_outer_references
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.inner_join_region import is_inner
from pyjoinopt.rewrites.left_join_to_anti_join import computed_by_what_may_fail
from pyjoinopt.rewrites.lost_columns import Replacement, hidden_columns, with_replacements
from pyjoinopt.util.disjoint_sets import DisjointSets

NAME = "inner_to_semi_joins"


@dataclass(frozen=True, eq=False)
class ExistenceBranch:
    """Relations of a region in which only partners are looked for.

    Attributes:
        relations: from left to right.
        inside: predicates that read no others.
        linking: predicates that read relations of the core, too.
    """

    relations: tuple[LogicalPlan, ...]
    inside: tuple[Expression, ...]
    linking: tuple[Expression, ...]

    @property
    def plan(self) -> LogicalPlan:
        """The relations, joined with each other."""
        return _joined(self.relations, self.inside)

    @property
    def keys(self) -> list[Expression]:
        """What is compared with the core."""
        own = reduce(or_, (r.output_set for r in self.relations))
        return [k.right for e in self.linking for k in equi_keys(e, e.references & ~own, own) if not k.null_safe]


@dataclass(frozen=True, eq=False)
class ExistenceRegion:
    """A region of inner joins with branches.

    Attributes:
        top: its topmost join.
        relations, predicates: of the core.
        branches: that could become semi joins.
        others: that could not.
    """

    top: LogicalPlan
    relations: tuple[LogicalPlan, ...]
    predicates: tuple[Expression, ...]
    branches: tuple[ExistenceBranch, ...]
    others: tuple[ExistenceBranch, ...]

    def with_semi_joins(
        self, chosen: Sequence[ExistenceBranch], done: Mapping[int, LogicalPlan] | None = None
    ) -> LogicalPlan:
        """The region with semi joins.

        Args:
            chosen: the branches to replace.
            done: id of a relation -> its new plan; None if all are as they are.
        """

        def joined(relations: Iterable[LogicalPlan], predicates: Iterable[Expression]) -> LogicalPlan:
            return _joined([r if done is None else done[id(r)] for r in relations], predicates)

        kept = [branch for branch in (*self.branches, *self.others) if branch not in chosen]
        relations = [*self.relations, *(r for branch in kept for r in branch.relations)]
        predicates = [*self.predicates, *(e for branch in kept for e in (*branch.inside, *branch.linking))]
        plan = joined(relations, predicates)
        for branch in chosen:
            plan = Join(plan, joined(branch.relations, branch.inside), SEMI, conjunction(branch.linking))
        output = tuple(a for a in self.top.output if a.mask & plan.output_set)
        return plan if output == plan.output else Project(tuple(map(reference, output)), plan)


def existence_regions(plan: LogicalPlan, sensitive: int) -> list[ExistenceRegion]:
    """The regions of a plan with branches that could become semi joins.

    Args:
        plan: a plan with its predicates pushed down.
        sensitive: see `plan.facts.equality_substitution.sensitive_columns`.
    """
    nodes = list(post_order(plan))
    if has_outer_references(nodes):
        return []
    insensitive, hidden = duplicate_insensitive(nodes, definitions=False), hidden_columns(plan)
    risky = _below_what_may_fail(nodes)
    found: list[ExistenceRegion] = []
    inside: set[int] = set()
    for node in reversed(nodes):
        if id(node) not in inside and insensitive.get(id(node)) and is_inner(node) and id(node) not in risky:
            joins = _InnerJoins(node)
            inside |= joins.ids
            region = _region(node, joins, needed_columns(plan)[id(node)] | hidden, sensitive)
            if region is not None:
                found.append(region)
    return found


def with_semi_joins(
    plan: LogicalPlan, chosen: Iterable[tuple[ExistenceRegion, Sequence[ExistenceBranch]]]
) -> Rewritten:
    """The plan with semi joins.

    Args:
        plan: the plan.
        chosen: of each of its regions, the branches to replace.
    """
    replacements: dict[int, Replacement] = {}
    notes: list[str] = []
    for region, branches in chosen:
        replacements[id(region.top)] = partial(region.with_semi_joins, branches)
        for branch in branches:
            names = ", ".join(map(relation_name, branch.relations))
            notes.append(f"{names}: nothing is read of the partners but that there are some: made a semi join")
    return Rewritten(with_replacements(list(post_order(plan)), replacements), tuple(notes))


def _joined(relations: Sequence[LogicalPlan], predicates: Iterable[Expression]) -> LogicalPlan:
    """Inner joins of some relations, each with one that a predicate connects it with, if there is one."""
    waiting, plan = list(relations[1:]), relations[0]
    pending = list(predicates)

    def applied(known: int) -> Expression | None:
        now = [e for e in pending if not e.references & ~known]
        pending[:] = [e for e in pending if e.references & ~known]
        return conjunction(now)

    condition = applied(plan.output_set)
    if condition is not None:
        plan = Filter(condition, plan)
    while waiting:
        known = plan.output_set
        connected = (r for r in waiting if any(e.references & known and e.references & r.output_set for e in pending))
        following = next(connected, waiting[0])
        waiting.remove(following)
        condition = applied(known | following.output_set)
        plan = Join(plan, following, CROSS if condition is None else INNER, condition)
    return plan


# -- regions -------------------------------------------------------------------------------------------------------


class _InnerJoins:
    """Inner joins below a join, through projections that choose columns, and through filters of other joins.

    Attributes:
        relations: what is joined, from left to right, with its filters.
        predicates: all others.
        ids: of the joins.
    """

    def __init__(self, top: LogicalPlan) -> None:
        self.relations: list[LogicalPlan] = []
        self.predicates: list[Expression] = []
        self.ids: set[int] = set()
        stack = [top]
        while stack:
            node = stack.pop()
            join, demanded = _join_below(node)
            if join is None:
                self.relations.append(node)
            else:
                self.ids.add(id(join))
                self.predicates += demanded + conjuncts(join.condition)
                stack += (join.right, join.left)


def _join_below(plan: LogicalPlan) -> tuple[Join | None, list[Expression]]:
    """The inner join at the bottom of filters and projections, and what these demand of its rows."""
    demanded: list[Expression] = []
    while not plan.cached:
        below = without_aliases(plan)
        if isinstance(below, Join) and is_inner(below):
            return below, demanded
        if isinstance(below, Filter) and not below.cached and all(map(is_movable, conjuncts(below.condition))):
            demanded += conjuncts(below.condition)
        elif not isinstance(below, Project) or below.cached or not below.only_attributes:
            break
        plan = below.child
    return None, []


def _region(top: LogicalPlan, joins: _InnerJoins, needed: int, sensitive: int) -> ExistenceRegion | None:
    """A region with its branches; None if it has none, or may not be changed."""
    relations = joins.relations
    core = [r for r in relations if r.output_set & needed]
    if not core or len(core) == len(relations) or any(map(_is_fixed, joins.predicates)):
        return None
    if any(map(_has_hint, relations)):  # of the join with it
        return None
    columns = reduce(or_, (r.output_set for r in relations))
    if columns.bit_count() < sum(r.output_set.bit_count() for r in relations):
        return None  # two relations have a column with one id
    return _split(top, relations, joins.predicates, core, sensitive)


def _below_what_may_fail(nodes: Sequence[LogicalPlan]) -> set[int]:
    """Ids of the nodes below filters and joins with a predicate that may fail, on its own or by a column it reads."""
    risky_columns = computed_by_what_may_fail(nodes)
    found: set[int] = set()
    for node in reversed(nodes):
        predicates = conjuncts(node.condition) if isinstance(node, (Filter, Join)) else []
        if id(node) in found or any(_may_fail(p, risky_columns) for p in predicates):
            found.update(id(child) for child in node.children)
    return found


def _may_fail(predicate: Expression, risky_columns: int) -> bool:
    return may_throw(predicate) or bool(predicate.contains & PYTHON_UDF or predicate.references & risky_columns)


def _is_fixed(predicate: Expression) -> bool:
    """True for a predicate that must be evaluated on the rows on which it is."""
    return not predicate.references or bool(predicate.contains & SUBQUERY) or may_throw(predicate)


def _has_hint(plan: LogicalPlan) -> bool:
    """Whether a join above a plan gets a hint from it."""
    while len(plan.children) == 1 and plan.kind not in HINTS:
        (plan,) = plan.children
    return plan.kind in HINTS


def _split(
    top: LogicalPlan,
    relations: Sequence[LogicalPlan],
    predicates: Sequence[Expression],
    core: Sequence[LogicalPlan],
    sensitive: int,
) -> ExistenceRegion | None:
    """The core and the branches of a region."""
    of_core = reduce(or_, (r.output_set for r in core))
    classes, others = _equality_classes(predicates, of_core, sensitive)
    sets: DisjointSets[int] = DisjointSets()
    for r in relations:
        if r not in core:
            sets.union(id(r), id(r))
    for e in others:
        read = [id(r) for r in relations if r not in core and r.output_set & e.references]
        for one, other in zip(read, read[1:]):
            sets.union(one, other)
    parts = [tuple(r for r in relations if id(r) in group) for group in map(set, sets.groups())]
    masks = [reduce(or_, (r.output_set for r in part)) for part in parts]
    for equal in classes:
        others += equal.apart(of_core, masks)
    inside_core = tuple(e for e in others if not e.references & ~of_core)
    branches = []
    for part, own in zip(parts, masks):
        of_branch = [e for e in others if e.references & own]
        inside = tuple(e for e in of_branch if not e.references & ~own)
        branches.append(ExistenceBranch(part, inside, tuple(e for e in of_branch if e.references & ~own)))
    legal = tuple(b for b in branches if b.keys and _is_at_one_part(b, core, inside_core))
    if not legal:
        return None
    illegal = tuple(b for b in branches if b not in legal)
    return ExistenceRegion(top, tuple(core), inside_core, legal, illegal)


def _is_at_one_part(branch: ExistenceBranch, core: Sequence[LogicalPlan], inside: Iterable[Expression]) -> bool:
    """Whether all that a branch is joined with in the core is connected without it."""
    linked = reduce(or_, (e.references for e in branch.linking), 0)
    sets: DisjointSets[int] = DisjointSets()
    for e in inside:
        read = [i for i, r in enumerate(core) if r.output_set & e.references]
        for one, other in zip(read, read[1:]):
            sets.union(one, other)
    met = {i for i, r in enumerate(core) if r.output_set & linked}
    return len(met) == 1 or any(met <= set(group) for group in sets.groups())


# -- equalities ----------------------------------------------------------------------------------------------------


class _EqualColumns(NamedTuple):
    """Columns that a region sets equal, some of the core among them, and the equalities as written."""

    columns: tuple[Attribute, ...]
    written: Mapping[frozenset[int], Expression]

    def apart(self, core: int, branches: Iterable[int]) -> list[Expression]:
        """The same as equalities of which none reads two branches."""
        hub, *others = (a for a in self.columns if a.mask & core)
        found = [self._equality(hub, a) for a in others]
        for own in branches:
            first, *more = [a for a in self.columns if a.mask & own] or [hub]
            if first is not hub:
                found.append(self._equality(hub, first))
            found += [self._equality(first, a) for a in more]
        return found

    def _equality(self, one: Attribute, other: Attribute) -> Expression:
        written = self.written.get(frozenset((one.bit, other.bit)))
        return written if written is not None else call("EqualTo", reference(one), reference(other))


def _equality_classes(
    predicates: Iterable[Expression], core: int, sensitive: int
) -> tuple[list[_EqualColumns], list[Expression]]:
    """The equal columns of a region, as far as the core has one of them, and all predicates that do not follow."""
    sets: DisjointSets[int] = DisjointSets()
    columns: dict[int, Attribute] = {}
    written: dict[frozenset[int], Expression] = {}
    others: list[Expression] = []
    for e in predicates:
        pair = next(equal_columns(e), None)
        if pair is None or pair[0].type != pair[1].type or not equality_is_identity(pair[0].type):
            others.append(e)
        elif e.references & sensitive:
            others.append(e)
        else:
            one, other = pair
            sets.union(one.bit, other.bit)
            columns |= {one.bit: one, other.bit: other}
            written.setdefault(frozenset((one.bit, other.bit)), e)
    classes = []
    for group in sets.groups():
        if any(core >> bit & 1 for bit in group):
            classes.append(_EqualColumns(tuple(columns[bit] for bit in group), written))
        else:
            others += [e for pair, e in written.items() if pair <= set(group)]
    return classes, others
