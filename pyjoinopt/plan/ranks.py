"""Which columns are ranks? ROW_NUMBER, RANK and DENSE_RANK count from one, which their type does not tell.

In ANSI mode `rn - 1` is an error for the smallest INT, so a predicate that computes it may fail, unless `rn` is known
to be a rank. It is one wherever it goes under its own name or another: through joins, filters, groups and common table
expressions. A UNION or an INTERSECT mixes it with other columns.

Knowing the column is not enough, because Spark says predicates again of equal columns: `rn - 1 = a.n` and `rn = b.x`
make it ask `b.x - 1 = a.n`. So only those count here that are compared for equality, by any of their names, with ranks
and with constants that could be ranks, nowhere in the plan with anything else. What the result of the query holds may
still be compared with anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyjoinopt.plan.common import written_out
from pyjoinopt.plan.expressions import CORRELATED, OUTER_REFERENCE, SUBQUERY, Expression, walk
from pyjoinopt.plan.keys import ROW_SUBSETS
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.ranges import range_of

#: Operators whose rows have the columns of their children as they are, or NULL for them.
_KEEPING = ROW_SUBSETS | {"Join", "Project", "Aggregate", "Window", "WithCTE", "CTERelationDef"}
_FUNCTIONS = frozenset({"RowNumber", "Rank", "DenseRank"})
_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe", "In"})
#: What is not read where it is written, and kinds that do not show what they compare.
_ELSEWHERE = SUBQUERY | OUTER_REFERENCE | CORRELATED
_HIDING = frozenset({"With", "CommonExpressionDef", "CommonExpressionRef", "InSet"})


def ranks(nodes: Sequence[LogicalPlan]) -> int:
    """The attributes that are 1 or more, or NULL, and so is whatever Spark may put in their place.

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
    same: list[int] = []
    found = _counting(nodes, same)
    if not found:
        return 0
    found &= ~nodes[-1].output_set
    for node in nodes:
        if node.kind not in _KEEPING and node.children:
            for mixed in (node, *node.children):
                found &= ~mixed.output_set
    while True:
        trusted = _trusted(nodes, found)
        for names in same:
            trusted &= -1 if not names & ~trusted else ~names
        if trusted == found:
            return found
        found = trusted


def _counting(nodes: Iterable[LogicalPlan], same: list[int]) -> int:
    """The columns that are made by counting, by whatever name; `same` is told of each pair of names."""
    found = 0
    defined: dict[object, LogicalPlan] = {}
    for node in nodes:
        renamed: list[tuple[int, int]] = []
        if node.kind == "CTERelationDef":
            defined[node.info.get("cte")] = node
        elif node.kind == "CTERelationRef" and (definition := defined.get(node.info.get("cte"))) is not None:
            if [a.name for a in node.output] == [a.name for a in definition.output]:
                renamed = [(made.mask, read.mask) for made, read in zip(definition.output, node.output, strict=True)]
        elif node.kind in ("Window", "Project", "Aggregate"):
            for e in node.expressions:
                if e.kind == "Alias" and e.attribute is not None:
                    (child,) = e.children
                    if child.kind == "AttributeReference":
                        renamed.append((child.references, e.attribute.mask))
                    elif child.kind == "WindowExpression" and child.children[0].kind in _FUNCTIONS:
                        found |= e.attribute.mask
        for one, other in renamed:
            if one & found:
                found |= other
                same.append(one | other)
    return found


def _trusted(nodes: Iterable[LogicalPlan], found: int) -> int:
    """Those of some ranks that are not set equal to what is none."""
    for root in (e for node in nodes for e in node.expressions if e.references & found):
        whole = written_out(root)
        if whole.contains & _ELSEWHERE or any(e.kind in _HIDING for e in walk(whole)):
            found &= ~root.references
            continue
        for e in walk(whole):
            if e.kind in _EQUALITIES and not all(_could_be_rank(side, found) for side in e.children):
                found &= ~e.references
    return found


def _could_be_rank(side: Expression, found: int) -> bool:
    """True of what reads nothing but ranks, and of constants from one on."""
    if side.references:
        return not side.references & ~found
    values = range_of(side)
    return side.kind == "Literal" and values is not None and values.low >= 1
