"""PushPredicateThroughNonJoin: a filter passes every operator that does not mind.

An operator does not mind if filtering its input gives what filtering its output gives. That depends on what a
conjunct reads:

    operator                                   passes if the conjunct reads
    Project                                    anything, written in terms of what the columns are computed from
    Aggregate                                  only grouping columns, and at least one
    Window                                     only columns of PARTITION BY
    Union                                      anything, written in each branch's own columns
    EventTimeWatermark                         anything but the event time
    Distinct, Sort, Repartition, Expand, ...   only columns of the input

    SELECT * FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) WHERE k = 7 AND s > 1

reads one group of `t` after the push: `k = 7` drops whole groups, so it may drop their rows; `s > 1` is known only of
the finished group and is not moved. A window is the same with its partitions. A global aggregate gives a row even over
no rows, therefore it lets nothing pass, and a conjunct without columns (`false`) does not pass any aggregate.

No operator is passed that computes something nondeterministic: what `rand()` gives depends on the rows before. A
projection is passed neither by a conjunct over a column that is costly to compute (it would be computed twice) nor by
a filter with a subquery over the very columns of the projection's input. And a correlated subquery that is not yet
taken apart, whose own plan names columns of this query, is not moved to where these columns have other names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from pyjoinopt.catalyst.support.alias_substitution import (
    grows_too_large,
    reads_same_source,
)  # fmt: skip
from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.catalyst.support.pushdown_policy import PushdownPolicy, PushdownResult
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Expression,
    reference,
    substitute,
    walk,
)  # fmt: skip
from pyjoinopt.plan.fallible.fallibility import is_costly, may_throw
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.outer_references import reads_outer_columns_by_name

_CHECKED = PYTHON_UDF | OUTER_REFERENCE | CORRELATED | SUBQUERY | AGGREGATE_OR_WINDOW

#: Operators with one child that keep its rows, or some of them, or each several times, with its columns unchanged.
_GENERIC = frozenset(
    """
    AppendColumns Distinct Generate Pivot RepartitionByExpression Repartition RebalancePartitions ScriptTransformation
    Sort BatchEvalPython ArrowEvalPython Expand BinBy
    """.split()
)
#: Those of them that see every row, even if they make no row of it, or make rows of none.
_NOT_ROW_BY_ROW = frozenset({"Generate", "ScriptTransformation", "Pivot", "BinBy"})

#: Kinds for which Spark 4.2's `Expression.expensive` is true.
_EXPENSIVE = frozenset({"ScalaUDF", "Like", "RLike", "ArrayJoin", "CallMethodViaReflection"})


def through(pending: deque[Expression], node: LogicalPlan, policy: PushdownPolicy) -> PushdownResult | None:
    """Which conjuncts pass a node, and what they are below it; None if it is a node that none ever passes."""
    if isinstance(node, Project) or is_only_a_name(node):
        passage = _through_projection(pending, node, policy)
    elif isinstance(node, Aggregate):
        passage = _through_aggregate(pending, node, policy)
    elif node.kind == "Window":
        passage = _through_window(pending, node, policy)
    elif node.kind == "EventTimeWatermark":
        allowed = ~node.references
        passage = _partition(pending, policy, lambda p: p if not policy.reads(p) & ~allowed else None)
    elif node.kind in _GENERIC and len(node.children) == 1:
        passage = _through_generic(pending, node, policy)
    elif node.kind == "Union":
        passage = _partition(pending, policy, lambda p: None if reads_outer_columns_by_name(p) else p)
    else:
        return None
    return passage if policy.as_catalyst else _in_order(pending, passage)


def pushed_into_branches(predicates: Iterable[Expression], union: LogicalPlan) -> LogicalPlan:
    """The union with a filter in each branch, written in the branch's columns."""
    listed = list(predicates)
    branches: list[LogicalPlan] = []
    for branch in union.children:
        names = {
            a.bit: reference(b) for a, b in zip(union.output, branch.output, strict=True) if a.bit != b.bit
        }  # fmt: skip
        branches.append(filtered([substitute(p, names) for p in listed] if names else listed, branch))
    return union.with_children(tuple(branches))


def _in_order(pending: deque[Expression], passage: PushdownResult) -> PushdownResult:
    """A conjunct that may fail does not overtake one that is evaluated before it and is not moved: that guards it."""
    if not passage.above or not passage.below or not any(may_throw(p) for p in passage.below):
        return passage
    kept = {id(p) for p in passage.above}
    first = next(i for i, p in enumerate(pending) if id(p) in kept)
    below: deque[Expression] = deque()
    above: list[Expression] = []
    moved = iter(passage.below)
    for i, predicate in enumerate(pending):
        if id(predicate) in kept:
            above.append(predicate)
            continue
        changed = next(moved)
        if i > first and may_throw(changed):
            above.append(predicate)
        else:
            below.append(changed)
    return PushdownResult(below, above, True)


def _partition(
    pending: Iterable[Expression], policy: PushdownPolicy, below: Callable[[Expression], Expression | None]
) -> PushdownResult:
    """Split by `below`, which gives what a movable conjunct becomes, or None if it is not moved."""
    result = PushdownResult(deque(), [])
    for predicate in pending:
        moved = below(predicate) if policy.movable(predicate) else None
        if moved is None:
            result.above.append(predicate)
        else:
            result.changed = result.changed or moved is not predicate
            result.below.append(moved)
    return result


def _through_generic(pending: deque[Expression], node: LogicalPlan, policy: PushdownPolicy) -> PushdownResult:
    if not all(e.deterministic for e in node.expressions):
        return PushdownResult(deque(), list(pending))
    inner = node.children[0].output_set
    careful = not policy.as_catalyst and node.kind in _NOT_ROW_BY_ROW

    def below(predicate: Expression) -> Expression | None:
        reads = policy.reads(predicate)
        if reads & ~inner or careful and (not reads or may_throw(predicate)):
            return None
        return predicate

    return _partition(pending, policy, below)


def _through_window(pending: deque[Expression], node: LogicalPlan, policy: PushdownPolicy) -> PushdownResult:
    functions, keys, _ = node.info.get("parts", (len(node.expressions), 0, 0))
    partition = node.expressions[functions : functions + keys]
    if "parts" not in node.info or not all(e.kind == "AttributeReference" for e in partition):
        return PushdownResult(deque(), list(pending))
    allowed = 0
    for e in partition:
        allowed |= e.references
    return _partition(pending, policy, lambda p: p if not policy.reads(p) & ~allowed else None)


def _through_aggregate(pending: deque[Expression], node: Aggregate, policy: PushdownPolicy) -> PushdownResult:
    if not node.grouping or not all(e.deterministic for e in node.aggregates):
        return PushdownResult(deque(), list(pending))
    columns = {
        e.attribute.bit: e.children[0]
        for e in node.aggregates
        if e.kind == "Alias" and e.attribute and not any(_aggregates(part) for part in walk(e.children[0]))
    }
    inner = node.child.output_set

    def below(predicate: Expression) -> Expression | None:
        if not policy.reads(predicate) or not policy.as_catalyst and grows_too_large(predicate, columns):
            return None
        moved = substitute(predicate, columns)
        changed = moved is not predicate
        if policy.reads(moved) & ~inner or not policy.movable(moved) or changed and reads_outer_columns_by_name(moved):
            return None
        return moved

    return _partition(pending, policy, below)


def _aggregates(e: Expression) -> bool:
    return bool(e.flags & AGGREGATE_OR_WINDOW) or e.kind in ("PythonUDAF", "PythonUDF")


def _through_projection(pending: deque[Expression], node: LogicalPlan, policy: PushdownPolicy) -> PushdownResult:
    inner = node.children[0]
    columns: dict[int, Expression] = {}
    costly: set[int] = set()
    computed = 0
    if isinstance(node, Project):
        if not all(e.deterministic for e in node.projections):
            return PushdownResult(deque(), list(pending))
        columns = node.columns()
        for bit in columns:
            computed |= 1 << bit
        if policy.avoid_double_evaluation:
            test = _is_expensive if policy.as_catalyst else is_costly
            costly = {bit for bit, body in columns.items() if test(body)}
    references = 0
    contains = 0
    for predicate in pending:
        references |= predicate.references
        contains |= predicate.contains
    if not references & (computed | ~inner.output_set) and not contains & _CHECKED:
        return PushdownResult(pending, [])
    if contains & SUBQUERY and any(reads_same_source(p, inner) for p in pending):
        return PushdownResult(deque(), list(pending))
    result = PushdownResult(deque(), [], changed=True)
    for predicate in pending:
        moved = _below(predicate, inner, columns, computed, costly, policy)
        if moved is None:
            result.above.append(predicate)
        else:
            result.below.append(moved)
    return result


def _below(
    predicate: Expression,
    inner: LogicalPlan,
    columns: dict[int, Expression],
    computed: int,
    costly: set[int],
    policy: PushdownPolicy,
) -> Expression | None:
    """The predicate in terms of `inner`; None if it must remain above a projection."""
    if not policy.as_catalyst and not policy.movable(predicate):
        return None
    if predicate.references & computed:
        if any(predicate.references >> bit & 1 for bit in costly):
            return None
        largest = limits.PREDICATE_AS_CATALYST if policy.as_catalyst else limits.PREDICATE
        if grows_too_large(predicate, columns, largest) or reads_outer_columns_by_name(predicate):
            return None
        predicate = substitute(predicate, columns)
        if not policy.as_catalyst and not policy.movable(predicate):
            return None
    return None if policy.reads(predicate) & ~inner.output_set else predicate


def _is_expensive(body: Expression) -> bool:
    return any(e.kind in _EXPENSIVE for e in walk(body))
