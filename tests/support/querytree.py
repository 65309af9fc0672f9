"""A small query language that is rendered both as SQL and as PySpark code.

Every column is known by the pair (qualifier, name), and every relation in a query has its own qualifier, so a tree can
be cut and regrown without a name ever meaning two things. Nodes are values: a shrinker compares and copies them freely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

#: The types of the sample tables, then those of `hazards.py`: bigint, float, decimals of two scales, timestamp, two
#: widths of CHAR, a collated string, arrays of integers and of doubles, and a struct of a double.
Type = Literal[
    "int", "str", "dbl", "date", "bool",
    "big", "flt", "dec", "amt", "ts", "chr", "chw", "lcs", "arr", "adbl", "rec",
]  # fmt: skip
Kind = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]


@dataclass(frozen=True)
class Column:
    qualifier: str
    name: str
    type: Type


@dataclass(frozen=True)
class Constant:
    value: object
    type: Type


@dataclass(frozen=True)
class Call:
    """An operator or function over arguments; `op` is a key of the table in `operators.py`."""

    op: str
    args: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True)
class Subquery:
    """EXISTS (`exists`), `operand` IN (`in`), or one value (`scalar`: `aggregate` over the rows of `source`).

    `condition` may use columns of the query around it.
    """

    form: Literal["exists", "in", "scalar"]
    source: Node
    condition: tuple[Expression, ...]
    type: Type
    operand: Expression | None = None
    value: Expression | None = None
    negated: bool = False


Expression: TypeAlias = Column | Constant | Call | Subquery


@dataclass(frozen=True)
class Table:
    """A stored table, or a common table expression, under an alias."""

    name: str
    alias: str
    columns: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Join:
    """`style` is the SQL form: a JOIN, a comma in FROM (inner, cross), or EXISTS (semi, anti)."""

    left: Node
    right: Node
    kind: Kind
    condition: tuple[Expression, ...]
    style: Literal["join", "comma", "exists"] = "join"
    hint: str | None = None


@dataclass(frozen=True)
class Filter:
    child: Node
    conjuncts: tuple[Expression, ...]


@dataclass(frozen=True)
class Project:
    child: Node
    alias: str
    items: tuple[tuple[str, Expression], ...]
    distinct: bool = False


@dataclass(frozen=True)
class Aggregate:
    child: Node
    alias: str
    keys: tuple[tuple[str, Expression], ...]
    values: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Union_:
    left: Project
    right: Project
    alias: str
    distinct: bool


@dataclass(frozen=True)
class Top:
    """The first `count` rows in the order of all columns: a LIMIT whose rows do not depend on luck."""

    child: Node
    count: int


@dataclass(frozen=True)
class Chain:
    """Relations joined by USING or NATURAL on a column `k` that each has first; the other names are all different.

    A part is a Project, an Aggregate, or a Top of a Project, which SQL can only express as a subselect. `kinds` has the
    type of each join, one fewer than parts. The output is what `SELECT *` gives: `k`, then the columns of each part.
    """

    parts: tuple[Node, ...]
    kinds: tuple[Kind, ...]
    natural: bool
    alias: str


Node: TypeAlias = Table | Join | Filter | Project | Aggregate | Union_ | Top | Chain


@dataclass(frozen=True)
class Query:
    """Common table expressions by name, and the query over them."""

    definitions: tuple[tuple[str, Node], ...]
    root: Node


def output(node: Node) -> tuple[Column, ...]:
    """The columns that a node hands to the node above it."""
    if isinstance(node, Table):
        return tuple(Column(node.alias, name, kind) for name, kind in node.columns)
    if isinstance(node, Join):
        left = output(node.left)
        return left if node.kind in ("semi", "anti") else left + output(node.right)
    if isinstance(node, Project):
        return tuple(Column(node.alias, name, item.type) for name, item in node.items)
    if isinstance(node, Aggregate):
        return tuple(Column(node.alias, name, item.type) for name, item in node.keys + node.values)
    if isinstance(node, Union_):
        return tuple(Column(node.alias, name, item.type) for name, item in node.left.items)
    if isinstance(node, Chain):
        names = [output(part) for part in node.parts]
        columns = [names[0][0], *(column for part in names for column in part[1:])]
        return tuple(Column(node.alias, column.name, column.type) for column in columns)
    return output(node.child)


def children(node: Node) -> tuple[Node, ...]:
    """The relations directly below a node."""
    if isinstance(node, (Join, Union_)):
        return (node.left, node.right)
    if isinstance(node, Chain):
        return node.parts
    return () if isinstance(node, Table) else (node.child,)


def with_children(node: Node, new: tuple[Node, ...]) -> Node:
    """The same node over other relations."""
    if isinstance(node, (Join, Union_)):
        return replace(node, left=new[0], right=new[1])  # type: ignore[arg-type]
    if isinstance(node, Chain):
        return replace(node, parts=new)
    return node if isinstance(node, Table) else replace(node, child=new[0])


def nodes(node: Node) -> Iterator[Node]:
    """A node and all below it, without those inside subqueries."""
    yield node
    for child in children(node):
        yield from nodes(child)


def all_nodes(query: Query) -> Iterator[Node]:
    """Every node of a query, those of its definitions and of its subqueries among them."""
    waiting: list[Node] = [query.root, *(definition for _, definition in query.definitions)]
    while waiting:
        for node in nodes(waiting.pop()):
            yield node
            parts = list(expressions(node))
            while parts:
                part = parts.pop()
                if isinstance(part, Call):
                    parts += part.args
                elif isinstance(part, Subquery):
                    waiting.append(part.source)


def expressions(node: Node) -> Iterator[Expression]:
    """The expressions that stand in this node itself."""
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("condition", "conjuncts"):
            yield from value
        elif field.name in ("items", "keys", "values"):
            yield from (item for _, item in value)


def all_expressions(query: Query) -> Iterator[Expression]:
    """Every expression of a query with all its parts, those inside subqueries among them."""
    for node in all_nodes(query):
        waiting = list(expressions(node))
        while waiting:
            part = waiting.pop()
            yield part
            if isinstance(part, Call):
                waiting += part.args
            elif isinstance(part, Subquery):
                waiting += [*part.condition, *(e for e in (part.operand, part.value) if e is not None)]


def columns_of(expression: Expression) -> frozenset[Column]:
    """The columns an expression needs from around it; a subquery's own columns are not among them."""
    if isinstance(expression, Column):
        return frozenset((expression,))
    if isinstance(expression, Constant):
        return frozenset()
    if isinstance(expression, Call):
        return frozenset().union(*(columns_of(arg) for arg in expression.args))
    inside = frozenset(output(expression.source))
    parts = [*expression.condition, *(e for e in (expression.operand, expression.value) if e is not None)]
    return frozenset().union(*(columns_of(part) for part in parts)) - inside


def size(query: Query) -> int:
    """How much there is to read: relations count most, then other nodes, then parts of expressions."""
    total = 0
    for node in (query.root, *(definition for _, definition in query.definitions)):
        for each in nodes(node):
            total += 20 if isinstance(each, Table) else 5
            total += sum(_expression_size(e) for e in expressions(each))
    return total


def _expression_size(expression: Expression) -> int:
    if isinstance(expression, Call):
        return 1 + sum(_expression_size(arg) for arg in expression.args)
    if isinstance(expression, Subquery):
        return 3 + size(Query((), expression.source)) + sum(_expression_size(e) for e in expression.condition)
    return 1
