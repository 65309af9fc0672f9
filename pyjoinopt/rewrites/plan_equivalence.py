"""Whether two sub-plans give the same rows, and which columns correspond (Catalyst's `sameResult`, across ids).

A query that reads a table twice has two relations whose columns have ids of their own. Two sub-plans over them are
equivalent if they are the same tree once the ids of one are replaced by those of the other:

    Filter (a.x > 3)  t AS a        is equivalent to        Filter (b.x > 3)  t AS b        with  b.x -> a.x, b.y -> a.y

Names and the order of conjuncts do not matter. Anything that is not proved to be the same is not equivalent: operators
other than the few below, functions with parameters that the mirror does not have, anything nondeterministic.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import Attribute, Expression, conjuncts, reference, substitute
from pyjoinopt.plan.facts.value_numbers import ValueNumbering
from pyjoinopt.plan.nodes import EXISTENCE, NO_HINT, SINGLE, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name

#: Bit of a column of one plan -> a use of the column of another plan that holds the same.
Columns = dict[int, Expression]


def without_aliases(plan: LogicalPlan) -> LogicalPlan:
    """The plan without the aliases and views on top of it."""
    while is_only_a_name(plan) and not plan.cached:
        (plan,) = plan.children
    return plan


class PlanMatcher:
    """Compares plans and expressions of one query, with one value numbering."""

    def __init__(self) -> None:
        self._meanings = ValueNumbering()

    def columns(self, one: LogicalPlan, other: LogicalPlan) -> Columns | None:
        """For every column that `other` reads or computes that of `one`; None if they are not proved equivalent."""
        pairs: list[tuple[LogicalPlan, LogicalPlan]] = []
        stack = [(one, other)]
        while stack:
            a, b = map(without_aliases, stack.pop())
            if a.cached or b.cached or a.kind != b.kind or len(a.children) != len(b.children):
                return None
            pairs.append((a, b))
            stack.extend(zip(a.children, b.children, strict=True))
        known: Columns = {}
        for a, b in reversed(pairs):  # children before parents
            if not self._extended(known, a, b):
                return None
        return known

    def predicate_number(self, predicate: Expression, known: Mapping[int, Expression] | None = None) -> int:
        """The number of a predicate after the columns of one plan are replaced by those of another.

        Two predicates with one number have the same structure; `same` decides whether they are equivalent.
        """
        return self._meanings(inline_common_expressions(substitute(predicate, dict(known or {}))))

    def same(self, one: Expression, other: Expression, known: Columns) -> bool:
        """True if `other`, in terms of the columns known, is proved equivalent to `one`."""
        if one.kind == other.kind == "AggregateExpression":
            mine, theirs = ([e.info.get(field) for field in ("fn", "distinct", "parameters")] for e in (one, other))
            if mine != theirs or mine[2] in (None, "?") or len(one.children) != len(other.children):
                return False
            arguments = [(*e.children[0].children, *e.children[1:]) for e in (one, other)]
            return len(arguments[0]) == len(arguments[1]) and all(
                self.same(a, b, known) for a, b in zip(*arguments, strict=True)
            )
        return self._meanings.replaceable(inline_common_expressions(one), inline_common_expressions(substitute(other,
        known)))

    def _extended(self, known: Columns, a: LogicalPlan, b: LogicalPlan) -> bool:
        """Add the columns of two nodes over equivalent children; False if the nodes are not equivalent."""
        if not a.children:
            number = a.info.get("alike")
            if number is None or number != b.info.get("alike") or len(a.output) != len(b.output):
                return False
            known.update((y.bit, reference(x)) for x, y in zip(a.output, b.output, strict=True))
            return True
        if isinstance(a, Filter) and isinstance(b, Filter):
            return self._same_set(a.condition, b.condition, known)
        if isinstance(a, Join) and isinstance(b, Join):
            plain = a.join_type == b.join_type not in (EXISTENCE, SINGLE) and a.hint == b.hint == NO_HINT
            return plain and self._same_set(a.condition, b.condition, known)
        if isinstance(a, Aggregate) and isinstance(b, Aggregate):
            if len(a.grouping) != len(b.grouping) or a.info.get("hint") != b.info.get("hint"):
                return False
            if not all(self.same(x, y, known) for x, y in zip(a.grouping, b.grouping, strict=True)):
                return False
            return self._same_list(a.aggregates, b.aggregates, known)
        if isinstance(a, Project) and isinstance(b, Project):
            return self._same_list(a.projections, b.projections, known)
        return False

    def _same_set(self, one: Expression | None, other: Expression | None, known: Columns) -> bool:
        mine, theirs = conjuncts(one), conjuncts(other)
        if len(mine) != len(theirs):
            return False
        mine_by_number = {self.predicate_number(p): p for p in mine}
        found = [mine_by_number.get(self.predicate_number(p, known)) for p in theirs]
        return all(m is not None and self.same(m, p, known) for m, p in zip(found, theirs, strict=True)) and len(
            {id(m) for m in found}
        ) == len(mine_by_number)

    def _same_list(self, one: tuple[Expression, ...], other: tuple[Expression, ...], known: Columns) -> bool:
        if len(one) != len(other):
            return False
        found: Columns = {}  # what is above knows a column by its name in the list
        for a, b in zip(one, other, strict=True):
            if a.attribute is None or b.attribute is None:
                return False
            mine, theirs = (e.children[0] if e.kind == "Alias" else e for e in (a, b))
            if not self.same(mine, theirs, known):
                return False
            found[b.attribute.bit] = reference(a.attribute)
        known.update(found)
        return True


def column(known: Columns, attribute: Attribute) -> Attribute:
    """The column that holds the same as `attribute`."""
    found = known[attribute.bit].attribute
    assert found is not None
    return found
