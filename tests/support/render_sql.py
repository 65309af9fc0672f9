"""Renders a query tree as one SQL text, the same for Spark and DuckDB except for Spark-only operators.

A join tree stays a join tree in FROM. Nodes that need a separate SELECT in SQL (a filter below a join, an aggregate, a
limit) become subselects. Their columns get new names, so each block has a map from the columns of the tree to the texts
that denote them there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from tests.support.operators import Dialect, sql_call, sql_constant
from tests.support.querytree import (
    Aggregate,
    Call,
    Chain,
    Column,
    Constant,
    Expression,
    Filter,
    Join,
    Node,
    Project,
    Query,
    Subquery,
    Table,
    Top,
    Union_,
    output,
)

Names = dict[tuple[str, str], str]
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "cross": "CROSS JOIN"}
JOINS |= {"semi": "SEMI JOIN", "anti": "ANTI JOIN"}


@dataclass
class Block:
    """A SELECT under construction: its FROM items, its WHERE, its hints, and what columns are called in it."""

    items: list[str]
    names: Names
    where: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def to_sql(query: Query, dialect: Dialect = "spark") -> str:
    """The whole query."""
    writer = _Writer(dialect)
    definitions = [f"{name} AS ({writer.select(node)})" for name, node in query.definitions]
    return (f"WITH {', '.join(definitions)} " if definitions else "") + writer.select(query.root)


def node_sql(node: Node, dialect: Dialect = "spark") -> str:
    """A part of a query, as a SELECT."""
    return _Writer(dialect).select(node)


def expression_sql(expression: Expression) -> str:
    """An expression as it stands over relations that still have their own aliases (for `F.expr`)."""
    return _Writer().expression(expression, {})


class _Writer:
    def __init__(self, dialect: Dialect = "spark") -> None:
        self.dialect: Dialect = dialect
        self.fresh = (f"w{number}" for number in count(1))

    def select(self, node: Node) -> str:
        """A complete SELECT whose columns are named by their plain names where it is a Project, else by both parts."""
        if isinstance(node, Project):
            block = self.block(node.child)
            items = [f"{self.expression(item, block.names)} AS {name}" for name, item in node.items]
            return self.finish(block, items, distinct=node.distinct)
        if isinstance(node, Aggregate):
            block = self.block(node.child)
            keys = [self.expression(key, block.names) for _, key in node.keys]
            values = [self.expression(value, block.names) for _, value in node.values]
            names = [name for name, _ in node.keys + node.values]
            text = self.finish(block, [f"{part} AS {name}" for part, name in zip(keys + values, names)])
            return text + (f" GROUP BY {', '.join(keys)}" if keys else "")
        if isinstance(node, Union_):
            return f"{self.select(node.left)} UNION{'' if node.distinct else ' ALL'} {self.select(node.right)}"
        block = self.block(node.child if isinstance(node, Top) else node)
        texts = [block.names[c.qualifier, c.name] for c in output(node)]
        text = self.finish(block, [f"{t} AS {c.qualifier}_{c.name}" for t, c in zip(texts, output(node))])
        if isinstance(node, Top):
            text += f" ORDER BY {', '.join(f'{t} ASC NULLS FIRST' for t in texts)} LIMIT {node.count}"
        return text

    def finish(self, block: Block, items: list[str], *, distinct: bool = False) -> str:
        hints = f"/*+ {', '.join(block.hints)} */ " if block.hints else ""
        where = f" WHERE {' AND '.join(block.where)}" if block.where else ""
        return f"SELECT {hints}{'DISTINCT ' if distinct else ''}{', '.join(items)} FROM {', '.join(block.items)}{where}"

    def block(self, node: Node) -> Block:
        """What stands in FROM and WHERE for a node."""
        if isinstance(node, Table):
            names = {(node.alias, name): f"{node.alias}.{name}" for name, _ in node.columns}
            return Block([f"{node.name} AS {node.alias}"], names)
        if isinstance(node, Filter):
            block = self.block(node.child)
            block.where += [self.expression(part, block.names) for part in node.conjuncts]
            return block
        if isinstance(node, Join):
            return self.join(node)
        if isinstance(node, Top):
            return self.wrapped(node)
        if isinstance(node, Chain):
            return self.chain(node)
        names = {(node.alias, column.name): f"{node.alias}.{column.name}" for column in output(node)}
        return Block([f"({self.select(node)}) AS {node.alias}"], names)

    def chain(self, node: Chain) -> Block:
        """Joins by USING or NATURAL, as a subselect of everything they give."""
        text = f"({self.part(node.parts[0])}) AS {next(self.fresh)}"
        for part, kind in zip(node.parts[1:], node.kinds):
            natural, using = ("NATURAL ", "") if node.natural else ("", " USING (k)")
            text += f" {natural}{JOINS[kind]} ({self.part(part)}) AS {next(self.fresh)}{using}"
        names = {(node.alias, column.name): f"{node.alias}.{column.name}" for column in output(node)}
        return Block([f"(SELECT * FROM {text}) AS {node.alias}"], names)

    def part(self, node: Node) -> str:
        """A SELECT whose columns have their plain names, also below a LIMIT."""
        if not isinstance(node, Top):
            return self.select(node)
        order = ", ".join(f"{column.name} ASC NULLS FIRST" for column in output(node))
        return f"{self.select(node.child)} ORDER BY {order} LIMIT {node.count}"

    def wrapped(self, node: Node) -> Block:
        """A node as a subselect under a fresh alias."""
        alias = next(self.fresh)
        names = {(c.qualifier, c.name): f"{alias}.{c.qualifier}_{c.name}" for c in output(node)}
        return Block([f"({self.select(node)}) AS {alias}"], names)

    def join(self, node: Join) -> Block:
        left, right = self.block(node.left), self.block(node.right)
        both = left.names | right.names
        if node.style == "comma":
            where = [self.expression(part, both) for part in node.condition]
            return Block(left.items + right.items, both, left.where + right.where + where, left.hints + right.hints)
        if node.style == "exists":
            where = right.where + [self.expression(part, both) for part in node.condition]
            inside = f" WHERE {' AND '.join(where)}" if where else ""
            exists = f"EXISTS (SELECT 1 FROM {', '.join(right.items)}{inside})"
            left.where.append(exists if node.kind == "semi" else f"NOT {exists}")
            return left
        sides = []
        for child, block in ((node.left, left), (node.right, right)):
            sides.append(self.wrapped(child) if len(block.items) > 1 or block.where else block)
        names = sides[0].names | sides[1].names
        on = " AND ".join(self.expression(part, names) for part in node.condition) or "TRUE"
        end = "" if node.kind == "cross" else f" ON {on}"
        text = f"({sides[0].items[0]} {JOINS[node.kind]} {sides[1].items[0]}{end})"
        hints = sides[0].hints + sides[1].hints
        if node.hint and isinstance(node.right, (Table, Project, Aggregate, Union_)):
            hints.append(f"{node.hint.upper()}({node.right.alias})")
        return Block([text], sides[0].names if node.kind in ("semi", "anti") else names, [], hints)

    def expression(self, expression: Expression, names: Names) -> str:
        if isinstance(expression, Column):
            plain = f"{expression.qualifier}.{expression.name}"
            return names.get((expression.qualifier, expression.name), plain)
        if isinstance(expression, Constant):
            return sql_constant(expression.value, expression.type, self.dialect)
        if isinstance(expression, Call):
            return sql_call(expression.op, [self.expression(arg, names) for arg in expression.args], self.dialect)
        return self.subquery(expression, names)

    def subquery(self, expression: Subquery, names: Names) -> str:
        block = self.block(expression.source)
        both = names | block.names
        block.where += [self.expression(part, both) for part in expression.condition]
        negation = "NOT " if expression.negated else ""
        if expression.form == "exists":
            return f"({negation}EXISTS ({self.finish(block, ['1'])}))"
        assert expression.value is not None
        inside = self.finish(block, [self.expression(expression.value, both)])
        if expression.form == "scalar":
            return f"({inside})"
        assert expression.operand is not None
        return f"({self.expression(expression.operand, names)} {negation}IN ({inside}))"
