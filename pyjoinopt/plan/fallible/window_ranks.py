"""Which columns are ranks? ROW_NUMBER, RANK and DENSE_RANK count from one, which their type does not show.

In ANSI mode `rn - 1` is an error for the smallest INT, so a predicate that computes it may fail, unless `rn` is known
to be a rank. It is one wherever it goes under its own name or another: through joins, filters, groups and common table
expressions. A UNION or an INTERSECT mixes it with other columns.

Knowing the column is not enough, because Spark copies predicates to equal columns: from `rn - 1 = a.n` and `rn = b.x`
it infers `b.x - 1 = a.n`. So only those count here that the whole plan, subqueries included, compares for equality
with ranks, constants and steps from one rank to another that are far from the smallest INT. What else is done with a
rank is a reason not to count it, as a function of it may turn out to be the column itself (`coalesce(rn, 0)`), and so
is being in the result, with which more may be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import CORRELATED, EQUALITIES, OUTER_REFERENCE, SUBQUERY, Expression, walk
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.operator_kinds import ROW_SUBSETS
from pyjoinopt.plan.traversal import post_order

#: What a rank, and all that Spark may put in its place, is never below.
LEAST = -1_000_000
#: Operators whose rows have the columns of their children as they are, or NULL for them.
_KEEPING = ROW_SUBSETS | {"Join", "Project", "Aggregate", "Window", "WithCTE", "CTERelationDef"}
_FUNCTIONS = frozenset({"RowNumber", "Rank", "DenseRank"})
_EQUALITIES = EQUALITIES | {"In"}
#: Kinds that make no two columns equal, whatever they read.
_OTHERS = frozenset(
    """
    AttributeReference SortOrder LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull
    """.split()
)


def ranks(nodes: Sequence[LogicalPlan]) -> int:
    """The attributes that are `LEAST` or more, or NULL, and so is whatever Spark may put in their place.

    Args:
        nodes: all of a plan, children before parents, the root last.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> a, rn = Attribute(0, 1, "a"), Attribute(1, 2, "rn")
    >>> table = LogicalPlan("LocalRelation", output=(a,))
    >>> number = Expression("WindowExpression", (Expression("RowNumber", type="int"),), "int")
    >>> counted = LogicalPlan("Window", (table,), (a, rn), (Expression("Alias", (number,), attribute=rn),))
    >>> bin(ranks([table, counted, LogicalPlan("Sort", (counted,), (a, rn))])), "in the result"
    ('0b0', 'in the result')
    >>> from pyjoinopt.plan.nodes import Project
    >>> bin(ranks([table, counted, Project((reference(a),), counted)]))
    '0b10'
    """
    columns = _Columns()
    for node in nodes:
        columns.see(node)
    found = columns.counting & ~columns.others
    if not found:
        return 0
    found &= ~nodes[-1].output_set
    for node in nodes:
        if node.kind not in _KEEPING and node.children:
            for mixed in (node, *node.children):
                found &= ~mixed.output_set
    for node in _in_subqueries(nodes):
        found &= ~columns.defined_by(node)
    read = [inline_common_expressions(e) for node in nodes for e in node.expressions if e.references & found]
    while True:
        trusted = found
        for e in read:
            if e.references & trusted and not _leaves_alone(e, trusted):
                trusted &= ~e.references
        for names in columns.same:
            trusted &= -1 if not names & ~trusted else ~names
        if trusted == found:
            return found
        found = trusted


@dataclass(slots=True)
class _Columns:
    """The columns of a plan, by what makes them.

    Attributes:
        counting: those that count rows, by whatever name.
        others: those that are made in another way, or in several.
        same: pairs of names of one column.
        definitions: common table expressions.
    """

    counting: int = 0
    others: int = 0
    same: list[int] = field(default_factory=list)
    definitions: dict[object, LogicalPlan] = field(default_factory=dict)

    def see(self, node: LogicalPlan) -> None:
        """Take a node, after its children."""
        if node.kind == "CTERelationDef":
            self.definitions[node.info.get("cte")] = node
        elif node.kind == "CTERelationRef":
            self._read(node)
        elif not node.children or node.cached:
            self.others |= node.output_set
        for e in node.expressions:
            if e.kind == "Alias" and e.attribute is not None:
                (child,) = e.children
                if child.kind == "WindowExpression" and child.children[0].kind in _FUNCTIONS:
                    self.counting |= e.attribute.mask
                elif (column := _column(child, e.type)) is not None:
                    self._rename(column.references, e.attribute.mask)
                else:
                    self.others |= e.attribute.mask

    def defined_by(self, node: LogicalPlan) -> int:
        """The columns of the common table expression that a node reads, if it does."""
        definition = self.definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        return definition.output_set if definition is not None else 0

    def _read(self, node: LogicalPlan) -> None:
        definition = self.definitions.get(node.info.get("cte"))
        if definition is None:
            return
        if [a.name for a in node.output] == [a.name for a in definition.output]:
            for made, read in zip(definition.output, node.output, strict=True):
                self._rename(made.mask, read.mask)
        else:
            self.others |= definition.output_set

    def _rename(self, column: int, name: int) -> None:
        if column & self.counting:
            self.counting |= name
            self.same.append(column | name)
        else:
            self.others |= name


def _in_subqueries(nodes: Iterable[LogicalPlan]) -> Iterator[LogicalPlan]:
    """All nodes of the plans of subqueries, and of subqueries within them."""
    for node in nodes:
        for e in (e for root in node.expressions if root.contains & SUBQUERY for e in walk(root)):
            if e.plan is not None:
                inside = list(post_order(e.plan))
                yield from inside
                yield from _in_subqueries(inside)


def _leaves_alone(root: Expression, found: int) -> bool:
    """Does an expression that reads ranks make nothing equal to them but what is as good as a rank?"""
    if root.contains & (SUBQUERY | OUTER_REFERENCE | CORRELATED):
        return False
    stack = [root]
    while stack:
        e = stack.pop()
        if not e.references & found or e.kind in _OTHERS:
            continue
        if e.kind in _EQUALITIES:
            if not all(_is_far_from_the_smallest(side, found) for side in e.children):
                return False
        elif e.kind in ("And", "Or", "Not"):
            stack += e.children
        elif e.kind != "Alias" or _column(e.children[0], e.type) is None:
            return False
    return True


def _is_far_from_the_smallest(side: Expression, found: int) -> bool:
    """True of a rank, of a constant, and of a rank and a constant more or less."""
    if side.kind == "Literal":
        return _value(side) >= LEAST
    if side.kind in ("Add", "Subtract"):
        one, other = side.children
        if side.kind == "Add" and one.kind == "Literal":
            one, other = other, one
        step = _value(other) if side.kind == "Add" else -_value(other)
        return step >= LEAST and _is_rank(one, found)
    return _is_rank(side, found)


def _is_rank(e: Expression, found: int) -> bool:
    while e.kind == "Cast":
        e = e.children[0]
    return e.kind == "AttributeReference" and bool(e.references & found)


def _column(e: Expression, type: str) -> Expression | None:
    """The column that an expression is, but for casts to the type that it has."""
    while e.kind == "Cast" and e.type == e.children[0].type == type:
        e = e.children[0]
    return e if e.kind == "AttributeReference" else None


def _value(e: Expression) -> float:
    """A whole number; for anything else one that is below all."""
    whole = e.kind == "Literal" and isinstance(e.value, int) and not isinstance(e.value, bool)
    return e.value if whole else float("-inf")
