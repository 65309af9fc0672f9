"""Runs pairs of join orders on Spark: the default cost model's choice, and the one with the least C_out.

    python -m benchmarks.orders [--scale 4] [--runs 6] [--kinds keyword,fan-out]

Where all row counts are true, the two differ in some queries of the Join Order Benchmark (`job.py`). The script
generates tables of the shape of such queries (rows before and after filters, rows of the joins; columns that no order
reads are left out) and runs both orders by turns, with broadcasts forced by hints. It prints the least and the median
seconds of wall time, and the least processor time, of each order; and what the cost model expects of the two, in
seconds at 20 ns for each row unit (`calibrate.py`), without the fixed price of broadcasts, which is equal in both.

The kinds named `fan-out` measure the price of a result row: a join that makes 1, 10 or 30 rows of each row, followed by
another join. Their lines are variants of data, not of orders.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.common import machine, session
from benchmarks.tpc_runs import processors
from pyjoinopt.cost import SparkCost
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.cost.size import NO_BUILD, Size

#: Seconds of a row unit.
UNIT = 20e-9
#: A text of seventeen characters.
TITLE = "substr(md5(cast(id as string)), 1, 17)"


class Join(NamedTuple):
    """A broadcast join for the cost model: rows of its probe and build sides, bytes of a built row, rows it gives."""

    probe: float
    build: float
    width: float
    output: float

    def cost(self) -> float:
        """Row units, without the fixed price."""
        built = Size(self.build, self.build * self.width)
        work = SparkCost().join(Size(self.probe, 0.0, NO_BUILD), built, Size(self.output, 0.0))
        return work - DEFAULT.broadcast


class Order(NamedTuple):
    """A query text, and its joins."""

    text: str
    joins: tuple[Join, ...]


class Kind(NamedTuple):
    """Tables (rows and columns, which are computed from `id`), and queries over them by name."""

    tables: dict[str, tuple[int, str]]
    orders: dict[str, Order]


def pseudorandom(most: int, seed: int) -> str:
    """A whole number below `most`."""
    return f"pmod(xxhash64(id, {seed}), {most})"


def keyword(scale: int) -> Kind:
    """Query 16a: links of one keyword, and episodes, which have few links."""
    films, episodes, links = 2_528_312 * scale, 68_245 * scale, 4_523_930 * scale
    other = f"{episodes} + {pseudorandom(films - episodes, 2)}"
    film = f"if({pseudorandom(289, 1)} = 0, {pseudorandom(episodes, 2)}, {other})"
    tables = {
        "mk": (links, f"{film} film, cast({pseudorandom(108, 3)} as int) keyword"),
        "k": (108, "cast(id as int) id, concat('word ', id) word"),
        "t": (films, f"id, {TITLE} title, if(id < {episodes}, id % 100, null) episode"),
    }
    t = "(SELECT id, title FROM t WHERE episode >= 0)"
    k = "(SELECT id FROM k WHERE word = 'word 7')"
    narrow = (
        f"SELECT /*+ BROADCAST(m) */ min(title) FROM {t} f JOIN"
        f" (SELECT /*+ BROADCAST(k) */ film FROM mk JOIN {k} k ON keyword = k.id) m ON f.id = film"
    )
    few = (
        f"SELECT /*+ BROADCAST(k) */ min(title) FROM (SELECT /*+ BROADCAST(f) */ keyword, title FROM mk JOIN {t} f"
        f" ON f.id = film) m JOIN {k} k ON keyword = k.id"
    )
    return Kind(
        tables,
        {
            "default model": Order(
                narrow, (Join(links, 1, 12, links / 108), Join(episodes, links / 108, 16, 150 * scale))
            ),
            "least C_out": Order(
                few, (Join(links, episodes, 105, links / 289), Join(links / 289, 1, 12, 150 * scale))
            ),
        },
    )


def companies(scale: int) -> Kind:
    """Query 22b: links of three keywords, films, and companies of films, of which few are of these films."""
    films, late, links, companies = 2_528_312 * scale, 533_369 * scale, 4_523_930 * scale, 2_609_129 * scale
    some = companies // 9
    film = f"if({pseudorandom(168, 1)} = 0, {pseudorandom(late, 2)}, {late} + {pseudorandom(films - late, 2)})"
    tables = {
        "mk": (links, f"{pseudorandom(films, 1)} film, cast({pseudorandom(366, 3)} as int) keyword"),
        "k": (366, "cast(id as int) id, concat('word ', id) word"),
        "t": (films, f"id, {TITLE} title, if(id < {late}, 2009, 1990) year"),
        "mc": (companies, f"{film} film, cast(id % 9 as int) note, cast({pseudorandom(4, 5)} as int) type"),
    }
    t, mc = "(SELECT id, title FROM t WHERE year > 2008)", "(SELECT film, type FROM mc WHERE note = 4)"
    k = "(SELECT id FROM k WHERE word IN ('word 7', 'word 8', 'word 9'))"
    narrow = (
        f"SELECT /*+ BROADCAST(m) */ min(title), min(type) FROM {mc} c JOIN (SELECT /*+ BROADCAST(m) */ id, title FROM"
        f" {t} f JOIN (SELECT /*+ BROADCAST(k) */ film FROM mk JOIN {k} k ON keyword = k.id) m ON id = film) m"
        f" ON c.film = m.id"
    )
    few = (
        f"SELECT /*+ BROADCAST(k) */ min(title), min(type) FROM (SELECT /*+ BROADCAST(m) */ keyword, title, type"
        f" FROM mk JOIN (SELECT /*+ BROADCAST(c) */ id, title, type FROM {t} f JOIN {mc} c ON id = c.film) m"
        f" ON mk.film = m.id) m JOIN {k} k ON keyword = k.id"
    )
    chosen, both = links / 122, some / 168
    return Kind(
        tables,
        {
            "default model": Order(
                narrow,
                (
                    Join(links, 3, 12, chosen), Join(late, chosen, 16, chosen / 5),
                    Join(some, chosen / 5, 105, 20 * scale),
                ),
            ),
            "least C_out": Order(
                few, (Join(late, some, 20, both), Join(links, both, 109, both * 2), Join(both * 2, 3, 12, 20 * scale))
            ),
        },
    )


def release(scale: int) -> Kind:
    """Query 19a: releases that are all of one type, cast of nearly the same films, few of the persons."""
    infos, cast, persons = 451_104 * scale, 420_559 * scale, 417_000 * scale
    tables = {
        "mi": (
            4 * infos, f"id film, cast(if(id < {infos}, 16, id % 113) as int) type, if(id < {infos}, 'x', 'y') info"
        ),
        "it": (113, "cast(id as int) id, concat('type ', id) type"),
        "ci": (
            4 * cast,
            f"{pseudorandom(infos, 1)} film, {pseudorandom(persons, 2)} person,"
            f" cast({pseudorandom(12, 3)} as int) role, if(id < {cast}, 'x', 'y') note",
        ),
        "rt": (12, "cast(id as int) id, concat('role ', id) role"),
        "n": (persons, f"id, {TITLE} name, cast(id % 616 as int) gender"),
    }
    mi, ci = "(SELECT film, type FROM mi WHERE info = 'x')", "(SELECT film, person, role FROM ci WHERE note = 'x')"
    it, rt = "(SELECT id FROM it WHERE type = 'type 16')", "(SELECT id FROM rt WHERE role = 'role 1')"
    n = "(SELECT id, name FROM n WHERE gender = 5)"
    wrong = (
        f"SELECT /*+ BROADCAST(n) */ min(name) FROM (SELECT /*+ BROADCAST(rt) */ person FROM"
        f" (SELECT /*+ BROADCAST(m) */ person, role FROM {ci} c JOIN (SELECT /*+ BROADCAST(it) */ film FROM {mi} mi"
        f" JOIN {it} it ON type = it.id) m ON c.film = m.film) c JOIN {rt} rt ON role = rt.id) c"
        f" JOIN {n} n ON person = n.id"
    )
    few = (
        f"SELECT /*+ BROADCAST(it) */ min(name) FROM (SELECT /*+ BROADCAST(c) */ type, name FROM {mi} mi JOIN"
        f" (SELECT /*+ BROADCAST(rt) */ film, name FROM (SELECT /*+ BROADCAST(n) */ film, role, name FROM {ci} c"
        f" JOIN {n} n ON person = n.id) c JOIN {rt} rt ON role = rt.id) c ON mi.film = c.film) m"
        f" JOIN {it} it ON type = it.id"
    )
    found = cast / 616
    return Kind(
        tables,
        {
            "misestimated": Order(
                wrong,
                (
                    Join(infos, 1, 12, infos), Join(cast, infos, 16, cast), Join(cast, 1, 12, cast / 12),
                    Join(cast / 12, persons / 616, 91, found / 12),
                ),
            ),
            "default model": Order(
                few,
                (
                    Join(cast, persons / 616, 91, found), Join(found, 1, 12, found / 12),
                    Join(infos, found / 12, 99, found / 12), Join(found / 12, 1, 12, found / 12),
                ),
            ),
        },
    )  # fmt: skip


def fan_out(scale: int) -> Kind:
    """Two million rows, each of which finds 1, 10 or 30 partners; each of these has its place looked up."""
    rows, keys = 2_000_000 * scale, 2_000
    counts = (1, 10, 30)
    tables = {"f": (rows, f"cast({pseudorandom(keys, 1)} as int) key, id value")}
    tables["d"] = (1_000, "cast(id as int) id, cast(id % 7 as int) size")
    for count in counts:
        tables[f"p{count}"] = (
            keys * count, f"cast(id % {keys} as int) key, cast({pseudorandom(1000, 2)} as int) d, id other"
        )  # fmt: skip
    joins = {
        count: (Join(rows, keys * count, 24, rows * count), Join(rows * count, 1_000, 16, rows * count))
        for count in counts
    }
    return Kind(
        tables,
        {
            f"{count} rows each": Order(
                f"SELECT /*+ BROADCAST(d) */ sum(size), sum(value + other) FROM (SELECT /*+ BROADCAST(p) */ d, value,"
                f" other FROM f JOIN p{count} p ON f.key = p.key) j JOIN d ON j.d = d.id",
                joins[count],
            )
            for count in counts
        },
    )


KINDS = {"keyword": keyword, "companies": companies, "release": release, "fan-out": fan_out}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=4, help="times the rows of the benchmark (default 4)")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--kinds", default=",".join(KINDS))
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "3g", "spark.sql.adaptive.enabled": "false"})
    print(f"{machine()}, Spark {spark.version}, scale {chosen.scale}; seconds, {chosen.runs} runs by turns\n")
    print(f"{'kind':<12}{'order':<18}{'least':>8}{'median':>8}{'processor':>11}{'expected':>10}")
    for name in chosen.kinds.split(","):
        kind = KINDS[name](chosen.scale)
        with tempfile.TemporaryDirectory() as folder:
            for table, (rows, columns) in kind.tables.items():
                path = str(Path(folder) / table)
                spark.range(0, rows, 1, 4).selectExpr(*_split(columns)).write.parquet(path)
                spark.read.parquet(path).createOrReplaceTempView(table)
            _show(spark, name, kind, chosen.runs)
    spark.stop()


def _split(columns: str) -> list[str]:
    """Columns at their top-level commas."""
    found, depth = [""], 0
    for letter in columns:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def _show(spark: Any, name: str, kind: Kind, runs: int) -> None:
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    times: dict[str, list[tuple[float, float]]] = {order: [] for order in kind.orders}
    results: set[object] = set()
    for turn in range(runs + 2):  # the first two are not counted
        for order in random.Random(turn).sample(list(kind.orders), len(kind.orders)):
            started, spent = perf_counter(), processors(jvm)
            rows = spark.sql(kind.orders[order].text).collect()
            passed = perf_counter() - started, processors(jvm) - spent
            if name != "fan-out":
                results.add(tuple(rows[0]))
            if turn > 1:
                times[order].append(passed)
    if len(results) > 1:
        raise SystemExit(f"{name}: orders give different rows: {results}")
    for order, runs_of in times.items():
        wall = [each[0] for each in runs_of]
        expected = UNIT * sum(join.cost() for join in kind.orders[order].joins)
        least = min(each[1] for each in runs_of)
        print(
            f"{name:<12}{order:<18}{min(wall):>8.2f}{statistics.median(wall):>8.2f}{least:>11.2f}{expected:>10.2f}"
        )


if __name__ == "__main__":
    main()
