"""Bounds by random samples of real files: they hold for any order of the rows, are not too loose, and carry hints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import pyjoinopt
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.model.sample_bounds import share_bound
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.bound_limits import BoundLimits
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.rewrites.normalise import normalise
from tests.support.shop import unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

pytestmark = pytest.mark.ci

#: Rows of a row group: the fewest that DuckDB writes.
GROUP = 2048
GROUPS = 200
#: Layout of the hits -> which rows are hits; `i` is the number of a row, `g` that of its row group. All have 3.5 %.
LAYOUTS = {
    "everywhere": "i % 2000 < 70",
    "at one end": "g >= 193",
    "in whole row groups": "g % 28 = 7",
    "at the ends of row groups": f"g % 14 = 9 and i % {GROUP} >= {GROUP // 2}",
}
SHARE = 0.035
DRAWS = 48
#: The chance at which a bound can be seen to be broken.
CHANCE = 0.2
EVERYWHERE = BoundLimits(expected=float("inf"), bounded=0.0)


def write(path: Path, hits: str, groups: int = GROUPS, group: int = GROUP) -> None:
    """A Parquet file with row groups of a size, and a column `v` that is 1 for hits."""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        rows = f"select i, i // {group} as g from range({groups * group}) t(i)"
        flagged = f"select i, cast(g as int) as g, case when {hits} then 1 else 0 end as v from ({rows}) order by i"
        connection.execute(f"copy ({flagged}) to '{path.as_posix()}' (format parquet, row_group_size {group})")


class Spy:
    """Forwards requests to the JVM with other limits, and records responses."""

    def __init__(self, gateway: Py4jGateway, **request: Any) -> None:
        self._gateway, self._request = gateway, request
        self.answers: list[dict[str, Any]] = []

    def __call__(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        patient = {"deadlineMs": 300_000, "evaluateMs": 300_000, "readMs": 300_000}
        for one in relations:
            if one.get("random"):
                one.update({name: self._request[name] for name in ("maxValues",) if name in self._request})
        answers = self._gateway.samples(relations, **{**request, **patient, **self._request})
        self.answers += answers
        return answers


def estimate(df: DataFrame, forget: bool = True, **request: Any) -> tuple[RelationStatistics, dict[str, Any]]:
    """Statistics of a filtered table, and the last response about its sample."""
    if forget:
        bridge_for(df).forgetSamples()
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = gateway.export.nodes
        leaves, patient = [n for n in nodes if not n.children], ReadDeadline(60_000, thorough=True)
        known = LeafStatistics(gateway.statistics, leaves, "auto", nodes, deadline=patient)
        spy = Spy(gateway, **{"maxValues": 1 << 40, **request})
        samples = Samples(spy, known.relation, thorough=True, limits=EVERYWHERE)
        plan = normalise(gateway.export.root).plan
        estimates = PlanEstimates(known, nodes, samples)
        estimates.prefetch_samples(plan)
        return estimates(plan), spy.answers[-1]


def drawn_again(spark: SparkSession, folder: Path, time: int) -> DataFrame:
    """The filtered table, with other times of modification: a draw depends on these."""
    for file in sorted(folder.glob("*.parquet")):
        os.utime(file, (time, time))
    table = spark.read.schema("i bigint, g int, v int").parquet(str(folder))
    return table.where("v + 0 = 1")


def seldom(times: int) -> float:
    """How often a bound at `CHANCE` is broken at most: three standard deviations above what is expected."""
    return CHANCE * times + 3 * (CHANCE * (1 - CHANCE) * times) ** 0.5


def broken(spark: SparkSession, folder: Path, share: float, times: int, **request: Any) -> tuple[int, int]:
    """How many of many samples give a bound below the true share: at one in a million, and at `CHANCE`."""
    strict = loose = 0
    for time in range(times):
        known, answer = estimate(drawn_again(spark, folder, 1_600_000_000 + time), **request)
        hits = int.from_bytes(bytes.fromhex(answer["hits"][0]), "little").bit_count()
        assert "draws" in answer, answer
        assert known.likely is not None and known.likely.sampled == answer["rows"]
        strict += known.likely.rows < share * known.upper_bound
        loose += share_bound(hits, answer["rows"], answer["draws"], answer["stretch"], CHANCE) < share
    return strict, loose


@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.ci] * (name != "at one end")) for name in LAYOUTS]
)
def test_a_bound_is_kept_whatever_the_order_of_the_rows(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    write(tmp_path / "t.parquet", LAYOUTS[layout])
    times = 60 if layout == "in whole row groups" else 20
    strict, loose = broken(spark, tmp_path, SHARE, times, draws=DRAWS)
    assert strict == 0 and loose <= seldom(times)
    if layout == "in whole row groups":  # 48 draws miss all seven of these in 15 % of all samples
        assert loose, "a bound at 20 % that is never broken is too loose"


@pytest.mark.parametrize("hits", ["small", pytest.param("large", marks=pytest.mark.ci)])
def test_row_groups_of_several_sizes(spark: SparkSession, tmp_path: Path, hits: str) -> None:
    write(tmp_path / "small.parquet", "g % 5 = 0" if hits == "small" else "false", groups=120)
    write(tmp_path / "large.parquet", "g = 7" if hits == "large" else "false", groups=20, group=10 * GROUP)
    share = (24 if hits == "small" else 10) / 320
    strict, loose = broken(spark, tmp_path, share, 20, draws=DRAWS)
    assert strict == 0 and loose <= seldom(20)


def test_where_every_row_group_is_read_only_rows_are_sampled(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", LAYOUTS["at one end"])
    known, answer = estimate(drawn_again(spark, tmp_path, 1_600_000_000))
    assert answer["draws"] == 0 and known.likely is not None
    assert SHARE * GROUPS * GROUP <= known.likely.rows < 0.05 * GROUPS * GROUP


def test_the_sample_of_an_analysis_is_drawn_from_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    write(tmp_path / "t" / "t.parquet", LAYOUTS["at one end"])
    df = drawn_again(spark, tmp_path / "t", 1_600_000_000)
    pyjoinopt.analyze(spark, df, progress=False, store=str(tmp_path / "store.sqlite"))
    known, answer = estimate(df, forget=False)
    assert answer["draws"] == 0 and known.likely is not None
    assert SHARE * GROUPS * GROUP <= known.likely.rows < 0.05 * GROUPS * GROUP


def test_no_bound_where_too_few_row_groups_may_be_read(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", LAYOUTS["at one end"])
    df = drawn_again(spark, tmp_path, 1_600_000_000)
    known, answer = estimate(df, draws=DRAWS, maxValues=GROUPS * GROUP // 4)
    assert known.likely is None and "sample" in known.source
    assert answer["refused"] and "draws" not in answer, "so the next query does not try it again"
    known, _ = estimate(df, draws=DRAWS - 1)
    assert known.likely is None


def test_no_bound_for_what_cannot_be_evaluated(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", "true")
    table = drawn_again(spark, tmp_path, 1_600_000_000)
    assert estimate(table.where("assert_true(v = 0) is null"))[0].likely is None  # throws for every row


def test_a_damaged_file_gives_no_bound(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    write(file, LAYOUTS["at one end"])
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 50_000] = bytes(50_000)  # the footer is at the end
    file.write_bytes(content)
    known, _ = estimate(drawn_again(spark, tmp_path, 1_600_000_000), draws=256)
    assert known.likely is None and known.upper_bound == GROUPS * GROUP


def joined(spark: SparkSession, folder: Path, predicate: str = "v + 0 = 1") -> DataFrame:
    """Some rows of a table, joined with as many rows of another one."""
    table, other = (spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("t", "other"))
    return table.where(predicate).select("i").join(other.selectExpr("i as j", "g as h"), F.col("i") == F.col("j"))


@pytest.fixture
def small_broadcasts(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "20kb")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.unset("spark.sql.ansi.enabled")


#: A side may be proved, or bounded by a sample, to have 4 MB. All rows of the table have 16 MB or more.
OPTIONS: dict[str, Any] = {"statistics": "full", "statistics_ms": 60_000, "hint_slack": 200, "store": "off"}


@pytest.mark.usefixtures("small_broadcasts")
def test_a_hint_names_the_sample(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", "i % 2000 = 77", groups=400)
    write(tmp_path / "other.parquet", "false", groups=100)
    df = joined(spark, tmp_path)
    fast = unharmed(df, reordered=False, **OPTIONS)
    (hint,) = fast._pyjoinopt_report.hints
    assert (hint.strategy, hint.side) == ("BROADCAST", "left")
    assert re.search(r"by a sample of 8,\d\d\d rows \(error: one in 1,000,000\)", hint.reason), hint.reason
    proofs = unharmed(df, reordered=False, statistics_without="bounds", **OPTIONS)
    assert not [hint for hint in proofs._pyjoinopt_report.hints if hint.side == "left"]
    careful = unharmed(df, reordered=False, **{**OPTIONS, "hint_slack": 20})
    assert not [hint for hint in careful._pyjoinopt_report.hints if hint.side == "left"]


@pytest.mark.usefixtures("small_broadcasts")
def test_rows_that_are_stored_together_are_few_samples(spark: SparkSession, tmp_path: Path) -> None:
    """All hits are in one row group of 400, so 256 draws bound the share by 5 % and more, whatever was sampled."""
    write(tmp_path / "t.parquet", "g = 399 and i % 8 = 0", groups=400)
    write(tmp_path / "other.parquet", "false", groups=100)
    df = joined(spark, tmp_path)
    careful = unharmed(df, reordered=False, **{**OPTIONS, "hint_slack": 20})
    assert "sample" in careful._pyjoinopt_report.pairs[0].relations[0].source
    assert not [hint for hint in careful._pyjoinopt_report.hints if hint.side == "left"]
    (hint,) = unharmed(df, reordered=False, **OPTIONS)._pyjoinopt_report.hints
    rows = re.search(r"at most ([\d,]+) rows .* by a sample", hint.reason)
    assert rows is not None and int(rows[1].replace(",", "")) > 0.05 * 400 * GROUP


@pytest.mark.usefixtures("small_broadcasts")
def test_errors_of_a_predicate_reach_the_query_as_before(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", "i % 2000 = 77", groups=400)
    write(tmp_path / "other.parquet", "false", groups=100)
    spark.conf.set("spark.sql.ansi.enabled", "true")
    df = joined(spark, tmp_path, "1 / (i - 5) < 0 or v + 0 = 1")  # divides by zero in one row
    fast = df.optimize_joins(strict=True, **OPTIONS)
    for one in (df, fast):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            one.collect()
    assert fast._pyjoinopt_report.error is None


@pytest.mark.usefixtures("small_broadcasts")
def test_the_fact_of_a_star_has_a_bound_and_its_partners(spark: SparkSession, tmp_path: Path) -> None:
    """All hits are in odd row groups, and so is their partner in the dimension: its filter takes none of them away."""
    write(tmp_path / "t.parquet", "i % 500 = 77 and g % 2 = 1", groups=400)
    write(tmp_path / "other.parquet", "false", groups=200)
    spark.range(400).selectExpr("cast(id as int) as k", "cast(id % 2 as string) as odd").coalesce(1).write.parquet(
        str(tmp_path / "d.parquet")
    )
    t, d, other = (spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in ("t", "d", "other"))
    other = other.selectExpr("i as j", "g as h")
    df = t.where("v + 0 = 1").select("i", "g").join(d.where("odd like '1%'"), F.col("g") == F.col("k"))
    df = df.join(other, F.col("i") == F.col("j"))
    bridge_for(df).forgetSamples()
    report = unharmed(df, reordered=True, **OPTIONS)._pyjoinopt_report
    (group,) = report.groups
    assert any("by a sample of" in hint.reason for hint in report.hints), report.hints
    with_dimension, _ = group.joins_before
    assert 0.8 < with_dimension.rows / group.relations[0].rows < 1.2, "half of them, if the filters were independent"
