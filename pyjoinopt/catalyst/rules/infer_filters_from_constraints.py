"""InferFiltersFromConstraints: filters that the query implies and did not write.

Whatever holds of an operator's rows can be checked as early as its columns are there. The sooner a row is dropped,
the less is read, shuffled and joined; `IS NOT NULL` is the commonest case and the cheapest, since file formats count
NULLs. Two places are looked at:

- a filter: what follows from its condition together with what its input guarantees joins the condition;

      WHERE a = b AND a > 5         becomes   WHERE a IS NOT NULL AND b IS NOT NULL AND b > 5 AND a = b AND a > 5

- a join: what follows from both inputs and the condition becomes a filter over an input, if it reads that input only.

      x(a > 5) JOIN y ON a = d      becomes   x(a > 5) JOIN Filter(d IS NOT NULL AND d > 5, y) ON a = d

      join type           inferred for
      inner, cross, semi  both inputs
      left outer, anti    the right input: its other rows match nothing, so it does not matter that they are gone
      right outer         the left input
      full outer, other   none

What is known of the input already is not added. What can be inferred is in `pyjoinopt.plan.facts.inference`.

Source: Catalyst's `InferFiltersFromConstraints`. Spark runs it once, between two rounds of pushing filters down.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression, call, conjunction, conjuncts
from pyjoinopt.plan.facts.constraints import PlanFacts
from pyjoinopt.plan.facts.inference import not_null
from pyjoinopt.plan.facts.value_numbers import ExpressionSet
from pyjoinopt.plan.nodes import ANTI, INNER_LIKE, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order, transform_down

_BOTH = INNER_LIKE | {SEMI}


def infer_filters_from_constraints(
    plan: LogicalPlan, *, spark: tuple[int, int] = (4, 3), constraint_propagation: bool = True
) -> LogicalPlan:
    """Add filters that follow from the filters and join conditions of a plan.

    Args:
        plan: any plan; cached sub-plans and the plans of subqueries are left as they are.
        spark: (major, minor) of the Spark whose rule this is; from 4.3 on literals are put in place of columns.
        constraint_propagation: `spark.sql.constraintPropagation.enabled`; nothing is inferred without.

    Returns:
        The plan, the very same object if nothing new follows.
    """
    if not constraint_propagation or not any(isinstance(node, (Filter, Join)) for node in post_order(plan)):
        return plan
    return transform_down(plan, _Rule(PlanFacts(limits.CONSTRAINTS_AS_CATALYST, literals=spark >= (4, 3))).at)


class _Rule:
    def __init__(self, facts: PlanFacts) -> None:
        self.facts = facts

    def at(self, node: LogicalPlan) -> LogicalPlan:
        if node.cached:
            return node
        if isinstance(node, Filter):
            return self._filter(node)
        return self._join(node) if isinstance(node, Join) else node

    def _filter(self, node: Filter) -> LogicalPlan:
        given = self._set(self.facts.constraints(node.child), conjuncts(node.condition))
        new = conjunction(self.facts.constraints(node).without(given))
        return node if new is None else Filter(call("And", new, node.condition), node.child)

    def _join(self, node: Join) -> LogicalPlan:
        left = node.join_type in _BOTH or node.join_type == RIGHT
        right = node.join_type in _BOTH or node.join_type in (LEFT, ANTI)
        if not (left or right):
            return node
        facts = self.facts
        known = self._set(facts.constraints(node.left), facts.constraints(node.right), conjuncts(node.condition))
        known = self._set(known, facts.inferred(known))
        return node.with_children(
            (
                self._filtered(node.left, known) if left else node.left,
                self._filtered(node.right, known) if right else node.right,
            )
        )

    def _filtered(self, side: LogicalPlan, known: ExpressionSet) -> LogicalPlan:
        """One input of a join under a filter with what is known of it and not guaranteed by it."""
        outside = ~side.output_set
        here = (
            p for p in (*known, *not_null(known, ())) if p.references and not p.references & outside and p.deterministic
        )
        new = conjunction(self._set(here).without(self.facts.constraints(side)))
        return side if new is None else Filter(new, side)

    def _set(self, *several: Iterable[Expression]) -> ExpressionSet:
        together = ExpressionSet(self.facts.meanings)
        for predicates in several:
            together.update(predicates)
        return together
