"""What is true of every row that a plan produces, and which columns identify its rows.

*Constraints* are predicates that hold on each output row: a filter's own conjuncts, what its input guaranteed, and
what follows from these. `a > 5` implies `a IS NOT NULL`, because a comparison with NULL is never true; `a = b` lets
every other predicate over `a` be read over `b`. An outer join keeps the constraints of the side it never pads.

*Distinct keys* are sets of columns that no two output rows share: the grouping columns of an aggregate, all columns
of a DISTINCT. They survive whatever only drops rows.

Both follow Catalyst (`QueryPlanConstraints`, `DistinctKeyVisitor`). They are computed on demand, once per node, and
constraints stop growing at a bound, since substitution can multiply them; fewer constraints are always safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pyjoinopt.plan.expressions import (
    CORRELATED,
    NULL_INTOLERANT,
    OUTER_REFERENCE,
    Expression,
    call,
    conjuncts,
    reference,
    rewrite,
)  # fmt: skip
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    INNER,
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

#: A node with more constraints than this gets no inferred ones, and never more than this in all.
MOST = 200

#: Operators with one child that hand on some of its rows, with the same columns, unchanged.
ROW_SUBSETS = frozenset(
    """
    SubqueryAlias View Filter Sort GlobalLimit LocalLimit Offset Tail Distinct Deduplicate ResolvedHint
    Repartition RepartitionByExpression RebalancePartitions
    """.split()
)
_KEEP_KEYS = (ROW_SUBSETS - {"Distinct", "Deduplicate"}) | {"Window"}

Keys = frozenset[Any]
_T = TypeVar("_T")


def null_intolerant_columns(predicate: Expression) -> list[Expression]:
    """Columns that are certainly not NULL on a row where `predicate` is true.

    >>> from pyjoinopt.plan.expressions import Attribute
    >>> a, b = reference(Attribute(0, 1, "a")), reference(Attribute(1, 2, "b"))
    >>> null_intolerant_columns(call("GreaterThan", a, b))
    [a, b]
    """
    found, stack = [], list(predicate.children) if predicate.kind == "IsNotNull" else [predicate]
    while stack:
        e = stack.pop()
        if e.kind == "AttributeReference":
            found.append(e)
        elif e.flags & NULL_INTOLERANT:
            stack.extend(reversed(e.children))
    return found


def not_null(predicates: Iterable[Expression]) -> list[Expression]:
    """IS NOT NULL for every column that one of the predicates needs to be so, each once."""
    columns: dict[int, Expression] = {}
    for predicate in predicates:
        for column in null_intolerant_columns(predicate):
            columns.setdefault(column.references, column)
    return [call("IsNotNull", column) for column in columns.values()]


def substituted(predicates: list[Expression]) -> list[Expression]:
    """What follows from equalities of two columns: every other predicate with one written for the other."""
    inferred = []
    others = [p for p in predicates if p.kind != "IsNotNull"]
    for equality in others:
        if equality.kind != "EqualTo" or any(c.kind != "AttributeReference" for c in equality.children):
            continue
        for old, new in (equality.children, equality.children[::-1]):
            for predicate in others:
                if predicate.references & old.references and predicate.references != equality.references:
                    inferred.append(_replace(predicate, old, new))
                    if len(inferred) >= MOST:
                        return inferred
    return inferred


def _replace(predicate: Expression, old: Expression, new: Expression) -> Expression:
    return rewrite(predicate, lambda e: new if e.same(old) else e)


class PlanFacts:
    """Constraints and distinct keys of the nodes of one plan, remembered by node."""

    def __init__(self) -> None:
        self._constraints: dict[int, tuple[Expression, ...]] = {}
        self._keys: dict[int, frozenset[Keys]] = {}
        self._alive: list[LogicalPlan] = []  # ids stay unique while their nodes live

    def constraints(self, plan: LogicalPlan) -> tuple[Expression, ...]:
        """Predicates that are true of every row of `plan`."""
        return self._remembered(plan, self._constraints, self._constraints_of)

    def distinct_keys(self, plan: LogicalPlan) -> frozenset[Keys]:
        """Sets of expression keys (`Expression.key`), each unique over the rows of `plan`."""
        return self._remembered(plan, self._keys, self._keys_of)

    def _remembered(self, plan: LogicalPlan, known: dict[int, _T], compute: Callable[[LogicalPlan], _T]) -> _T:
        stack = [plan]
        while stack:
            node = stack[-1]
            missing = [child for child in node.children if id(child) not in known]
            if id(node) in known or not missing:
                stack.pop()
                if id(node) not in known:
                    known[id(node)] = compute(node)
                    self._alive.append(node)
            else:
                stack.extend(missing)
        return known[id(plan)]

    # -- constraints -------------------------------------------------------------------------------------------

    def _constraints_of(self, node: LogicalPlan) -> tuple[Expression, ...]:
        valid = _unique(self._valid(node))[:MOST]
        if len(valid) < MOST:
            valid = _unique([*valid, *substituted(valid), *not_null(valid)])[:MOST]
        outside = ~node.output_set
        return tuple(p for p in valid if p.deterministic and p.references and not p.references & outside)

    def _valid(self, node: LogicalPlan) -> list[Expression]:
        below = [self._constraints[id(child)] for child in node.children]
        if isinstance(node, Filter):
            return [*below[0], *_uncorrelated(node.condition)]
        if isinstance(node, Join):
            own = _uncorrelated(node.condition)
            if node.join_type in INNER_LIKE:
                return [*below[0], *below[1], *own]
            if node.join_type == SEMI:
                return [*below[0], *own]
            if node.join_type in (LEFT, ANTI, EXISTENCE, SINGLE):
                return list(below[0])
            return list(below[1]) if node.join_type == RIGHT else []
        if isinstance(node, (Project, Aggregate)):
            listed = node.projections if isinstance(node, Project) else node.aggregates
            return _aliased(list(below[0]), listed)
        return list(below[0]) if node.kind in ROW_SUBSETS else []

    # -- distinct keys -----------------------------------------------------------------------------------------

    def _keys_of(self, node: LogicalPlan) -> frozenset[Keys]:
        if isinstance(node, Aggregate):
            return _projected(frozenset({frozenset(g.key for g in node.grouping)}), node.aggregates)
        below = [self._keys[id(child)] for child in node.children]
        if isinstance(node, Project):
            return _projected(below[0], node.projections)
        if isinstance(node, Join):
            return self._keys_of_join(node, below[0], below[1])
        whole = frozenset({frozenset(reference(a).key for a in node.output)}) if node.output else frozenset()
        if node.kind == "Distinct" or (node.kind in ("Except", "Intersect") and not node.info.get("all", True)):
            return whole
        if node.kind == "GlobalLimit" and (node.info.get("limit") or 2) <= 1:
            return whole
        return below[0] if node.kind in _KEEP_KEYS and below else frozenset()

    def _keys_of_join(self, node: Join, left: frozenset[Keys], right: frozenset[Keys]) -> frozenset[Keys]:
        if node.join_type in (SEMI, ANTI):
            return left
        pairs = equi_keys(node)
        if not pairs:
            return frozenset()
        left_unique = is_unique(left, [pair[0] for pair in pairs])
        right_unique = is_unique(right, [pair[1] for pair in pairs])
        if node.join_type == INNER and left_unique and right_unique:
            return left | right
        if node.join_type in (INNER, LEFT) and right_unique:
            return left
        return right if node.join_type in (INNER, RIGHT) and left_unique else frozenset()


def equi_keys(join: Join) -> list[tuple[Expression, Expression]]:
    """Pairs of equal expressions, one over each side (of Catalyst's `ExtractEquiJoinKeys` those without <=>)."""
    pairs = []
    for predicate in conjuncts(join.condition):
        if predicate.kind != "EqualTo" or not predicate.deterministic:
            continue
        one, other = predicate.children
        if not (one.references and other.references):
            continue
        for left, right in ((one, other), (other, one)):
            if not left.references & ~join.left.output_set and not right.references & ~join.right.output_set:
                pairs.append((left, right))
                break
    return pairs


def is_unique(keys: frozenset[Keys], columns: Iterable[Expression]) -> bool:
    """True if some distinct key is among the columns."""
    have = frozenset(c.key for c in columns)
    return any(key <= have for key in keys)


def _unique(predicates: Iterable[Expression]) -> list[Expression]:
    return list({p.key: p for p in reversed(list(predicates))}.values())[::-1]


def _uncorrelated(condition: Expression | None) -> list[Expression]:
    return [p for p in conjuncts(condition) if not p.contains & (CORRELATED | OUTER_REFERENCE)]


def _aliased(valid: list[Expression], listed: tuple[Expression, ...]) -> list[Expression]:
    """Constraints of the input, also in terms of the columns that a projection names anew."""
    for e in listed:
        if e.kind != "Alias" or e.attribute is None or not e.deterministic or len(valid) >= MOST:
            continue
        name, body = reference(e.attribute), e.children[0]
        valid += [_replace(p, body, name) for p in valid if body.references and not body.references & ~p.references]
        valid.append(call("EqualNullSafe", name, body))
    return valid


def _projected(keys: frozenset[Keys], listed: tuple[Expression, ...]) -> frozenset[Keys]:
    """The distinct keys that a list of columns and aliases still holds, renamed where it renames."""
    names: dict[Any, Any] = {}
    kept = set()
    for e in listed:
        if e.attribute is None:
            continue
        column = reference(e.attribute).key
        kept.add(column)
        if e.kind == "Alias":
            names.setdefault(e.children[0].key, column)
    found = {key for key in keys if key <= kept}
    found |= {renamed for renamed in (frozenset(names.get(k, k) for k in key) for key in keys) if renamed <= kept}
    return frozenset(key for key in found if key)
