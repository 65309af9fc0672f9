"""An aggregate that is joined with its own rows becomes a window over them, with the same result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from tests.support.eager import session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

AVERAGE = "(SELECT k AS key, avg(v) AS a FROM f GROUP BY k)"
#: All rows of a key are read by one task.
WINDOW = "by a window"

REPLACED = {
    "joined by hand": f"SELECT f.k, f.v, a FROM f JOIN {AVERAGE} y ON f.k = y.key WHERE f.v < a",
    "the aggregate first": f"SELECT f.k, f.v, a FROM {AVERAGE} y JOIN f ON f.k = y.key WHERE f.v < a",
    "correlated": "SELECT k, v FROM f o WHERE v > (SELECT avg(v) FROM f i WHERE i.k = o.k)",
    "correlated by the dimension": """SELECT f.k, v, n FROM f JOIN d ON f.k = d.id WHERE d.n = 'n1'
        AND v > (SELECT 0.5 * avg(v) FROM f i WHERE i.k = d.id)""",
    "a key with several rows": """SELECT f.k, v, z FROM f JOIN e ON f.k = e.k WHERE z > 0
        AND v >= (SELECT max(v) FROM f i WHERE i.k = f.k)""",
    "no comparison": f"SELECT f.*, y.* FROM f JOIN {AVERAGE} y ON f.k = y.key",
    "with columns of the group alone": f"SELECT y.a, y.key FROM f JOIN {AVERAGE} y ON f.k = y.key",
    "two keys": """SELECT f.k, f.g, c FROM f JOIN (SELECT k, g, count(*) c, min(s) least FROM f GROUP BY g, k) y
        ON f.k = y.k AND f.g = y.g WHERE c > 1 AND least < f.s""",
    "two functions": "SELECT * FROM f JOIN (SELECT k key, min(v), max(v) - min(v) r FROM f GROUP BY k) ON f.k = key",
    "counts and sums": "SELECT c, w FROM f JOIN (SELECT k key, count(v) c, sum(i8) w FROM f GROUP BY k) ON f.k = key",
    "a further filter outside": f"SELECT f.v, a FROM f JOIN {AVERAGE} y ON f.k = y.key WHERE f.g = 3 AND f.s < 't5'",
    "the same filter": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f WHERE g < 4 GROUP BY k) ON f.k = key
        WHERE f.g < 4 AND f.v < a""",
    "a filter of keys inside": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f WHERE k > 5 GROUP BY k)
        ON f.k = key""",
    "over a join": """SELECT f.v, w, a FROM f JOIN d ON f.k = d.id JOIN
        (SELECT i.g key, avg(v) a FROM f i JOIN d j ON j.id = i.k GROUP BY i.g) ON key = f.g WHERE a > f.v""",
    "over a join, with a filter": """SELECT f.v, w, a FROM d, f, (SELECT i.g key, min(v) a FROM f i, d j
        WHERE j.id = i.k AND j.w = 2 GROUP BY i.g) WHERE key = f.g AND f.k = d.id AND d.w = 2""",
    "over an aggregate": """WITH t AS (SELECT k, g, sum(v) s FROM f GROUP BY k, g) SELECT * FROM t x
        WHERE s > (SELECT avg(g) FROM t y WHERE y.k = x.k)""",
    "over groups of joins in two orders": """SELECT x.k, x.s, a FROM (SELECT f.k, f.g, max(v) s FROM f, d, e
        WHERE f.k = d.id AND e.k = f.g GROUP BY f.k, f.g) x JOIN (SELECT k key, max(s) a FROM
        (SELECT f.k, f.g, max(v) s FROM e JOIN f ON f.g = e.k JOIN d ON d.id = f.k GROUP BY f.k, f.g) GROUP BY k)
        ON x.k = key""",
    "having": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f GROUP BY k HAVING count(*) > 12)
        ON f.k = key""",
    "computed above": """SELECT f.v, p, twice FROM f JOIN
        (SELECT key + 1 p, key, 2 * a twice FROM (SELECT k key, max(v) a FROM f GROUP BY k)) ON f.k = key""",
    "by text": "SELECT f.k, a FROM f JOIN (SELECT s key, max(v) a FROM f GROUP BY s) ON f.s = key WHERE f.v = a",
    "decimals": """SELECT f.k, m, m28 FROM f WHERE m < (SELECT avg(m) FROM f i WHERE i.k = f.k)
        AND m28 >= (SELECT sum(m28) / 9 FROM f i WHERE i.k = f.k)""",
    "three times itself": """SELECT x.v, a FROM f x JOIN f y ON x.k = y.g JOIN
        (SELECT k key, avg(v) a FROM f GROUP BY k) ON key = y.k WHERE x.v < a""",
    "with an outer join outside": f"""SELECT f.v, a, e.z FROM f JOIN {AVERAGE} y ON f.k = y.key
        LEFT JOIN e ON e.k = f.g WHERE f.v < a""",
    "below an outer join": f"""SELECT * FROM e LEFT JOIN (SELECT f.k, f.v FROM f JOIN {AVERAGE} y ON f.k = y.key
        WHERE f.v < a) x ON x.k = e.k""",
    "below an aggregate": f"SELECT g, count(*), sum(v) FROM f JOIN {AVERAGE} y ON f.k = y.key WHERE v < a GROUP BY g",
    "a tautology but for NULL": f"SELECT f.k, f.v, a FROM f JOIN {AVERAGE} y ON f.k = y.key WHERE f.v = f.v",
    "the same of the dimension": f"""SELECT f.k, f.v, a FROM f JOIN {AVERAGE} y ON f.k = y.key JOIN d ON d.id = f.k
        WHERE d.w = d.w""",
    "columns with other names": """SELECT x.k, x.v2, x.w, a FROM (SELECT k, v AS v2, v + 1 AS w FROM f) x
        JOIN (SELECT k key, max(v) a FROM (SELECT k, v, v + 1 AS w FROM f) GROUP BY k) y ON x.k = y.key""",
    "groups with other names": """SELECT x.k, x.g2, a FROM (SELECT k, g AS g2, sum(v) s FROM f GROUP BY k, g) x
        JOIN (SELECT k key, avg(i) a FROM (SELECT k, g AS i, sum(v) s FROM f GROUP BY k, g) GROUP BY k) ON x.k = key""",
    "by a chain of equalities": f"SELECT f.v FROM f JOIN d ON f.k = d.id JOIN {AVERAGE} y ON y.key = d.id WHERE v < a",
}
KEPT = {
    "another table": "SELECT f.v FROM f WHERE v > (SELECT avg(w) FROM d WHERE d.id = f.k)",
    "a further filter inside": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f WHERE g = 3 GROUP BY k)
        ON f.k = key""",
    "another filter": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f WHERE g < 4 GROUP BY k) ON f.k = key
        WHERE f.g < 5""",
    "a further table inside": """SELECT f.v, a FROM f JOIN (SELECT f.k key, avg(v) a FROM f JOIN d ON f.g = d.id
        GROUP BY f.k) ON f.k = key""",
    "NULL is a key": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM f GROUP BY k) ON f.k <=> key""",
    "no equality": f"SELECT f.v, a FROM f JOIN {AVERAGE} y ON f.k > y.key",
    "by another column": f"SELECT f.v, a FROM f JOIN {AVERAGE} y ON f.g = y.key",
    "one of two keys": "SELECT f.v, a FROM f JOIN (SELECT k key, g, avg(v) a FROM f GROUP BY k, g) y ON f.k = key",
    "a computed key": "SELECT f.v, a FROM f JOIN (SELECT k + 1 key, avg(v) a FROM f GROUP BY k + 1) ON f.k = key",
    "over groups of joins that differ": """SELECT x.k, x.s, a FROM (SELECT f.k, f.g, max(v) s FROM f, d, e
        WHERE f.k = d.id AND e.k = f.g GROUP BY f.k, f.g) x JOIN (SELECT k key, max(s) a FROM
        (SELECT f.k, f.g, max(v) s FROM e JOIN f ON f.g = e.k JOIN d ON d.id = f.g GROUP BY f.k, f.g) GROUP BY k)
        ON x.k = key""",
    "a key computed outside": f"SELECT f.v, a FROM f JOIN {AVERAGE} y ON f.k + 1 = y.key",
    "floating-point keys": "SELECT f.v, a FROM f JOIN (SELECT x key, avg(v) a FROM f GROUP BY x) ON f.x = key",
    "floating-point sums": "SELECT f.v, a FROM f JOIN (SELECT k key, sum(x) a FROM f GROUP BY k) ON f.k = key",
    "sums that may overflow": "SELECT f.v, a FROM f JOIN (SELECT k key, sum(b) a FROM f GROUP BY k) ON f.k = key",
    "wide decimals": "SELECT f.v, a FROM f JOIN (SELECT k key, sum(m29) a FROM f GROUP BY k) ON f.k = key",
    "distinct values": "SELECT f.v, a FROM f JOIN (SELECT k key, count(DISTINCT v) a FROM f GROUP BY k) ON f.k = key",
    "a filtered function": """SELECT f.v, a FROM f JOIN
        (SELECT k key, count(*) FILTER (WHERE v > 3) a FROM f GROUP BY k) ON f.k = key""",
    "a function of the order": "SELECT f.v FROM f JOIN (SELECT k key, first(v) a FROM f GROUP BY k) ON f.k = key",
    "rolled up": "SELECT f.v, a FROM f JOIN (SELECT k key, g, avg(v) a FROM f GROUP BY ROLLUP (k, g)) ON f.k = key",
    "the rows may be missing": f"SELECT y.a, f.v FROM {AVERAGE} y LEFT JOIN f ON f.k = y.key AND f.v > 3",
    "the group may be missing": f"SELECT y.a, f.v FROM f LEFT JOIN {AVERAGE} y ON f.k = y.key AND f.v < a",
    "a count of nothing": "SELECT k, v FROM f o WHERE 40 > (SELECT count(*) FROM f i WHERE i.k = o.k)",
    "only tested": f"SELECT f.v FROM f LEFT SEMI JOIN {AVERAGE} y ON f.k = y.key AND f.v < a",
    "some rows inside": """SELECT f.v, a FROM f JOIN (SELECT k key, avg(v) a FROM (SELECT * FROM f ORDER BY s, v, k
        LIMIT 50) GROUP BY k) ON f.k = key""",
}
#: The same rows, with joins in other orders.
SAME = [
    "(SELECT DISTINCT f.* FROM f JOIN d o ON f.k = o.id JOIN e ON e.k = f.g AND z > 0)",
    "(SELECT DISTINCT f.* FROM e JOIN f ON e.k = f.g JOIN d o ON o.id = f.k WHERE 0 < z)",
    "(SELECT DISTINCT f.* FROM d p, e, f WHERE f.g = e.k AND e.z > 0 AND p.id = f.k)",
]
#: A table that repeats rows of a partition: sums and counts would be too large.
REPEATED = """SELECT f.v, c FROM f JOIN e ON f.k = e.k JOIN (SELECT k key, {0} c FROM f GROUP BY k) ON f.k = key"""


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, tmp_path_factory.mktemp("windows"))
    yield session
    session.catalog.clearCache()


def windows(session: SparkSession, text: str, **options: object) -> int:
    """How many windows a query gets, after rows and schema were compared with plain Spark's."""
    return sum(WINDOW in note for note in checked(session.sql(text), **options).spared_joins)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("name", REPLACED)
def test_rows_are_read_once(facts: SparkSession, name: str, ansi: str) -> None:
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert windows(facts, REPLACED[name]) >= 1
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert windows(facts, KEPT[name]) == 0


@pytest.mark.parametrize("function", ["min(v)", "max(s)", "avg(i8)", "avg(m28)"])
def test_rows_may_be_repeated(facts: SparkSession, function: str) -> None:
    assert windows(facts, REPEATED.format(function)) == 1
    assert _below_the_window(facts, REPEATED.format(function)) == 2


@pytest.mark.parametrize("function", ["sum(v)", "count(*)", "count(v)", "sum(m)", "avg(v)", "avg(m)"])
def test_rows_are_counted_once(facts: SparkSession, function: str) -> None:
    assert windows(facts, REPEATED.format(function)) == 1
    assert _below_the_window(facts, REPEATED.format(function)) == 1


def test_averages_are_not_rounded_by_repetitions(facts: SparkSession) -> None:
    """Spark adds up these decimals as floating-point numbers, without an error only up to 2^53."""
    big = "(SELECT id % 200 k, CAST(99999999999 - 2 * (id % 7) AS decimal(11, 0)) w FROM range(40000))"
    many = "(SELECT if(id % 2 = 0, id % 30, 150 + id) k, id % 3 z FROM range(20000))"
    text = f"""WITH b AS {big} SELECT x.k, a, count(*) c FROM b x JOIN {many} e ON x.k = e.k
        JOIN (SELECT k key, avg(w) a FROM b GROUP BY k) ON x.k = key WHERE z = 1 GROUP BY x.k, a"""
    windows(facts, text)


def test_a_unique_key_repeats_nothing(facts: SparkSession) -> None:
    text = REPEATED.format("sum(v)").replace("e ON", "(SELECT DISTINCT k FROM e WHERE z > 1) e ON")
    assert windows(facts, text) == 1
    assert _below_the_window(facts, text) == 2


def _below_the_window(session: SparkSession, text: str) -> int:
    plan = session.sql(text).optimize_joins(strict=True)._jdf.queryExecution().optimizedPlan().toString()
    lines = plan.splitlines()
    top = next(i for i, line in enumerate(lines) if "Window [" in line)
    below = takewhile(lambda line: _depth(line) > _depth(lines[top]), lines[top + 1 :])
    return sum("Relation [" in line for line in below)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" :+-"))


def test_two_groups_of_one_table(facts: SparkSession) -> None:
    text = f"""SELECT f.v FROM f JOIN {AVERAGE} y ON f.k = y.key
        JOIN (SELECT g p, max(v) most FROM f GROUP BY g) z ON f.g = z.p WHERE f.v BETWEEN a AND most"""
    assert windows(facts, text) == 1  # then the rows are below the first window


def test_what_may_fail_is_left_alone(facts: SparkSession) -> None:
    facts.conf.set("spark.sql.ansi.enabled", "true")
    try:
        text = f"SELECT f.v FROM f JOIN {AVERAGE} y ON f.k = y.key WHERE f.v > 0 AND 12 DIV f.v > 3"
        assert windows(facts, text) == 0
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize(("keys", "found"), [(2, 0), (20_000, 1)])
def test_a_key_with_many_rows_is_left_to_the_aggregate(
    facts: SparkSession, tmp_path: Path, keys: int, found: int
) -> None:
    rows = facts.sql(f"SELECT cast(id % {keys} AS int) k, cast(id % 9 AS int) v FROM range(450000)")
    rows.write.parquet(str(tmp_path / "many"))
    facts.read.parquet(str(tmp_path / "many")).createOrReplaceTempView("many")
    text = "SELECT count(*) FROM many o WHERE v < (SELECT avg(v) FROM many i WHERE i.k = o.k) AND k < 3000"
    assert windows(facts, text) == found


@pytest.mark.parametrize("name", ["correlated by the dimension", "decimals", "another join"])
def test_in_an_enabled_session(facts: SparkSession, name: str) -> None:
    text = REPLACED.get(name) or f"SELECT f.v FROM f, {AVERAGE} y, d WHERE f.k = y.key AND f.v < a AND f.g = d.id"
    plain = facts.sql(text).collect()
    with enabled(facts, "") as report_of:
        fast = facts.sql(text).collect()
        report = report_of()
    assert sorted(map(repr, fast)) == sorted(map(repr, plain)) and report.error is None
    assert any(WINDOW in note for note in report.spared_joins)


def test_switched_off(facts: SparkSession) -> None:
    assert windows(facts, REPLACED["correlated"], rewrites_without="aggregate_to_window") == 0
    assert windows(facts, REPLACED["correlated"], strategy="heuristic") == 0


def test_a_cached_relation_is_read_from_the_cache(facts: SparkSession) -> None:
    facts.sql("SELECT k, v FROM f WHERE g > 1").createOrReplaceTempView("kept")
    facts.table("kept").cache()
    try:
        assert windows(facts, "SELECT v FROM kept o WHERE v > (SELECT avg(v) FROM kept i WHERE i.k = o.k)") == 0
    finally:
        facts.catalog.uncacheTable("kept")


def test_frames(facts: SparkSession) -> None:
    f = facts.table("f")
    means = f.groupBy("k").avg("v").withColumnRenamed("avg(v)", "mean")
    df = f.join(means, "k").where("v < mean").select("k", "v", "mean")
    assert any(WINDOW in note for note in checked(df).spared_joins)
    fast = df.optimize_joins(strict=True)
    assert fast.where(fast.mean > 3).count() == df.where(df.mean > 3).count()


@pytest.mark.ci
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_queries(facts: SparkSession, seed: int, ansi: str) -> None:
    draw = random.Random(f"{seed} {ansi}")
    found = 0
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for _ in range(14):
            found += windows(facts, _drawn(draw)) > 0
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")
    assert found >= 4


def _drawn(draw: random.Random) -> str:
    """A query that joins a table with groups of it, or of something like it."""
    key = draw.choice(["k", "k", "g", "s", "t", "q", "i8", "m"])
    more = draw.choice(["", "", "", "g", "q"]) if key not in ("g", "q") else ""
    function = draw.choice(
        "avg(v) min(v) max(s) sum(v) count(*) count(v) avg(m) sum(m28) max(m38) min(t) max(y) avg(x) sum(i16) max(q)"
        .split()
    )  # fmt: skip
    inside = draw.choice(["", "", "", "g < 4", "v > 1", f"{key} IS NOT NULL", "s LIKE 't%'", "g < 4 AND v IS NOT NULL"])
    outside = draw.choice([inside, inside, inside, "g < 5", "v IS NOT NULL", ""])
    outside = " AND ".join(filter(None, [outside, draw.choice(["", "", "w > 1", "n = 'n3'", "b.v > 3"])]))
    dimension = draw.choice(
        ["", "k = id", f"{key} = id" if key in "kg" else "g = id", f"{key} = ds" if key == "s" else ""]
    )
    if not dimension:
        outside = " AND ".join(p for p in outside.split(" AND ") if "w >" not in p and "n =" not in p)
    tables = ["f b", *(["d"] if dimension else [])]
    listed = f"{key} AS gk{', ' + more + ' AS gm' if more else ''}, {function} AS a, max({key}) AS z"
    having = draw.choice(["", "", " HAVING count(*) > 4"])
    where = f" WHERE {inside}" if inside else ""
    group = f"(SELECT {listed} FROM f i{where} GROUP BY {key}{', ' + more if more else ''}{having}) y"
    tables.insert(draw.randrange(len(tables) + 1), group)
    links = [draw.choice([f"b.{key} = gk", f"gk = b.{key}"]), *([f"b.{more} = gm"] if more else [])]
    links += [f"b.{dimension}"] if dimension else []
    if dimension == f"{key} = id" and draw.random() < 0.5:
        links[0] = "gk = id"
    if draw.random() < 0.3:
        links.append(draw.choice(["a IS NOT NULL", "b.v < b.i8", "z IS NOT NULL", "length(cast(a AS string)) > 1"]))
    outside = outside.replace("g <", "b.g <").replace("v IS", "b.v IS").replace("s LIKE", "b.s LIKE")
    outside = outside.replace("v > 1", "b.v > 1").replace(f"{key} IS NOT", f"b.{key} IS NOT").replace("b.b.", "b.")
    conditions = [*links, *([outside] if outside else [])]
    draw.shuffle(conditions)
    columns = draw.choice(["*", "b.v, a", f"a, b.{key}", "count(*), count(a)", "z, b.s"])
    text = f"SELECT {columns} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"
    if draw.random() < 0.3:
        return text.replace("f b", f"{draw.choice(SAME)} b").replace("f i", f"{draw.choice(SAME)} i")
    return text
