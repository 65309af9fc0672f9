"""Properties of predicates that several rules need (Catalyst's `PredicateHelper`)."""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.plan.expressions import PYTHON_UDF, SUBQUERY, UNEVALUABLE, Expression, conjunction, walk
from pyjoinopt.plan.nodes import EXISTENCE, SINGLE, Filter, Join, LogicalPlan


def can_evaluate_within_join(predicate: Expression) -> bool:
    """True if a join condition may hold it (Catalyst's `canEvaluateWithinJoin`).

    Deterministic, no EXISTS or IN subquery, no correlated subquery, and nothing that only an operator of its own can
    compute (a window function); a Python UDF may, since Spark takes it out again. So may a common expression (how an
    analysed plan holds BETWEEN): Spark writes it out before it looks at joins.
    """
    if not predicate.deterministic:
        return False
    if not predicate.contains & (SUBQUERY | UNEVALUABLE):
        return True
    stack = [predicate]
    while stack:
        e = stack.pop()
        if e.kind in ("AttributeReference", "CommonExpressionRef") or e.flags & PYTHON_UDF:
            continue
        if e.kind in ("Exists", "ListQuery"):
            return False
        if e.flags & SUBQUERY:
            if e.children or e.references:
                return False
            continue
        if e.flags & UNEVALUABLE and e.kind not in ("With", "CommonExpressionDef"):
            return False
        stack.extend(e.children)
    return True


def can_evaluate(predicate: Expression, plan: LogicalPlan) -> bool:
    """True if `plan` produces every column that `predicate` reads (Catalyst's `canEvaluate`)."""
    return not predicate.references & ~plan.output_set


def filtered(predicates: Sequence[Expression], child: LogicalPlan) -> LogicalPlan:
    """A Filter with all predicates over `child`; `child` itself if there are none."""
    condition = conjunction(predicates)
    return child if condition is None else Filter(condition, child)


def rejoined(join: Join, left: LogicalPlan, right: LogicalPlan, predicates: Sequence[Expression]) -> Join:
    """The same join (type, hint) over other inputs and with another condition.

    Existence and single joins cannot be made from scratch; they remain copies of their origin.
    """
    condition = conjunction(predicates)
    if join.join_type not in (EXISTENCE, SINGLE):
        return join.with_inputs(left, right, condition, join.hint)
    exists = join.output[-1] if join.join_type == EXISTENCE else None
    info = {k: v for k, v in join.info.items() if k != "cached"}
    return Join(left, right, join.join_type, condition, join.hint, None, join.origin, info, exists)


def size(expression: Expression, most: int) -> int:
    """Number of sub-expressions, counted up to `most`."""
    count = 0
    for _ in walk(expression):
        count += 1
        if count >= most:
            break
    return count
