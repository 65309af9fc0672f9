"""Below which joins an aggregate may be computed in part.

An aggregate reads rows that come up through joins, filters, names, and the copies of each row that ROLLUP, CUBE and
GROUPING SETS make (Expand). Below each of the joins and copies on that way is a plan that could be grouped first: by
all of its columns that something above reads. Rows that agree in these find the same partners, pass the same filters
and end in the same groups, so that nothing above needs more than one of them, if it has the results of the functions
over all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from pyjoinopt.optimizer.eager_aggregation.split_functions import (
    EXACT,
    is_known,
    keeps_repetitions,
    of_padded_row,
)
from pyjoinopt.optimizer.prefilter.places import SharedPlans, is_grouped
from pyjoinopt.optimizer.prefilter.safety import is_safe
from pyjoinopt.plan.constructors import aggregate as grouped
from pyjoinopt.plan.expressions import (
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Attribute,
    Expression,
    conjuncts,
    reference,
    substitute,
    walk,
)
from pyjoinopt.plan.fallible.fallibility import is_movable
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    FULL,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import post_order

#: So many operators are looked at for an aggregate: each may be a candidate, whose price depends on those above it.
_MOST_OPERATORS = 60
#: The sides of a join of each type whose columns are in its result, and those that it pads with NULLs.
_SIDES = {
    **dict.fromkeys((SEMI, ANTI, EXISTENCE), (0,)), **dict.fromkeys((*INNER_LIKE, LEFT, RIGHT, FULL), (0, 1)),
}  # fmt: skip
_PADDED = {LEFT: (1,), RIGHT: (0,), FULL: (0, 1)}
#: What the lists of an aggregate may not contain.
_ELSEWHERE = SUBQUERY | OUTER_REFERENCE | CORRELATED | PYTHON_UDF


@dataclass(frozen=True)
class Step:
    """An operator on the way from an aggregate down to a plan.

    Attributes:
        node: the operator.
        child: which of its children leads to the plan.
        functions: the aggregate functions in terms of its columns.
        read: the columns of it that something above reads, as bits, but for the arguments of functions.
    """

    node: LogicalPlan
    child: int
    functions: tuple[Expression, ...]
    read: int


@dataclass(frozen=True)
class Candidate:
    """A plan that could be grouped before it is joined.

    Attributes:
        aggregate: what reads its rows, through joins.
        path: the operators between, from the aggregate down; the last one is a join or an Expand.
        functions: the aggregate functions, each once.
        below: the same in terms of the columns below the path.
        read: the columns that the operators between and the aggregate read, but for the arguments of functions.
    """

    aggregate: Aggregate
    path: tuple[Step, ...]
    functions: tuple[Expression, ...]
    below: tuple[Expression, ...]
    read: int

    @property
    def plan(self) -> LogicalPlan:
        """What would be grouped."""
        last = self.path[-1]
        return last.node.children[last.child]

    @cached_property
    def early(self) -> tuple[int, ...]:
        """Which of the functions are computed over its groups first; the others read the groups as rows."""
        own = self.plan.output_set
        return tuple(i for i, f in enumerate(self.below) if not f.references & ~own)

    @cached_property
    def late(self) -> tuple[int, ...]:
        """The other functions."""
        return tuple(i for i in range(len(self.below)) if i not in self.early)

    @property
    def counts_rows(self) -> bool:
        """Whether the others must count each group as often as it has rows."""
        return not all(keeps_repetitions(self.below[i]) for i in self.late)

    @property
    def may_have_padded_rows(self) -> bool:
        """Whether rows without partners have no group of the plan."""
        return any(map(pads, self.path))

    @cached_property
    def keys(self) -> tuple[Attribute, ...]:
        """The columns by which the plan would be grouped."""
        return tuple(dict.fromkeys(a for a in self.plan.output if a.mask & self.read))

    @cached_property
    def padded(self) -> tuple[int, ...] | None:
        """What each function that is computed early counts for rows without partners; None if it cannot be computed."""
        counted = [0] * len(self.early)
        steps = [step for step in self.path if pads(step)]
        for at, i in enumerate(self.early):
            found = {of_padded_row(step.functions[i], step.node.children[step.child].output_set) for step in steps}
            if len(found) > 1 or None in found:
                return None
            counted[at] = found.pop() or 0 if found else 0
        return tuple(counted)

    def is_legal(self) -> bool:
        """Whether nothing above distinguishes the rows of a group, or depends on how often they are repeated.

        The argument of a function that is not computed early has no column of the plan: it would become a key.
        Without any function that is computed early, the rows are made distinct, if they are not so already.
        """
        own = self.plan.output_set
        return (
            (bool(self.early) or not is_grouped(self.plan))
            and bool(self.keys)
            and all(EXACT.fullmatch(a.type) for a in self.keys)
            and self.padded is not None
            and not any(self.below[i].references & own for i in self.late)
        )


def columns_read(step: Step, early: Collection[int]) -> int:
    """The columns of an operator that something above reads, if so many functions are computed below it."""
    late = (f.references for i, f in enumerate(step.functions) if i not in early)
    return reduce(or_, late, step.read)


def meeting_join(one: Candidate, other: Candidate) -> Join | None:
    """The join whose sides two candidates of one aggregate are in; None if one is below the other."""
    for first, second in zip(one.path, other.path, strict=False):
        if first.child != second.child:
            return first.node if isinstance(first.node, Join) else None
    return None


def as_aggregate(node: LogicalPlan) -> Aggregate | None:
    """An aggregate, or a DISTINCT as the aggregate that Spark makes of it (ReplaceDistinctWithAggregate)."""
    if isinstance(node, Aggregate):
        return node
    if node.kind != "Distinct":
        return None
    columns = [reference(a) for a in node.output]
    return grouped(columns, columns, node.children[0])


def functions_of(aggregate: Aggregate) -> list[Expression]:
    """The aggregate functions of a list, each once."""
    found = {e.key: e for listed in aggregate.aggregates for e in walk(listed) if e.kind == "AggregateExpression"}
    return list(found.values())


def candidates(aggregate: Aggregate, shared: SharedPlans) -> Iterator[Candidate]:
    """The plans below joins that could be grouped for an aggregate.

    Args:
        aggregate: an aggregate of a plan.
        shared: what the plan has twice. Spark computes such a join once, as long as both are the same.
    """
    functions = tuple(functions_of(aggregate))
    if not all(map(is_known, functions)) or not _is_plain(aggregate):
        return
    read = reduce(or_, (g.references for g in aggregate.grouping), 0)
    stack = [_Place(aggregate.child, (), functions, read)]
    for _ in range(_MOST_OPERATORS):
        if not stack:
            return
        at = stack.pop()
        if at.path and _may_be_grouped_below(at.path[-1].node):
            found = Candidate(aggregate, at.path, functions, at.functions, at.read)
            if found.is_legal():
                yield found
        stack += _below(at, shared)


@dataclass(frozen=True)
class _Place:
    """A plan on the way down: the operators above it, and what they read of it."""

    node: LogicalPlan
    path: tuple[Step, ...]
    functions: tuple[Expression, ...]
    read: int


def _below(at: _Place, shared: SharedPlans) -> Iterator[_Place]:
    """The ways on from a plan."""
    node, functions, read = at.node, at.functions, at.read
    sides = _ways_down(node, shared)
    if isinstance(node, Project) and sides:
        functions = tuple(substitute(f, node.columns()) for f in functions)
        picked = [e for e in node.projections if e.attribute is not None and e.attribute.mask & read]
        if not _are_safe(picked) or not all(map(is_known, functions)):
            return
        read = reduce(or_, (e.references for e in picked), 0)
    elif node.kind == "Expand":
        read = reduce(or_, (e.references for i in read_positions(node, read) for e in columns_of_lists(node)[i]), 0)
        if not _only_copies(node, functions):
            return
    elif not is_only_a_name(node):
        read |= node.references
    for side in sides:
        yield _Place(node.children[side], (*at.path, Step(node, side, at.functions, at.read)), functions, read)


def pads(step: Step) -> bool:
    """Whether an operator between has rows in which all columns of the plan are NULL."""
    return isinstance(step.node, Join) and step.child in _PADDED.get(step.node.join_type, ())


def columns_of_lists(expand: LogicalPlan) -> list[tuple[Expression, ...]]:
    """What an Expand gives for each of its columns, one expression for each copy of a row."""
    return list(zip(*expand.info["lists"], strict=True))


def read_positions(expand: LogicalPlan, read: int) -> list[int]:
    """The positions of those columns of an Expand that something above reads."""
    return [i for i, a in enumerate(expand.output) if a.mask & read]


def _only_copies(expand: LogicalPlan, functions: Sequence[Expression]) -> bool:
    """Whether an Expand only picks columns and constants, and has the arguments of functions in each copy of a row."""
    listed = columns_of_lists(expand)
    if any(e.kind not in ("AttributeReference", "Literal") for column in listed for e in column):
        return False
    same = 0
    for a, column in zip(expand.output, listed, strict=True):
        if all(e.attribute is not None and e.attribute.bit == a.bit for e in column):
            same |= a.mask
    return not any(f.references & ~same for f in functions)


def _is_plain(aggregate: Aggregate) -> bool:
    """Whether what an aggregate lists can be computed from other columns, and nothing below is of an outer query."""
    lists = aggregate.expressions
    if any(not e.deterministic or e.contains & _ELSEWHERE for e in lists):
        return False
    inside = (e for node in post_order(aggregate.child) for e in node.expressions)
    return not any(e.contains & (OUTER_REFERENCE | CORRELATED) for e in inside)


def _ways_down(node: LogicalPlan, shared: SharedPlans) -> Sequence[int]:
    """The children of which an operator has each row as often for each of its partners."""
    if node.cached:
        return ()
    if is_only_a_name(node) or isinstance(node, Project) or (node.kind == "Expand" and "lists" in node.info):
        return (0,)
    if isinstance(node, Filter):
        return (0,) if _are_safe(conjuncts(node.condition)) else ()
    if isinstance(node, Join) and _are_safe(conjuncts(node.condition)):
        whole = node.held or node.subquery is not None or shared(node)
        return () if whole else _SIDES.get(node.join_type, ())
    return ()


def _are_safe(expressions: Sequence[Expression]) -> bool:
    """Whether expressions have the same value for a group as for each of its rows, and cannot fail."""
    return is_safe(expressions) and all(map(is_movable, expressions))


def _may_be_grouped_below(node: LogicalPlan) -> bool:
    """Whether an aggregate may be put right below an operator.

    Spark moves a semi or anti join below an aggregate that becomes its left side (PushDownLeftSemiAntiJoin).
    """
    return node.kind == "Expand" or (isinstance(node, Join) and node.join_type not in (SEMI, ANTI))
