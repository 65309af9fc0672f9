"""Readers of one common table expression that differ by constants shuffle its groups once for all of them.

    before  WITH yearly AS (SELECT 's' AS channel, customer, year AS y, sum(price) AS sales
                            FROM store_sales JOIN days ... GROUP BY customer, year
                            UNION ALL SELECT 'w', customer, year, sum(price) FROM web_sales JOIN days ...)
            SELECT ... FROM yearly a JOIN yearly b ON a.customer = b.customer JOIN ...
            WHERE a.channel = 's' AND a.y = 2001 AND b.channel = 's' AND b.y = 2002 AND ...
    after   WITH yearly AS (SELECT 's' AS channel, customer, max(year) AS y, sum(price) AS sales FROM store_sales ...
                            WHERE year IN (2001, 2002) GROUP BY customer, year
                            UNION ALL ...)

Spark writes the definition out for each reader, drops the branches that it does not read (`channel`), and pushes its
filter below the aggregate: the sales are read once for each year. The largest year of a group is its year, and no
filter passes an aggregate function. So both readers shuffle the groups of both years, which Spark does once and reuses
(ReuseExchange), and each filters the groups that it gets. That only these years are read is due to
`filter_common_tables`, which has to run before.

Legal if

* the column is a grouping column of each branch, under a name of its own, and of a type in which equal values are
  identical, so that the largest one of a group is the value of all its rows; it may be NULL, as a largest value may;
* the definition is not cached, and nothing in a branch is nondeterministic.

Worthwhile only if Spark makes one exchange of those of the readers, which is the case where

* each reader has filters on the same of these columns, and its other filters read no grouping column;
* the joins above the readers compare the same of their grouping columns, so that Spark infers the same IS NOT NULL;
* they read the same results of the aggregate's functions, for Spark prunes the others.

What it costs: each reader gets the groups of all readers from the exchange, and finishes their aggregation.

Source: ours. Of engines with a spool it is the common subexpression "similar subexpression" (J. Zhou and others,
"Efficient exploitation of similar subexpressions for query processing", SIGMOD 2007), with the exchange as the spool.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.plan.constructors import aggregate_call, alias_as
from pyjoinopt.plan.expressions import FOLDABLE, Expression, conjuncts, reference, substitute
from pyjoinopt.plan.nodes import INNER_LIKE, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name, without_aliases
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import parents_of, post_order, transform_up
from pyjoinopt.rewrites.aggregate_to_window import EXACT_TYPES
from pyjoinopt.rewrites.filter_common_tables import readings

#: By this name it can be switched off.
NAME = "share_common_tables"
#: Spark's setting without which nothing is shared.
_REUSE = "spark.sql.exchange.reuse"


@dataclass(frozen=True)
class SharedBranch:
    """An aggregate that several readers would share.

    Attributes:
        aggregate: a branch of the definition, or all of it.
        readers: the readers of this branch, each with its filter.
    """

    aggregate: Aggregate
    readers: tuple[LogicalPlan, ...]


def may_have_shared_tables(plan: LogicalPlan) -> bool:
    """False if no common table expression is read several times."""
    names = [node.info.get("cte") for node in post_order(plan) if node.kind == "CTERelationRef"]
    return len(names) > len(set(names))


def is_reused(settings: Callable[[Sequence[str]], Mapping[str, str] | None]) -> bool:
    """Whether Spark reuses exchanges.

    Args:
        settings: the values of settings; None if they are not known.
    """
    return (settings([_REUSE]) or {}).get(_REUSE, "false").lower() == "true"


def share_common_tables(plan: LogicalPlan, pays: Callable[[Sequence[SharedBranch]], bool]) -> Rewritten:
    """Keep the filters of readers above the aggregates of common table expressions where they can share these.

    Args:
        plan: a plan in which the readers' filters are right above them, and what all of them keep of a definition is
            filtered in it. No predicate may be pushed down afterwards by rules that do not know aggregate functions.
        pays: whether the branches of one definition should be shared.

    Returns:
        The plan, the very same object if there was nothing to do, and a note for every definition that changed.
    """
    if not may_have_shared_tables(plan):
        return Rewritten(plan)
    context = _Readers(plan)
    notes: list[str] = []
    changed: dict[object, LogicalPlan] = {}
    for node in post_order(plan):
        if node.kind != "CTERelationDef" or node.cached:
            continue
        table = node.children[0]
        branches = _branches(table)
        readers = context.of(node) if branches else []
        columns = _distinguishing(table, branches, readers)
        shared = _shared(table, branches, readers, columns, context) if columns else []
        if shared and pays(shared):
            changed[node.info.get("cte")] = _masked(table, {id(b.columns[i]) for b in branches for i in columns})
            names = ", ".join(table.output[i].name for i in sorted(columns))
            notes.append(f"readers of a common table expression that differ by {names} share its groups")

    def change(node: LogicalPlan) -> LogicalPlan:
        found = changed.get(node.info.get("cte")) if node.kind == "CTERelationDef" and not node.cached else None
        return node.with_children((found,)) if found is not None else node

    return Rewritten(transform_up(plan, change) if changed else plan, tuple(notes))


@dataclass(frozen=True)
class _Reader:
    """A reader and its filter; `top` is the filter, or the reader if there is none."""

    node: LogicalPlan
    top: LogicalPlan
    predicates: tuple[Expression, ...]

    def positions(self, mask: int) -> frozenset[int]:
        """Which of its columns are in a set."""
        return frozenset(i for i, a in enumerate(self.node.output) if a.mask & mask)


class _Readers:
    """The readers of a plan's definitions, and what is above them."""

    def __init__(self, root: LogicalPlan) -> None:
        self._read: dict[object, list[_Reader]] = {}
        for node, above in readings(root):
            predicates = tuple(conjuncts(above.condition)) if above is not None else ()
            self._read.setdefault(node.info.get("cte"), []).append(_Reader(node, above or node, predicates))
        self._parents: Mapping[int, list[LogicalPlan]] = parents_of(list(post_order(root)))
        self._needed = needed_columns(root)

    def of(self, definition: LogicalPlan) -> list[_Reader]:
        """The readers of a definition."""
        return self._read.get(definition.info.get("cte"), [])

    def read(self, reader: _Reader) -> frozenset[int]:
        """The positions of the columns that anything above a reader reads, its filter as well."""
        return reader.positions(self._needed.get(id(reader.node), -1))

    def compared(self, reader: _Reader) -> tuple[frozenset[int], tuple[str, ...]]:
        """The positions that inner joins above compare, and the types of the first other join if there is one."""
        compared = 0
        node: LogicalPlan = reader.top
        while len(above := self._parents.get(id(node), [])) == 1:
            (parent,) = above
            if isinstance(parent, Join):
                if parent.join_type not in INNER_LIKE:
                    return reader.positions(compared), (parent.join_type, str(parent.left is node))
                compared |= parent.references
            elif not (isinstance(parent, (Filter, Project)) or is_only_a_name(parent)):
                break
            node = parent
        return reader.positions(compared), ()


@dataclass(frozen=True)
class _Branch:
    """A branch of a table, or all of it: an aggregate, perhaps with filters and projections above it.

    Attributes:
        aggregate: the aggregate.
        columns: what each column of the table is: an element of the aggregate's list, a constant, or computed.
    """

    aggregate: Aggregate
    columns: tuple[Expression, ...]

    def is_key(self, i: int) -> bool:
        """Whether a column is a grouping column."""
        listed = self.columns[i]
        inner = listed.children[0] if listed.kind == "Alias" else listed
        own = any(listed is e for e in self.aggregate.aggregates)
        return own and inner.kind == "AttributeReference" and any(g.key == inner.key for g in self.aggregate.grouping)

    def has_largest(self, i: int) -> bool:
        """Whether the largest value may take the place of a column."""
        listed = self.columns[i]
        if listed.kind != "Alias" or listed.attribute is None or not listed.attribute.nullable:
            return False
        return bool(EXACT_TYPES.fullmatch(listed.type)) and self.is_key(i)

    def constant(self, i: int) -> Expression | None:
        """The constant that a column is, if it is one."""
        listed = self.columns[i]
        return listed.children[0] if listed.kind == "Alias" and listed.children[0].flags & FOLDABLE else None


def _branches(table: LogicalPlan) -> list[_Branch]:
    """The aggregates that make a table, itself or the branches of a UNION ALL; none if something else does."""
    found: list[_Branch] = []
    stack = [table]
    while stack:
        node = without_aliases(stack.pop())
        if node.kind == "Union" and not node.cached:
            stack += reversed(node.children)
            continue
        branch = _branch(node)
        if branch is None:
            return []
        found.append(branch)
    return found if all(len(branch.columns) == len(table.output) for branch in found) else []


def _branch(top: LogicalPlan) -> _Branch | None:
    steps: list[LogicalPlan] = []
    node = top
    while isinstance(node, (Filter, Project)) and not node.cached:
        steps.append(node)
        node = without_aliases(node.children[0])
    if not isinstance(node, Aggregate) or node.cached or not node.grouping:
        return None
    if not all(e.deterministic for each in (node, *steps) for e in each.expressions):
        return None
    columns = list(node.aggregates)
    for step in reversed(steps):
        if isinstance(step, Project):
            known = {e.attribute.bit: e for e in columns if e.attribute is not None}
            columns = [_behind(e, known) for e in step.projections]
    return _Branch(node, tuple(columns))


def _behind(listed: Expression, known: Mapping[int, Expression]) -> Expression:
    """What an element of a projection's list is the name of, or the element itself."""
    inner = listed.children[0] if listed.kind == "Alias" else listed
    if inner.kind != "AttributeReference" or inner.attribute is None:
        return listed
    return known.get(inner.attribute.bit, listed)


def _distinguishing(table: LogicalPlan, branches: Sequence[_Branch], readers: Sequence[_Reader]) -> set[int]:
    """The positions of the grouping columns that the readers' filters read; none if they cannot share anything."""
    if len(readers) < 2:
        return set()
    keys = {i for i in range(len(table.output)) if any(branch.is_key(i) for branch in branches)}
    filtered = [{i for p in r.predicates for i in r.positions(p.references)} & keys for r in readers]
    if any(own != filtered[0] for own in filtered):
        return set()
    return filtered[0] if all(branch.has_largest(i) for branch in branches for i in filtered[0]) else set()


def _shared(
    table: LogicalPlan, branches: Sequence[_Branch], readers: Sequence[_Reader], columns: set[int], context: _Readers
) -> list[SharedBranch]:
    """The branches that several readers read, if these would all make the same exchange of it."""
    found = []
    for branch in branches:
        own = [r for r in readers if _reads(r, branch)]
        keys = {i for i in range(len(table.output)) if branch.is_key(i)}
        results = [context.read(r) - keys for r in own]
        compared = [context.compared(r) for r in own]
        alike = [(positions & keys - columns, rest) for positions, rest in compared]
        if any(x != results[0] for x in results) or any(x != alike[0] for x in alike):
            return []
        if len({frozenset(p.key for p in _in_terms_of(table, r, columns)) for r in own}) > 1:
            found.append(SharedBranch(branch.aggregate, tuple(r.top for r in own)))
    return found


def _in_terms_of(table: LogicalPlan, reader: _Reader, columns: set[int]) -> Iterator[Expression]:
    """A reader's filters of some columns, by the definition's columns."""
    names = {a.bit: reference(b) for a, b in zip(reader.node.output, table.output, strict=True)}
    for p in reader.predicates:
        if reader.positions(p.references) & columns:
            yield substitute(p, names)


def _reads(reader: _Reader, branch: _Branch) -> bool:
    """Whether a reader may read a branch: no filter compares a constant column with another constant."""
    for p in reader.predicates:
        if p.kind != "EqualTo":
            continue
        for one, other in (p.children, p.children[::-1]):
            if one.kind == "AttributeReference" and other.kind == "Literal":
                for i in reader.positions(one.references):
                    constant = branch.constant(i)
                    if constant is not None and constant.kind == "Literal" and constant.key != other.key:
                        return False
    return True


def _masked(table: LogicalPlan, listed: Collection[int]) -> LogicalPlan:
    """The table with the largest value in the place of some elements of its aggregates' lists, given by id."""
    if isinstance(table, Aggregate):
        return table.with_expressions(
            (*table.grouping, *(_largest(e) if id(e) in listed else e for e in table.aggregates))
        )
    is_passed = table.kind == "Union" or isinstance(table, (Filter, Project)) or is_only_a_name(table)
    return table.with_children(tuple(_masked(child, listed) for child in table.children)) if is_passed else table


def _largest(listed: Expression) -> Expression:
    assert listed.attribute is not None
    return alias_as(listed.attribute, aggregate_call("Max", listed.children[0], listed.type))
