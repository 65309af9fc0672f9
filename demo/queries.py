"""Ten TPC-H queries as people typically write them: half in SQL, half as DataFrame code.

The fact table comes first, dimensions next, the selective filter last, with an outer join "to be safe". Two of the
queries are in a good order already, so that the demonstration also shows this case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyjoinopt.demo.measure import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _sql(text: str) -> Callable[[SparkSession], DataFrame]:
    return lambda spark: spark.sql(text)


_MARKET_SHARE = """
SELECT year(o_orderdate) AS order_year,
       sum(CASE WHEN supplier_nation.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
         / sum(l_extendedprice * (1 - l_discount)) AS market_share
FROM lineitem, orders, customer, supplier, nation AS customer_nation, nation AS supplier_nation, region, part
WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND l_suppkey = s_suppkey AND l_partkey = p_partkey
  AND c_nationkey = customer_nation.n_nationkey AND s_nationkey = supplier_nation.n_nationkey
  AND customer_nation.n_regionkey = r_regionkey AND r_name = 'AMERICA'
  AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type = 'ECONOMY ANODIZED STEEL'
GROUP BY year(o_orderdate)
"""

_PROFIT = """
SELECT n_name, year(o_orderdate) AS order_year,
       sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
FROM orders, lineitem, partsupp, supplier, nation, part
WHERE o_orderkey = l_orderkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
  AND s_suppkey = l_suppkey AND s_nationkey = n_nationkey AND p_partkey = l_partkey AND p_size = 15
  AND p_type LIKE '%BRASS'
GROUP BY n_name, year(o_orderdate)
"""

_LOCAL_SUPPLIERS = """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem, supplier, orders, customer, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-04-01'
GROUP BY n_name
"""

_CAREFUL_OUTER_JOINS = """
SELECT p_brand, count(*) AS lines, sum(l_quantity) AS quantity
FROM orders
  LEFT JOIN lineitem ON l_orderkey = o_orderkey
  LEFT JOIN supplier ON s_suppkey = l_suppkey
  LEFT JOIN part ON p_partkey = l_partkey
WHERE p_container = 'JUMBO PKG' AND p_size < 10 AND s_acctbal > 0
GROUP BY p_brand
"""

_SHIPPING_PRIORITY = """
SELECT l_orderkey, o_orderdate, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate
"""


def _supplier_revenue(spark: SparkSession) -> DataFrame:
    """A withColumn after each join, as in a notebook that grows cell by cell; the filters come last."""
    from pyspark.sql import functions as F

    orders, lines = spark.table("orders"), spark.table("lineitem")
    sales = orders.join(lines, orders["o_orderkey"] == lines["l_orderkey"])
    sales = sales.withColumn("revenue", F.col("l_extendedprice") * (1 - F.col("l_discount")))
    sales = sales.join(spark.table("supplier"), F.col("l_suppkey") == F.col("s_suppkey"))
    sales = sales.withColumn("days_late", F.datediff("l_receiptdate", "l_commitdate"))
    sales = sales.join(spark.table("part"), F.col("l_partkey") == F.col("p_partkey"))
    sales = sales.join(spark.table("nation"), F.col("s_nationkey") == F.col("n_nationkey"))
    chosen = sales.filter((F.col("n_name") == "FRANCE") & (F.col("p_brand") == "Brand#34") & (F.col("p_size") > 40))
    return chosen.groupBy("s_name").agg(F.sum("revenue").alias("revenue"), F.avg("days_late").alias("days_late"))


def _wide_report(spark: SparkSession) -> DataFrame:
    """Thirteen joins: a reporting view that joins every dimension; the query filters one brand."""
    from pyspark.sql import functions as F

    def lookup(table: str, prefix: str) -> DataFrame:
        frame = spark.table(table)
        return frame.select(*[F.col(name).alias(f"{prefix}_{name}") for name in frame.columns])

    def names(column: str, *values: str) -> DataFrame:
        rows = ", ".join(f"('{value}', {number})" for number, value in enumerate(values, 1))
        return spark.sql(f"SELECT * FROM VALUES {rows} AS names({column}, {column}_rank)")

    modes = names("mode", "AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
    priorities = names("priority", "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
    segments = names("segment", "AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
    flags = names("flag", "A", "N", "R")
    lines, partsupp = spark.table("lineitem"), spark.table("partsupp")
    offered = (lines["l_partkey"] == partsupp["ps_partkey"]) & (lines["l_suppkey"] == partsupp["ps_suppkey"])
    report = (
        lines.join(spark.table("orders"), F.col("l_orderkey") == F.col("o_orderkey"))
        .join(spark.table("customer"), F.col("o_custkey") == F.col("c_custkey"))
        .join(partsupp, offered)
        .join(lookup("nation", "buyer"), F.col("c_nationkey") == F.col("buyer_n_nationkey"))
        .join(lookup("region", "buyer"), F.col("buyer_n_regionkey") == F.col("buyer_r_regionkey"))
        .join(spark.table("supplier"), F.col("ps_suppkey") == F.col("s_suppkey"))
        .join(lookup("nation", "seller"), F.col("s_nationkey") == F.col("seller_n_nationkey"))
        .join(lookup("region", "seller"), F.col("seller_n_regionkey") == F.col("seller_r_regionkey"))
        .join(modes, F.col("l_shipmode") == F.col("mode"))
        .join(priorities, F.col("o_orderpriority") == F.col("priority"))
        .join(segments, F.col("c_mktsegment") == F.col("segment"))
        .join(flags, F.col("l_returnflag") == F.col("flag"))
        .join(spark.table("part"), F.col("ps_partkey") == F.col("p_partkey"))
    )
    chosen = report.filter((F.col("p_brand") == "Brand#12") & (F.col("buyer_r_name") == "EUROPE"))
    return chosen.groupBy("seller_r_name", "priority").agg(
        F.count("*").alias("lines"), F.sum("l_quantity").alias("sold")
    )


def _needless_left_joins(spark: SparkSession) -> DataFrame:
    """Left joins only, and then a filter that rejects all unmatched rows."""
    from pyspark.sql import functions as F

    customers, orders, lines = spark.table("customer"), spark.table("orders"), spark.table("lineitem")
    joined = (
        customers.join(orders, customers["c_custkey"] == orders["o_custkey"], "left")
        .join(lines, orders["o_orderkey"] == lines["l_orderkey"], "left")
        .join(spark.table("part"), F.col("l_partkey") == F.col("p_partkey"), "left")
    )
    chosen = joined.filter((F.col("p_name").contains("lavender")) & (F.col("p_size") == 7))
    return chosen.groupBy("c_mktsegment").agg(F.count("*").alias("lines"), F.sum("l_extendedprice").alias("price"))


def _large_orders(spark: SparkSession) -> DataFrame:
    """An aggregate that keeps a few orders, joined last."""
    from pyspark.sql import functions as F

    lines, orders = spark.table("lineitem"), spark.table("orders")
    sold = lines.groupBy(F.col("l_orderkey").alias("large_orderkey")).agg(F.sum("l_quantity").alias("quantity"))
    large = sold.filter("quantity > 300")
    joined = (
        lines.join(orders, lines["l_orderkey"] == orders["o_orderkey"])
        .join(spark.table("customer"), F.col("o_custkey") == F.col("c_custkey"))
        .join(large, F.col("o_orderkey") == F.col("large_orderkey"))
    )
    return joined.groupBy("c_name", "o_orderkey").agg(F.sum("l_quantity").alias("quantity"))


def _suppliers_by_region(spark: SparkSession) -> DataFrame:
    """Smallest table first, filtered when it is read: there is no better order."""
    from pyspark.sql import functions as F

    regions = spark.table("region").filter(F.col("r_name") == "AFRICA")
    return (
        regions.join(spark.table("nation"), F.col("r_regionkey") == F.col("n_regionkey"))
        .join(spark.table("supplier"), F.col("n_nationkey") == F.col("s_nationkey"))
        .groupBy("n_name")
        .agg(F.count("*").alias("suppliers"), F.sum("s_acctbal").alias("balance"))
    )


QUERIES = (
    Query("market share", "SQL", "eight tables, the selective one last in FROM", _sql(_MARKET_SHARE)),
    Query("profit", "SQL", "the fact table first, the filter on parts last", _sql(_PROFIT)),
    Query("local suppliers", "SQL", "a cycle of joins over six tables", _sql(_LOCAL_SUPPLIERS)),
    Query(
        "careful outer joins", "SQL", "LEFT JOINs, and a WHERE that drops unmatched rows", _sql(_CAREFUL_OUTER_JOINS)
    ),
    Query("shipping priority", "SQL", "already in a good order", _sql(_SHIPPING_PRIORITY)),
    Query("supplier revenue", "DataFrame", "computed columns between the joins, filters at the end", _supplier_revenue),
    Query("wide report", "DataFrame", "thirteen joins, more than Spark's own optimizer reorders", _wide_report),
    Query("needless left joins", "DataFrame", "left joins under a filter on their right side", _needless_left_joins),
    Query("large orders", "DataFrame", "an aggregate that keeps few orders, joined last", _large_orders),
    Query("suppliers by region", "DataFrame", "already in the best order", _suppliers_by_region),
)
