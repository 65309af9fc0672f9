"""EliminateOuterJoin: outer joins that the rest of the query makes needless.

An outer join pads rows that found no partner with NULLs. Three things make that pointless:

1. A filter above that is never true on the padding. It throws the padded rows away, so they need not be made:

       filter rejects the padding of    full becomes     left becomes    right becomes
       the right side's columns         right            inner           -
       the left side's columns          left             -               inner
       both                             inner            inner           inner

2. An aggregate above that reads the streamed side only and is insensitive to duplicates (DISTINCT, MIN, MAX, plain
   grouping). The join can only repeat rows, so it is dropped.
3. A projection of streamed columns over an equi join whose other side has at most one row per key. The join neither
   drops nor repeats rows, so it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.equi_keys import hash_keys
from pyjoinopt.plan.expressions import (
    CORRELATED,
    OUTER_REFERENCE,
    UNEVALUABLE,
    Expression,
    conjuncts,
    describe,
    walk,
)  # fmt: skip
from pyjoinopt.plan.facts.constraints import PlanFacts, is_unique
from pyjoinopt.plan.facts.null_rejection import TRUE, VALUE, outcomes
from pyjoinopt.plan.nodes import FULL, INNER, LEFT, OUTER, RIGHT, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import transform_down

_DUPLICATE_AGNOSTIC = frozenset({"Max", "Min", "BitAndAgg", "BitOrAgg", "CollectSet", "First", "Last"})
_WORDS = {LEFT: "left", RIGHT: "right", FULL: "full", INNER: "inner"}


def eliminate_outer_join(
    plan: LogicalPlan,
    *,
    filters_null: frozenset[int] = frozenset(),
    constraint_propagation: bool = True,
    distinct: bool = True,
) -> Rewritten:
    """Turn outer joins into narrower ones, or drop them, where that changes no result.

    Args:
        plan: any plan; cached sub-plans are left as they are.
        filters_null: numbers of the JVM's predicates that Catalyst itself evaluated to NULL or false over NULLs.
        constraint_propagation: also use what follows from a filter (`spark.sql.constraintPropagation.enabled`).
        distinct: also under a DISTINCT, which Spark makes an aggregate before it comes to this rule.

    Returns:
        The plan, the very same object if no join changed, and a note for every join that did.
    """
    rule = _Rule(filters_null, constraint_propagation, distinct)
    return Rewritten(transform_down(plan, rule.at), tuple(rule.notes))


class _Rule:
    def __init__(self, filters_null: frozenset[int], constraint_propagation: bool, distinct: bool) -> None:
        self.filters_null = filters_null
        self.notes: list[str] = []
        self.constraint_propagation = constraint_propagation
        self.distinct = distinct
        self.facts = PlanFacts()

    def at(self, node: LogicalPlan) -> LogicalPlan:
        if node.cached:
            return node
        if isinstance(node, Filter):
            child = node.child
            if isinstance(child, Join) and child.join_type in OUTER and not child.cached:
                return self._under_filter(node, child)
        elif isinstance(node, Aggregate) or (node.kind == "Distinct" and self.distinct):
            return self._under_aggregate(node)
        elif isinstance(node, Project):
            return self._under_project(node)
        return node

    # -- a filter above ----------------------------------------------------------------------------------------

    def _under_filter(self, node: Filter, join: Join) -> LogicalPlan:
        own = conjuncts(node.condition)
        left = right = None
        if join.join_type in (RIGHT, FULL):
            left = self._rejecting(node, own, join.left.output_set)
        if join.join_type in (LEFT, FULL):
            right = self._rejecting(node, own, join.right.output_set)
        if join.join_type == FULL:
            join_type = INNER if left and right else LEFT if left else RIGHT if right else FULL
        else:
            join_type = INNER if left or right else join.join_type
        if join_type == join.join_type:
            return node
        reasons = list(dict.fromkeys(describe(inline_common_expressions(p)) for p in (left, right) if p is not None))
        verb = "rejects" if len(reasons) == 1 else "reject"
        self._note(join, f"became {_WORDS[join_type]}: {' and '.join(reasons)} {verb} NULLs")
        return node.with_children((join.with_type(join_type),))

    def _rejecting(self, node: Filter, own: list[Expression], side: int) -> Expression | None:
        """A predicate of the filter over this side only that is never true on NULLs."""
        found = self._first_rejecting(own, side)
        if found is not None or not self.constraint_propagation:
            return found
        # Below an outer join nothing is known of the padded side, so only the filter itself can add to it.
        if not any(p.references & side for p in own):
            return None
        return self._first_rejecting(self.facts.constraints(node), side)

    def _first_rejecting(self, predicates: Iterable[Expression], side: int) -> Expression | None:
        for predicate in predicates:
            if not predicate.references & ~side and self.filters_out_null(predicate):
                return predicate
        return None

    def filters_out_null(self, predicate: Expression) -> bool:
        """Catalyst's `canFilterOutNull`: NULL or false when every column it reads is NULL."""
        if predicate.number is not None and predicate.number in self.filters_null:
            return True
        if not predicate.deterministic or predicate.contains & (CORRELATED | OUTER_REFERENCE):
            return False
        predicate = inline_common_expressions(predicate)
        if predicate.contains & UNEVALUABLE and any(
            e.flags & UNEVALUABLE and e.kind != "AttributeReference" for e in walk(predicate)
        ):
            return False
        return not outcomes(predicate, predicate.references) & (TRUE | VALUE)

    # -- an aggregate above ------------------------------------------------------------------------------------

    def _under_aggregate(self, node: LogicalPlan) -> LogicalPlan:
        project = _named(node.children[0])
        used = node.references if isinstance(node, Aggregate) else node.output_set
        if isinstance(project, Project) and not project.cached:
            if not all(e.deterministic for e in project.projections):
                return node
            used = project.references
            join = _named(project.child)
        else:
            join = project
        if not isinstance(join, Join) or join.cached:
            return node
        kept = _streamed(join, used)
        if kept is None or (isinstance(node, Aggregate) and not duplicate_agnostic(node)):
            return node
        if project is not join:
            kept = project.with_children((kept,))
        self._note(join, "dropped: only one side is read, and repeated rows make no difference to what is above")
        return node.with_children((kept,))

    # -- a projection above ------------------------------------------------------------------------------------

    def _under_project(self, node: Project) -> LogicalPlan:
        join = _named(node.child)
        if not isinstance(join, Join) or join.cached:
            return node
        kept = _streamed(join, node.references)
        if kept is None:
            return node
        pairs = hash_keys(join)
        if not pairs:
            return node
        other, place = (join.right, 1) if join.join_type == LEFT else (join.left, 0)
        if not is_unique(self.facts.distinct_keys(other), [pair[place] for pair in pairs]):
            return node
        self._note(join, f"dropped: no column of {relation_name(other)} is read, and it has one row per join key")
        return node.with_children((kept,))

    def _note(self, join: Join, what: str) -> None:
        sides = f"{relation_name(join.left)} and {relation_name(join.right)}"
        self.notes.append(f"{_WORDS[join.join_type]} join of {sides} {what}")


def duplicate_agnostic(aggregate: Aggregate) -> bool:
    """True if repeated input rows change nothing: every aggregate function is DISTINCT or like MIN and MAX."""
    for listed in aggregate.aggregates:
        for e in walk(listed):
            if e.kind == "AggregateExpression" and not e.info.get("distinct"):
                if e.info.get("fn") not in _DUPLICATE_AGNOSTIC:
                    return False
    return True


def _streamed(join: Join, used: int) -> LogicalPlan | None:
    """The side of a left or right join that is never padded, if it has all the columns that are used."""
    side = join.left if join.join_type == LEFT else join.right if join.join_type == RIGHT else None
    return side if side is not None and not used & ~side.output_set else None


def _named(plan: LogicalPlan) -> LogicalPlan:
    """The plan below subquery aliases and views; the first cached one ends the search."""
    while is_only_a_name(plan) and not plan.cached:
        plan = plan.children[0]
    return plan
