"""`pyjoinopt.analyze`: the gathered statistics, their inputs, refusals, and cancellation."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.registry import Column, Files, Known
from pyjoinopt.estimation.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

FILES = Files("i", "s", 1, 100, 5.0)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    analyzed_tables.forget()
    yield
    analyzed_tables.forget()


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("analysed") / "t")
    spark.range(20_000).selectExpr(
        "id", "case when id % 4 = 0 then null when id % 4 = 1 then 7 else id % 500 end as few",
        "'n' || (id % 30) as name", "date '2020-01-01' + cast(id % 365 as int) as day", "array(id) as list",
    ).coalesce(2).write.parquet(folder)  # fmt: skip
    return folder


@pytest.fixture
def session(spark: SparkSession, path: str, tmp_path: Path) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(tmp_path / "store.sqlite"))
    session.read.parquet(path).createOrReplaceTempView("t")
    return session


def known_of(df: DataFrame, **options: Any) -> dict[str, Any]:
    (row,) = pyjoinopt.statistics.show(df, **options).to_dict("records")
    return row


def columns(session: SparkSession) -> dict[str, Column]:
    (one,) = analyzed_tables._here.values()
    return dict(one.columns)


def test_a_table(session: SparkSession) -> None:
    (one,) = pyjoinopt.analyze(session, "t", sample_rows=2_000, progress=False)
    assert (one.rows, one.columns, one.refused) == (20_000, ("id", "few", "name", "day", "list"), "")
    assert one.sampled == 2_000 and one.seconds > 0
    found = columns(session)
    # No value of the key comes twice among the sampled ones, so the sketch's 20,000 ± 2 % are 20,000.
    assert (found["id"].ndv, found["id"].min, found["id"].max, found["id"].nulls) == (20_000, 0, 19_999, 0)
    # The even ids that are no multiples of 4, and the odd ones 3, 7, ...: 2 and 3 modulo 4 below 500, and 7.
    assert found["few"].ndv == pytest.approx(250, rel=0.1) and found["few"].nulls == 5_000
    heaviest = found["few"].details["heavy"][0]
    assert heaviest["value"] == 7 and heaviest["share"] == pytest.approx(0.25, abs=0.04)
    assert found["name"].ndv == pytest.approx(30, rel=0.1) and found["name"].avg_len == 3
    assert (found["day"].min, found["day"].max) == (18262, 18262 + 364)
    assert found["list"] == Column(nulls=0)
    bins = found["few"].details["bins"]
    assert sum(low == high == 7 for low, high, _ in bins) == pytest.approx(len(bins) / 3, abs=4)


def test_one_pass_over_a_table(session: SparkSession) -> None:
    """Each row is read once, however many statistics are gathered; Spark's stage metrics confirm it."""
    context = session.sparkContext._jsc.sc()

    def rows_read() -> dict[int, int]:
        context.listenerBus().waitUntilEmpty(10_000)
        status = context.statusStore()
        others = [getattr(status, f"stageList$default${i}")() for i in range(2, 6)]
        stages = status.stageList(None, *others)
        return {stages.apply(i).stageId(): stages.apply(i).inputRecords() for i in range(stages.size())}

    before = rows_read()
    pyjoinopt.analyze(session, "t", progress=False)
    assert sum(rows for stage, rows in rows_read().items() if stage not in before) == 20_000


def test_it_is_used_from_then_on(session: SparkSession, tmp_path: Path) -> None:
    df = session.sql("select id from t where name = 'n3' and few > 7")
    assert known_of(df)["source"] == "footers"
    pyjoinopt.analyze(session, "t", progress=False)
    assert (known_of(df)["source"], known_of(df)["exact"], known_of(df)["rows"]) == ("analyze", True, 20_000)
    analyzed_tables.forget()  # as another process
    assert known_of(df)["source"] == "analyze" and known_of(df)["age"].total_seconds() < 600
    row = known_of(df)
    assert row["sample"] == 10_000 and "name" in row["sample_columns"] and row["sample_age"].total_seconds() < 600
    assert row["distinct"]["id"] == 20_000 and row["distinct"]["name"] == pytest.approx(30, rel=0.1)
    assert known_of(df, statistics="footers")["source"] == "footers"
    assert known_of(df, store="off")["source"] == "analyze", "this process has seen it"
    pyjoinopt.statistics.forget(df)
    assert known_of(df)["source"] == "footers"


def test_the_sample_is_as_large_as_requested(session: SparkSession) -> None:
    (one,) = pyjoinopt.analyze(session, "t", columns=["name"], sample_rows=100_000, progress=False)
    assert one.sampled == 20_000
    for name in ("a", "b", "c"):
        session.table("t").createOrReplaceTempView(name)
    df = session.sql("select * from a join b using (id) join c using (id) where a.name like '%3' and b.name = 'n1'")
    rows = {relation.name: relation for relation in pyjoinopt.join_report(df, strict=True).groups[0].relations}
    assert rows["a"].source == "analyze, sample" and rows["a"].rows == 2_000, "n3, n13 and n23 of 30"


def test_a_self_join_over_a_frequent_value(session: SparkSession) -> None:
    """5,040 of 15,000 rows share one of 250 values, which the distinct count cannot show."""
    df = session.sql("select a.id from t a join t b on a.few = b.few join t c on b.id = c.id")

    def rows() -> float:
        return pyjoinopt.join_report(df, strict=True).groups[0].estimated_rows[-1].rows

    assert rows() < 5e6
    pyjoinopt.analyze(session, "t", columns=["few", "id"], progress=False)
    # Every pair of the 5,040 rows with 7, and of the 40 rows of each of the 249 others.
    assert rows() == pytest.approx(5040**2 + 249 * 40**2, rel=0.1)


def test_of_a_dataframe_the_columns_that_it_computes_with(session: SparkSession) -> None:
    df = session.sql("select id from t where few > 3 and day > date '2020-02-01'")
    (one,) = pyjoinopt.analyze(session, df, progress=False)
    assert one.columns == ("few", "day")
    (again,) = pyjoinopt.analyze(session, [df, "t", df], columns=["ID"], progress=False)
    assert again.columns == ("id",)
    assert set(columns(session)) == {"id", "few", "day"}, "what was known before stays"


def test_an_empty_table(session: SparkSession, tmp_path: Path) -> None:
    session.range(0).selectExpr("id", "'n' as name").write.parquet(str(tmp_path / "empty"))
    (one,) = pyjoinopt.analyze(session, session.read.parquet(str(tmp_path / "empty")).where("id > 1"), progress=False)
    assert (one.rows, one.sampled) == (0, 0)


def test_without_a_store_it_is_known_to_this_session(session: SparkSession) -> None:
    pyjoinopt.analyze(session, "t", columns=["name"], store="off", progress=False)
    df = session.sql("select id from t where name like '%3'")
    assert known_of(df, store="off")["source"] == "analyze"
    analyzed_tables.forget()
    assert known_of(df)["source"] == "footers"


@pytest.mark.parametrize(
    ("what", "keywords", "error", "text"),
    [
        ([], {}, ValueError, "nothing to analyse"),
        (3, {}, TypeError, "names of tables, DataFrames"),
        (["t", 3], {}, TypeError, "not int"),
        ("t", {"columns": "id"}, TypeError, "a list of names"),
        ("t", {"columns": ["nix", "id"]}, ValueError, "no relation has a column 'nix'"),
        ("t", {"sample_rows": 0}, ValueError, "between 1 and"),
        ("t", {"sample_rows": "3"}, TypeError, "an int, not str"),
        ("t", {"store": 3}, TypeError, "store"),
        ("nowhere", {}, Exception, "nowhere"),
    ],
    ids=repr,
)  # fmt: skip
def test_bad_arguments(session: SparkSession, what: Any, keywords: dict[str, Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        pyjoinopt.analyze(session, what, progress=False, **keywords)


def test_wide_tables_need_names(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "wide")
    session.range(10).selectExpr(*(f"id as c{i}" for i in range(250))).write.parquet(path)
    wide = session.read.parquet(path)
    wide.createOrReplaceTempView("wide")
    with pytest.raises(ValueError, match="has 250 columns; name those"):
        pyjoinopt.analyze(session, "wide", progress=False)
    with pytest.raises(ValueError, match="at most 200"):
        pyjoinopt.analyze(session, "wide", columns=wide.columns, progress=False)
    (one,) = pyjoinopt.analyze(session, wide.where("c3 > 1"), progress=False)
    assert one.columns == ("c3",) and one.rows == 10


def test_what_reads_no_files_is_refused(session: SparkSession) -> None:
    rdd = session.createDataFrame(session.sparkContext.parallelize([(1,)]), "a int")
    with pytest.warns(RuntimeWarning, match="rdd is not analysed.*reads an RDD"):
        done = pyjoinopt.analyze(session, [rdd, session.sql("select id from t where few > 3")], progress=False)
    assert [(one.relation, bool(one.refused)) for one in done] == [("rdd", True), ("t", False)]
    assert pyjoinopt.analyze(session, session.range(3), progress=False) == [], "rows that the plan tells"


def test_ctrl_c_ends_the_job_and_keeps_what_is_done(spark: SparkSession, session: SparkSession, tmp_path: Path) -> None:
    files = {"first": 1, "second": 64}
    for name, count in files.items():
        session.range(0, count, 1, count).write.json(str(tmp_path / name))
    for key, value in (("maxPartitionBytes", "10b"), ("openCostInBytes", "0")):
        session.conf.set(f"spark.sql.files.{key}", value)  # a task for every few bytes
    reader = session.read.schema("id long")
    first, second = (reader.json([str(tmp_path / name)] * count) for name, count in files.items())
    tracker = spark.sparkContext.statusTracker()
    begun = threading.Event()

    def interrupt() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not begun.is_set():
            if analyzed_tables._here and tracker.getActiveJobsIds():
                begun.set()
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pyjoinopt.analyze(session, [first, second], columns=["id"], progress=False)
    thread.join()
    until = time.monotonic() + 10
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.05)
    assert begun.is_set() and not tracker.getActiveJobsIds()
    assert known_of(first)["source"] == "analyze" and known_of(second)["source"] != "analyze"


def test_a_progress_bar(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    pyjoinopt.analyze(session, "t", columns=["id"], progress=True)
    assert "1/1" in capsys.readouterr().err
    pyjoinopt.analyze(session, "t", columns=["id"])
    assert capsys.readouterr().err == "", "stderr is no terminal here"


def test_what_is_remembered_is_checked(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    for name, when in (("a", 5.0), ("b", 6.0)):
        one = Known(3.0, columns={name: Column(ndv=2)}, exact=True, source="analyze", gathered=when)
        analyzed_tables.remember(FILES, one, store)
    analyzed_tables.forget([FILES])
    known = analyzed_tables.recall(FILES, store)
    assert known is not None and (known.rows, set(known.columns), known.gathered) == (3, {"a", "b"}, 6)
    for content in (b"", b"[]", b"[1, 2, 3, 4, 5, 6]", b"\xff", b'[null, 1, true, "", 5, {}]'):
        analyzed_tables.forget()
        store.put_blob(FILES, analyzed_tables.BLOB, content)
        assert analyzed_tables.recall(FILES, store) is None
