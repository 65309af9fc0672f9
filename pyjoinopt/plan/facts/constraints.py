"""What is true of every row that a plan produces.

*Constraints* are predicates that hold on each output row: a filter's own conjuncts, what its input guaranteed, and
what follows from these (`inference`). `a > 5` implies `a IS NOT NULL`, because a comparison with NULL is never true;
`a = b` lets every other predicate over `a` be read over `b`. An outer join keeps the constraints of the side it never
pads; of a union's rows holds what holds in every branch, or for each column one of what the branches know of it.

They follow Catalyst (`QueryPlanConstraints`), are computed on demand, once per node, and stop growing at a bound,
since substitution can multiply them; fewer constraints are always safe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    CORRELATED,
    NULLABLE,
    OUTER_REFERENCE,
    Expression,
    call,
    conjuncts,
    reference,
    rewrite,
    substitute,
    walk,
)  # fmt: skip
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys, Keys, is_unique
from pyjoinopt.plan.facts.inference import merged_by_or, not_null, replaced_by_equals, replaced_by_literals
from pyjoinopt.plan.facts.value_numbers import ExpressionSet, ValueNumbering
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    SINGLE,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)  # fmt: skip
from pyjoinopt.util.node_memo import NodeMemo

__all__ = ["PlanFacts", "is_unique"]

_T = TypeVar("_T")


class PlanFacts:
    """Constraints and distinct keys of the nodes of one plan, remembered by node.

    Args:
        most: a node with more constraints than this gets no inferred ones, and about so many in all.
        literals: infer from `column = literal` too, as Spark does since 4.3.
    """

    def __init__(self, most: int = limits.CONSTRAINTS, literals: bool = True) -> None:
        self.most = most
        self.literals = literals
        self.meanings = ValueNumbering()
        self._constraints = NodeMemo[LogicalPlan, ExpressionSet]()
        self._not_null = NodeMemo[LogicalPlan, int]()
        self._keys = DistinctKeys()

    def constraints(self, plan: LogicalPlan) -> ExpressionSet:
        """Predicates that are true of every row of `plan`."""
        return self._constraints.filled(plan, _inputs, self._constraints_of)

    def never_null(self, plan: LogicalPlan) -> int:
        """The columns of `plan` that are declared not to be NULL."""
        return self._not_null.filled(plan, _inputs, self._never_null_of)

    def distinct_keys(self, plan: LogicalPlan) -> frozenset[Keys]:
        """Sets of expression keys (`Expression.key`), each unique over the rows of `plan`."""
        return self._keys(plan)

    def inferred(self, predicates: ExpressionSet) -> list[Expression]:
        """What follows from equalities among the predicates, beside them."""
        if len(predicates) >= self.most:
            return []
        found = replaced_by_equals(predicates, self.most)
        return found + replaced_by_literals(predicates, self.most) if self.literals else found

    # -- constraints -------------------------------------------------------------------------------------------

    def _constraints_of(self, node: LogicalPlan) -> ExpressionSet:
        valid = self._valid(node)
        columns = self.never_null(node)
        follows = self.inferred(valid) + not_null(valid, (a for a in node.output if a.mask & columns))
        outside = ~node.output_set
        kept = ExpressionSet(self.meanings)
        for p in (*valid, *follows):
            if p.references and p.deterministic and not p.references & outside and len(kept) < self.most:
                kept.add(p)
        return kept

    def _valid(self, node: LogicalPlan) -> ExpressionSet:
        below = [self._constraints[child] for child in _inputs(node)]
        if isinstance(node, Filter) and below:
            return self._all(below[0], _uncorrelated(node.condition))
        if isinstance(node, Join) and below:
            if node.join_type in INNER_LIKE:
                return self._all(below[0], below[1], conjuncts(node.condition))
            if node.join_type == SEMI:
                return self._all(below[0], conjuncts(node.condition))
            if node.join_type in (LEFT, ANTI, EXISTENCE, SINGLE):
                return below[0]
            return below[1] if node.join_type == RIGHT else self._all()
        if isinstance(node, Project) and below:
            return self._aliased(below[0], node.projections)
        if isinstance(node, Aggregate) and below:
            return self._aliased(below[0], [e for e in node.aggregates if not _aggregates(e)])
        if node.kind == "Union":
            return self._of_union(node, below)
        if node.kind == "Except" and below:
            return below[0]
        if node.kind == "Intersect" and below:
            return self._all(below[0], _renamed(below[1], node.children[1], node.children[0]))
        return below[0] if len(below) == 1 and node.kind != "Expand" else self._all()

    def _all(self, *several: Iterable[Expression]) -> ExpressionSet:
        together = ExpressionSet(self.meanings)
        for predicates in several:
            together.update(predicates)
        return together

    def _aliased(self, below: ExpressionSet, listed: Iterable[Expression]) -> ExpressionSet:
        """Constraints of the input, also in terms of the columns that a projection names anew."""
        valid = self._all(below)
        for e in listed:
            if e.kind != "Alias" or e.attribute is None or len(valid) >= self.most:
                continue
            name, body = reference(e.attribute), e.children[0]
            if body.kind == "Literal":
                valid.add(call("EqualNullSafe", name, body))
            elif body.deterministic:
                if body.references:
                    valid.update([self._put(name, body, p) for p in valid if not body.references & ~p.references])
                valid.add(call("EqualNullSafe", body, name))
        return valid

    def _put(self, name: Expression, body: Expression, predicate: Expression) -> Expression:
        """The predicate with a column's name for what the column is computed from."""
        if body.kind == "AttributeReference" and body.attribute is not None:
            return substitute(predicate, {body.attribute.bit: name})
        kind, replaceable = body.kind, self.meanings.replaceable
        return rewrite(predicate, lambda e: name if e.kind == kind and replaceable(e, body) else e)

    def _of_union(self, node: LogicalPlan, below: list[ExpressionSet]) -> ExpressionSet:
        """The constraints of each branch, in the columns of the first, merged branch by branch."""
        if not below:
            return self._all()
        merged = below[0]
        for predicates, branch in zip(below[1:], node.children[1:], strict=True):
            other = self._all(_renamed(predicates, branch, node.children[0]))
            common = [p for p in merged if (q := other.get(p)) is not None and self.meanings.replaceable(p, q)]
            mutual = ExpressionSet(self.meanings, common)
            merged = self._all(mutual, merged_by_or(merged.without(mutual), other.without(mutual)))
        return merged

    # -- columns without NULL ----------------------------------------------------------------------------------

    def _never_null_of(self, node: LogicalPlan) -> int:
        declared = 0
        for a in node.output:
            if not a.nullable:
                declared |= a.mask
        if not _inputs(node):
            # What is exported of a column is what produces it, and above that a cached plan may have an outer join.
            return 0 if node.children else declared
        below = [self._not_null[child] for child in node.children]
        if isinstance(node, (Project, Aggregate)):
            listed = node.projections if isinstance(node, Project) else node.aggregates
            return self._never_null_listed(listed, below[0])
        if isinstance(node, Join):
            own = declared & node.output[-1].mask if node.join_type == EXISTENCE else 0
            left = below[0] if node.join_type not in ("RightOuter", "FullOuter") else 0
            right = below[1] if node.join_type in INNER_LIKE or node.join_type == RIGHT else 0
            return left | right | own
        if node.kind in ("Union", "Intersect", "Except"):
            return _never_null_by_position(node, below)
        passed = node.output_set & node.children[0].output_set if len(below) == 1 else 0
        if node.kind not in ("Generate", "Window") or node.info.get("outer"):
            return passed & below[0]  # another one may pad its new columns, as a left join with a lateral subquery does
        return passed & below[0] | declared & ~passed

    def _never_null_listed(self, listed: Iterable[Expression], below: int) -> int:
        found = 0
        for e in listed:
            if e.attribute is None or e.flags & NULLABLE:
                continue
            if e.kind == "AttributeReference":
                found |= e.attribute.mask & below
            elif not e.attribute.nullable:
                found |= e.attribute.mask
        return found


def _inputs(node: LogicalPlan) -> tuple[LogicalPlan, ...]:
    """The children; a cached node has none, as Spark sees it."""
    return () if node.cached else node.children


def _uncorrelated(condition: Expression | None) -> list[Expression]:
    return [p for p in conjuncts(condition) if not p.contains & (CORRELATED | OUTER_REFERENCE)]


def _aggregates(e: Expression) -> bool:
    return bool(e.contains & AGGREGATE_OR_WINDOW) and any(part.kind == "AggregateExpression" for part in walk(e))


def _renamed(predicates: Iterable[Expression], source: LogicalPlan, like: LogicalPlan) -> list[Expression]:
    """Predicates of one branch of a set operation in the columns, by position, of another."""
    columns = {a.bit: reference(b) for a, b in zip(source.output, like.output, strict=True)}
    return [substitute(p, columns) for p in predicates]


def _never_null_by_position(node: LogicalPlan, below: list[int]) -> int:
    """A union's column is not NULL if it is so in each branch; for INTERSECT one suffices, for EXCEPT the first."""
    found = 0
    for i, a in enumerate(node.output):
        sure = [bool(c.output[i].mask & known) for c, known in zip(node.children, below, strict=True)]
        if all(sure) if node.kind == "Union" else any(sure) if node.kind == "Intersect" else sure[0]:
            found |= a.mask
    return found
