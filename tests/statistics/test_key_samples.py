"""Rows of joins of two large analysed tables whose filters depend on each other: samples by the same keys show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from benchmarks.subplans import groups_of, normal_plans
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.declared_keys import forget_declared
from pyjoinopt.estimation.sources.key_samples import KEY_ROWS, blob_kind
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Synopsis
from pyjoinopt.optimizer.group_synopses import synopses_of
from tests.support import tpc
from tests.support.compare import assert_same_rows
from tests.support.shop import optimised

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
pytestmark = pytest.mark.ci

#: The day of an order is spread over its number; a line is sent up to twenty days after its order.
DAY = "date_add(date'2020-01-01', cast({} * 7919 % 1000 as int))"
SENT = f"date_add({DAY}, cast(id % 20 as int))"
THIRD, SKEWED = "(id div 3)", "cast(power(id, 0.9) as bigint)"
TABLES = {
    "key_o": (200_000, [
        "id as o_id", "concat('order ', id) as o_code", f"{DAY.format('id')} as o_day", "id div 2 as o_customer",
        "id % 5 as o_kind",
    ]),
    "key_l": (600_000, [
        "cast(id div 3 as int) as l_order", "if(id % 10 < 3, null, id div 3) as l_nullable",
        "if(id % 2 = 0, id div 3, 10000000 + id) as l_missing", f"{SKEWED} as l_skewed",
        f"{SENT.format(THIRD)} as l_day", f"{SENT.format(SKEWED)} as l_skewed_day", "id % 7 as l_amount",
    ]),
    "key_t": (300_000, ["concat('order ', id div 3) as t_code", f"{SENT.format(THIRD)} as t_day"]),
    "key_c": (150_000, ["id as c_id", "id % 50 as c_age"]),
}  # fmt: skip
#: A tenth of all days.
SPRING = "BETWEEN date'2021-01-01' AND date'2021-04-10'"


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("keys")
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(folder / "store.sqlite"))
    for name, (rows, columns) in TABLES.items():
        session.range(rows).selectExpr(*columns).repartition(2).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    analyzed_tables.forget()
    pyjoinopt.analyze(session, list(TABLES), progress=False)
    yield session
    analyzed_tables.forget()


@pytest.fixture(autouse=True)
def nothing_declared() -> Iterator[None]:
    yield
    forget_declared()


def sampled(df: DataFrame, by_keys: bool = True) -> tuple[float, list[Synopsis]]:
    """The estimated rows of a query with one join group, and the samples of joins that the estimate uses."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes, patient = gateway.export.nodes, ReadDeadline(3_600_000)
        store = open_store(df.sparkSession.conf.get("spark.pyjoinopt.store") or "off")
        leaf = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes, store, patient)
        estimates = PlanEstimates(leaf, nodes, Samples(gateway.samples, leaf.relation, store, deadline=patient))
        (plan,) = normal_plans(gateway.export)
        estimates.prefetch_samples(plan)
        (group,) = groups_of(gateway.export, [plan], 500)
        statistics = [estimates(plan) for plan in group.graph.relations]
        synopses = synopses_of(group.graph, statistics, estimates) if by_keys else []
        sizes = GraphEstimates(group.graph, statistics, synopses=synopses)
        return sizes.rows((1 << len(statistics)) - 1), synopses


def thresholds(session: SparkSession, table: str) -> dict[str, int]:
    """The columns of an analysed table that have a sample by their values, each with its threshold."""
    df = session.table(table)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        leaves = [node for node in gateway.export.nodes if not node.children]
        store = open_store(session.conf.get("spark.pyjoinopt.store") or "off")
        ((_, known),) = LeafStatistics(gateway.statistics, leaves, "auto", store=store).known()
    details = {name: column.details.get("keyThreshold") for name, column in known.columns.items()}
    return {name: threshold for name, threshold in details.items() if threshold is not None}


@pytest.mark.ci
def test_the_columns_that_have_samples(analysed: SparkSession) -> None:
    """Columns that may have many values; the days and the kinds have few."""
    found = {table: set(thresholds(analysed, table)) for table in TABLES}
    assert found == {
        "key_o": {"o_id", "o_code", "o_customer"}, "key_l": {"l_order", "l_nullable", "l_missing", "l_skewed"},
        "key_t": {"t_code"}, "key_c": {"c_id"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "lines, column, key",
    [
        ("key_l", "l_order", "o_id"), ("key_l", "l_nullable", "o_id"), ("key_l", "l_missing", "o_id"),
        ("key_l", "l_skewed", "o_id"), ("key_t", "t_code", "o_code"),
    ],
)  # fmt: skip
def test_the_sample_is_the_join_over_some_keys(analysed: SparkSession, lines: str, column: str, key: str) -> None:
    """All rows of some keys, with all of their partners: as SQL counts them."""
    own = "l_amount < 3" if lines == "key_l" else "t_day > date'2021-01-01'"
    query = f"SELECT * FROM {lines} JOIN key_o ON {column} = {key} WHERE {own} AND o_kind <> 2"
    _, (synopsis,) = sampled(analysed.sql(query))
    (partner,) = synopsis.partners
    threshold = min(thresholds(analysed, lines)[column], thresholds(analysed, "key_o")[key])
    value = column if lines == "key_t" else f"cast({column} as bigint)"
    below = f"{column} IS NOT NULL AND xxhash64({value}) < {threshold}"
    row = analysed.sql(f"""SELECT count(*) AS rows, count(DISTINCT {column}) AS keys, count_if({own}) AS kept,
        count_if(o_kind <> 2) AS matches, count_if({own} AND o_kind <> 2) AS both
        FROM {lines} LEFT JOIN key_o ON {column} = {key} WHERE {below}""").first()
    assert row is not None and 64 < row.rows <= KEY_ROWS and not synopsis.complete
    assert (synopsis.rows, synopsis.kept.bit_count()) == (row.rows, row.kept)
    assert partner.matches.bit_count() == row.matches
    assert (partner.matches & synopsis.kept).bit_count() == row.both
    assert len(synopsis.starts or range(synopsis.rows)) == row.keys
    assert partner.clustered


@pytest.mark.parametrize(
    "query",
    [
        f"key_l JOIN key_o ON l_order = o_id WHERE o_day {SPRING} AND l_day {SPRING}",
        f"key_l JOIN key_o ON l_nullable = o_id WHERE o_day {SPRING} AND l_day {SPRING}",
        f"key_l JOIN key_o ON l_missing = o_id WHERE o_day {SPRING} AND l_day {SPRING}",
        f"key_l JOIN key_o ON l_skewed = o_id WHERE o_day {SPRING} AND l_skewed_day {SPRING}",
        f"key_t JOIN key_o ON t_code = o_code WHERE o_day {SPRING} AND t_day {SPRING}",
        f"key_l JOIN key_o ON l_order = o_id JOIN key_c ON o_customer = c_id "
        f"WHERE o_day {SPRING} AND l_day {SPRING} AND c_age BETWEEN 10 AND 24",
    ],
)  # fmt: skip
def test_filters_of_both_sides_that_depend_on_each_other(analysed: SparkSession, query: str) -> None:
    df = analysed.sql(f"SELECT * FROM {query}")
    truth = df.count()
    (found, _), (independent, _) = sampled(df), sampled(df, by_keys=False)
    assert truth / 1.3 < found < truth * 1.3
    assert independent < truth / 4


def test_filters_that_exclude_each_other(analysed: SparkSession) -> None:
    df = analysed.sql("""SELECT * FROM key_l JOIN key_o ON l_order = o_id
        WHERE o_day > date'2021-06-01' AND l_day < date'2021-06-01'""")
    (found, _), (independent, _) = sampled(df), sampled(df, by_keys=False)
    assert df.count() == 0
    assert independent > 100_000 and found < independent / 50


def test_a_filter_of_one_side_that_the_other_depends_on_not_at_all(analysed: SparkSession) -> None:
    df = analysed.sql("SELECT * FROM key_l JOIN key_o ON l_order = o_id WHERE o_kind = 3 AND l_amount = 2")
    assert df.count() / 1.3 < sampled(df)[0] < df.count() * 1.3


def test_tpch_orders_and_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Lines are shipped up to four months after their order; at scale 0.1."""
    folder, session = tpc.parquet_folder("tpch", 0.1), spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(tmp_path / "store.sqlite"))
    for name in ("orders", "lineitem"):
        (path,) = folder.glob(f"{name}*")
        session.read.parquet(str(path)).createOrReplaceTempView(name)
    used = {"orders": "o_orderkey o_orderdate o_orderstatus", "lineitem": "l_orderkey l_shipdate"}
    for name, columns in used.items():
        pyjoinopt.analyze(session, name, columns=columns.split(), progress=False)
    for condition in (
        "o_orderdate < date'1995-03-15' AND l_shipdate > date'1995-03-15'",
        "o_orderdate >= date'1995-01-01' AND o_orderdate < date'1995-02-01' "
        "AND l_shipdate >= date'1995-01-01' AND l_shipdate < date'1995-03-01'",
        "o_orderstatus = 'F' AND l_shipdate < date'1993-01-01'",
    ):
        df = session.sql(f"SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE {condition}")
        truth = df.count()
        (found, _), (independent, _) = sampled(df), sampled(df, by_keys=False)
        assert truth / 1.35 < found < truth * 1.35, condition
        assert max(truth / independent, independent / truth) > 1.9, condition


# -- when they are used --------------------------------------------------------------------------------------------

CORRELATED = f"SELECT * FROM key_l JOIN key_o ON l_order = o_id WHERE o_day {SPRING} AND l_day {SPRING}"


def test_another_process_reads_them_from_the_store(analysed: SparkSession) -> None:
    before = sampled(analysed.sql(CORRELATED))
    analyzed_tables.forget()
    bridge_for(analysed.range(1)).forgetSamples()
    assert sampled(analysed.sql(CORRELATED)) == before and before[1]


@pytest.mark.parametrize(
    "query",
    [
        # No filter on the orders: the model expects a partner of each line anyway.
        f"SELECT * FROM key_l JOIN key_o ON l_order = o_id WHERE l_day {SPRING}",
        # The column is no key of the other side.
        f"SELECT * FROM key_o JOIN key_l ON o_customer = l_order WHERE l_day {SPRING}",
        # Two columns are compared, of which neither alone shows the partners.
        f"SELECT * FROM key_l JOIN key_o ON l_order = o_id AND l_missing = o_customer WHERE o_day {SPRING}",
        f"SELECT * FROM key_l JOIN key_o ON l_order = o_id AND l_amount > o_kind WHERE o_day {SPRING}",
        # One that has no sample, and what is no column.
        f"SELECT * FROM key_l JOIN key_o ON l_amount = o_id WHERE o_day {SPRING}",
        f"SELECT * FROM key_l JOIN key_o ON l_order + 1 = o_id WHERE o_day {SPRING}",
        f"SELECT * FROM key_l LEFT JOIN (SELECT * FROM key_o WHERE o_day {SPRING}) ON l_order = o_id",
    ],
)  # fmt: skip
def test_joins_of_which_they_say_nothing(analysed: SparkSession, query: str) -> None:
    assert sampled(analysed.sql(query))[1] == []


def test_both_directions_of_a_join_of_keys(analysed: SparkSession) -> None:
    """Each order of half the numbers with the customer of the same number: both are keys, and it counts once."""
    df = analysed.sql("SELECT * FROM key_o JOIN key_c ON o_id = c_id WHERE o_kind = 3 AND c_age IN (3, 8, 13)")
    found, synopses = sampled(df)
    assert len(synopses) == 2 and df.count() / 1.4 < found < df.count() * 1.4


OF_COPY = CORRELATED.replace("key_o", "copy_o")


@pytest.fixture
def copy(analysed: SparkSession, tmp_path: Path) -> str:
    """The folder of an analysed copy of the orders, which is the view `copy_o`."""
    path = str(tmp_path / "o")
    analysed.table("key_o").write.parquet(path)
    analysed.read.parquet(path).createOrReplaceTempView("copy_o")
    pyjoinopt.analyze(analysed, "copy_o", progress=False)
    assert len(sampled(analysed.sql(OF_COPY))[1]) == 1
    return path


def test_samples_of_files_that_changed_are_not_used(analysed: SparkSession, copy: str) -> None:
    analysed.table("key_o").where("o_kind > 0").write.mode("overwrite").parquet(copy)
    analysed.read.parquet(copy).createOrReplaceTempView("copy_o")
    assert sampled(analysed.sql(OF_COPY))[1] == []


def test_forgotten_samples_are_not_used(analysed: SparkSession, copy: str) -> None:
    pyjoinopt.statistics.forget(analysed.table("copy_o"))
    assert sampled(analysed.sql(OF_COPY))[1] == []


def test_an_analysis_of_other_columns_keeps_those_of_before(analysed: SparkSession, copy: str) -> None:
    pyjoinopt.analyze(analysed, "copy_o", columns=["o_kind"], progress=False)
    assert len(sampled(analysed.sql(OF_COPY))[1]) == 1
    pyjoinopt.analyze(analysed, "copy_o", columns=["o_id"], progress=False)
    assert sampled(analysed.sql(OF_COPY))[1] == [], "the rows now lack the day that is filtered by"


@pytest.mark.ci
@pytest.mark.parametrize("content", [b"", b"\0\0\0\2", b"\0\0\0\1\0\4o_id"])
def test_stored_samples_that_cannot_be_read(analysed: SparkSession, copy: str, content: bytes) -> None:
    """They are of another version, or cut short: the query is estimated without them."""
    (key, *_) = reversed(analyzed_tables._here)
    files, store = Files(*key, 1, 1, 0.0), open_store(analysed.conf.get("spark.pyjoinopt.store") or "off")
    assert store is not None and store.blob(files, blob_kind("o_id"))
    store.put_blob(files, blob_kind("o_id"), content)
    bridge_for(analysed.range(1)).forgetSamples()
    assert sampled(analysed.sql(OF_COPY))[1] == []


def test_the_optimizer_uses_them(analysed: SparkSession) -> None:
    df = analysed.sql(f"""SELECT l_amount, c_age FROM key_c JOIN key_o ON o_customer = c_id JOIN key_l ON l_order = o_id
        WHERE o_day {SPRING} AND l_day {SPRING} AND c_age BETWEEN 10 AND 24""")
    fast, report = optimised(df)
    (group,) = report.groups
    assert df.count() / 1.3 < group.estimated_rows[-1].rows < df.count() * 1.3
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))


# -- what is collected ---------------------------------------------------------------------------------------------


def analyse(session: SparkSession, path: Path, rows: int, *columns: str, partitions: int = 2) -> dict[str, int]:
    session.range(rows).selectExpr(*columns).repartition(partitions).write.parquet(str(path))
    session.read.parquet(str(path)).createOrReplaceTempView(path.name)
    pyjoinopt.analyze(session, path.name, progress=False)
    return thresholds(session, path.name)


def smallest(session: SparkSession) -> int:
    """A number with a very small hash, which is in each sample."""
    row = session.sql("SELECT min_by(id, xxhash64(id)) AS id FROM range(1000000)").first()
    assert row is not None
    return int(row.id)


def test_a_value_with_very_many_rows_leaves_no_sample(analysed: SparkSession, tmp_path: Path) -> None:
    value = smallest(analysed)
    columns = [f"if(id % 2 = 0, {value}, id) as many", f"if(id % 40 = 0, {value}, id) as some", "id as one"]
    found = analyse(analysed, tmp_path / "heavy", 400_000, *columns)
    assert "many" not in found, "200,000 rows are more than a task may collect"
    assert "some" not in found, "10,000 rows, of which none is below a threshold that leaves 4,096"
    assert "one" in found


def test_values_with_many_rows_lower_the_threshold(analysed: SparkSession, tmp_path: Path) -> None:
    row = analysed.sql("SELECT id, xxhash64(id) AS hash FROM range(200000) ORDER BY hash LIMIT 1000").collect()[-1]
    found = analyse(analysed, tmp_path / "tail", 200_000, f"if(id % 40 = 0, {row.id}, id) as some", "id % 9 as other")
    assert found["some"] == row.hash


def test_many_tasks_collect_the_same_rows(analysed: SparkSession, tmp_path: Path) -> None:
    one = analyse(analysed, tmp_path / "one", 300_000, "id as k", partitions=1)
    many = analyse(analysed, tmp_path / "many", 300_000, "id as k", partitions=64)
    assert one == many


def test_small_tables_have_none(analysed: SparkSession, tmp_path: Path) -> None:
    assert analyse(analysed, tmp_path / "small", 100_000, "id as k") == {}


def test_at_most_four_columns_the_declared_ones_first(analysed: SparkSession, tmp_path: Path) -> None:
    pyjoinopt.statistics.declare("wide", foreign_keys={"F": "elsewhere.id"})
    columns = [f"id + {i} as n{i}" for i in range(5)] + ["concat('t', id) as f", "id % 3 as few"]
    assert set(analyse(analysed, tmp_path / "wide", 200_000, *columns)) == {"f", "n0", "n1", "n2"}


def test_the_uniform_sample_is_that_of_before(analysed: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """It does not depend on which rows are collected besides."""
    drawn = []
    for name, most in (("with", 4), ("without", 0)):
        monkeypatch.setattr("pyjoinopt.estimation.sources.key_samples.MOST_KEYS", most)
        found = analyse(analysed, tmp_path / name, 200_000, "id as k", "id % 100 as few", partitions=1)
        assert bool(found) == bool(most)
        (known,) = (known for key, known in list(analyzed_tables._here.items())[-1:])
        columns = {n: replace(c, details={k: v for k, v in c.details.items() if k != "keyThreshold"})
                   for n, c in known.columns.items()}  # fmt: skip
        drawn.append(columns)
    assert drawn[0] == drawn[1]
