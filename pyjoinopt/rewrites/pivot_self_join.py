"""Rows of one common table expression, chosen by constants and joined with each other, become one row of a pivot.

    before  WITH yearly AS (SELECT brand, year, sum(price) sales FROM ... GROUP BY brand, year)
            SELECT now.brand, now.sales - past.sales FROM yearly now JOIN yearly past ON now.brand = past.brand
            WHERE now.year = 2002 AND past.year = 2001
    after   SELECT brand, max(sales) FILTER (WHERE year = 2002) - max(sales) FILTER (WHERE year = 2001)
            FROM yearly WHERE year IN (2001, 2002) GROUP BY brand
            HAVING count(1) FILTER (WHERE year = 2002) > 0 AND count(1) FILTER (WHERE year = 2001) > 0

Spark computes the table once for each reader. A brand has one row a year, so one pass over both years finds for each
brand the two rows that the join finds, and `max` over one row is its value.

Legal if

* the readers are inputs of one region of inner joins, and the table is an aggregate;
* each reader keeps at most one row for each value of the join columns: some key of the table consists of columns on
  which all readers are equal, and of columns that each of them compares with a constant;
* the key columns have types in which equal values are identical;
* a column that is read has a type with a largest value; one that cannot be NULL is INT or BIGINT, so that a default can
  take the place of the value where the filter keeps no row;
* a reader's filters are movable and cannot throw: they are evaluated on the rows of the other readers;
* they compare no floating-point numbers (`compares_floating`);
* columns of the region that nothing reads may be missing above it;
* the table reads no files of text, whose rows may depend on the columns that are read.

Source: ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.constructors import ColumnFactory, aggregate, aggregate_call, alias_as, constant, project
from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import (
    FOLDABLE,
    Attribute,
    Expression,
    call,
    conjunction,
    conjuncts,
    reference,
    substitute,
)  # fmt: skip
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.leaves import depends_on_columns, leaves_of
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias
from pyjoinopt.plan.operator_kinds import is_only_a_name, without_aliases
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import parents_of, post_order, transform_down
from pyjoinopt.rewrites.filtered_aggregates import compares_floating
from pyjoinopt.rewrites.inner_join_region import inner_join_inputs, is_inner
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Types whose equal values are the same value, so that a group may be called by any of them.
_EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)|string|date|timestamp|timestamp_ntz|boolean")
#: Types of which there is a largest value.
_ORDERED = re.compile(_EXACT.pattern + r"|float|double|binary|string collate .*")


@dataclass(frozen=True)
class _Reader:
    """A reference to a common table expression, and what of its rows is kept."""

    part: LogicalPlan
    table: LogicalPlan
    predicates: tuple[Expression, ...]

    @property
    def name(self) -> object:
        return self.table.info.get("cte")

    def fixed(self) -> set[int]:
        """Positions of the columns that have one value in the rows that are kept."""
        found = set()
        for p in self.predicates:
            for one, other in (p.children, p.children[::-1]) if p.kind == "EqualTo" else ():
                if one.kind == "AttributeReference" and other.contains & FOLDABLE and not other.references:
                    found |= {i for i, a in enumerate(self.table.output) if a.mask == one.references}
        return found


def pivot_self_joins(plan: LogicalPlan, fresh: ColumnFactory) -> Rewritten:
    """Read a common table expression once where an inner join needs several rows of it, distinguished by constants.

    Args:
        plan: a plan with its predicates pushed down; those of the result may have to be pushed again.
        fresh: gives the columns of the new reference.

    Returns:
        The plan, the very same object if there was nothing to do, and a note for every group of readers that became
        one.
    """
    nodes = list(post_order(plan))
    names = [node.info.get("cte") for node in nodes if node.kind == "CTERelationRef"]
    if len(names) == len(set(names)):
        return Rewritten(plan)
    definitions = {n.info.get("cte"): n.children[0] for n in nodes if n.kind == "CTERelationDef" and not n.cached}
    tables = {
        name: table
        for name, table in definitions.items()
        if isinstance(_grouped(table), Aggregate)
        and not any(map(depends_on_columns, *leaves_of([table], definitions)))
    }
    keys = DistinctKeys()
    needed = needed_columns(plan, projections=False)
    parents = parents_of(nodes)
    seen: set[int] = set()
    notes: list[str] = []

    def change(node: LogicalPlan) -> LogicalPlan:
        if not is_inner(node) or id(node) in seen:
            return node
        parts, predicates, joins = inner_join_inputs(node)
        seen.update(joins)
        readers = [r for r in map(_reader, parts) if r is not None and r.name in tables]
        wanted = needed.get(id(node), -1) if _reads_by_name(node, parents) else -1
        read = reduce(lambda mask, p: mask | p.references, predicates, wanted & node.output_set)
        before = len(parts)
        for name in dict.fromkeys(r.name for r in readers):
            table = tables[name]
            places = {reference(a).key: i for i, a in enumerate(table.output)}
            unique = [{places[k] for k in key} for key in keys(table) if key and all(k in places for k in key)]
            group, by = _together([r for r in readers if r.name == name], unique, predicates)
            pivoted = _pivot(group, by, read, fresh) if len(group) > 1 else None
            if pivoted is None:
                continue
            gone = {id(r.part) for r in group[1:]}
            parts = [pivoted if part is group[0].part else part for part in parts if id(part) not in gone]
            predicates = [p for p in predicates if not _is_implied(p, group, by)]
            read_as = ", ".join(_name(r.part) for r in group)
            notes.append(f"{read_as}: rows of one table, distinguished by constants, are found in one pass over it")
        if len(parts) == before:
            return node
        joined = filtered(predicates, reduce(Join, parts))
        return project([a for a in node.output if a.mask & joined.output_set], joined)

    return Rewritten(transform_down(plan, change), tuple(notes))


def _grouped(table: LogicalPlan) -> LogicalPlan:
    """What is below the filters, projections and names on top of a table."""
    while isinstance(table, (Filter, Project)) or is_only_a_name(table):
        (table,) = table.children
    return table


def _reader(part: LogicalPlan) -> _Reader | None:
    predicates: list[Expression] = []
    table = without_aliases(part)
    while isinstance(table, Filter) or (isinstance(table, Project) and table.only_attributes):
        if isinstance(table, Filter):
            predicates += conjuncts(table.condition)
        table = without_aliases(table.children[0])
    if table.kind != "CTERelationRef" or compares_floating(predicates):
        return None
    if not all(is_movable(p) and not may_throw(p) for p in predicates):
        return None
    return _Reader(part, table, tuple(predicates))


def _name(part: LogicalPlan) -> str:
    return part.name if isinstance(part, SubqueryAlias) else "a common table expression"


def _reads_by_name(node: LogicalPlan, parents: Mapping[int, list[LogicalPlan]]) -> bool:
    """True if columns that are not read may be missing from a node."""
    while len(above := parents.get(id(node), [])) == 1:
        (node,) = above
        if isinstance(node, (Project, Aggregate)):
            return True
        if not isinstance(node, Filter) and node.kind != "SubqueryAlias":
            break
    return False


def _together(
    readers: Sequence[_Reader], unique: Sequence[set[int]], predicates: Iterable[Expression]
) -> tuple[list[_Reader], list[int]]:
    """Readers whose rows have at most one partner in each other, and the positions of the columns that are equal."""
    classes = _classes(predicates)
    for i, first in enumerate(readers):
        group, by = [first], list[int]()
        for other in readers[i + 1 :]:
            key = _key([*group, other], unique, classes)
            if key:
                group, by = [*group, other], key
        if by:
            return group, by
    return [], []


def _classes(predicates: Iterable[Expression]) -> dict[int, int]:
    """Bit of a column -> a number that it shares with the columns that it is equal to."""
    equal = DisjointSets[int]()
    for one, other in (pair for p in predicates for pair in equal_columns(p)):
        if one.type == other.type:
            equal.union(one.bit, other.bit)
    return {bit: number for number, group in enumerate(equal.groups()) for bit in group}


def _key(readers: Sequence[_Reader], unique: Sequence[set[int]], classes: Mapping[int, int]) -> list[int]:
    """Positions of the columns that distinguish the readers' rows, if all of them are equal on these."""
    fixed = set.intersection(*(r.fixed() for r in readers))
    for key in unique:
        by = sorted(key - fixed)
        same = ({classes.get(r.table.output[i].bit, -1 - n) for n, r in enumerate(readers)} for i in by)
        exact = all(_EXACT.fullmatch(readers[0].table.output[i].type) for i in by)
        if by and exact and all(len(numbers) == 1 for numbers in same):
            return by
    return []


def _pivot(group: Sequence[_Reader], by: Sequence[int], read: int, fresh: ColumnFactory) -> LogicalPlan | None:
    """One reference in the place of several, with the columns of all that are read; None if some has no maximum."""
    table = group[0].table
    new = tuple(fresh.attribute(a.name, a.type, a.nullable) for a in table.output)
    again = LogicalPlan(table.kind, (), new, (), None, table.origin, {**table.info, "narrowed": True, "again": True})
    names: list[Expression] = []
    named: set[int] = set()
    values: list[Expression] = []
    kept: list[Expression | None] = []
    for reader in group:
        columns = {a.bit: reference(b) for a, b in zip(reader.table.output, new, strict=True)}
        keep = conjunction(substitute(p, columns) for p in reader.predicates)
        kept.append(keep)
        for i, a in enumerate(reader.table.output):
            if not read & a.mask:
                continue
            if i in by and i not in named:
                named.add(i)
                names.append(alias_as(a, reference(new[i])))
                continue
            # In a union, Spark would remove two aliases of one column, and then refuse the column that comes twice.
            value = _largest(new[i], None if i in by else keep)
            if value is None:
                return None
            values.append(alias_as(a, value))
            names.append(reference(a))
    counts = [fresh.alias(aggregate_call("Count", constant(1, "int"), where=keep), "rows", False) for keep in kept]
    alternatives = [keep for keep in kept if keep is not None]
    some = [reduce(lambda a, b: call("Or", a, b), alternatives)] if len(alternatives) == len(kept) else []
    groups = [reference(new[i]) for i in by]
    rows = filtered([*some, *(call("IsNotNull", g) for g in groups)], again)
    found = [call("GreaterThan", reference(_column(c)), constant(0, "bigint")) for c in counts]
    return Project(tuple(names), filtered(found, aggregate(groups, [*groups, *values, *counts], rows)))


def _largest(column: Attribute, keep: Expression | None) -> Expression | None:
    """The one value of a column in the rows of a reader; not NULL where the column is not."""
    if not _ORDERED.fullmatch(column.type):
        return None
    value = aggregate_call("Max", reference(column), column.type, keep)
    if column.nullable:
        return value
    if column.type not in ("int", "bigint"):
        return None
    return Expression("Coalesce", (value, constant(0, column.type)), column.type)


def _column(alias: Expression) -> Attribute:
    assert alias.attribute is not None
    return alias.attribute


def _is_implied(predicate: Expression, group: Sequence[_Reader], by: Sequence[int]) -> bool:
    """True for an equality of the columns that the pivot is grouped by: the rows of a group fulfil it."""
    columns = [{r.table.output[i].bit for r in group} for i in by]
    return any({one.bit, other.bit} <= same for one, other in equal_columns(predicate) for same in columns)
