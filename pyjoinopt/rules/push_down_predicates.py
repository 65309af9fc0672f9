"""PushDownPredicates: every conjunct as far down as it may go.

Three Catalyst rules in one walk from the root. Adjacent filters are merged (CombineFilters); a filter passes a
projection, a subquery alias or a view (PushPredicateThroughNonJoin); a filter over a join and the join's own condition
are split by the columns they read (PushPredicateThroughJoin):

    join type                filter above it: goes to        its own condition: goes to
    inner, cross             left, right, the condition      left, right
    left semi                left                            left, right
    left outer, left single  left                            right
    left anti, existence     left                            right
    right outer              right                           left
    full outer               nothing                         nothing

What the table does not move stays where it is. A side whose rows survive without a match can take a filter from above
but must not lose rows to the join's own condition; the padded side is the other way round.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pyjoinopt.plan import safety
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Expression,
    conjuncts,
    substitute,
)  # fmt: skip
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    FULL,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    SINGLE,
    Filter,
    Join,
    LogicalPlan,
    Project,
)  # fmt: skip
from pyjoinopt.plan.tree import transform_down
from pyjoinopt.rules.predicate_helper import can_evaluate_within_join, filtered, is_only_a_name, rejoined
from pyjoinopt.rules.through_projection import grows_too_large, is_costly, reads_same_source

_PRESERVES_LEFT = frozenset({LEFT, SINGLE, SEMI, ANTI, EXISTENCE})
_PADS_RIGHT = frozenset({LEFT, SINGLE, ANTI, EXISTENCE})
_KNOWN = INNER_LIKE | _PRESERVES_LEFT | {RIGHT}

_CHECKED = PYTHON_UDF | OUTER_REFERENCE | CORRELATED | SUBQUERY | AGGREGATE_OR_WINDOW


def push_down_predicates(
    plan: LogicalPlan, *, faithful: bool = False, avoid_double_evaluation: bool = True
) -> LogicalPlan:
    """Move filters and one-sided join conditions towards the leaves.

    Args:
        plan: any plan; cached sub-plans are left as they are, and no filter is pushed into one.
        faithful: move whatever Catalyst moves. By default Python UDFs, subqueries and outer references stay.
        avoid_double_evaluation: a conjunct over a computed column stays above the projection that computes it if that
            is costly (Spark 4.2's `spark.sql.optimizer.avoidDoubleFilterEval`).

    Returns:
        The plan, the very same object if nothing moved.
    """
    pusher = _Pusher(faithful, avoid_double_evaluation)
    return transform_down(plan, pusher.at)


@dataclass(slots=True)
class _Passage:
    """Conjuncts that pass a node (in terms of what is below it), those that stay above, and whether any was changed."""

    below: deque[Expression]
    above: list[Expression]
    changed: bool = False


class _Pusher:
    def __init__(self, faithful: bool, avoid_double_evaluation: bool) -> None:
        self.faithful = faithful
        self.avoid_double_evaluation = avoid_double_evaluation

    def at(self, node: LogicalPlan) -> LogicalPlan:
        """One node; for a filter, everything that it passes on its way down is done at once."""
        if node.cached:
            return node
        if isinstance(node, Join):
            return self._join(node)
        return self._descend(node) if isinstance(node, Filter) else node

    def movable(self, predicate: Expression) -> bool:
        """Whether this rule may move it at all, wherever to."""
        return predicate.deterministic if self.faithful else safety.movable(predicate)

    # -- down a chain of nodes with one child -------------------------------------------------------------------

    def _descend(self, top: Filter) -> LogicalPlan:
        """Carry the conjuncts of `top` down until nothing lets them pass; pick up other filters on the way.

        One descent instead of one step a pass: on a tower of two thousand filters that is the difference between
        linear and quadratic time.
        """
        pending = deque(conjuncts(top.condition))
        known: set[object] | None = None  # keys of `pending`, made when a second filter turns up
        passed: list[tuple[LogicalPlan | None, list[Expression]]] = []
        moved = False
        lowest: Filter | None = top  # the filter that has exactly the conjuncts `pending`, over `below`
        below = top.child
        while not below.cached:
            above: list[Expression] = []
            if isinstance(below, Filter):
                if not below.condition.deterministic:
                    break
                above = [p for p in pending if not p.deterministic or safety.throwable(p)]
                if len(above) == len(pending):
                    break
                known = {p.key for p in pending} if known is None or above else known
                fresh = self._combine(pending, above, below, known)
                lowest = None if fresh else below
                passed.append((None, above))
            elif isinstance(below, Project) or is_only_a_name(below):
                through = self._through(pending, below)
                if not through.below:
                    break
                above, pending = through.above, through.below
                known = None if above or through.changed else known
                lowest = None
                passed.append((below, above))
            else:
                break
            moved = True
            below = below.children[0]
        result = self._rest(pending, lowest, below)
        if not moved:
            return result
        for node, above in reversed(passed):
            result = filtered(above, result if node is None else node.with_children((result,)))
        return result

    def _rest(self, pending: deque[Expression], lowest: Filter | None, below: LogicalPlan) -> LogicalPlan:
        """What becomes of conjuncts that got as far as `below`."""
        if isinstance(below, Join) and not below.cached:
            split = self._filter_over_join(list(pending), below)
            if split is not None:
                return split
        return lowest if lowest is not None else filtered(list(pending), below)

    def _combine(self, pending: deque[Expression], above: list[Expression], lower: Filter, known: set[object]) -> bool:
        """Merge `pending` into the lower filter, whose conjuncts come first (CombineFilters); True if any is new."""
        own = conjuncts(lower.condition)
        repeats = {p.key for p in own}
        if above or repeats & known or len(known) < len(pending):
            kept = []
            for predicate in pending:
                if predicate.deterministic and not safety.throwable(predicate) and predicate.key not in repeats:
                    repeats.add(predicate.key)
                    kept.append(predicate)
            pending.clear()
            pending.extend(kept)
        fresh = bool(pending)
        pending.extendleft(reversed(own))
        known.update(repeats)
        return fresh

    def _through(self, pending: deque[Expression], node: LogicalPlan) -> _Passage:
        """Which conjuncts pass a projection or a name, and what they are below it."""
        inner = node.children[0]
        columns: dict[int, Expression] = {}
        costly: set[int] = set()
        computed = 0
        if isinstance(node, Project):
            if not all(e.deterministic for e in node.projections):
                return _Passage(deque(), list(pending))
            columns = node.columns()
            for bit in columns:
                computed |= 1 << bit
            if self.avoid_double_evaluation:
                costly = {bit for bit, body in columns.items() if is_costly(body)}
        references = 0
        contains = 0
        for predicate in pending:
            references |= predicate.references
            contains |= predicate.contains
        if not references & (computed | ~inner.output_set) and not contains & _CHECKED:
            return _Passage(pending, [])
        result = _Passage(deque(), [], changed=True)
        for predicate in pending:
            moved = self._below(predicate, inner, columns, computed, costly)
            if moved is None:
                result.above.append(predicate)
            else:
                result.below.append(moved)
        return result

    def _below(
        self, predicate: Expression, inner: LogicalPlan, columns: dict[int, Expression], computed: int, costly: set[int]
    ) -> Expression | None:
        """The predicate in terms of `inner`; None if it must stay above."""
        if not self.faithful and not safety.movable(predicate):
            return None
        if predicate.references & computed:
            if any(predicate.references >> bit & 1 for bit in costly):
                return None
            if grows_too_large(predicate, columns):
                return None
            predicate = substitute(predicate, columns)
            if not self.faithful and not safety.movable(predicate):
                return None
        if predicate.references & ~inner.output_set:
            return None
        if predicate.contains & SUBQUERY and reads_same_source(predicate, inner):
            return None
        return predicate

    # -- joins -------------------------------------------------------------------------------------------------

    def _split(
        self, predicates: list[Expression], join: Join
    ) -> tuple[list[Expression], list[Expression], list[Expression]]:
        """(readable on the left alone, on the right alone, the rest)."""
        left: list[Expression] = []
        right: list[Expression] = []
        both: list[Expression] = []
        fixed: list[Expression] = []
        for predicate in predicates:
            if not self.movable(predicate) or safety.throwable(predicate):
                fixed.append(predicate)
            elif not predicate.references & ~join.left.output_set:
                left.append(predicate)
            elif not predicate.references & ~join.right.output_set:
                right.append(predicate)
            else:
                both.append(predicate)
        return left, right, both + fixed

    def _filter_over_join(self, predicates: list[Expression], join: Join) -> LogicalPlan | None:
        """The conjuncts of a filter over a join, distributed; None if none of them moves."""
        if join.join_type not in _KNOWN:
            return None
        left, right, rest = self._split(predicates, join)
        own = [] if join.condition is None else [join.condition]
        if join.join_type in INNER_LIKE:
            within: list[Expression] = []
            outside: list[Expression] = []
            for p in rest:
                (within if can_evaluate_within_join(p) and self.movable(p) else outside).append(p)
            if not (left or right or within):
                return None
            joined = rejoined(join, filtered(left, join.left), filtered(right, join.right), within + own)
            return filtered(outside, joined)
        if join.join_type == RIGHT:
            if not right:
                return None
            return filtered(left + rest, rejoined(join, join.left, filtered(right, join.right), own))
        if not left:
            return None
        return filtered(right + rest, rejoined(join, filtered(left, join.left), join.right, own))

    def _join(self, join: Join) -> LogicalPlan:
        if join.condition is None or join.join_type == FULL or join.join_type not in _KNOWN:
            return join
        left, right, rest = self._split(conjuncts(join.condition), join)
        if join.join_type in _PADS_RIGHT:
            left, rest = [], left + rest
        elif join.join_type == RIGHT:
            right, rest = [], right + rest
        if not (left or right) or (not rest and join.join_type in (EXISTENCE, SINGLE)):
            return join
        return rejoined(join, filtered(left, join.left), filtered(right, join.right), rest)
