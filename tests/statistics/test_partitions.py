"""Filters on partition columns select files before any is opened; row counts are those of the remaining partitions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.partition_pruning import partition_filters
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Relation
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Attribute, call, literal, reference
from pyjoinopt.plan.nodes import Filter, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

#: Partition day = d, of 20, has 10 * (d + 1) rows; zone is null for day 19.
ROWS = """SELECT n, n % 7 AS seven, 'v' || (n % 3) AS text, d AS day, IF(d = 19, NULL, 'z' || (d % 4)) AS zone
    FROM (SELECT explode(sequence(0, 10 * (id + 1) - 1)) AS n, CAST(id AS INT) AS d FROM range(20))"""


def of(days: range) -> int:
    return sum(10 * (day + 1) for day in days)


@pytest.fixture(autouse=True)
def nothing_analysed() -> None:
    analyzed_tables.forget()


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "events"
    spark.sql(ROWS).repartition(1).write.partitionBy("day", "zone").parquet(str(path))
    return path


def estimate(df: DataFrame, store: Store | None = None, source: str = "auto") -> tuple[RelationStatistics, Relation]:
    """Of the whole plan, and how its only leaf was described."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        plan, nodes = normalise(gateway.export.root).plan, gateway.export.nodes
        leaves = [n for n in nodes if not n.children]
        patient = ReadDeadline(60_000, thorough=True)
        known = LeafStatistics(gateway.statistics, leaves, source, nodes, store, patient)
        known.use_partition_filters(post_order(plan))
        samples = Samples(gateway.samples, known.relation, store, deadline=patient)
        estimates = PlanEstimates(known, nodes, samples, known.applied)
        estimates.prefetch_samples(plan)
        relation = known.relation(leaves[0])
        assert relation is not None
        return estimates(plan), relation


@pytest.mark.parametrize(
    ("condition", "rows", "files"),
    [
        ("day = 3", 40, 1),
        ("day > 16", of(range(17, 20)), 3),
        ("day in (1, 2, 40)", of(range(1, 3)), 2),
        ("zone like 'z1%' and day < 10", 20 + 60 + 100, 3),
        ("zone is null", 200, 1),
        ("day % 5 = 0 or zone = 'z3'", sum(10 * (d + 1) for d in range(19) if d % 5 == 0 or d % 4 == 3), 7),
        ("day between 4 and 5 and year(date_add(date'2020-01-01', day)) = 2020", of(range(4, 6)), 2),
        ("day = 77", 0, 0),
    ],
)
def test_rows_are_those_of_the_partitions_that_are_left(
    spark: SparkSession, folder: Path, condition: str, rows: int, files: int
) -> None:
    known, relation = estimate(spark.read.parquet(str(folder)).where(condition))
    assert relation.files is not None
    assert (known.rows, relation.files.count, known.source) == (rows, files, "footers")
    assert known.exact and known.upper_bound == rows


def test_distinct_counts_are_those_of_the_paths(spark: SparkSession, folder: Path) -> None:
    df = spark.read.parquet(str(folder))
    bits = {name: i for i, name in enumerate(df.columns)}
    whole, _ = estimate(df.where("n + day >= 0"))
    some, _ = estimate(df.where("day between 8 and 11"))
    assert [s.column(bits["day"]).ndv for s in (whole, some)] == [20, 4]
    assert (some.column(bits["day"]).min, some.column(bits["day"]).max) == (8, 11)


def test_other_filters_are_counted_in_what_is_left(spark: SparkSession, folder: Path) -> None:
    known, relation = estimate(spark.read.parquet(str(folder)).where("day >= 10 and text like '%1'"))
    assert relation.files is not None and relation.files.count == 10
    assert known.rows == pytest.approx(of(range(10, 20)) / 3, rel=0.05)
    assert known.source == "footers, sample"


def test_files_of_other_partitions_are_not_opened(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "events"
    shutil.copytree(folder, copy)
    for file in copy.glob("day=1[0-9]/**/*.parquet"):
        file.write_bytes(b"no parquet at all")
    known, _ = estimate(spark.read.parquet(str(copy / "day=0" / "..")).where("day < 10"))
    assert known.rows == of(range(10)) and known.exact


def test_a_table_of_the_catalog(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TABLE parted (n BIGINT, seven BIGINT, text STRING, day INT, zone STRING) USING parquet "
              f"PARTITIONED BY (day, zone) LOCATION '{folder}'")  # fmt: skip
    try:
        spark.sql("MSCK REPAIR TABLE parted")
        known, relation = estimate(spark.table("parted").where("day > 16"))
        assert relation.files is not None and relation.files.count == 3
        assert known.rows == of(range(17, 20)) and known.exact
        # Counts that ANALYZE left are of all partitions: there the filter is a matter of arithmetic.
        spark.sql("ANALYZE TABLE parted COMPUTE STATISTICS FOR ALL COLUMNS")
        counted, _ = estimate(spark.table("parted").where("day > 16"))
        assert counted.source == "catalog" and counted.rows == pytest.approx(of(range(20)) * 3 / 20, rel=0.1)
    finally:
        spark.sql("DROP TABLE parted")


def test_text_files(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(ROWS).repartition(1).write.partitionBy("day").csv(str(tmp_path / "lines"))
    df = spark.read.csv(str(tmp_path / "lines"))
    known, _ = estimate(df.where("day >= 10"))
    assert known.source == "size / row width" and known.rows == pytest.approx(of(range(10, 20)), rel=0.05)


def test_one_relation_under_two_filters(spark: SparkSession, folder: Path) -> None:
    df = spark.read.parquet(str(folder))
    known, _ = estimate(df.where("day = 1").unionAll(df.where("day > 16")))
    assert known.rows == 20 + of(range(17, 20)), "Spark makes two relations of it"
    day = Attribute(0, 0, "day", "int")
    leaf = LogicalPlan("LogicalRelation", (), (day,), number=0, info={"rel": {"partitionCols": [0]}})
    one, two = (Filter(call("EqualTo", reference(day), literal(n, "int")), leaf) for n in (1, 2))
    assert partition_filters([leaf, one, two]) == {} != partition_filters([leaf, one])


def test_each_choice_of_partitions_is_remembered(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    store, df = Store(tmp_path / "store.sqlite"), spark.read.parquet(str(folder))
    for condition, rows in (("day = 3", 40), ("day < 2", 30), ("day = 3", 40)):
        assert estimate(df.where(condition), store)[0].rows == rows


def test_what_was_analysed_is_of_the_whole(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    df = spark.read.parquet(str(folder))
    pyjoinopt.analyze(spark, df.where("day >= 0 and n >= 0"), store=str(path), progress=False)
    known, relation = estimate(df.where("day > 16"), Store(path))
    assert relation.partitions == () and known.source.startswith("analyze")
    assert known.rows == pytest.approx(of(range(17, 20)), rel=0.2)


def test_it_is_shown(spark: SparkSession, folder: Path) -> None:
    df = spark.read.parquet(str(folder))
    shown = pyjoinopt.statistics.show(df.where("day = 3"), store="off")
    assert list(shown["rows"]) == [40]


def test_joins_are_ordered_by_what_is_left(spark: SparkSession, folder: Path) -> None:
    df = spark.read.parquet(str(folder))
    df.createOrReplaceTempView("events")
    joined = spark.sql("SELECT 1 FROM events a, events b, events c WHERE a.n = b.n AND b.n = c.n AND c.day = 0")
    (group,) = pyjoinopt.join_report(joined, store="off").groups
    assert [relation.rows for relation in group.relations] == [of(range(20)), of(range(20)), 10]
    assert group.order_after != group.order_before
