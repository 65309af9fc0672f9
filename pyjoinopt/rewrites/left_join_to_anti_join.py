"""Left joins of which only the rows without a partner are kept become anti joins.

    before  SELECT a.x FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL
    after   SELECT a.x FROM a LEFT ANTI JOIN b ON a.k = b.k

The left join makes a row for every pair of partners, and the filter drops all of them again. An anti join stops at the
first partner and makes none. A right join is handled likewise.

Legal if

* the filter is directly above the join and tests a column of the padded side by IS NULL;
* that column is not NULL in a row with a partner: the condition or a filter on the padded side rejects its NULLs;
* the filter's other conjuncts do not read the padded side, unless they are IS NULL of a column of it, too;
* nothing above needs the padded side, not by name either (hidden columns of a join USING), and only filters and joins
  are between the filter and the list of columns that picks from it. What is computed of the padded side there and
  needed by nobody goes with it (`lost_columns`);
* the condition is deterministic, cannot throw, reads no column that is computed by what can throw, and has no Python
  function: Spark moves an anti join below other joins and projections, where its condition is evaluated on more rows;
* neither is cached, and the join has no hint.

Source: ours. Catalyst has no such rule; PostgreSQL does it in `reduce_outer_joins`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    PYTHON_UDF,
    Attribute,
    Expression,
    conjunction,
    conjuncts,
    describe,
)
from pyjoinopt.plan.facts.constraints import PlanFacts
from pyjoinopt.plan.facts.null_rejection import rejects_nulls
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import ANTI, LEFT, NO_HINT, RIGHT, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import parents_of, post_order
from pyjoinopt.rewrites.lost_columns import without_lost_columns

_WORDS = {LEFT: "left", RIGHT: "right"}


def outer_join_as_anti_join(plan: LogicalPlan) -> Rewritten:
    """Turn left and right joins of which only padded rows are kept into anti joins.

    Args:
        plan: any plan, filters as far down as they go; cached sub-plans are left as they are.

    Returns:
        The plan, the very same object if no join changed, and a note for every join that did.
    """
    nodes = list(post_order(plan))
    facts = PlanFacts()
    risky = computed_by_what_may_fail(nodes)
    tests = {id(node): found for node in nodes if (found := _test(node, facts, risky)) is not None}
    if not tests:
        return Rewritten(plan)
    needed, parents = needed_columns(plan), parents_of(nodes)
    hidden = _hidden(nodes)
    done: dict[int, LogicalPlan] = {}
    notes = []
    for node in nodes:
        new = node if node.cached else without_lost_columns(node, tuple(done[id(child)] for child in node.children))
        test = tests.get(id(node))
        if test is not None and isinstance(node, Filter) and isinstance(new, Filter):
            padded = _sides(node.child)[1]
            unread = not (needed[id(node)] | hidden) & padded.output_set
            if unread and _is_read_by_id(node, parents):
                new = _anti_join(new, test, padded.output_set)
                notes.append(_note(node.child, test))
        done[id(node)] = new
    return Rewritten(done[id(plan)], tuple(notes))


def _hidden(nodes: list[LogicalPlan]) -> int:
    """Columns that a USING join hid, and what they are computed from: a user can still ask for them by name."""
    hidden = sum({1 << bit for node in nodes for bit in node.info.get("hidden") or ()})
    for node in reversed(nodes):
        for e in node.projections if isinstance(node, Project) else ():
            if e.attribute is not None and e.attribute.mask & hidden:
                hidden |= e.references
    return hidden


def computed_by_what_may_fail(nodes: Sequence[LogicalPlan]) -> int:
    """The computed columns that may fail, also by way of others."""
    risky = 0
    for node in nodes:  # children first
        if isinstance(node, (Project, Aggregate)):
            for e in node.projections if isinstance(node, Project) else node.aggregates:
                counts = e.contains & AGGREGATE_OR_WINDOW  # below which nothing moves that reads it
                if e.kind == "Alias" and e.attribute is not None and not counts:
                    if e.references & risky or may_throw(e):
                        risky |= e.attribute.mask
    return risky


def _test(node: LogicalPlan, facts: PlanFacts, risky: int) -> Expression | None:
    """The conjunct by which a filter keeps nothing but the padded rows of the outer join below it."""
    if not isinstance(node, Filter) or node.cached or not isinstance(node.child, Join):
        return None
    join = node.child
    condition = join.condition
    if join.join_type not in _WORDS or join.cached or join.hint != NO_HINT or condition is None:
        return None
    if not condition.deterministic or condition.contains & PYTHON_UDF:
        return None
    if condition.references & risky or may_throw(condition):
        return None
    padded = _sides(join)[1]
    test = None
    for e in conjuncts(node.condition):
        if not e.references & padded.output_set:
            continue
        column = _column(e.children[0]) if e.kind == "IsNull" else None
        if column is None or not column.mask & padded.output_set:
            return None
        if any(rejects_nulls(part, column.mask) for part in (*conjuncts(condition), *facts.constraints(padded))):
            test = e
    return test


def _column(e: Expression) -> Attribute | None:
    """A column, also below casts to its own type, which every view has."""
    while e.kind == "Cast" and e.type == e.children[0].type:
        e = e.children[0]
    return e.attribute if e.kind == "AttributeReference" else None


def _sides(join: LogicalPlan) -> tuple[LogicalPlan, LogicalPlan]:
    """The side that an outer join keeps whole, and the one that it pads."""
    assert isinstance(join, Join)
    return (join.left, join.right) if join.join_type == LEFT else (join.right, join.left)


def _anti_join(node: Filter, test: Expression, padded: int) -> LogicalPlan:
    """Of the filter's conjuncts those are kept that read the kept side; of a padded row all others are true."""
    join = node.child
    assert isinstance(join, Join)
    kept, semi_right = _sides(join)
    anti = Join(kept, semi_right, ANTI, join.condition)
    rest = conjunction([e for e in conjuncts(node.condition) if not e.references & padded])
    return anti if rest is None else Filter(rest, anti)


def _is_read_by_id(node: LogicalPlan, parents: dict[int, list[LogicalPlan]]) -> bool:
    """Are only filters and joins between a node and the lists of columns that pick from it?"""
    while len(above := parents.get(id(node), [])) == 1:
        node = above[0]
        if isinstance(node, (Project, Aggregate)):
            return True
        if not isinstance(node, (Filter, Join)) or node.cached:
            return False
    return False


def _note(join: LogicalPlan, test: Expression) -> str:
    kept, padded = map(relation_name, _sides(join))
    assert isinstance(join, Join)
    names = (kept, padded) if join.join_type == LEFT else (padded, kept)
    return (
        f"{_WORDS[join.join_type]} join of {names[0]} and {names[1]} became anti: {describe(test)} keeps only rows of "
        f"{kept} without a partner"
    )
