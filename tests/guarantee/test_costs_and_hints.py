"""No cost model and no hint changes the rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import pyjoinopt
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.cost.size import Size
from tests.support.shop import SLOW, unharmed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Perverse:
    """A cost model that prefers large results."""

    name = "perverse"

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        return 1e12 / (1.0 + output.rows)


def test_a_model_of_ones_own(db: SparkSession) -> None:
    """It gets the order with the most rows, where the built-in model gets that with the fewest."""

    def most_rows(fast: DataFrame) -> float:
        (group,) = fast._pyjoinopt_report.groups
        return max(join.rows for join in group.estimated_rows)

    df = db.sql(f"SELECT * FROM {SLOW} JOIN customers ON c_id = o_customer")
    perverse, sensible = unharmed(df, cost=Perverse(), reordered=True), unharmed(df, cost="c_out", reordered=True)
    assert most_rows(perverse) > 5 * most_rows(sensible)


def test_what_is_no_model(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {SLOW}")
    with pytest.raises(TypeError, match="option 'cost' is 7 .*'spark', 'c_out'"):
        pyjoinopt.optimize_joins(df, cost=7)
    with pytest.raises(ValueError, match="cost_constants='nowhere.json'.*benchmarks.calibrate"):
        pyjoinopt.optimize_joins(df, cost_constants="nowhere.json")


def test_constants_of_a_session(db: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "constants.json"
    file.write_text(json.dumps({**asdict(DEFAULT), "broadcast": 1e12}))
    df = db.sql(f"SELECT * FROM {SLOW} JOIN customers ON c_id = o_customer")
    before = pyjoinopt.join_report(df).groups[0].cost_before
    db.conf.set("spark.pyjoinopt.costConstants", str(file))
    try:
        assert pyjoinopt.join_report(df).groups[0].cost_before > before + 1e11
        unharmed(df, reordered=True)
    finally:
        db.conf.unset("spark.pyjoinopt.costConstants")


@pytest.mark.parametrize("threshold", ["2kb", "20kb", "1mb"])
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
def test_hints_of_every_kind(db: SparkSession, kind: str, threshold: str) -> None:
    """With small thresholds, shuffled hash joins get a hint where larger thresholds allow a broadcast."""
    few = "(SELECT * FROM customers WHERE c_id % 7 = 1) c"
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        df = db.sql(f"SELECT o_id FROM orders {kind} {few} ON c_id = o_customer")
        unharmed(df, hint_slack=1000, reordered=False)  # of two relations there is one order
    finally:
        db.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_hash_tables_are_what_spark_then_makes(db: SparkSession) -> None:
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", "50b")
    try:
        df = db.sql("SELECT count(*) FROM lines JOIN customers ON c_id = l_order")
        fast = unharmed(df, hint_slack=1000, reordered=False)
        assert [hint.strategy for hint in fast._pyjoinopt_report.hints] == ["SHUFFLE_HASH"]
        assert "ShuffledHashJoin" in fast._jdf.queryExecution().executedPlan().toString()
        assert "SortMergeJoin" in df._jdf.queryExecution().executedPlan().toString()
    finally:
        db.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_what_a_broadcast_may_be_goes_by_the_memory_there_is(db: SparkSession, tmp_path: Path) -> None:
    """A few of 140,000 rows are expected, and at most all: 35 times the threshold, but negligible for the memory."""
    db.range(140_000).selectExpr("id AS k", "cast(id AS string) AS v").write.parquet(str(tmp_path / "few"))
    db.range(60_000).selectExpr("id % 5000 AS f", "id AS n").write.parquet(str(tmp_path / "many"))
    few = db.read.parquet(str(tmp_path / "few")).where("v LIKE '%777'").select("k")
    df = few.join(db.read.parquet(str(tmp_path / "many")), few.k == F.col("f"))
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", "64kb")
    try:
        proofs = {"statistics": "full", "statistics_without": "bounds"}
        fast = unharmed(df, reordered=False, **proofs)
        assert [hint.strategy for hint in fast._pyjoinopt_report.hints] == ["BROADCAST"]
        careful = unharmed(df, hint_slack=8, reordered=False, **proofs)
        assert not [hint for hint in careful._pyjoinopt_report.hints if hint.strategy == "BROADCAST"]
        sampled = unharmed(df, statistics="full", hint_slack=8, reordered=False)
        assert [" by a sample of " in hint.reason for hint in sampled._pyjoinopt_report.hints] == [True]
    finally:
        db.conf.unset("spark.sql.autoBroadcastJoinThreshold")
