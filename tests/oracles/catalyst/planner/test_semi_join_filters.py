"""Spark's estimates of filters with IN and EXISTS, which it later turns into joins: ours compared with Spark's."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from tests.oracles.catalyst.planner.spark_planner import settings
from tests.support import tpc
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A condition on customers, and how many joins that mark rows it becomes.
ASKING = {
    "EXISTS (SELECT * FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk)": 0,
    "NOT EXISTS (SELECT * FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk)": 0,
    "c_customer_sk IN (SELECT ws_bill_customer_sk FROM web_sales)": 0,
    "EXISTS (SELECT * FROM web_sales) OR c_birth_year = 1970": 0,
    "EXISTS (SELECT * FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk) OR c_birth_year = 1970": 1,
    "c_customer_sk IN (SELECT ws_bill_customer_sk FROM web_sales) OR c_birth_year = 1970": 1,
    "EXISTS (SELECT * FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk) "
    "OR EXISTS (SELECT * FROM catalog_sales WHERE cs_ship_customer_sk = c_customer_sk)": 2,
}


@pytest.mark.parametrize("condition", ASKING)
def test_a_marking_join_is_believed_to_be_a_product(spark: SparkSession, condition: str) -> None:
    tpc.register(spark, "tpcds")
    text = f"SELECT c_current_addr_sk FROM customer WHERE c_birth_month = 5 AND ({condition})"
    query = spark.sql(text)._jdf.queryExecution()
    theirs = int(str(query.optimizedPlan().stats().sizeInBytes()))
    shim = bridge_for(spark.range(1))
    export = decode(oracle_of(spark).exportStage(spark.sql(text)._jdf, json.dumps({"stage": "analyzed"})))
    try:
        ours = SparkSizes(export.conf, export.root)(export.root)
    finally:
        shim.release(export.handle)
    joins = ASKING[condition]
    if joins == 0:
        assert ours == theirs
    else:  # a product of files; the finally required columns are not tracked
        assert theirs / 4**joins < ours <= theirs


MARRIED = """
SELECT cd_gender, cd_marital_status, cd_education_status, cd_credit_rating, count(*)
FROM customer, customer_demographics
WHERE cd_demo_sk = c_current_cdemo_sk
AND (EXISTS (SELECT * FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk)
  OR EXISTS (SELECT * FROM catalog_sales WHERE cs_ship_customer_sk = c_customer_sk))
GROUP BY ALL
"""


def test_the_hint_that_this_takes(spark: SparkSession) -> None:
    """Spark would build the demographics, of which there are twenty times as many as customers."""
    tpc.register(spark, "tpcds")
    written = spark.sql(MARRIED)
    fast = pyjoinopt.optimize_joins(written, strict=True)
    [hint] = fast._pyjoinopt_report.hints
    assert hint.strategy == "BROADCAST"
    with settings(spark, {}):
        assert built(written) == "cd_demo_sk"
        assert built(fast) == "c_current_cdemo_sk"
    assert sorted(map(tuple, fast.collect())) == sorted(map(tuple, written.collect())) != []


def built(df: DataFrame) -> str:
    """The key of the side that Spark's plan of the join builds."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    [(left, right, side)] = re.findall(r"HashJoin \[(\w+)#\d+L?\], \[(\w+)#\d+L?\], Inner, Build(Left|Right)", plan)
    return str(left if side == "Left" else right)
