"""Generates random queries, each from its own seed.

A query grows from the leaves up. After every join the rows are counted in DuckDB, and a join that would make too many
(or none at all) is drawn again: small results keep thousands of queries cheap, and empty ones prove little.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

import duckdb

from tests.support.conditions import FALSE, Conditions
from tests.support.querytree import (
    Aggregate,
    Call,
    Chain,
    Column,
    Expression,
    Filter,
    Join,
    Kind,
    Node,
    Project,
    Query,
    Subquery,
    Table,
    Top,
    Type,
    Union_,
    nodes,
    output,
)
from tests.support.render_sql import node_sql
from tests.support.sampledata import COLUMNS, ROW_COUNTS

MOST_ROWS = 400
TRIES = 6
# Half of the queries mix all join types; the other half is mostly inner joins, so that large groups come up.
FLAVOURS: tuple[dict[Kind, int], ...] = (
    {"inner": 46, "left": 18, "right": 7, "full": 6, "semi": 8, "anti": 6, "cross": 3},
    {"inner": 80, "left": 8, "right": 2, "full": 2, "semi": 4, "anti": 2, "cross": 2},
)
HINTS = ("broadcast", "merge", "shuffle_hash", "shuffle_replicate_nl")


@dataclass(frozen=True)
class World:
    """The schema of random queries.

    Attributes:
        tables: those of FROM.
        weights: how likely each of them is.
        inside: the names of those that subqueries read.
        conditions: makes what draws predicates.
    """

    tables: tuple[Table, ...]
    weights: tuple[float, ...]
    inside: frozenset[str]
    conditions: Callable[[random.Random], Conditions] = Conditions


SAMPLES = World(
    tuple(Table(name, "", COLUMNS) for name in ROW_COUNTS),
    tuple(1.0 if number else 0.15 for number in ROW_COUNTS.values()),
    frozenset(name for name, number in ROW_COUNTS.items() if number),
)


def row_counter(connection: duckdb.DuckDBPyConnection) -> Callable[[Node], int]:
    """A function that counts the rows of a node (at most a little above `MOST_ROWS`)."""

    def rows(node: Node) -> int:
        text = f"SELECT count(*) FROM (SELECT 1 FROM ({node_sql(node, 'duckdb')}) LIMIT {MOST_ROWS + 1})"
        try:
            found = connection.execute(text).fetchone()
        except duckdb.Error:  # a fault of DuckDB 1.5.5, or a cast that fails in the order in which it takes predicates
            return MOST_ROWS + 1
        assert found is not None
        return int(found[0])

    return rows


class Generator:
    """Draws queries; `query(number)` depends on the seed and the number alone.

    Args:
        seed: of all queries.
        rows: counts the rows of a node.
        subqueries: whether all filters have subqueries (`SubqueryDraw`).
    """

    def __init__(self, seed: int, rows: Callable[[Node], int], *, subqueries: bool = False) -> None:
        self.seed, self.rows = seed, rows
        self.draw = SubqueryDraw if subqueries else Draw

    def query(self, number: int) -> Query:
        """The query with this number."""
        return self.draw(random.Random(f"query {self.seed} {number}"), self.rows).query()


class Draw:
    """One query, drawn from one source of randomness."""

    def __init__(self, rng: random.Random, rows: Callable[[Node], int], world: World = SAMPLES) -> None:
        self.rng, self.rows, self.world = rng, rows, world
        # A source of its own: what is drawn from it changes no query without subqueries.
        self.inner_rng = random.Random(str(rng.getstate()[1][:3]))
        self.group_rng = random.Random(f"groups {rng.getstate()[1][:3]}")
        self.conditions = world.conditions(rng)
        self.chance = self.conditions.chance
        self.numbers = count(1)
        self.kinds = rng.choice(FLAVOURS)
        self.asks = rng.choice((0.1, 0.2, 0.6))
        self.wall_free = 0.5 if self.kinds is FLAVOURS[1] else 0.0
        self.tables, self.weights = list(world.tables), list(world.weights)

    def query(self) -> Query:
        relations = self.rng.choices(range(2, 9), weights=(10, 22, 24, 18, 12, 8, 6))[0]
        definitions: list[tuple[str, Node]] = []
        if relations > 2 and self.chance(0.12):
            definitions.append(("cte1", self.project(self.tree(2))))
            self.rows = _no_count  # its name is valid only inside the query
            columns = tuple((c.name, c.type) for c in output(definitions[0][1]))
            self.tables = [self.rng.choice(self.tables[:6]), Table("cte1", "", columns)]
            self.weights = [1.0, 1.0]
            relations = min(relations, 3)
        node = self.tree(relations)
        if self.chance(0.5):
            node = self.filtered(node)
        roll = self.rng.random()
        if roll < 0.2:
            node = self.aggregate(node)
        elif roll < 0.75 or len({c.name for c in output(node)}) < len(output(node)) and self.chance(0.5):
            node = self.project(node)
        return Query(tuple(definitions), node)

    def tree(self, relations: int) -> Node:
        if relations == 1:
            return self.leaf()
        if relations < 4 and self.rows is not _no_count and self.chance(0.05):
            return self.chain(relations)
        if relations == 2 and self.world is SAMPLES and self.rows is not _no_count and self.group_rng.random() < 0.3:
            drawn = (self.groups_of_few() for _ in range(TRIES))
            return next((node for node in drawn if 0 < self.rows(node) <= MOST_ROWS), self.leaf())
        left = relations - 1 if self.chance(0.6) else self.rng.randrange(1, relations)
        return self.dressed(self.join(self.tree(left), self.tree(relations - left)))

    def leaf(self) -> Node:
        table = self.rng.choices(self.tables, weights=self.weights)[0]
        node: Node = replace(table, alias=f"r{next(self.numbers)}")
        if self.chance(0.12):
            node = self.filtered(node, subqueries=False)
        if self.chance(0.06):
            node = self.project(node)
        elif self.chance(0.06):
            node = self.aggregate(node)
        return node

    def dressed(self, node: Node) -> Node:
        """Something between this join and the next, now and then."""
        if self.chance(self.wall_free):
            return node
        roll = self.rng.random()
        if roll < 0.13:
            return self.filtered(node)
        if roll < 0.31:
            return self.project(node)
        if roll < 0.36:
            return self.aggregate(node)
        if roll < 0.40:
            return Top(node, self.rng.randrange(1, 12))
        if roll < 0.43:
            return self.union(node)
        return node

    def groups_of_few(self) -> Node:
        """A filtered relation joined with an aggregate by its grouping key, which few groups then need."""
        rng, conditions = self.group_rng, self.world.conditions(self.group_rng)
        stored = sorted((t for t in self.world.tables if t.name in self.world.inside), key=lambda t: t.name)
        few, source = (replace(rng.choice(stored), alias=f"r{next(self.numbers)}") for _ in range(2))
        few_columns, columns = output(few), output(source)
        kind = rng.choice(("int", "int", "int", "str", "date"))
        key, value = conditions.column(columns, kind), rng.choice(columns)
        partner = conditions.column(few_columns, kind)
        assert key is not None and partner is not None
        call = Call("count", (value,), "int") if rng.random() < 0.5 else Call("max", (value,), value.type)
        call = Call("count", (value,), "int") if value.type == "bool" else call
        groups = Aggregate(source, f"g{next(self.numbers)}", ((_name(0, key), key),), (("m0_v", call),))
        filtered = Filter(few, (conditions.predicate(few_columns),))
        equal = Call("=", (partner, output(groups)[0]), "bool")
        join_kind = rng.choice(("inner", "inner", "left", "semi", "anti"))
        if join_kind == "inner" and rng.random() < 0.5:
            return Join(groups, filtered, "inner", (Call("=", (output(groups)[0], partner), "bool"),))
        return Join(filtered, groups, join_kind, (equal,))

    def join(self, left: Node, right: Node) -> Node:
        known, empty_allowed = self.rows is not _no_count, self.chance(0.1)
        for _ in range(TRIES):
            node = self.random_join(left, right)
            if not known:
                if node.kind != "cross" and any(_is_equality(part) for part in node.condition):
                    return node
                continue
            found = self.rows(node)
            if found <= MOST_ROWS and (found > 0 or empty_allowed):
                return node
        a, b = output(left), output(right)
        return Join(left, right, "left" if self.chance(0.3) else "semi", (self.conditions.equality(a, b),))

    def random_join(self, left: Node, right: Node) -> Join:
        kind = self.rng.choices(list(self.kinds), weights=list(self.kinds.values()))[0]
        condition = () if kind == "cross" else self.conditions.join_condition(output(left), output(right))
        style: Literal["join", "comma", "exists"] = "join"
        if kind in ("inner", "cross") and self.chance(0.35):
            style = "comma"
        if kind in ("semi", "anti") and FALSE not in condition and self.chance(0.5):
            style = "exists"
        hint = self.rng.choice(HINTS) if style == "join" and kind != "cross" and self.chance(0.05) else None
        return Join(left, right, kind, condition, style, hint)

    def filtered(self, node: Node, *, subqueries: bool = True) -> Node:
        columns = output(node)
        parts: list[Expression] = [self.conditions.predicate(columns)]
        if self.chance(0.35):
            parts.append(self.conditions.predicate(columns))
        if subqueries and self.chance(self.asks):
            found = self.subquery(columns)
            parts.append(Call("or", (found, parts.pop()), "bool") if self.chance(0.2) else found)
        made = Filter(node, tuple(parts))
        if self.rows is not _no_count and self.rows(made) == 0 and not self.chance(0.1):
            return node
        return made

    def subquery(self, columns: Sequence[Column]) -> Expression:
        """EXISTS, IN or a scalar comparison; the relation inside is sometimes a join of two."""
        stored = [table for table in self.world.tables if table.name in self.world.inside]
        source: Node = replace(self.rng.choice(stored), alias=f"q{next(self.numbers)}")
        if self.chance(0.4):
            other = replace(self.rng.choice(stored), alias=f"q{next(self.numbers)}")
            both = output(source), output(other)
            source = Join(source, other, "inner", (self.conditions.equality(*both),), "comma")
        inside = output(source)
        form = self.rng.choice(("exists", "in", "scalar"))
        conditions: list[Expression] = [self.conditions.predicate(inside, 1)] if self.chance(0.4) else []
        if self.inner_rng.random() < (0.1 if form == "scalar" else 0.25):
            conditions.append(self.inner_subquery(inside))
        if form == "exists":
            conditions.append(self.conditions.equality(columns, inside))
            return Subquery("exists", source, tuple(conditions), "bool", negated=self.chance(0.3))
        column = self.rng.choice(inside)
        operand = self.conditions.column(columns, column.type)
        if operand is None:
            return Subquery("exists", source, tuple(conditions), "bool", negated=False)
        if form == "in":
            return Subquery("in", source, tuple(conditions), "bool", operand, column, self.chance(0.3))
        if self.chance(0.4):
            equal = self.conditions.equality(columns, inside)
            conditions += [equal] if _is_equality(equal) else []
        value = Call(self.rng.choice(("min", "max")), (column,), column.type)
        comparison = self.rng.choice(("<=", ">=", "<>"))
        scalar = Subquery("scalar", source, tuple(conditions), column.type, value=value)
        return self.compared(columns, operand, comparison, scalar)

    def compared(self, columns: Sequence[Column], operand: Expression, comparison: str, scalar: Subquery) -> Expression:
        """A comparison with a value for each row: mostly of another aggregate, sometimes beside an EXISTS."""
        rng = self.inner_rng
        inside = output(scalar.source)
        conditions = self.world.conditions(rng)
        if rng.random() < 0.6:
            scalar = replace(scalar, condition=(*scalar.condition, conditions.equality(columns, inside)))
        column, whole = rng.choice(inside), [c for c in columns if c.type == "int"]
        if whole and rng.random() < 0.5:
            value = Call(rng.choice(("count", "count distinct", "count rows")), (column,), "int")
            scalar = replace(scalar, value=replace(value, args=()) if value.op == "count rows" else value, type="int")
            operand = rng.choice(whole)
        elif scalar.type in ("int", "dbl") and scalar.value is not None and rng.random() < 0.7:
            assert isinstance(scalar.value, Call)
            scalar = replace(scalar, value=replace(scalar.value, op=rng.choice(("sum", "avg"))))
        if scalar.type in ("int", "dbl") and rng.random() < 0.2:
            compared: Expression = Call("coalesce", (scalar, conditions.constant(scalar.type)), scalar.type)
        else:
            compared = scalar
        found = Call(rng.choice((comparison, comparison, "=", "<=>")), (operand, compared), "bool")
        return Call("and", (found, self.inner_subquery(columns)), "bool") if rng.random() < 0.15 else found

    def inner_subquery(self, columns: Sequence[Column]) -> Expression:
        """EXISTS or IN for a subquery's own condition, often beside an OR, where no semi join can stand for it."""
        rng = self.inner_rng
        conditions = self.world.conditions(rng)
        tables = sorted(table.name for table in self.world.tables if table.name in self.world.inside)
        name = rng.choice(tables)
        table = next(t for t in self.world.tables if t.name == name)
        inside = output(source := replace(table, alias=f"q{next(self.numbers)}"))
        operand, negated = rng.choice(columns), rng.random() < 0.3
        same = [column for column in inside if column.type == operand.type]
        if same and rng.random() < 0.4:
            condition = (conditions.predicate(inside, 2),)
            found = Subquery("in", source, condition, "bool", operand, rng.choice(same), negated)
        else:
            found = Subquery("exists", source, (conditions.equality(columns, inside),), "bool", negated=negated)
        return found if rng.random() < 0.3 else Call("or", (found, conditions.predicate(columns, 2)), "bool")

    def some(self, columns: Sequence[Column], most: int) -> list[Column]:
        """A few of the columns, in their order, the keys more likely than the rest."""
        weights = [3 if c.name.rpartition("_")[2] in ("id", "k", "j") else 1 for c in columns]
        drawn = self.rng.choices(range(len(columns)), weights=weights, k=min(most, len(columns)))
        return [columns[position] for position in sorted(set(drawn))]

    def project(self, node: Node) -> Project:
        """Some columns under new names, some values computed from them, sometimes a window function."""
        columns = output(node)
        items: list[tuple[str, Expression]] = []
        for column in self.some(columns, 7):
            made = self.conditions.value(columns, column) if self.chance(0.3) else column
            items.append((_name(len(items), column), made))
        if self.chance(0.08):
            column = self.rng.choice(columns)
            over = Call(self.rng.choice(("count over", "rank over")), (column, self.rng.choice(columns)), "int")
            items.append((f"n{len(items)}_v", over))
        return Project(node, f"p{next(self.numbers)}", tuple(items), distinct=self.chance(0.12))

    def aggregate(self, node: Node) -> Aggregate:
        columns = output(node)
        keys = [(_name(n, c), c) for n, c in enumerate(self.some(columns, self.rng.randrange(0, 4)))]
        values: list[tuple[str, Expression]] = []
        for column in self.some(columns, self.rng.randrange(1, 4)):
            names = ["count", "min", "max", "count distinct"] + (["sum"] if column.type in ("int", "dbl") else [])
            op = self.rng.choice(names)
            kind: Type = "int" if op.startswith("count") else column.type
            if column.type == "bool":
                op, kind = "count", "int"
            values.append((f"m{len(values)}_v", Call(op, (column,), kind)))
        if self.chance(0.3):
            values.append((f"m{len(values)}_v", Call("count rows", (), "int")))
        return Aggregate(node, f"g{next(self.numbers)}", tuple(keys), tuple(values))

    def union(self, node: Node) -> Union_:
        """The node's first columns above those of a table, column for column of one type."""
        table = replace(self.tables[0], alias=f"r{next(self.numbers)}")
        left: list[tuple[str, Expression]] = []
        right: list[tuple[str, Expression]] = []
        for column in self.some(output(node), 4):
            other = self.conditions.column(output(table), column.type) or self.conditions.constant(column.type)
            left.append((_name(len(left), column), column))
            right.append((left[-1][0], other))
        sides = [
            Project(side, f"p{next(self.numbers)}", tuple(items)) for side, items in ((node, left), (table, right))
        ]
        return Union_(sides[0], sides[1], f"u{next(self.numbers)}", distinct=self.chance(0.4))

    def chain(self, relations: int) -> Chain:
        """Aggregates, limits and windows joined by USING or NATURAL."""
        kinds: tuple[Kind, ...] = ("inner", "inner", "inner", "left", "right", "full")
        parts = tuple(self.part(number) for number in range(relations))
        drawn = tuple(self.rng.choice(kinds) for _ in parts[1:])
        return Chain(parts, drawn, self.chance(0.4), f"n{next(self.numbers)}")

    def part(self, number: int) -> Node:
        """A relation with a column `k` and one or two of its own."""
        leaf = replace(self.rng.choices(self.tables, weights=self.weights)[0], alias=f"r{next(self.numbers)}")
        columns = output(leaf)
        key = self.conditions.column([c for c in columns if c.name in self.conditions.keys], "int")
        assert key is not None
        other = self.conditions.column(columns, "int", "str", "date") or key
        form, alias = self.rng.choice(("aggregate", "limit", "window", "plain")), f"p{next(self.numbers)}"
        if form == "aggregate":
            value = Call(self.rng.choice(("min", "max", "count")), (other,), other.type)
            value = Call("count", (other,), "int") if value.op == "count" else value
            return Aggregate(leaf, alias, (("k", key),), ((f"v{number}", value),))
        item: Expression = other
        if form == "window":
            item = Call(self.rng.choice(("count over", "rank over")), (other, key), "int")
        project = Project(leaf, alias, (("k", key), (f"v{number}", item)))
        return Top(project, self.rng.randrange(2, 9)) if form == "limit" else project


class SubqueryDraw(Draw):
    """A query whose filters have subqueries, most of them under OR, over columns of one relation or of several."""

    def query(self) -> Query:
        self.kinds, self.wall_free = FLAVOURS[1], 0.8
        node = self.filtered(self.tree(self.rng.randrange(3, 6)))
        roll = self.rng.random()
        if roll < 0.2:
            node = self.aggregate(node)
        elif roll < 0.6 or len({c.name for c in output(node)}) < len(output(node)):
            node = self.project(node)
        return Query((), node)

    def filtered(self, node: Node, *, subqueries: bool = True) -> Node:
        if not subqueries:
            return super().filtered(node, subqueries=False)
        columns = output(node)
        parts = [self.alternatives(columns) for _ in range(self.rng.choice((1, 1, 2)))]
        if self.chance(0.4):
            parts.insert(self.rng.randrange(len(parts) + 1), self.conditions.predicate(columns))
        return Filter(node, tuple(parts))

    def alternatives(self, columns: Sequence[Column]) -> Expression:
        """A subquery alone, or under OR with a predicate, with another subquery, or with both of them under AND."""
        relation = self.rng.choice(sorted({column.qualifier for column in columns}))
        if self.chance(0.6):
            columns = [column for column in columns if column.qualifier == relation]
        found = self.subquery(columns)
        if self.chance(0.25):
            return found
        other = self.subquery(columns) if self.chance(0.3) else self.conditions.predicate(columns)
        if self.chance(0.2):
            other = Call("and", (other, self.subquery(columns)), "bool")
        return Call("or", (found, other) if self.chance(0.5) else (other, found), "bool")


def _name(position: int, column: Column) -> str:
    return f"n{position}_{column.name.rpartition('_')[2]}"


def _is_equality(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.op in ("=", "<=>") and isinstance(expression.args[1], Column)


def _no_count(node: Node) -> int:
    raise AssertionError(f"{len(list(nodes(node)))} nodes cannot be counted by themselves")
