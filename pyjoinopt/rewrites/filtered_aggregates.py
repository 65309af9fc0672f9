"""What rewrites share that compute several aggregates over the same rows in one pass, each with a FILTER.

Which aggregates may get a FILTER (`may_be_fused`), what they read and which filters they have (`source_of`), which of
the filters not all of them share (`own_predicates`), and the aggregate with the FILTER (`only_where`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyjoinopt.plan.expressions import (
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Expression,
    call,
    conjunction,
    conjuncts,
    rewrite,
    walk,
)
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.fallible.value_ranges import FLOATING
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.rewrites.inner_join_region import is_inner
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher

#: Functions that take a FILTER, and give the same for the same rows in whatever order these come, but for rounding.
_FUNCTIONS = frozenset(
    """
    Count Sum Average Min Max BoolAnd BoolOr BitAndAgg BitOrAgg BitXorAgg
    StddevPop StddevSamp VariancePop VarianceSamp Skewness Kurtosis Corr CovPopulation CovSample
    """.split()
)
#: Aggregates with DISTINCT repeat every row, once for each set of columns and each filter: so many at most.
MOST_DISTINCT = 16
#: What a column may not contain that is computed elsewhere.
_WITH_SUBQUERIES = SUBQUERY | OUTER_REFERENCE | CORRELATED | PYTHON_UDF


def may_be_fused(node: Aggregate) -> bool:
    """True if an aggregate has no GROUP BY, and only functions that may get a FILTER; no argument can throw."""
    if node.grouping or node.cached:
        return False
    for e in (e for listed in node.aggregates for e in walk(listed) if e.kind == "AggregateExpression"):
        if e.info.get("fn") not in _FUNCTIONS or not e.deterministic:
            return False
        arguments = (*e.children[0].children, *e.children[1:])
        if not all(is_movable(a) and not may_throw(a) for a in arguments):
            return False
    return all(e.kind == "Alias" and is_self_contained(e) for e in node.aggregates)


def distinct_functions(node: Aggregate) -> int:
    """How many functions with DISTINCT an aggregate has."""
    return sum(e.info.get("distinct", False) for listed in node.aggregates for e in walk(listed))


def is_self_contained(listed: Expression) -> bool:
    """True if a column of an aggregate is deterministic, and nothing in it is computed elsewhere."""
    return listed.deterministic and not listed.contains & _WITH_SUBQUERIES


def source_of(node: Aggregate) -> tuple[list[LogicalPlan], list[Expression]]:
    """The relations that an aggregate's inner joins join, and all that is demanded of their rows."""
    return inner_join_source(node.child)


def inner_join_source(plan: LogicalPlan) -> tuple[list[LogicalPlan], list[Expression]]:
    """The relations that inner joins join, without their filters, and all that is demanded of their rows."""
    leaves: list[LogicalPlan] = []
    predicates: list[Expression] = []
    stack: list[tuple[LogicalPlan, SubqueryAlias | None]] = [(plan, None)]
    while stack:
        named, name = stack.pop()
        below = without_aliases(named)
        name = name or (named if isinstance(named, SubqueryAlias) else None)
        if below.cached:
            leaves.append(named)
        elif isinstance(below, Filter) and all(map(is_movable, conjuncts(below.condition))):
            predicates += conjuncts(below.condition)
            stack.append((below.child, name))
        elif isinstance(below, Join) and is_inner(below):
            predicates += conjuncts(below.condition)
            stack += ((below.right, None), (below.left, None))
        elif isinstance(below, Project) and below.only_attributes:
            stack.append((below.child, name))
        else:
            leaves.append(named if name is None or name is named else name.with_children((named,)))
    return leaves, predicates


def compares_floating(predicates: Iterable[Expression]) -> bool:
    """True if a predicate has a floating-point number in it: an OR with it may keep other rows.

    For `x = -0.0` readers of Parquet skip row groups that hold 0.0, which is equal, but for an OR with it they do not.
    """
    return any(e.type in FLOATING for p in predicates for e in walk(p))


def own_predicates(alike: PlanMatcher, predicates_of: list[list[Expression]]) -> list[list[Expression]]:
    """What each member demands of its rows beside what all demand.

    Args:
        alike: compares predicates.
        predicates_of: the predicates of each member, in terms of the columns of one of them.
    """
    numbered: list[dict[int, list[Expression]]] = [{} for _ in predicates_of]
    for own, predicates in zip(numbered, predicates_of, strict=True):
        for p in predicates:
            own.setdefault(alike.predicate_number(p), []).append(p)
    common = {
        number
        for number, (first, *_) in numbered[0].items()
        if all(number in own and all(alike.same(first, p, {}) for p in own[number]) for own in numbered)
    }
    return [[p for number, some in own.items() if number not in common for p in some] for own in numbered]


def rows_of_any(predicates: list[Expression], rests: Sequence[list[Expression]]) -> list[Expression]:
    """The filters of a pass over the rows of all members.

    Args:
        predicates: those of the first member.
        rests: what each member demands beside what all demand, the first member first; an empty list demands nothing.
    """
    own = {id(p) for p in rests[0]}
    common = [p for p in predicates if id(p) not in own]
    alternatives = [keep for keep in map(conjunction, rests) if keep is not None]
    if len(alternatives) < len(rests):
        return common
    return [*common, reduce(lambda a, b: call("Or", a, b), alternatives)]


def only_where(listed: Expression, keep: Expression | None) -> Expression:
    """An aggregate's column, over the rows that are to be kept."""
    if keep is None:
        return listed

    def change(e: Expression) -> Expression:
        if e.kind != "AggregateExpression":
            return e
        function, *before = e.children
        condition = conjunction([keep, *before])
        assert condition is not None
        info = {**e.info, "filtered": True}
        return Expression(e.kind, (function, condition), e.type, e.flags, info=info, origin=e.origin)

    return rewrite(listed, change)
