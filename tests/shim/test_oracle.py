"""Catalyst's own rules, run on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim, find, message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

QUERY = "select l.id a, r.id b from range(5) l full join range(3) r on l.id = r.id where r.id >= 1"


def test_outer_joins_are_eliminated(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.sql(QUERY), stage="finish")
    assert not any(node["c"] == "SubqueryAlias" for node in export["nodes"])
    assert export["nodes"][find(export, "Join")]["t"] == "FullOuter"
    ruled = shim.apply_rule(export, "org.apache.spark.sql.catalyst.optimizer.EliminateOuterJoin")
    assert ruled["nodes"][find(ruled, "Join")]["t"] == "RightOuter"
    assert ruled["handle"] != export["handle"]
    assert ruled["nodes"][ruled["root"]]["o"] and len(ruled["nodes"]) == len(export["nodes"])


def test_rules_run_together_to_the_end(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.sql(f"select * from ({QUERY}) where a > 2"), stage="finish")
    ruled = shim.apply_rule(export, "EliminateOuterJoin", "PushDownPredicates", "InferFiltersFromConstraints")
    join = ruled["nodes"][find(ruled, "Join")]
    assert join["t"] == "Inner"
    assert [ruled["nodes"][k]["c"] for k in join["k"]] == ["Filter", "Filter"]
    once = shim.apply_rule(export, "PushDownPredicates", once=True)
    assert once["nodes"][find(once, "Join")]["t"] == "FullOuter"


def test_settings_hold_for_the_rules_only(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(
        spark.sql("select * from range(3) a, range(4) b, range(5) c where a.id = b.id and b.id = c.id"), "finish"
    )
    ruled = shim.apply_rule(
        export, "PushDownPredicates", confs={"spark.sql.ansi.enabled": "false", "spark.pyjoinopt.x": "1"}
    )
    assert ruled["conf"].get("spark.pyjoinopt.x") is None
    assert spark.conf.get("spark.pyjoinopt.x", None) is None


def test_the_cost_based_rule_runs(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql("select * from range(100000) a, range(1000) b, range(10) c where a.id = b.id and b.id = c.id")
    export = shim.export(df, "finish")
    confs = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}
    rules = ("PushDownPredicates", "ColumnPruning", "CostBasedJoinReorder")
    ruled = shim.apply_rule(export, *rules, confs=confs)
    joins = [node for node in ruled["nodes"] if node["c"] == "Join"]
    sizes = {n["rows"] for k in joins[0]["k"] for n in [ruled["nodes"][k]] if n["c"] == "Range"}
    assert sizes == {1000.0, 10.0}


def test_edits_can_be_ruled(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.sql("select * from range(3) a where id >= 1 and id < 5"), stage="finish")
    kept = export["nodes"][find(export, "Filter")]
    edits = {"exprs": [], "nodes": [["Filter", find(export, "Filter"), kept["cond"]]], "root": -1}
    ruled = shim.apply_rule(export, "CombineFilters", **edits)
    assert [node["c"] for node in ruled["nodes"]] == ["Range", "Filter"]


def test_an_unknown_rule_is_named(spark: SparkSession, shim: Shim) -> None:
    from py4j.protocol import Py4JJavaError

    export = shim.export(spark.range(1))
    with pytest.raises(Py4JJavaError) as error:
        shim.apply_rule(export, "MakeItFast")
    assert message(error) == "There is no rule MakeItFast in this Spark."


def test_stages(spark: SparkSession, shim: Shim) -> None:
    from py4j.protocol import Py4JJavaError

    df = spark.range(9).alias("t").where("1 = 1 and t.id > 3")
    assert len(shim.export(df, "analyzed")["nodes"]) == 3
    assert len(shim.export(df, "finish")["nodes"]) == 2
    assert shim.export(df, "optimized")["nodes"][-1]["c"] == "Filter"
    with pytest.raises(Py4JJavaError) as error:
        shim.export(df, "baked")
    assert "no stage baked" in message(error)
