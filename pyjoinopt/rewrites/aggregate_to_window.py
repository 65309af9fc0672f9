"""An aggregate that is joined with the rows that it was computed from becomes a window function over these rows.

    before  SELECT sum(l_extendedprice) FROM lineitem JOIN part ON p_partkey = l_partkey
            JOIN (SELECT l_partkey AS k, 0.2 * avg(l_quantity) AS a FROM lineitem GROUP BY l_partkey) ON k = p_partkey
            WHERE p_brand = 'Brand#23' AND l_quantity < a
    after   SELECT sum(l_extendedprice) FROM
              (SELECT *, avg(l_quantity) OVER (PARTITION BY l_partkey) AS w
               FROM lineitem JOIN part ON p_partkey = l_partkey
               WHERE p_brand = 'Brand#23' AND l_partkey IS NOT NULL)
            WHERE l_quantity < 0.2 * w

This is what a correlated subquery becomes (`l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey =
p_partkey)`). A row of the outer lineitem has one group as its partner, that of its own key, and the rows of this group
are all rows of the partition of its key. So the relations are read once, and no row is joined with a group.

**Below the window** go the relations that the aggregate reads, and those that are joined by the partition's key alone
(`part`): they keep or drop whole partitions. What else is demanded of a row (`l_quantity < a`, or filters that the
aggregate does not have) is demanded above.

Legal if

* the aggregate is an input of a region of inner joins; its grouping columns are all equal, in every row of the region,
  to those of the region's own rows, and have types in which equal values are identical;
* the region has the aggregate's relations, each another one (`rewrites.plan_equivalence`), and all predicates on them
  that the aggregate has; those that read only the grouping columns may be missing, and are added;
* a relation below the window that may have several rows for a key (`part`) repeats all rows of a partition equally
  often: then the functions give the same for any number of repetitions (MIN, MAX, AVG of numbers that Spark adds up
  exactly), or the key is unique;
* the functions have no DISTINCT and no FILTER, and give the same in whatever order the rows come: no sums of
  floating-point numbers, and none that overflow;
* no predicate of the region or of the aggregate may throw: they are evaluated on other rows. What is computed of a
  group is computed for fewer rows than before: an error in a group that nothing is joined with goes away.

Rows with a NULL as their key have no group, so they are filtered. A price decides (`optimizer.window_price`): a window
sorts what an aggregate hashes, and all rows of a key are sorted by one task.

Source: C. Zuzarte and others, "WinMagic: subquery elimination using window aggregation", SIGMOD 2003.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.constructors import ColumnFactory, alias_as, project, window, window_call
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference, rewrite, substitute, walk
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys, is_unique
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order, transform_down
from pyjoinopt.rewrites.filtered_aggregates import inner_join_source, is_self_contained
from pyjoinopt.rewrites.inner_join_region import inner_join_inputs, is_inner
from pyjoinopt.rewrites.plan_equivalence import Columns, PlanMatcher, column
from pyjoinopt.util.disjoint_sets import DisjointSets

#: By this name it can be switched off.
NAME = "aggregate_to_window"
#: Types whose equal values are the same value, so that any row of a partition has the key of its group.
EXACT_TYPES = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,\d+\)|string|date|timestamp|timestamp_ntz|boolean")
#: Types whose sums do not overflow in any order: those of up to 28 digits have 38.
_SUMMED = re.compile(r"tinyint|smallint|int|decimal\((1?\d|2[0-8]),\d+\)")
#: Types whose averages are the same if all rows come equally often. Spark adds up decimals of up to 11 digits, and
#: integers, as floating-point numbers: those of 7 digits without an error for 900 million rows of one key. Of 12 to 28
#: digits the sums are decimals.
_AVERAGED = re.compile(r"tinyint|smallint|decimal\(([1-7]|1[2-9]|2[0-8]),\d+\)")
#: So many steps are made to find the relations of an aggregate among those of a region that has one several times.
_MOST_STEPS = 64
#: One aggregate of a region at a time; so many in a plan at most.
_MOST = 8


@dataclass(frozen=True)
class WindowCandidate:
    """A window that may take the place of an aggregate.

    Attributes:
        rows: what the window reads.
        partition: the columns that it is partitioned by.
        read: the columns of `rows` that the window's functions and all that is above it read, as a set.
        aggregate: what it replaces.
        relations: what that reads, without filters.
    """

    rows: LogicalPlan
    partition: tuple[Attribute, ...]
    read: int
    aggregate: Aggregate
    relations: tuple[LogicalPlan, ...]


def aggregates_to_windows(
    plan: LogicalPlan, fresh: ColumnFactory, pays: Callable[[WindowCandidate], bool]
) -> Rewritten:
    """Compute aggregates by a window over the rows that they are joined with.

    Args:
        plan: a plan with its predicates pushed down; those of the result have to be pushed again.
        fresh: gives the columns of the windows.
        pays: whether a window is cheaper than the aggregate.

    Returns:
        The plan, the very same object if there was nothing to do, and a note for every aggregate that went away.
    """
    notes: list[str] = []
    if not may_have_candidates(plan):
        return Rewritten(plan)
    for _ in range(_MOST):
        rewriter = _Rewriter(plan, fresh, pays)
        changed = transform_down(plan, rewriter.change)
        if changed is plan:
            break
        plan = changed
        notes += rewriter.notes
    return Rewritten(plan, tuple(notes))


def may_have_candidates(plan: LogicalPlan) -> bool:
    """False if no aggregate with groups reads what something else reads, too."""
    nodes = list(post_order(plan))
    if not any(isinstance(node, Aggregate) and node.grouping and not node.cached for node in nodes):
        return False
    read = Counter(node.info.get("alike") for node in nodes if not node.children)
    return any(times > 1 for alike, times in read.items() if alike is not None)


class _Rewriter:
    """One pass over a plan."""

    def __init__(self, root: LogicalPlan, fresh: ColumnFactory, pays: Callable[[WindowCandidate], bool]) -> None:
        self._needed = needed_columns(root)
        self._fresh = fresh
        self._pays = pays
        self._alike = PlanMatcher()
        self._keys = DistinctKeys()
        self._seen: set[int] = set()
        self.notes: list[str] = []

    def change(self, node: LogicalPlan) -> LogicalPlan:
        """The region whose topmost join a node is, with one aggregate less."""
        if not is_inner(node) or id(node) in self._seen:
            return node
        # Joins below a filter are tried again, as regions of their own.
        self._seen.update(inner_join_inputs(node).joins)
        inputs, predicates = inner_join_source(node)
        if any(map(may_throw, predicates)):
            return node
        needed = self._needed.get(id(node), node.output_set)
        for group in filter(None, map(_grouped, inputs)):
            found = self._replaced(group, inputs, predicates, needed)
            if found is not None:
                return project(node.output, found)
        return node

    def _replaced(
        self, group: _Group, inputs: Sequence[LogicalPlan], predicates: Sequence[Expression], needed: int
    ) -> LogicalPlan | None:
        """The joins of a region without an aggregate; None if it must remain or does not pay."""
        relations, demanded = inner_join_source(group.aggregate.child)
        if any(map(may_throw, demanded)):
            return None
        others = [part for part in inputs if part is not group.part]
        for own, columns in self._assignments(relations, others):
            partition = _partition(group, columns, predicates)
            if partition is None:
                continue
            region = _Region(others, own, _in_terms_of(predicates, group, columns), partition, self._alike)
            joined = region.joined_by_key(self._keys, repeat=group.repeats)
            below = region.below([substitute(p, columns) for p in demanded], joined)
            if below is None:
                continue
            rows = filtered(below, reduce(Join, [*own, *joined]))
            rest = [p for p in region.predicates if not any(p is low for low in below)]
            read = reduce(or_, (p.references for p in rest), needed)
            read = reduce(or_, (substitute(f, columns).references for f in group.functions), read)
            candidate = WindowCandidate(rows, partition, read, group.aggregate, tuple(relations))
            if not self._pays(candidate):
                continue
            windowed = self._windowed(group, rows, partition, columns)
            above = [part for part in others if not any(part is low for low in (*own, *joined))]
            names = ", ".join(a.name for a in group.part.output if a.bit not in group.keys)
            self.notes.append(
                f"{names}: computed over the rows of each {', '.join(a.name for a in partition)} by a window, "
                "without reading them twice"
            )
            return filtered(rest, reduce(Join, [windowed, *above]))
        return None

    def _assignments(
        self, relations: Sequence[LogicalPlan], inputs: Sequence[LogicalPlan]
    ) -> Iterator[tuple[list[LogicalPlan], Columns]]:
        """The ways to find an aggregate's relations among a region's inputs, with the inputs' columns for theirs."""
        stack: list[tuple[list[LogicalPlan], Columns]] = [([], {})]
        for _ in range(_MOST_STEPS):
            if not stack:
                return
            own, columns = stack.pop()
            if len(own) == len(relations):
                yield own, columns
                continue
            for part in reversed(inputs):
                if any(part is used for used in own):
                    continue
                more = self._alike.columns(part, relations[len(own)])
                if more is not None:
                    stack.append(([*own, part], {**columns, **more}))

    def _windowed(
        self, group: _Group, rows: LogicalPlan, partition: Sequence[Attribute], columns: Columns
    ) -> LogicalPlan:
        """The rows with the columns of the aggregate's part."""
        keys = [reference(a) for a in partition]
        over = {
            f.key: self._fresh.alias(window_call(substitute(f, columns), keys), f.info["fn"].lower())
            for f in group.functions
        }

        def value(e: Expression) -> Expression:
            made = over.get(e.key) if e.kind == "AggregateExpression" else None
            return e if made is None or made.attribute is None else reference(made.attribute)

        listed = []
        for e in group.aggregate.aggregates:
            assert e.attribute is not None
            inner = e.children[0] if e.kind == "Alias" else e
            listed.append(alias_as(e.attribute, substitute(rewrite(inner, value), columns)))
        kept = [reference(a) for a in rows.output]
        plan: LogicalPlan = Project((*kept, *listed), window(list(over.values()), keys, rows))
        for step in group.above:
            if isinstance(step, Filter):
                plan = Filter(step.condition, plan)
            else:
                plan = Project((*kept, *step.expressions), plan)
        return plan


@dataclass(frozen=True)
class _Group:
    """An input of a region that is an aggregate, perhaps with filters and projections above it.

    Attributes:
        part: the input.
        aggregate: the aggregate in it.
        above: the filters and projections, from the lowest.
        grouping: the grouping columns, by bit.
        keys: column of the input -> the grouping column that it is.
        functions: the aggregate functions, each once.
    """

    part: LogicalPlan
    aggregate: Aggregate
    above: tuple[Filter | Project, ...]
    grouping: Mapping[int, Attribute]
    keys: Mapping[int, int]
    functions: tuple[Expression, ...]

    @property
    def repeats(self) -> bool:
        """Whether the functions give the same if all rows come equally often."""
        return all(
            f.info["fn"] in ("Min", "Max")
            or (f.info["fn"] == "Average" and _AVERAGED.fullmatch(f.children[0].children[0].type))
            for f in self.functions
        )


def _grouped(part: LogicalPlan) -> _Group | None:
    """An input as the aggregate that it is; None for another one, and for one that no window can compute."""
    above: list[Filter | Project] = []
    node = without_aliases(part)
    while isinstance(node, (Filter, Project)) and not node.cached:
        if not all(e.deterministic and is_movable(e) for e in node.expressions):
            return None
        above.append(node)
        node = without_aliases(node.children[0])
    if not isinstance(node, Aggregate) or node.cached or not node.grouping or node.info.get("hint"):
        return None
    groups = {g.attribute.bit: g.attribute for g in node.grouping if g.kind == "AttributeReference" and g.attribute}
    if len(groups) < len({g.key for g in node.grouping}):
        return None
    functions = {e.key: e for listed in node.aggregates for e in walk(listed) if e.kind == "AggregateExpression"}
    if not functions or not all(map(_is_windowed, functions.values())):
        return None
    if not all(e.attribute is not None and is_self_contained(e) for e in node.aggregates):
        return None
    keys = _renamed(node.aggregates, {bit: bit for bit in groups})
    for step in reversed(above):
        keys = _renamed(step.expressions, keys) if isinstance(step, Project) else keys
    return _Group(part, node, tuple(reversed(above)), groups, keys, tuple(functions.values()))


def _is_windowed(function: Expression) -> bool:
    """Whether a function gives the same over a window, in whatever order the rows come."""
    if function.info.get("distinct") or len(function.children) != 1 or not function.deterministic:
        return False
    arguments = function.children[0].children
    if not all(map(is_movable, arguments)):
        return False
    match function.info.get("fn"):
        case "Count":
            return True
        case "Min" | "Max":
            return all(EXACT_TYPES.fullmatch(a.type) for a in arguments)
        case "Sum" | "Average":
            return all(_SUMMED.fullmatch(a.type) for a in arguments)
    return False


def _renamed(listed: Iterable[Expression], keys: Mapping[int, int]) -> dict[int, int]:
    """Column of a list -> grouping column, for those that are one."""
    found = {}
    for e in listed:
        source = e.children[0] if e.kind == "Alias" else e
        if e.attribute is not None and source.kind == "AttributeReference" and source.attribute is not None:
            if source.attribute.bit in keys:
                found[e.attribute.bit] = keys[source.attribute.bit]
    return found


def _partition(group: _Group, columns: Columns, predicates: Iterable[Expression]) -> tuple[Attribute, ...] | None:
    """The region's columns for the grouping columns; None unless each is equal to the aggregate's column."""
    equal = DisjointSets[int]()
    for one, other in (pair for p in predicates for pair in equal_columns(p)):
        if one.type == other.type:
            equal.union(one.bit, other.bit)
    number = {bit: i for i, bits in enumerate(equal.groups()) for bit in bits}
    found: dict[int, Attribute] = {}
    for name, bit in group.keys.items():
        mine = column(columns, group.grouping[bit])
        if name in number and number[name] == number.get(mine.bit) and EXACT_TYPES.fullmatch(mine.type):
            found[bit] = mine
    return tuple(found[bit] for bit in group.grouping) if len(found) == len(group.grouping) else None


def _in_terms_of(predicates: Iterable[Expression], group: _Group, columns: Columns) -> list[Expression]:
    """A region's predicates with its own columns for the keys of an aggregate.

    Without `k = k` for a key, which is not NULL below the window.
    """
    own = {name: columns[bit] for name, bit in group.keys.items()}
    implied = {call("EqualTo", key, key).key for key in own.values()}
    changed = {p.key: p for p in (substitute(p, own) for p in predicates)}
    return [p for key, p in changed.items() if key not in implied]


class _Region:
    """A region without its aggregate: what of it goes below the window."""

    def __init__(
        self, inputs: Sequence[LogicalPlan], own: Sequence[LogicalPlan], predicates: Sequence[Expression],
        partition: Sequence[Attribute], alike: PlanMatcher,
    ) -> None:  # fmt: skip
        self._inputs = inputs
        self._own = own
        self.predicates = predicates
        self._partition = partition
        self._alike = alike
        self._key = reduce(or_, (a.mask for a in partition))

    def below(self, demanded: Iterable[Expression], joined: Sequence[LogicalPlan]) -> list[Expression] | None:
        """What the rows of the window fulfil; None if the region lacks one of the aggregate's predicates.

        Args:
            demanded: the aggregate's predicates.
            joined: what is joined by the key.
        """
        numbered = {self._alike.predicate_number(p): p for p in self.predicates}
        found = []
        for q in demanded:
            mine = numbered.get(self._alike.predicate_number(q))
            if mine is not None and self._alike.same(mine, q, {}):
                found.append(mine)
            elif q.references and not q.references & ~self._key:
                found.append(q)
            else:
                return None
        known = reduce(or_, (part.output_set for part in joined), self._key)
        found += [p for p in self.predicates if p.references and not p.references & ~known]
        found += [call("IsNotNull", reference(a)) for a in self._partition]
        return list({id(p): p for p in found}.values())

    def joined_by_key(self, keys: DistinctKeys, repeat: bool) -> list[LogicalPlan]:
        """The inputs that are joined by the key of the partitions alone, and by each other.

        Args:
            keys: of the inputs.
            repeat: whether one may have several rows for a key.
        """
        found: list[LogicalPlan] = []
        known = self._key
        waiting = [part for part in self._inputs if not any(part is own for own in self._own)]
        for _ in range(len(waiting)):
            for part in waiting:
                linked = list(self._linking(part, known))
                if linked and (repeat or self._is_unique(part, linked, known, keys)):
                    found.append(part)
                    known |= part.output_set
                    waiting = [other for other in waiting if other is not part]
                    break
            else:
                break
        return found

    def _linking(self, part: LogicalPlan, known: int) -> Iterator[Expression]:
        for p in self.predicates:
            read = p.references
            if read & part.output_set and read & known and not read & ~(part.output_set | known):
                yield p

    def _is_unique(self, part: LogicalPlan, linking: Iterable[Expression], known: int, keys: DistinctKeys) -> bool:
        compared = [pair for p in linking for pair in equal_columns(p)]
        own = [a for pair in compared for a, b in (pair, pair[::-1]) if a.mask & part.output_set and b.mask & known]
        return is_unique(keys(part), map(reference, own))
