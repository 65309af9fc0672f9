"""A hint with more fields than a strategy, as in Spark after 4.3: it is kept unchanged as the user's hint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.install import compile_scala, jars, java
from pyjoinopt.bridge.shim import add_jar, bridge_for
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE = Path(__file__).parent / "scala" / "NewerHints.scala"


@pytest.fixture(scope="module")
def newer(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The classes of `NewerHints.scala`, compiled against this Spark and loaded into its JVM."""
    home = jars.spark_home()
    assert home is not None
    jar = tmp_path_factory.mktemp("newer") / "newer.jar"
    compile_scala.compile_shim(home / "jars", java.ensure_java(), [SOURCE], jar)
    bridge_for(spark.range(1))
    add_jar(spark._jvm, jar)
    assert spark._jvm is not None
    return spark._jvm.newer.NewerHints


def ours(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.pyjoinopt  # type: ignore[union-attr]


def hinted(spark: SparkSession, newer: Any, df: DataFrame, text: str) -> DataFrame:
    """The DataFrame under a hint without a strategy."""
    from pyspark.sql import DataFrame

    plan = newer.over(df._jdf.queryExecution().analyzed(), text)
    return DataFrame(ours(spark).Compat.ofRows(spark._jsparkSession, plan), spark)


def carried(newer: Any, df: DataFrame) -> str:
    return str(newer.filters(df._jdf.queryExecution().optimizedPlan()))


def table(spark: SparkSession, name: str, rows: int, keys: int) -> DataFrame:
    return spark.range(rows).selectExpr(f"id AS {name}_id", f"id % {keys} AS {name}_k", f"id % 7 AS {name}_v")


def test_fields_that_nobody_knows_are_made_by_their_defaults(spark: SparkSession, newer: Any) -> None:
    made = ours(spark).HintInfos.filled(newer.twoFields(), newer.strategy())
    assert made.toString() == "TwoFields(Some(shuffle_hash),Some(by default))"


def test_only_an_empty_hint_is_none(spark: SparkSession, newer: Any) -> None:
    name, some = ours(spark).HintInfos.name, spark._jvm.scala.Some  # type: ignore[union-attr]
    assert name(some(ours(spark).HintInfos.of(spark._jvm.scala.Option.apply(None)))) is None  # type: ignore[union-attr]
    assert name(some(ours(spark).HintInfos.of(newer.strategy()))) == "SHUFFLE_HASH"
    assert name(some(newer.hint("mine"))) == "HintInfo(None, Some(mine))"


def test_a_second_field_keeps_a_join_in_its_place(spark: SparkSession, newer: Any) -> None:
    a, b, c = table(spark, "a", 900, 60), table(spark, "b", 60, 9), table(spark, "c", 9, 2).filter("c_v < 2")

    def joined(middle: DataFrame) -> DataFrame:
        return a.join(middle, on=a.a_k == b.b_id).join(c, on=c.c_id == b.b_k)

    assert joined(b).optimize_joins(cost="c_out", strict=True).join_report().joins_reordered
    df = joined(hinted(spark, newer, b, "mine"))
    fast = df.optimize_joins(cost="c_out", strict=True)
    report = fast.join_report()
    assert not report.joins_reordered and any("join hint of yours" in r.reason for r in report.refusals), report
    assert carried(newer, fast) == carried(newer, df) == "mine"
    assert_same_rows(df, fast)


def test_a_hinted_join_that_a_rule_changes_keeps_all_of_its_hint(spark: SparkSession, newer: Any) -> None:
    a, b = table(spark, "a", 90, 60), table(spark, "b", 60, 9)
    df = a.join(hinted(spark, newer, b, "mine"), on=a.a_id == b.b_id, how="left").filter("b_v > 2")
    fast = df.optimize_joins(strict=True)
    assert fast.join_report().eliminated_outer_joins
    assert carried(newer, fast) == "mine"
    assert_same_rows(df, fast)
