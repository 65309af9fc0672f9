"""A common table expression gets the filters that all of its readers have, and no other."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.filter_common_tables import filter_common_tables
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from tests.support.compare import assert_can_be_combined, assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "sold": """select cast(id % 23 as int) c, cast(id % 7 as int) d, cast(id % 5 as int) p,
        if(id % 6 = 0, null, cast(id % 9 as int)) v from range(300)""",
    "days": "select cast(id as int) d, if(id = 6, null, cast(id % 4 as int)) y from range(7)",
    "people": "select cast(id as int) c, concat('n', id % 5) n from range(20)",
}
#: One row for each customer and year, of two kinds.
TOTAL = """WITH total AS (
    SELECT n, y, sum(v) s, 'a' kind FROM people JOIN sold USING (c) JOIN days USING (d) GROUP BY n, y
    UNION ALL SELECT n, y, count(p), 'b' FROM people JOIN sold USING (c) JOIN days USING (d) GROUP BY n, y) """
#: What follows the definition -> the columns by which it is filtered.
FILTERED = {
    "two": ("SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1 AND b.y = 2", "y"),
    "a constant, too": (
        "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1 AND b.y = 2 AND a.kind = 'a' AND b.kind = 'b'",
        "y",
    ),
    "three": ("SELECT a.s, b.s FROM total a, total b, total x WHERE a.y = 1 AND b.y > 2 AND x.y IN (0, 1)", "y"),
    "renamed": (
        "SELECT * FROM (SELECT y AS z, s FROM total) a JOIN total b ON a.s = b.s WHERE a.z = 1 AND b.y IS NULL", "y",
    ),
    "in a subquery": ("SELECT * FROM total WHERE y = 1 AND s > (SELECT min(s) FROM total WHERE y = 2)", "y"),
    "in IN": ("SELECT * FROM total WHERE y = 1 AND s IN (SELECT s FROM total WHERE y = 3)", "y"),
    "optional": ("SELECT * FROM total a LEFT JOIN total b ON a.n = b.n AND b.y = 2 WHERE a.y = 1", "y"),
    "a union": ("SELECT n FROM total WHERE y = 1 UNION ALL SELECT n FROM total WHERE y <=> NULL", "y"),
    "alike": ("SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1 AND b.y = 1", "y"),
    "one of two columns": ("SELECT * FROM total a JOIN total b ON a.y = b.y WHERE a.n = 'n1' AND b.n > a.kind"
        " AND b.n <> 'n2' AND b.s = 3", "n"),
}  # fmt: skip
KEPT = {
    "one reads all": "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1",
    "one in a subquery reads all": "SELECT * FROM total WHERE y = 1 AND s > (SELECT avg(s) FROM total)",
    "one in IN reads all": "SELECT * FROM total WHERE y = 1 AND s IN (SELECT s FROM total)",
    "a limit first": "SELECT * FROM total a, (SELECT * FROM total ORDER BY n, y, kind LIMIT 3) b"
    " WHERE a.y = 1 AND b.y = 2",
    "other columns": "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1 AND b.s = 2",
    "columns together": "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = a.s AND b.y = b.s",
    "at random": "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y + rand() < 9 AND b.y + rand() < 9",
    "may fail": "SELECT * FROM total a JOIN total b ON a.n = b.n WHERE 6 / a.y = 2 AND 6 / b.y = 3",
    "grouped first": "SELECT * FROM total a JOIN (SELECT n, max(y) y FROM total GROUP BY n) b USING (n) WHERE a.y = 1"
    " AND b.y = 2",
    "preserved": "SELECT * FROM total a LEFT JOIN total b ON a.n = b.n AND a.y = 1 AND b.y = 2",
    "read once": "SELECT * FROM total JOIN people USING (n) WHERE y = 1",
}


@pytest.fixture(scope="module")
def sales(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, text in TABLES.items():
        session.sql(text).createOrReplaceTempView(name)
    return session


def filtered_by(df: DataFrame) -> str | None:
    """The columns by which the definition `total` is filtered; None if it is left as it is."""
    export = decode(bridge_for(df).export(df._jdf, "{}"))
    bridge_for(df).release(export.handle)
    context = RewriteContext(export.filters_null, ColumnFactory(len(export.attributes)))
    before = normalise(export.root, context, frozenset({"filter_common_tables", "pivot_self_join"})).plan
    after = filter_common_tables(before)
    if after is before:
        return None
    one, other = map(definition, (before, after))
    assert other.kind == "Filter" and other.children[0] is one
    return " ".join(sorted(a.name for a in one.output if a.mask & other.references))


def definition(plan: LogicalPlan) -> LogicalPlan:
    (found,) = (node.children[0] for node in post_order(plan) if node.kind == "CTERelationDef")
    return found


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.ci)])
@pytest.mark.parametrize("text", [text for text, _ in FILTERED.values()] + list(KEPT.values()))
def test_same_rows(sales: SparkSession, text: str, ansi: str) -> None:
    if "rand" in text or ("6 /" in text and ansi == "true"):
        text = text.replace("rand()", "v").replace("6 / a.y", "a.y").replace("6 / b.y", "b.y").replace(".y + v", ".y")
    sales.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = sales.sql(TOTAL + text)
        fast = df.optimize_joins(strict=True, rewrites_without="pivot_self_join")
        assert_same_schema(df, fast)
        assert_same_rows(df, fast, label=("plain Spark", "optimised"))
        assert_can_be_combined(df, fast)
    finally:
        sales.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize(("text", "columns"), FILTERED.values(), ids=list(FILTERED))
def test_what_all_readers_have(sales: SparkSession, text: str, columns: str) -> None:
    assert filtered_by(sales.sql(TOTAL + text)) == columns


@pytest.mark.parametrize("text", KEPT.values(), ids=list(KEPT))
def test_near_misses(sales: SparkSession, text: str) -> None:
    sales.conf.set("spark.sql.ansi.enabled", "true")
    try:
        assert filtered_by(sales.sql(TOTAL + text)) is None
    finally:
        sales.conf.unset("spark.sql.ansi.enabled")


def test_a_filter_decides_the_order_inside(sales: SparkSession, tmp_path: Path) -> None:
    """The filtered days are joined first, as if each reader's definition were written out."""
    session = sales.newSession()
    texts = {
        "sold": "select id % 30000 c, id % 2000 d, id % 9 v from range(40000)",
        "days": "select id d, id % 200 y from range(2000)",
        "people": "select id c, concat('n', id) n from range(30000)",
    }
    for name, text in texts.items():
        session.sql(text).write.parquet(str(tmp_path / name))
        session.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    df = session.sql("""WITH total AS (SELECT n, y, sum(v) s FROM people, sold, days
        WHERE people.c = sold.c AND sold.d = days.d GROUP BY n, y)
        SELECT * FROM total a JOIN total b ON a.n = b.n WHERE a.y = 1 AND b.y = 2""")

    def inside(without: str) -> str:
        report = df.optimize_joins(strict=True, rewrites_without=without)._pyjoinopt_report
        (order,) = (g.order_after for g in report.groups if len(g.relations) == 3)
        return order

    assert any(pair in inside("pivot_self_join") for pair in ("(sold ⋈ days)", "(days ⋈ sold)"))
    assert not any(
        pair in inside("pivot_self_join,filter_common_tables") for pair in ("(sold ⋈ days)", "(days ⋈ sold)")
    )


def draw(rng: random.Random) -> str:
    """Two to four readers, most of them with filters."""
    names = "abcd"[: rng.randint(2, 4)]
    filters = (
        "{0}.y = {1}", "{0}.y IN ({1}, 2)", "{0}.y IS NULL", "{0}.n < 'n{1}'", "{0}.kind = 'a'", "{0}.s > {1}",
        "({0}.y = {1} OR {0}.n = 'n1')", "NOT {0}.y = {1}", "coalesce({0}.y, 9) > {1}",
    )  # fmt: skip
    conditions = [
        rng.choice(filters).format(name, rng.randint(0, 3))
        for name in names
        for _ in range(rng.choice((0, 2, 2, 3, 4)))
    ]
    source = f"total {names[0]}"
    for name in names[1:]:
        kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        of_other = [c for c in conditions if f"{name}." in c]
        on = [f"{names[0]}.n = {name}.n", *(c for c in of_other if kind != "JOIN" or rng.random() < 0.3)]
        conditions = [
            c for c in conditions if c not in on and not ("SEMI" in kind or "ANTI" in kind) or c not in of_other
        ]
        source += f" {kind} total {name} ON {' AND '.join(on)}"
    if rng.random() < 0.3:
        conditions.append(f"{names[0]}.s > (SELECT min(s) FROM total WHERE y = {rng.randint(0, 3)})")
    return f"{TOTAL} SELECT {names[0]}.* FROM {source} WHERE {' AND '.join(conditions) or 'true'}"


@pytest.mark.parametrize("seed", [11, *(pytest.param(seed, marks=pytest.mark.ci) for seed in range(12, 16))])
def test_at_random(sales: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    changed = 0
    for _ in range(8):
        text = draw(rng)
        df = sales.sql(text)
        changed += filtered_by(df) is not None
        assert_same_rows(
            df, df.optimize_joins(strict=True, rewrites_without="pivot_self_join"), label=(text, "optimised")
        )
    assert changed >= 1
