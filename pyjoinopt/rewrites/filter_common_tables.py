"""A common table expression gets the filters that all of its readers have.

    before  WITH yearly AS (SELECT id, year, sum(price) sales FROM customers JOIN sales ON ... JOIN days ON ...
                            GROUP BY id, year)
            SELECT * FROM yearly now JOIN yearly past ON now.id = past.id WHERE now.year = 2002 AND past.year = 2001
    after   WITH yearly AS (SELECT ... GROUP BY id, year HAVING year = 2002 OR year = 2001) ...

Spark writes the definition out for each reader and pushes the reader's filter into it. It does so after the joins of a
DataFrame have been ordered: without this rewrite they are ordered as if all years were read, so that days would be
joined last. The new filter is pushed down to the days, where the search takes it into account. Each reader keeps its
own.

A filter is made for each column of which every reader has a filter, unless the column is a constant. It is weaker than
those of any reader, so it drops no row that a reader keeps.

Legal if

* each reader of the definition, those in subqueries too, has a filter right above it, under its names at most;
* what is taken of the filters is movable and cannot throw: it is evaluated on the rows of the other readers;
* the definition does not read itself.

Source: Catalyst's `PushdownPredicatesAndPruneColumnsForCTEDef`, which does it for definitions that are not written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.expressions import (
    FOLDABLE,
    SUBQUERY,
    Expression,
    call,
    conjunction,
    conjuncts,
    describe,
    reference,
    substitute,
    walk,
)
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.nodes import Aggregate, Filter, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name, without_aliases
from pyjoinopt.plan.traversal import post_order, transform_up

#: So many readers of one definition at most: each adds an alternative.
_MOST_READERS = 16
#: A reader, and the filter right above it.
_Reading = tuple[LogicalPlan, Filter | None]


def filter_common_tables(plan: LogicalPlan) -> LogicalPlan:
    """The plan with filters on top of its common table expressions; `plan` itself if there are none to add.

    Args:
        plan: a plan with its predicates pushed down; the new ones have to be pushed, too.
    """
    definitions = {n.info.get("cte"): n for n in post_order(plan) if n.kind == "CTERelationDef" and not n.cached}
    if not definitions:
        return plan
    by_name: dict[object, list[_Reading]] = {}
    for reading in readings(plan):
        by_name.setdefault(reading[0].info.get("cte"), []).append(reading)
    added = {
        name: found
        for name, definition in definitions.items()
        if (found := _shared_filters(definition, by_name.get(name, [])))
    }

    def change(node: LogicalPlan) -> LogicalPlan:
        found = added.get(node.info.get("cte")) if node.kind == "CTERelationDef" and not node.cached else None
        return node.with_children((filtered(found, node.children[0]),)) if found else node

    return transform_up(plan, change) if added else plan


def readings(root: LogicalPlan) -> Iterator[_Reading]:
    """Every reader in a plan and in its subqueries, once for each place where it is read."""
    plans = [root]
    while plans:
        plan = plans.pop()
        if without_aliases(plan).kind == "CTERelationRef":
            yield without_aliases(plan), None
        for node in post_order(plan):
            plans += (e.plan for top in node.expressions if top.contains & SUBQUERY for e in walk(top) if e.plan)
            for child in () if is_only_a_name(node) else node.children:
                below = without_aliases(child)
                if below.kind == "CTERelationRef":
                    yield below, node if isinstance(node, Filter) else None


def _shared_filters(definition: LogicalPlan, readings: Sequence[_Reading]) -> list[Expression]:
    """What holds for every row of a definition that some reader keeps; by column."""
    (table,) = definition.children
    inside = [node for node in post_order(table) if node.kind in ("CTERelationRef", "UnionLoopRef")]
    if not 1 < len(readings) <= _MOST_READERS or any(node.info.get("cte") == definition.info["cte"] for node in inside):
        return []
    by_reader = [_by_column(reader, above, table) for reader, above in readings]
    fixed = _constant_columns(table)
    columns = [a.bit for a in table.output if a.bit not in fixed and all(a.bit in own for own in by_reader)]
    return [_any_of([own[bit] for own in by_reader]) for bit in columns]


def _constant_columns(table: LogicalPlan) -> set[int]:
    """Columns that have one value in the whole table, or in all rows of a branch of a union.

    Such a column identifies the branch of a row (`'store' AS channel`). Spark prunes the branches that a reader filters
    out, and a comparison of constants would only keep the estimator from reading the filters next to it.
    """
    node = without_aliases(table)
    while node.kind in ("Filter", "Distinct", "Sort") and not node.cached:
        node = without_aliases(node.children[0])
    if node.cached:
        return set()
    branches = node.children if node.kind == "Union" else (node,)
    places: set[int] = set()
    for branch in branches if len(branches) == 1 else map(without_aliases, branches):
        listed = branch.projections if isinstance(branch, Project) else ()
        listed = branch.aggregates if isinstance(branch, Aggregate) else listed
        places |= {i for i, e in enumerate(listed) if e.kind == "Alias" and e.children[0].flags & FOLDABLE}
    return {table.output[i].bit for i in places}


def _by_column(reader: LogicalPlan, above: Filter | None, table: LogicalPlan) -> Mapping[int, Expression]:
    """Column of the definition -> what a reader demands of it alone."""
    if above is None or len(reader.output) != len(table.output):
        return {}
    original = {mine.bit: reference(theirs) for mine, theirs in zip(reader.output, table.output, strict=True)}
    found: dict[int, list[Expression]] = {}
    for predicate in conjuncts(above.condition):
        if predicate.references.bit_count() == 1 and is_movable(predicate) and not may_throw(predicate):
            p = substitute(predicate, original)
            found.setdefault(p.references.bit_length() - 1, []).append(p)
    return {
        bit: both for bit, demands in found.items() if (both := conjunction(sorted(demands, key=describe))) is not None
    }


def _any_of(alternatives: Sequence[Expression]) -> Expression:
    """Their OR; in an order of its own, so that the estimate does not depend on how the query is written."""
    different = {e.key: e for e in alternatives}.values()
    return reduce(lambda a, b: call("Or", a, b), sorted(different, key=describe))
