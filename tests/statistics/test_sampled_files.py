"""Filters evaluated over samples of files: selectivities near the truth, no unsafe expression, no Spark job."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.samples import BLOB, Samples
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.rewrites.normalise import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

ROWS = 40_000
#: kind is skewed and decides tag; a third of the notes are NULL; one row is special.
COLUMNS = [
    "id", "case when id % 10 < 6 then 'common' when id % 10 < 9 then 'usual' else 'rare' end as kind",
    "case when id % 10 < 6 then 'c' when id % 10 < 9 then 'u' else 'r' end || (id % 3) as tag",
    "case when id % 3 > 0 then 'note ' || (id % 100) end as note", "case when id = 77 then 1 else 0 end as special",
    "double(id) / 7 as x", "cast(id % 50 as int) as fifty",
]  # fmt: skip


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    rows = spark.range(ROWS).selectExpr(*COLUMNS)
    rows.coalesce(2).write.parquet(str(folder / "parquet"))
    rows.coalesce(2).write.orc(str(folder / "orc"))
    rows.coalesce(2).write.csv(str(folder / "csv"), header=True)
    rows.coalesce(2).write.json(str(folder / "json"))
    rows.repartition(1).write.partitionBy("fifty").parquet(str(folder / "parts"))
    return folder


@pytest.fixture
def table(spark: SparkSession, written: Path) -> Iterator[DataFrame]:
    bridge_for(spark.range(1)).forgetSamples()
    yield spark.read.parquet(str(written / "parquet"))


class Spy:
    """Forwards requests to the JVM, and records them with their responses.

    Args:
        gateway: to the JVM.
        whole: whether small tables are read whole, as they are by default.
    """

    def __init__(self, gateway: Py4jGateway, whole: bool = False) -> None:
        self._gateway = gateway
        self._whole = {} if whole else {"wholeRows": 0}
        self.requested: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []

    def __call__(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        patient = {"evaluateMs": 300_000, **request, "deadlineMs": 300_000}
        answers = self._gateway.samples(relations, **self._whole, **patient)
        self.requested += relations
        self.answers += answers
        return answers


def estimate(df: DataFrame, store: Store | None = None, whole: bool = False) -> tuple[RelationStatistics, Spy]:
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = gateway.export.nodes
        known = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes, store)
        spy = Spy(gateway, whole)
        estimates = PlanEstimates(known, nodes, Samples(spy, known.relation, store))
        plan = normalise(gateway.export.root).plan
        estimates.prefetch_samples(plan)
        return estimates(plan), spy


def test_what_arithmetic_cannot_judge(table: DataFrame) -> None:
    conditions = [
        "note like 'note 1%'", "upper(kind) = 'RARE'", "kind = 'common' or x < 100", "kind = 'rare' and tag like 'r%'",
        "note is null", "not (note like 'note 1%')", "length(note) between 6 and 6", "kind in ('usual', 'rare')",
        "coalesce(note, 'none') = 'none'", "fifty < 5 and x > 2000", "substring(tag, 2) = '1' and fifty > 25",
        "case when fifty < 10 then kind = 'rare' else kind = 'common' end",
    ]  # fmt: skip
    truths = table.selectExpr(*(f"count_if({condition})" for condition in conditions)).first()
    for condition, truth in zip(conditions, truths):
        known, _ = estimate(table.where(condition))
        # 4,096 rows drawn of 40,000: three standard deviations of a share p are below 5 % of it for p = 1/2 and
        # below 16 % for p = 1/12, the smallest here.
        assert known.source == "footers, sample", condition
        assert known.rows == pytest.approx(truth, rel=0.2), condition
        assert not known.exact and known.upper_bound == ROWS


def test_columns_that_are_renamed_and_computed(spark: SparkSession, table: DataFrame) -> None:
    table.selectExpr("kind as k", "upper(tag) as t", "id").createOrReplaceTempView("renamed")
    df = spark.sql("select * from (select k as kk, t from renamed r) where kk = 'rare' and t like 'R_'")
    known, spy = estimate(df)
    assert known.rows == pytest.approx(ROWS / 10, rel=0.2)
    assert len(spy.answers) == 2, "one question for what is there, one to read"


def test_no_hit_is_not_nothing(table: DataFrame) -> None:
    known, _ = estimate(table.where("special = 1 and kind <> 'x'"))
    assert known.source in ("footers, sample without a hit", "footers, sample")
    assert 0 < known.rows <= 20, "half a row of 4,096 is 5 rows of 40,000, a single hit 10"
    assert known.upper_bound == ROWS


def test_a_small_table_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).selectExpr("id", "'n' || (id % 7) as name").write.parquet(str(tmp_path / "small"))
    known, _ = estimate(spark.read.parquet(str(tmp_path / "small")).where("name like '%3'"))
    assert (known.rows, known.exact, known.upper_bound, known.source) == (14, True, 14, "footers, sample")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_table_of_some_thousand_rows_is_counted(spark: SparkSession, written: Path, kind: str) -> None:
    bridge_for(spark.range(1)).forgetSamples()
    table = getattr(spark.read, kind)(str(written / kind))
    for condition in ("note like 'note 1%' and x < 3000", "special = 1 or tag = 'r2'"):
        known, _ = estimate(table.where(condition), whole=True)
        truth = table.where(condition).count()
        assert (known.rows, known.upper_bound, known.exact) == (truth, truth, True)


def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0).selectExpr("id", "'n' as name").write.parquet(str(tmp_path / "empty"))
    known, _ = estimate(spark.read.parquet(str(tmp_path / "empty")).where("name like '%3'"))
    assert known.rows == 0 and known.upper_bound == 0


def test_all_null_columns(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(50).selectExpr("id", "cast(null as string) as nothing").write.parquet(str(tmp_path / "nulls"))
    table = spark.read.parquet(str(tmp_path / "nulls"))
    assert estimate(table.where("nothing like 'a%'"))[0].rows == 0
    assert estimate(table.where("not (nothing like 'a%')"))[0].rows == 0
    assert estimate(table.where("nothing is null and id % 2 = 0"))[0].rows == 25


@pytest.mark.parametrize("format", ["orc", "csv", "json"])
def test_other_formats(spark: SparkSession, written: Path, format: str) -> None:
    reader = spark.read.schema("id long, kind string, tag string, note string, special int, x double, fifty int")
    table = reader.option("header", "true").format(format).load(str(written / format))
    known, _ = estimate(table.where("upper(kind) = 'RARE' and note is not null"))
    assert known.rows == pytest.approx(ROWS / 10 * 2 / 3, rel=0.25)
    assert known.source.endswith(", sample")


def test_packed_text_is_read_from_its_beginning_or_not_at_all(spark: SparkSession, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.writelines(f"{i},kind {i % 4}\n" for i in range(3000))
    table = spark.read.schema("id int, kind string").csv(str(tmp_path / "t.csv.gz"))
    known, spy = estimate(table.where("kind like '%3'"))
    assert known.source == "size / row width, sample"
    assert spy.answers[-1]["complete"] and spy.answers[-1]["rows"] == 3000


def test_partitioned_tables(spark: SparkSession, written: Path) -> None:
    table = spark.read.parquet(str(written / "parts"))
    both, spy = estimate(table.where("fifty in (1, 2) and kind = 'common'"))
    # 16 of 50 partitions are sampled: 0.6 of their rows are common. Of the partitions arithmetic keeps 2 of 50.
    assert both.source == "footers, sample" and 0 < spy.answers[-1]["pieces"] < 50
    assert both.rows == pytest.approx(ROWS * 2 / 50 * 0.6, rel=0.5)
    alone, spy = estimate(table.where("fifty in (1, 2)"))
    assert alone.rows == pytest.approx(ROWS * 2 / 50) and not any(one.get("read") for one in spy.requested)


def test_sorted_tables(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "sorted")
    spark.range(0, 8000, 1, 40).selectExpr("id", "'k' || (id div 200) as kind").write.parquet(path)
    table = spark.read.parquet(path)
    for kind in range(0, 40, 7):
        known, _ = estimate(table.where(f"kind = 'k{kind}'"))
        # Each kind is one file, of which 16 are sampled. One has 1/16 of the rows, or no hit: then the estimate is
        # half-way between half a row of 3,200 (1 of 8,000) and half a place of 16 (235 of 8,000). The truth is 200.
        assert 16 <= known.rows <= 510


def test_nobodys_own_code_is_run(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as f

    mark = str(tmp_path / "ran")

    @f.udf("boolean")
    def python(value: str) -> bool:
        open(mark, "a").close()
        return True

    known, spy = estimate(table.where(python("kind")).where("tag like 'c%'"))
    assert known.source == "footers, sample" and not Path(mark).exists()
    assert all(len(one["predicates"]) == 1 for one in spy.requested)
    scala = array_to_vector(f.array("x")).isNotNull()
    known, spy = estimate(table.where(scala & (f.rand() < 0.5) & f.col("tag").like("c%")))
    assert [hits is None for hits in spy.answers[-1]["hits"]].count(True) == 1
    assert known.source == "footers, sample"
    called = "java_method('java.lang.System', 'setProperty', 'pyjoinopt.test', kind) is null"
    estimate(table.where(called))
    assert spark._jvm.java.lang.System.getProperty("pyjoinopt.test") is None


def test_subqueries_are_not_run(spark: SparkSession, table: DataFrame) -> None:
    table.createOrReplaceTempView("sampled")
    df = spark.sql("select * from sampled where id < (select max(id) from sampled) and kind like 'r%'")
    known, spy = estimate(df)
    assert known.source == "footers, sample" and all(len(one["predicates"]) == 1 for one in spy.requested)


def test_a_predicate_that_throws_is_unknown(spark: SparkSession, table: DataFrame) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.read.parquet(table.inputFiles()[0].rsplit("/", 1)[0]).createOrReplaceTempView("sampled")
    df = session.sql("select * from sampled where 10 div (fifty - 3) > 1 and kind = 'rare'")
    known, spy = estimate(df)
    assert [hits is None for hits in spy.answers[-1]["hits"]].count(True) == 1
    assert 0 < known.rows < ROWS / 10 * 1.2


def test_wide_tables(spark: SparkSession, tmp_path: Path) -> None:
    columns = (f"'{i % 7}-' || id as c{i}" for i in range(2000))
    spark.range(50).selectExpr(*columns).coalesce(1).write.parquet(str(tmp_path / "wide.parquet"))
    df = spark.read.parquet(str(tmp_path / "wide.parquet")).where("c3 like '3-1%' and c1999 like '%9'")
    known, spy = estimate(df)
    assert known.rows == 1 and spy.answers[-1]["columns"] == ["c3", "c1999"], "rows 1, 10, ..., 19, of which 19"


def test_a_sample_grows_with_the_columns_that_are_requested(table: DataFrame) -> None:
    estimate(table.where("kind like 'r%'"))
    _, spy = estimate(table.where("tag like 'r%'"))
    assert spy.answers[-1]["columns"] == ["kind", "tag"]
    _, spy = estimate(table.where("tag like 'r%' and kind like 'r%'"))
    assert len(spy.answers) == 1 and "read" not in spy.answers[0]


def test_a_sample_that_lacks_a_join_key_is_drawn_anew(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    """The rare rows have 5 of 50 values, which no sample shows that was drawn for another key."""
    spark.range(50).selectExpr("CAST(id AS INT) AS number", "id AS wide").write.parquet(str(tmp_path / "numbers"))
    numbers, rare = spark.read.parquet(str(tmp_path / "numbers")), table.filter("kind = 'rare'")
    by_id = numbers.join(rare, numbers.wide == rare.id, "left_semi")
    by_fifty = numbers.join(rare, numbers.number == rare.fifty, "left_semi")
    for df in (by_id, by_fifty):
        (pair,) = pyjoinopt.join_report(df, statistics="full", store="off").pairs
    assert by_fifty.count() == 5
    assert pair.estimated_rows[-1].rows == pytest.approx(5, rel=0.1)


def test_two_readers_of_one_table_share_a_sample(table: DataFrame) -> None:
    """Each would otherwise draw one with its own columns, and what was drawn last would replace the other one."""
    one, other = table.where("note like 'note 1%'").alias("a"), table.where("upper(kind) = 'RARE'").alias("b")
    _, spy = estimate(one.join(other.select("id", "kind", "x").alias("b"), "id"))
    columns = [answer["columns"] for answer in spy.answers[-2:] if all(answer["hits"])]
    assert columns == [["id", "kind", "note"]] * 2
    assert len({answer["sample"] for answer in spy.answers[-2:]}) == 1


def test_a_sample_that_another_query_replaced_between_two_requests_is_drawn_anew(
    spark: SparkSession, table: DataFrame, tmp_path: Path
) -> None:
    spark.range(50).selectExpr("id as d_id", "'d' || id as d_name").write.parquet(str(tmp_path / "d"))
    dimension = spark.read.parquet(str(tmp_path / "d")).where("d_name like 'd1%' and d_id < 40")
    bridge_for(table).forgetSamples()
    estimate(dimension, whole=True)
    df = table.join(dimension, table.fifty == dimension.d_id)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = gateway.export.nodes
        known = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes, None)
        spy = Spy(gateway, whole=True)

        def forgetful(relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
            answers = spy(relations, **request)
            bridge_for(df).forgetSamples()
            return answers

        samples = Samples(forgetful, known.relation)
        PlanEstimates(known, nodes, samples).prefetch_samples(normalise(gateway.export.root).plan)
        (fact,) = (n for n in nodes if not n.children and any(a.name == "fifty" for a in n.output))
        (joined,) = samples.joined(fact)
    assert len(joined.dimensions) == 1, "with the dimension, although its first sample was gone"


@pytest.mark.parametrize("megabytes", [128, 8], ids=["one place", "two places"])
def test_keys_whose_rows_are_stored_together(spark: SparkSession, tmp_path: Path, megabytes: int) -> None:
    """The rows of a key are in one place of the files, and a jackknife over few places finds a tenth of the keys."""
    lines = spark.range(3_000_000).selectExpr("id DIV 4 * 3 AS order", "hash(id) AS x", "hash(id, 1) AS y")
    lines.coalesce(1).write.option("parquet.block.size", megabytes << 20).parquet(str(tmp_path / "lines"))
    spark.range(750_000).selectExpr("id * 3 AS id").coalesce(1).write.parquet(str(tmp_path / "orders"))
    read = spark.read.parquet(str(tmp_path / "lines")).filter("x > 0")
    orders = spark.read.parquet(str(tmp_path / "orders"))
    df = orders.join(read, orders.id == read.order, "left_anti")
    (pair,) = pyjoinopt.join_report(df, statistics="full", store="off").pairs
    assert df.count() == pytest.approx(46_875, rel=0.02)
    assert pair.estimated_rows[-1].rows == pytest.approx(46_875, rel=0.5)


def test_a_second_session_reads_no_file(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    df = table.where("kind like 'r%'")
    first, spy = estimate(df, Store(tmp_path / "s.sqlite"))
    assert spy.answers[-1]["read"] > 0
    bridge_for(df).forgetSamples()
    second, spy = estimate(df, Store(tmp_path / "s.sqlite"))
    assert second == first and all("read" not in answer for answer in spy.answers)
    assert "blob" in spy.requested[-1], "the store gave it"


def test_a_broken_blob_is_read_anew(table: DataFrame, tmp_path: Path) -> None:
    store, df = Store(tmp_path / "s.sqlite"), table.where("kind like 'r%'")
    first, spy = estimate(df, store)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        leaves = [node for node in gateway.export.nodes if not node.children]
        (relation,) = LeafStatistics(gateway.statistics, leaves, "auto").relations()
    assert relation.files is not None
    whole = store.blob(relation.files, BLOB)
    assert whole is not None
    for content in (b"", b"nonsense", whole[: len(whole) // 2]):
        bridge_for(df).forgetSamples()
        store.put_blob(relation.files, BLOB, content)
        assert estimate(df, store)[0] == first
        assert store.blob(relation.files, BLOB) == whole


def test_changed_files_are_sampled_anew(spark: SparkSession, tmp_path: Path) -> None:
    path, store = str(tmp_path / "t"), Store(tmp_path / "s.sqlite")
    spark.range(1000).selectExpr("'n' || (id % 2) as name").write.parquet(path)
    assert estimate(spark.read.parquet(path).where("name like '%1'"), store)[0].rows == 500
    spark.range(1000).selectExpr("'n' || (id % 4) as name").write.mode("overwrite").parquet(path)
    assert estimate(spark.read.parquet(path).where("name like '%1'"), store)[0].rows == 250


def test_files_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(1000).selectExpr("id", "'n' || (id % 2) as name").write.parquet(str(path))
    df = spark.read.parquet(str(path)).where("name like '%1'")
    shutil.rmtree(path)
    assert "sample" not in estimate(df)[0].source
    (path).mkdir()
    spark.range(1000).selectExpr("id", "'n' || (id % 2) as name").coalesce(1).write.parquet(str(path / "u"))
    df = spark.read.parquet(str(path / "u")).where("name like '%1'")
    (file,) = (path / "u").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:200])
    assert "sample" not in estimate(df)[0].source


def test_planning_starts_no_job(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(tmp_path / "store.sqlite"))
    for name in ("a", "b", "c"):
        session.read.parquet(str(written / "parquet")).createOrReplaceTempView(name)
    df = session.sql(
        "select a.id from a join b on a.id = b.id join c on b.fifty = c.fifty "
        "where a.kind like 'r%' and b.note like '%1' and c.special + c.fifty = 3 and upper(c.kind) = 'RARE'"
    )
    bridge_for(df).forgetSamples()
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    report = pyjoinopt.join_report(df, strict=True)
    while any("sample" not in relation.source for relation in report.groups[0].relations):
        report = pyjoinopt.join_report(df, strict=True)  # until the samples that came too late are there
    assert set(tracker.getJobIdsForGroup(None)) == before
    assert {relation.source.split(", ")[0] for relation in report.groups[0].relations} == {"footers"}
    for option in ({"statistics": "footers"}, {"statistics": "none"}, {"statistics_without": "samples, keys"}):
        report = pyjoinopt.join_report(df, strict=True, **option)
        assert not any("sample" in relation.source for relation in report.groups[0].relations)
