"""The common expressions that Spark makes are inlined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import walk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "id between 1 and 2": "And",
    "nullif(id, 3) between 1 and nullif(n, 4)": "And",
    "(id between 0 and n) = (n between 1 and nullif(id, 2))": "EqualTo",
}


@pytest.mark.parametrize("text", QUERIES)
def test_what_spark_makes(spark: SparkSession, text: str) -> None:
    """Nothing of Spark's own shorthand is left, and every column is found where it belongs."""
    from pyjoinopt.bridge.decode import decode
    from pyjoinopt.bridge.shim import bridge_for

    if spark.version < "4":
        pytest.skip("Spark 3.5 has no common expressions")
    df = spark.range(9).selectExpr("id", "id + 1 as n").where(text)
    bridge = bridge_for(df)
    export = decode(bridge.export(df._jdf, "{}"))
    written = inline_common_expressions(export.root.expressions[0])
    assert written.kind == QUERIES[text]
    assert not {e.kind for e in walk(written)} & {"With", "CommonExpressionRef", "CommonExpressionDef"}
