"""Bucketed tables: their description in the export, and predicted shuffles that agree with Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pyjoinopt import join_report
from pyjoinopt.cost.model import Parts
from pyjoinopt.cost.size import Size
from tests.shim.support import Shim, leaf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

PARTITIONS = 4
#: Name -> number of buckets, and the columns by which rows are put into them.
LAYOUTS: dict[str, tuple[int, list[str]]] = {
    "plain": (0, []), "four": (4, ["k"]), "three": (3, ["k"]), "eight": (8, ["k"]),
    "by_v": (4, ["v"]), "both": (4, ["v", "k"]),
}  # fmt: skip
BUCKETING, INITIAL = "spark.sql.sources.bucketing.enabled", "spark.sql.adaptive.coalescePartitions.initialPartitionNum"


@pytest.fixture(scope="module")
def db(spark: SparkSession) -> Iterator[SparkSession]:
    """Tables `f` and `g` of equal rows in every layout and `h`, in a session that never broadcasts."""
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    names = []
    for layout, (buckets, columns) in LAYOUTS.items():
        for table, rows in (("f", 400), ("g", 300)):
            names.append(f"{table}_{layout}")
            writer = session.range(rows).selectExpr("id AS k", "id % 7 AS v").coalesce(1).write.mode("overwrite")
            (writer.bucketBy(buckets, *columns) if buckets else writer).saveAsTable(names[-1])
    session.range(7).selectExpr("id AS h_v").write.mode("overwrite").saveAsTable("h")
    yield session
    for name in [*names, "h"]:
        session.sql(f"DROP TABLE {name}")


@contextmanager
def setting(db: SparkSession, key: str, value: str) -> Iterator[None]:
    before = db.conf.get(key, None)
    db.conf.set(key, value)
    try:
        yield
    finally:
        db.conf.unset(key) if before is None else db.conf.set(key, before)


# -- the export of a leaf ------------------------------------------------------------------------------------------


def reported(db: SparkSession, shim: Shim, table: str) -> list[str] | None:
    """The names of the bucket columns of a table in the export."""
    export = shim.export(db.table(table))
    relation = export["nodes"][leaf(export)]["rel"]
    assert relation["name"].endswith(table)
    return [export["attributes"][bit][2] for bit in relation["buckets"]] if "buckets" in relation else None


def test_columns_of_buckets(db: SparkSession, shim: Shim) -> None:
    assert reported(db, shim, "f_four") == reported(db, shim, "f_eight") == ["k"]
    assert reported(db, shim, "f_both") == ["v", "k"]
    assert reported(db, shim, "f_plain") is None


def test_fewer_buckets_than_a_shuffle_has_partitions(db: SparkSession, shim: Shim) -> None:
    assert reported(db, shim, "f_three") is None
    with setting(db, "spark.sql.shuffle.partitions", "3"):
        assert reported(db, shim, "f_three") == ["k"]
    with setting(db, INITIAL, "8"):
        assert (reported(db, shim, "f_four"), reported(db, shim, "f_eight")) == (None, ["k"])


def test_bucketing_switched_off(db: SparkSession, shim: Shim) -> None:
    with setting(db, BUCKETING, "false"):
        assert reported(db, shim, "f_four") is None


def test_the_executors_of_a_session(db: SparkSession, shim: Shim) -> None:
    """In local mode the driver is the one that works, so it is counted."""
    conf = shim.export(db.table("f_four"))["conf"]
    jvm = db._jvm
    assert jvm is not None
    assert int(conf["pyjoinopt.driver"]) == jvm.java.lang.Runtime.getRuntime().maxMemory()
    assert conf["pyjoinopt.executors"] == "1"
    assert 0 < int(conf["pyjoinopt.memory"]) < int(conf["pyjoinopt.driver"])
    assert conf["spark.sql.shuffle.partitions"] == str(PARTITIONS)


# -- predictions agree with Spark ----------------------------------------------------------------------------------


class Moves:
    """Counts the sides that are moved."""

    name = "moves"

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        return 2.0

    def parts(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> Parts:
        return Parts(None, 0.0, 1.0, 1.0)


def exchanges(df: DataFrame) -> int:
    """The number of sides that Spark shuffled to run it."""
    df.collect()
    final = df._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    assert final.count("SortMergeJoin") == df._jdf.queryExecution().optimizedPlan().toString().count("Join ")
    return int(final.count("Exchange hashpartitioning"))


def moved(df: DataFrame) -> tuple[tuple[float, float], tuple[int, int]]:
    """The predicted and the actual number of shuffled sides, in the written order and in the best one."""
    after = df.optimize_joins(cost=Moves(), strict=True, statistics="catalog")
    [group] = after._pyjoinopt_report.groups
    return (group.cost_before, group.cost_after), (exchanges(df), exchanges(after))


def three(db: SparkSession, f: str, g: str) -> DataFrame:
    """The join on the key comes last, when the rows of f have been moved for the other one."""
    return db.sql(f"SELECT * FROM {f} f JOIN h ON f.v = h_v JOIN {g} g ON f.k = g.k")


@pytest.mark.parametrize(
    ("f", "g", "expected"),
    [
        ("plain", "plain", (4, 4)),
        ("four", "four", (3, 2)),  # joined first, neither f nor g is moved
        ("four", "plain", (4, 3)),
        ("plain", "four", (3, 3)),
        ("by_v", "four", (2, 2)),
        ("both", "both", (4, 4)),  # buckets of two columns are no use for a join on one of them
        ("eight", "eight", (3, 2)),
    ],
)
def test_sides_in_their_places_are_not_moved(db: SparkSession, f: str, g: str, expected: tuple[int, int]) -> None:
    assert moved(three(db, f"f_{f}", f"g_{g}")) == (expected, expected)


def test_buckets_under_other_names_and_by_other_keys(db: SparkSession) -> None:
    renamed = "(SELECT k AS a, v FROM f_four) f JOIN h ON f.v = h_v JOIN g_four g ON f.a = g.k"
    assert moved(db.sql(f"SELECT * FROM {renamed}")) == ((3, 2), (3, 2))
    pair = "f_{0} f JOIN g_{0} g ON f.k = g.k AND f.v = g.v JOIN h ON f.v = h_v"
    assert moved(db.sql("SELECT * FROM " + pair.format("both"))) == ((2, 2), (2, 2))
    assert moved(db.sql("SELECT * FROM " + pair.format("four"))) == ((4, 4), (4, 4))


def test_bucketing_switched_off_moves_everything(db: SparkSession) -> None:
    with setting(db, BUCKETING, "false"):
        assert moved(three(db, "f_four", "g_four")) == ((4, 4), (4, 4))


def test_too_few_buckets_are_not_relied_on(db: SparkSession) -> None:
    """Spark may prefer to shuffle both sides. Here it does not; the prediction errs towards shuffling."""
    assert moved(three(db, "f_three", "g_three")) == ((4, 4), (3, 2))


def test_tables_in_buckets_are_cheaper_to_join(db: SparkSession) -> None:
    """In costs as they come."""
    four, plain = (join_report(three(db, f"f_{layout}", f"g_{layout}"), strict=True) for layout in ("four", "plain"))
    assert four.cost_after < plain.cost_after and four.cost_after < four.cost_before
