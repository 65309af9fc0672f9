"""Random SQL to which every rule applies: set operations, DISTINCT, odd GROUP BYs, limits, windows, unions, joins.

The queries are small and have no meaning; only their plans matter. All tables have three columns of one type, so
any part fits into any other. The same seed gives the same queries.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: name -> query of a NULL-rich, duplicate-rich table with columns a, b, c.
TABLES = {
    "t": "SELECT id % 7 AS a, nullif(id % 5, 1) AS b, nullif(id % 3, 0) AS c FROM range(40)",
    "u": "SELECT nullif(id % 6, 2) AS a, id % 4 AS b, id % 9 AS c FROM range(30)",
    "v": "SELECT id % 5 AS a, id % 5 AS b, nullif(id % 2, 1) AS c FROM range(12)",
}
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN")
_SET_OPERATIONS = ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION", "UNION ALL", "UNION ALL")


def create_tables(session: SparkSession) -> None:
    """The tables as temporary views over data that is opaque to Spark."""
    for name, text in TABLES.items():
        rows = session.sql(text).collect()
        session.createDataFrame(rows, "a bigint, b bigint, c bigint").createOrReplaceTempView(name)


def queries(count: int, seed: int = 1, limits: bool = True) -> Iterator[str]:
    """This many queries; without limits each of them has a single correct result."""
    for number in range(count):
        yield _Writer(random.Random(f"{seed} {number}"), limits).query(3)


class _Writer:
    def __init__(self, rng: random.Random, limits: bool) -> None:
        self.rng = rng
        self.limits = limits
        self.aliases = 0

    def query(self, depth: int) -> str:
        """A query with columns a, b, c."""
        rng = self.rng
        if depth == 0:
            return f"SELECT a, b, c FROM {rng.choice(list(TABLES))}"
        kind = rng.choices(
            ("select", "join", "set", "distinct", "group", "limit", "window", "outer", "exists", "explode", "comma"),
            (4, 5, 3, 2, 3, 2 if self.limits else 0, 2, 2, 1, 1, 1),
        )[0]
        return str(getattr(self, f"_{kind}")(depth - 1))

    def source(self, depth: int) -> str:
        """A query in brackets, with a name."""
        self.aliases += 1
        below = depth if self.rng.random() < 0.8 else 0
        return f"({self.query(below)}) AS q{self.aliases}"

    def value(self, columns: str = "abc") -> str:
        rng = self.rng
        column = rng.choice(columns)
        return rng.choices(
            (column, f"{column} + {rng.randint(1, 3)}", f"coalesce({column}, 0)", str(rng.randint(0, 4)), f"-{column}"),
            (8, 2, 1, 1, 1),
        )[0]

    def predicate(self, left: str = "", right: str = "") -> str:
        """Over columns a, b, c, each with one of two prefixes."""
        rng = self.rng
        one, other = (f"{rng.choice((left, right))}{rng.choice('abc')}" for _ in range(2))
        return rng.choice(
            (
                f"{one} = {other}", f"{one} > {rng.randint(0, 4)}", f"{one} <=> {other}", f"{one} IS NOT NULL",
                f"{one} IS NULL", f"{one} IN (1, 2, 3)", f"{one} = {rng.randint(0, 4)}", f"{one} < {other}",
                f"({one} = 1 OR {other} = 2)", f"NOT ({one} = 2)", f"coalesce({one}, {other}) = 1",
                f"{one} + 1 = {other}",
            )
        )  # fmt: skip

    def conjunction(self, left: str = "", right: str = "") -> str:
        return " AND ".join(self.predicate(left, right) for _ in range(self.rng.randint(1, 3)))

    def _select(self, depth: int) -> str:
        rng = self.rng
        text = f"SELECT {self.value()} AS a, {self.value()} AS b, c FROM {self.source(depth)}"
        return f"SELECT * FROM ({text}) WHERE {self.conjunction()}" if rng.random() < 0.7 else text

    def _join(self, depth: int) -> str:
        rng = self.rng
        join = rng.choice(_JOINS)
        left, right = self.source(depth), self.source(depth if rng.random() < 0.4 else 0)
        names = [text.rsplit(" ", 1)[1] + "." for text in (left, right)]
        on = "" if join == "CROSS JOIN" else f"ON {names[0]}a = {names[1]}{rng.choice('abc')}"
        if on and rng.random() < 0.5:
            on += f" AND {self.predicate(*names)}"
        if on and rng.random() < 0.1:
            on = "ON true"
        visible = names[:1] if "SEMI" in join or "ANTI" in join else names
        columns = ", ".join(f"{rng.choice(visible)}{rng.choice('abc')} AS {c}" for c in "abc")
        where = f" WHERE {self.conjunction(visible[0], visible[-1])}" if rng.random() < 0.6 else ""
        return f"SELECT {columns} FROM {left} {join} {right} {on}{where}"

    def _set(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.3:  # both sides over one table: EXCEPT becomes a filter
            table = rng.choice(list(TABLES))
            sides = [f"SELECT a, b, c FROM {table} WHERE {self.conjunction()}" for _ in range(2)]
            return f"({sides[0]}) {rng.choice(_SET_OPERATIONS)} ({sides[1]})"
        return f"({self.query(depth)}) {rng.choice(_SET_OPERATIONS)} ({self.query(depth if rng.random() < 0.5 else 0)})"

    def _distinct(self, depth: int) -> str:
        return f"SELECT DISTINCT {self.value()} AS a, b, {self.value('ab')} AS c FROM {self.source(depth)}"

    def _group(self, depth: int) -> str:
        rng = self.rng
        keys = rng.choice(("a, b", "a, b, a", "a, 1 + 1, b", "a + 1, 1 + a, b", "a, b, 'x'", "a, b, b + 1"))
        first = "a + 1" if keys.startswith("a + 1") else "a"
        function = rng.choice(("max(c)", "count(c)", "sum(DISTINCT c)", "min(b)", "count(1)", "max(c + 1)"))
        text = f"SELECT {first} AS a, b, {function} AS c FROM {self.source(depth)} GROUP BY {keys}"
        return f"SELECT * FROM ({text}) WHERE {self.conjunction()}" if rng.random() < 0.5 else text

    def _limit(self, depth: int) -> str:
        limit = self.rng.choice((1, 2, 5, 100))
        if self.rng.random() < 0.5:
            return f"(({self.query(depth)}) UNION ALL ({self.query(0)}) LIMIT {limit})"
        return f"SELECT a, b, c FROM {self.source(depth)} LIMIT {limit}"

    def _comma(self, depth: int) -> str:
        sources = [self.source(depth), self.source(0), self.source(0)]
        one, two, three = (text.rsplit(" ", 1)[1] + "." for text in sources)
        ties = f"{one}a = {three}b AND {two}{self.rng.choice('abc')} = {three}c AND {self.predicate(one, two)}"
        return f"SELECT {one}a AS a, {two}b AS b, {three}c AS c FROM {', '.join(sources)} WHERE {ties}"

    def _window(self, depth: int) -> str:
        rng = self.rng
        spec = rng.choice(("PARTITION BY a", "PARTITION BY a, b", "PARTITION BY a ORDER BY b"))
        function = rng.choice(("count(1)", "sum(c)", "max(b)"))
        text = f"SELECT a, b, {function} OVER ({spec}) AS c FROM {self.source(depth)}"
        unused = rng.choice(("a, b, c", "a, b, a AS c"))
        return f"SELECT {unused} FROM ({text}) WHERE {self.conjunction()}"

    def _outer(self, depth: int) -> str:
        rng = self.rng
        join = rng.choice(_JOINS[1:4])
        left, right = self.source(depth), self.source(0)
        names = [text.rsplit(" ", 1)[1] + "." for text in (left, right)]
        kept = names[1] if join.startswith("RIGHT") else names[0]
        function = rng.choice(("max", "count", "min"))
        head = rng.choice(
            (f"SELECT DISTINCT {kept}a AS a, {kept}b AS b, {kept}c AS c",
             f"SELECT {kept}a AS a, {kept}b AS b, {function}({kept}c) AS c"))  # fmt: skip
        tail = f" GROUP BY {kept}a, {kept}b" if "DISTINCT" not in head else ""
        return f"{head} FROM {left} {join} {right} ON {names[0]}a = {names[1]}b{tail}"

    def _exists(self, depth: int) -> str:
        rng = self.rng
        outer = self.source(depth)
        name = outer.rsplit(" ", 1)[1]
        table = rng.choice(list(TABLES))
        test = rng.choice(
            (f"EXISTS (SELECT 1 FROM {table} i WHERE i.a = {name}.b)", f"{name}.a IN (SELECT b FROM {table})",
             f"{name}.c > (SELECT min(a) FROM {table})", f"NOT EXISTS (SELECT 1 FROM {table} i WHERE i.c = {name}.a)")
        )  # fmt: skip
        return f"SELECT a, b, c FROM {outer} WHERE {test} AND {self.predicate()}"

    def _explode(self, depth: int) -> str:
        text = f"SELECT a, b, e AS c, c AS d FROM {self.source(depth)} LATERAL VIEW explode(array(a, b)) x AS e"
        return f"SELECT a, b, c FROM ({text}) WHERE {self.conjunction()}"
