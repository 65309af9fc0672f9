"""Whether two sub-plans give the same rows, and which columns correspond (Catalyst's `sameResult`, across ids).

A query that reads a table twice has two relations whose columns have ids of their own. Two sub-plans over them are
equivalent if they are the same tree once the ids of one are replaced by those of the other:

    Filter (a.x > 3)  t AS a        is equivalent to        Filter (b.x > 3)  t AS b        with  b.x -> a.x, b.y -> a.y

Names, the order of conjuncts and that of inner joins do not matter; of relations that are read several times in one
region of inner joins the order does. Anything that is not proved to be the same is not equivalent: operators
other than the few below, functions with parameters that the mirror does not have, anything nondeterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import Attribute, Expression, conjunction, conjuncts, reference, substitute
from pyjoinopt.plan.facts.value_numbers import ValueNumbering
from pyjoinopt.plan.nodes import EXISTENCE, NO_HINT, SINGLE, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name, without_aliases
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.inner_join_region import InnerJoinRegion, inner_join_inputs

#: Bit of a column of one plan -> a use of the column of another plan that holds the same.
Columns = dict[int, Expression]


class PlanMatcher:
    """Compares plans and expressions of one query, with one value numbering.

    Args:
        any_order: whether inner joins in another order are equivalent. To Spark, which reuses an exchange for another
            one, they are not.
    """

    def __init__(self, any_order: bool = True) -> None:
        self._meanings = ValueNumbering()
        self._any_order = any_order

    def columns(self, one: LogicalPlan, other: LogicalPlan) -> Columns | None:
        """For every column that `other` reads or computes that of `one`; None if they are not proved equivalent."""
        pairs: list[tuple[LogicalPlan, LogicalPlan]] = []
        stack = [(one, other)]
        while stack:
            a, b = map(without_aliases, stack.pop())
            if a.cached or b.cached or a.kind != b.kind:
                return None
            regions = self._regions(a, b)
            mine, theirs = (region.inputs for region in regions) if regions else (a.children, b.children)
            if len(mine) != len(theirs):
                return None
            pairs.append((a, b))
            stack.extend(_by_relations(mine, theirs) if regions else zip(mine, theirs))
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
            if regions := self._regions(a, b):
                mine, theirs = (conjunction(region.conjuncts) for region in regions)
                return self._same_set(mine, theirs, known)
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

    def _regions(self, a: LogicalPlan, b: LogicalPlan) -> tuple[InnerJoinRegion, ...]:
        """The regions of inner joins whose topmost joins two nodes are; none unless both are."""
        found = (inner_join_inputs(a), inner_join_inputs(b)) if self._any_order and isinstance(a, Join) else ()
        return found if all(region.joins for region in found) else ()

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


def _by_relations(one: Sequence[LogicalPlan], other: Sequence[LogicalPlan]) -> list[tuple[LogicalPlan, LogicalPlan]]:
    """Pairs of inputs: those that alone read what they read, on either side, and the others as they are written."""
    read = [[_read(plan) for plan in plans] for plans in (one, other)]
    mine, theirs = (
        {found: plan for found, plan in zip(of_side, plans) if of_side.count(found) == 1}
        for of_side, plans in zip(read, (one, other))
    )
    alone = [found for found in mine if found in theirs]
    rest = ([p for p, found in zip(plans, of_side) if found not in alone] for plans, of_side in zip((one, other), read))
    return [*((mine[found], theirs[found]) for found in alone), *zip(*rest)]


def _read(plan: LogicalPlan) -> tuple[tuple[str, object], ...]:
    """The operators of a plan and what its leaves read, in any order."""
    found = ((node.kind, node.info.get("alike")) for node in post_order(plan) if not is_only_a_name(node))
    return tuple(sorted(found, key=str))


def column(known: Columns, attribute: Attribute) -> Attribute:
    """The column that holds the same as `attribute`."""
    found = known[attribute.bit].attribute
    assert found is not None
    return found
