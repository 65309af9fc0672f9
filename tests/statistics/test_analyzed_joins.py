"""What `analyze` knows of joins: most rows of a value, norms of frequencies, and joins of partly different values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.model.frequency_sketch import FrequencySketch, meeting_rows, read
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.registry import Column
from pyjoinopt.estimation.store.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")
pytestmark = pytest.mark.ci

ROWS = 60_000
#: Columns of a table of `ROWS` rows: keys, even and skewed references, text, dates, few values, NULLs.
COLUMNS = {
    "key": "id",
    "sparse": "id * 1000003",
    "shifted": f"id + {ROWS // 2}",
    "reference": "id div 4",
    "skewed": "cast(power(id, 0.6) as int)",
    "half": "if(id % 2 = 0, 0, id)",
    "few": "id % 25",
    "nullable": "if(id % 3 = 0, null, id div 2)",
    "small": "cast(id % 200 as smallint)",
    "text": "'n' || (id div 5)",
    "day": "date_add(date'2000-01-01', cast(id % 3000 as int))",
}


@pytest.fixture(scope="module")
def known(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Column]]:
    """The columns of the analysed table `t`, which is a view of the session."""
    folder = tmp_path_factory.mktemp("analysed")
    spark.range(ROWS).selectExpr(*(f"{text} as {name}" for name, text in COLUMNS.items())).repartition(3).write.parquet(
        str(folder / "t")
    )
    spark.conf.set("spark.pyjoinopt.store", str(folder / "store.sqlite"))
    spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
    analyzed_tables.forget()
    pyjoinopt.analyze(spark, "t", progress=False)
    (one,) = analyzed_tables._here.values()
    yield dict(one.columns)
    spark.conf.unset("spark.pyjoinopt.store")
    analyzed_tables.forget()


def frequencies(spark: SparkSession, column: str) -> list[int]:
    query = f"select count({column}) as n from t where {column} is not null group by {column}"
    return [row.n for row in spark.sql(query).collect()]


def rows_of_join(spark: SparkSession, left: str, right: str, condition: str = "true") -> int:
    """The rows of the table's join with itself; the 900 million of some columns are not made, but multiplied."""
    reads = "select {0} as k, few, small, count(*) as n from t group by {0}, few, small"
    query = (
        f"select coalesce(sum(a.n * b.n), 0) as n from ({reads.format(left)}) a join ({reads.format(right)}) b "
        f"on a.k = b.k where {condition}"
    )
    (row,) = spark.sql(query).collect()
    return int(row.n)


def sketch_of(column: Column) -> FrequencySketch:
    sketch = read(column.details["frequencies"])
    assert sketch is not None
    return sketch


@pytest.mark.parametrize("column", COLUMNS)
def test_norms_and_the_largest_frequency(spark: SparkSession, known: dict[str, Column], column: str) -> None:
    counts = frequencies(spark, column)
    sketch, norm = sketch_of(known[column]), math.sqrt(sum(n * n for n in counts))
    assert sketch.rows == sum(counts)
    assert norm <= sketch.norm_bound <= 1.5 * norm
    assert sketch.second_moment == pytest.approx(norm**2, rel=0.2)
    # The most frequent value shares its counter with others, or a few values share one that has more.
    assert max(counts) <= known[column].details["most"] <= max(counts) + 3 * max(max(counts), sum(counts) / 512)


@pytest.mark.parametrize(
    "left, right",
    [
        ("key", "shifted"), ("key", "reference"), ("reference", "shifted"), ("skewed", "skewed"), ("half", "half"),
        ("half", "few"), ("reference", "nullable"), ("small", "key"), ("sparse", "key"), ("text", "text"),
        ("day", "day"), ("skewed", "few"),
    ],
)  # fmt: skip
def test_estimates_of_joins(spark: SparkSession, known: dict[str, Column], left: str, right: str) -> None:
    """Within three standard errors of the truth, whatever the values have in common."""
    one, other = sketch_of(known[left]), sketch_of(known[right])
    rows, error = meeting_rows(one, other)
    joined = rows_of_join(spark, left, right)
    assert abs(rows - joined) <= 3 * error
    assert joined <= one.norm_bound * other.norm_bound


@pytest.mark.parametrize(
    "left, right, condition, rows",
    [
        # Half of the keys are on both sides; distinct counts and ranges take all of them for the same.
        ("key", "shifted", "true", ROWS / 2), ("shifted", "key", "a.few < 5", ROWS / 10),
        ("key", "shifted", "a.few < 5 and b.small < 100", ROWS / 20),
        # Every second row has the value 0.
        ("half", "half", "true", (ROWS / 2) ** 2 + ROWS / 2),
        # Keys and references, as distinct counts have them, too.
        ("key", "reference", "true", ROWS), ("reference", "reference", "true", ROWS * 4),
    ],
)  # fmt: skip
def test_the_optimizer_uses_them(
    spark: SparkSession, known: dict[str, Column], left: str, right: str, condition: str, rows: float
) -> None:
    df = spark.sql(f"select a.text, b.text from t a join t b on a.{left} = b.{right} where {condition}")
    (group,) = pyjoinopt.join_report(df, strict=True).pairs
    assert group.estimated_rows[-1].rows == pytest.approx(rows, rel=0.25)
    assert rows_of_join(spark, left, right, condition) == pytest.approx(rows, rel=0.01)


def test_a_filter_on_the_column_makes_the_sketch_useless(spark: SparkSession, known: dict[str, Column]) -> None:
    """Of 30,000 common values none is left, or all are; it is not known which, and no worse than without."""
    for low in (0, ROWS // 2):
        df = spark.sql(f"select a.few from t a join t b on a.key = b.shifted and a.key between {low} and {low + 5999}")
        (group,) = pyjoinopt.join_report(df, strict=True).pairs
        assert 0 <= group.estimated_rows[-1].rows <= 6600


def test_counts_of_values_bound_joins(spark: SparkSession, known: dict[str, Column]) -> None:
    """`few` has 2,400 rows of each value: 10 rows of another table meet 24,000 rows at most, which is proved."""
    df = spark.sql(
        "select b.few from (select * from t limit 10) a join t b on a.few = b.few join t c on b.key = c.key"
    )
    (group,) = pyjoinopt.join_report(df, strict=True).groups
    bounds = [join.bound for join in group.estimated_rows if join.bound is not None]
    assert 24_000 <= min(bounds) <= 26_000
    (row,) = spark.sql("select max(n) as n from (select count(*) as n from t group by few)").collect()
    assert row.n * 10 <= min(bounds)


def test_bounds_can_be_left_out(spark: SparkSession, known: dict[str, Column]) -> None:
    df = spark.table("t").where("few = 3")
    for without, columns in (("", set(COLUMNS)), ("bounds", set())):
        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            nodes = gateway.export.nodes
            (leaf,) = (node for node in nodes if not node.children)
            store = open_store(spark.conf.get("spark.pyjoinopt.store") or "off")
            statistics = LeafStatistics(gateway.statistics, [leaf], "auto", (), store, without={without})(leaf)
            assert {a.name for a in leaf.output if a.bit in statistics.frequency_bounds} == columns
            assert len(statistics.max_rows_per_value) == len(COLUMNS), "these are proved"


def test_at_most_sixteen_columns_have_sketches(spark: SparkSession, tmp_path: Path) -> None:
    columns = [f"'t' || id as text{i}" for i in range(10)] + [f"id + {i} as n{i}" for i in range(12)]
    spark.range(100).selectExpr(*columns, "double(id) as x", "id = 3 as flag").write.parquet(str(tmp_path / "wide"))
    analyzed_tables.forget()
    spark.read.parquet(str(tmp_path / "wide")).createOrReplaceTempView("wide")
    pyjoinopt.analyze(spark, "wide", progress=False)
    (one,) = analyzed_tables._here.values()
    sketched = [name for name, column in one.columns.items() if "frequencies" in column.details]
    assert sketched == [f"text{i}" for i in range(4)] + [f"n{i}" for i in range(12)], "whole numbers first"
