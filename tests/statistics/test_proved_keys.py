"""Keys of files that are proved by reading columns: columns that are keys, that are not, and that must not be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import KeyProofs, Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import BLOB, ProvedKeys
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

ROWS = 20_000
COLUMNS = [
    "id", "id % 10000 as twice", "if(id = 7, null, id) as one_null", "if(id < 2, null, id) as two_nulls",
    "cast(id as string) as text", "cast(id as decimal(20, 2)) as money", "id div 100 as high", "id % 100 as low",
    "id % 99 as lower", "double(id) as x", "id * 1000003 as sparse", "date_add(date'2000-01-01', int(id)) as day",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    rows = spark.range(ROWS).selectExpr(*COLUMNS)
    rows.repartition(3).write.parquet(str(folder / "parquet"))
    rows.repartition(2).write.orc(str(folder / "orc"))
    rows.write.csv(str(folder / "csv"), header=True)
    rows.repartition(2).withColumnRenamed("low", "part").write.partitionBy("part").parquet(str(folder / "parts"))
    return folder


@pytest.fixture(autouse=True)
def forgetting(spark: SparkSession) -> None:
    bridge_for(spark.range(1)).forgetSamples()


class Spy:
    """Forwards requests to the JVM, and records them."""

    def __init__(self, gateway: Py4jGateway, **limits: int) -> None:
        self._gateway, self._limits = gateway, limits
        self.requested: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        self.read = 0

    def __call__(self, relations: list[dict[str, Any]], **request: Any) -> KeyProofs:
        self.requested += relations
        proofs = self._gateway.keys(relations, **{"deadlineMs": 20_000, **self._limits, **request})
        self.reasons += [reason for sets in proofs.proofs for reason in sets if isinstance(reason, str)]
        self.read = proofs.read
        return proofs


def keys_of(df: DataFrame, store: Store | None = None, **limits: int) -> tuple[set[str], Spy]:
    """The proved keys of a query's leaves, as column names, and the recorded requests."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = list(post_order(normalise(gateway.export.root).plan))
        leaves = [node for node in nodes if not node.children]
        known = LeafStatistics(gateway.statistics, leaves, "auto", nodes, store)
        known.use_partition_filters(nodes)
        spy = Spy(gateway, **limits)
        proved = ProvedKeys(known, known.relation, spy, store)
        proved.prove(nodes)
        found = set()
        for leaf in leaves:
            for key in proved(leaf).keys - known(leaf).keys:
                found.add(",".join(sorted(a.name for a in leaf.output if a.mask & key)))
        return found, spy


def joined(spark: SparkSession, path: Path, *columns: str) -> DataFrame:
    """A table joined to local rows by some columns."""
    pairs = [(f"v{i}", column) for i, column in enumerate(columns)]
    rows = spark.read.format("orc" if path.name == "orc" else "parquet").load(str(path))
    local = rows.limit(1).selectExpr(*(f"{column} as {v}" for v, column in pairs)).dropDuplicates()
    condition = " and ".join(f"{column} = {v}" for v, column in pairs)
    rows.createOrReplaceTempView("keyed")
    local.createOrReplaceTempView("others")
    return spark.sql(f"select * from keyed join others on {condition}")


@pytest.mark.parametrize(
    "columns, key",
    [
        (["id"], True), (["twice"], False), (["one_null"], True), (["two_nulls"], False), (["text"], True),
        (["money"], True), (["high", "low"], True), (["high", "lower"], False), (["x"], False), (["sparse"], True),
        (["day"], True), (["text", "low"], True),
    ],
)  # fmt: skip
def test_what_is_a_key(spark: SparkSession, folder: Path, columns: list[str], key: bool) -> None:
    found, _ = keys_of(joined(spark, folder / "parquet", *columns))
    # Of several columns the one that may be a key is tried alone.
    expected = {"text"} if "text" in columns else {",".join(sorted(columns))}
    assert found == (expected if key else set())


def test_keys_of_orc_files(spark: SparkSession, folder: Path) -> None:
    for columns, key in ((["id"], {"id"}), (["twice"], set()), (["high", "low"], {"high,low"})):
        assert keys_of(joined(spark, folder / "orc", *columns))[0] == key


def test_partitions_and_text_files(spark: SparkSession, folder: Path) -> None:
    assert keys_of(joined(spark, folder / "parts", "high", "part"))[0] == {"high,part"}
    rows = spark.read.csv(str(folder / "csv"), header=True, inferSchema=True)
    assert keys_of(rows.join(rows.limit(1).selectExpr("id as v"), rows.id == 1))[0] == set()
    assert keys_of(rows.alias("a").join(rows.alias("b"), "id"))[0] == set()


def test_only_some_partitions_are_of_other_files(spark: SparkSession, folder: Path) -> None:
    """Within one partition `high` is a key; in the whole table it is none, and what was proved is not mixed up."""
    table = spark.read.parquet(str(folder / "parts"))
    others = spark.read.parquet(str(folder / "parquet")).select("id")
    one = table.where("part = 3").join(others, table.high == others.id)
    assert keys_of(one)[0] == {"high", "id"}
    assert keys_of(table.join(others, table.high == others.id))[0] == {"id"}


def test_what_cannot_be_a_key_is_not_read(spark: SparkSession, folder: Path) -> None:
    _, spy = keys_of(joined(spark, folder / "parquet", "low"))
    assert spy.requested == [], "a hundred values between 0 and 99 in 20,000 rows"


@pytest.mark.parametrize("limit", ["mostRows", "mostParts", "mostBytes"])
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_table_beyond_the_bounds_is_not_read(spark: SparkSession, folder: Path, format: str, limit: str) -> None:
    """20,000 rows, and a row group or stripe in each of three or two files; a column of them has some bytes."""
    df = joined(spark, folder / format, "id")
    parts = 3 if format == "parquet" else 2
    least = {"mostRows": ROWS, "mostParts": parts, "mostBytes": 1 << 20}[limit]
    below = {"mostRows": ROWS - 1, "mostParts": parts - 1, "mostBytes": 100}[limit]
    found, spy = keys_of(df, **{limit: below})
    assert found == set() and len(set(spy.reasons)) == 1
    bridge_for(df).forgetSamples()
    assert keys_of(df, **{limit: least})[0] == {"id"}


def test_a_query_has_a_budget_of_bytes(spark: SparkSession, folder: Path) -> None:
    """The columns of one proof fit; the budget of a query that is spent is no reason for the next query."""
    first, second = (joined(spark.newSession(), folder / "parquet", column) for column in ("id", "sparse"))
    assert keys_of(first, mostOfQuery=1 << 20)[0] == {"id"}
    found, spy = keys_of(second, mostOfQuery=1000)
    assert found == set() and set(spy.reasons) == {
        "the 0 MiB that a query may read in the background are not enough (spark.pyjoinopt.backgroundMb)"
    }
    assert spy.read == 0, "nothing is read that would exceed it"
    assert keys_of(second, mostOfQuery=1 << 20)[0] == {"sparse"}, "a reason is not remembered"


def test_a_session_has_a_budget_of_bytes(spark: SparkSession, folder: Path) -> None:
    session = spark.newSession()
    found, spy = keys_of(joined(session, folder / "parquet", "id"), mostOfSession=1 << 20)
    spent = spy.read
    assert found == {"id"} and 10_000 < spent < 1 << 20
    found, spy = keys_of(joined(session, folder / "parquet", "sparse"), mostOfSession=spent + 1000)
    assert found == set() and "that a session may read" in spy.reasons[0] and spy.read == spent
    found, spy = keys_of(joined(session, folder / "parquet", "id"), mostOfSession=spent + 1000)
    assert found == {"id"} and spy.read == spent, "what is proved needs no more bytes"
    other = joined(spark.newSession(), folder / "parquet", "sparse")
    found, spy = keys_of(other, mostOfSession=1 << 20)
    assert found == {"sparse"} and 0 < spy.read < 1 << 20, "another session has a budget of its own"


def test_a_proof_ends_where_the_budget_ends(spark: SparkSession, folder: Path) -> None:
    """By the footers the column of ORC files fits, but more bytes are read than the budget has."""
    found, spy = keys_of(joined(spark.newSession(), folder / "orc", "sparse"))
    assert found == {"sparse"}
    bridge_for(spark.range(1)).forgetSamples()
    found, ended = keys_of(joined(spark.newSession(), folder / "orc", "sparse"), mostOfQuery=spy.read - 1)
    assert found == set() and "that a query may read" in ended.reasons[0] and 0 < ended.read <= spy.read


def test_the_report_has_reasons_and_bytes(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = spark.newSession()
    session.read.parquet(str(folder / "parquet")).createOrReplaceTempView("t")
    wide = session.range(150_000).selectExpr("id", "uuid() || uuid() as code").coalesce(1)
    wide.write.parquet(str(tmp_path / "wide"))
    session.read.parquet(str(tmp_path / "wide")).createOrReplaceTempView("wide")
    df = session.sql("select * from t a join t b on a.id = b.id join wide on wide.code = b.text")
    report = pyjoinopt.join_report(df, statistics="full", background_mb=1, store=str(tmp_path / "store.sqlite"))
    assert 0 < report.background_bytes < 1 << 20
    (note,) = [note for note in report.notes if "not proved" in note]
    assert "(code) of wide" in note and note.endswith("are not enough (spark.pyjoinopt.backgroundMb)")
    again = pyjoinopt.join_report(df, statistics="full", store=str(tmp_path / "store.sqlite"))
    assert again.background_bytes > 2 << 20 and not any("not proved" in note for note in again.notes)


def test_a_declared_key_needs_no_proof(spark: SparkSession, folder: Path) -> None:
    """Of a table of any size, here of one that is not read."""
    df = joined(spark, folder / "parquet", "sparse")
    assert keys_of(df, mostRows=1)[0] == set()
    pyjoinopt.statistics.declare("parquet", key="sparse")
    try:
        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            nodes = list(post_order(normalise(gateway.export.root).plan))
            leaves = [node for node in nodes if not node.children]
            known = LeafStatistics(gateway.statistics, leaves, "auto", nodes)
            spy = Spy(gateway, mostRows=1)
            proved = ProvedKeys(known, known.relation, spy)
            proved.prove(nodes)
            table = next(leaf for leaf in leaves if len(leaf.output) > 2)
            assert proved(table).is_unique(next(a.mask for a in table.output if a.name == "sparse"))
            assert spy.requested == []
    finally:
        pyjoinopt.statistics.forget_declared()


def test_remembered_for_these_very_files(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "statistics.sqlite")
    path = tmp_path / "table"
    spark.range(100).selectExpr("id", "id % 50 as fifty").write.parquet(str(path))
    rows = spark.read.parquet(str(path))
    df = rows.alias("a").join(rows.alias("b"), "id")
    found, first = keys_of(df, store)
    assert found == {"id"} and first.requested
    bridge_for(df).forgetSamples()
    found, second = keys_of(df, store)
    assert found == {"id"} and second.requested == []
    spark.range(5).selectExpr("id", "id % 50 as fifty").write.mode("append").parquet(str(path))
    rows = spark.read.parquet(str(path))
    found, third = keys_of(rows.alias("a").join(rows.alias("b"), "id"), store)
    assert found == set() and third.requested, "five values come twice now"


def test_shown(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "statistics.sqlite"
    df = joined(spark, folder / "parquet", "id")
    assert all(keys == [] for keys in pyjoinopt.statistics.show(df, store=str(store))["keys"])
    keys_of(df, Store(store))
    assert ("id",) in [key for keys in pyjoinopt.statistics.show(df, store=str(store))["keys"] for key in keys]


def test_a_stored_proof_that_cannot_be_understood(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "statistics.sqlite")
    df = joined(spark, folder / "parquet", "id")
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = gateway.export.nodes
        known = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes)
        files = [r.files for r in known.relations() if r.files is not None]
    for one in files:
        store.put_blob(one, BLOB, b"\xff no JSON")
    assert keys_of(df, store)[0] == {"id"}


def test_late_proofs_are_there_for_the_next_query(spark: SparkSession, folder: Path) -> None:
    df = joined(spark, folder / "parquet", "sparse")
    keys_of(df, deadlineMs=0)
    assert keys_of(df)[0] == {"sparse"}


def test_no_job_is_started(spark: SparkSession, folder: Path) -> None:
    df = joined(spark, folder / "parquet", "id")
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("keys", "keys")
    try:
        assert keys_of(df)[0] == {"id"}
        assert list(tracker.getJobIdsForGroup("keys")) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_join_of_joins_is_bounded_and_broadcast(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """An application of a key: the proven bound for the customers of one region is small."""
    spark.range(200_000).selectExpr("id % 2000 as customer", "id as amount", "id % 7 as day").write.parquet(
        str(tmp_path / "sales")
    )
    spark.range(2000).selectExpr("id as customer_id", "id % 40 as city", "uuid() as name").write.parquet(
        str(tmp_path / "customers")
    )
    spark.range(40).selectExpr("id as city_id", "id % 4 as region").write.parquet(str(tmp_path / "cities"))
    for name in ("sales", "customers", "cities"):
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    df = spark.sql(
        "select name, sum(amount) from sales, customers, cities "
        "where customer = customer_id and city = city_id and region = 3 group by name"
    )
    report = pyjoinopt.join_report(df, statistics="full")
    (group,) = report.groups
    joins = {frozenset(join.relations): join for join in group.estimated_rows}
    few = joins.get(frozenset({"customers", "cities"}))
    assert few is None or few.bound == 2000
    assert max(join.bound for join in group.estimated_rows) == 200_000
    (unproved,) = pyjoinopt.join_report(df, statistics="full", statistics_without="keys").groups
    assert max(join.bound for join in unproved.estimated_rows) > 200_000


def test_time_for_keys() -> None:
    assert ReadDeadline(2000).for_keys() == 100
    assert ReadDeadline(2000, thorough=True).for_keys() > 9000
