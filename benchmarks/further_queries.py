"""Queries over TPC tables for rewrites that no TPC query needs: the patterns are those of applications."""

from __future__ import annotations

#: Benchmark -> name of a query -> its text.
FURTHER: dict[str, dict[str, str]] = {
    "tpch": {
        "dearest lines": """
            SELECT l_orderkey, l_linenumber, l_extendedprice, o_orderdate, p_name, s_name FROM lineitem
            LEFT JOIN orders ON l_orderkey = o_orderkey LEFT JOIN part ON l_partkey = p_partkey
            LEFT JOIN supplier ON l_suppkey = s_suppkey
            ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 50""",
        "latest orders": """
            SELECT o_orderkey, o_orderdate, c_name, n_name FROM orders LEFT JOIN customer ON o_custkey = c_custkey
            LEFT JOIN nation ON c_nationkey = n_nationkey ORDER BY o_orderdate DESC, o_orderkey LIMIT 100""",
        "segments": """
            SELECT DISTINCT c_mktsegment, c_nationkey FROM customer JOIN orders ON o_custkey = c_custkey
            JOIN lineitem ON l_orderkey = o_orderkey WHERE l_quantity > 20""",
        "parts in lines and offers": """
            SELECT min(p_name), max(p_retailprice) FROM part JOIN partsupp ON ps_partkey = p_partkey
            JOIN lineitem ON l_partkey = p_partkey AND l_partkey = ps_partkey WHERE ps_availqty > 100""",
        "parts that were sold": """
            SELECT p_brand, count(*) FROM part
            WHERE p_partkey IN (SELECT l_partkey FROM lineitem WHERE l_quantity > 10) GROUP BY p_brand""",
        "lines of offers": """
            SELECT l_returnflag, sum(l_extendedprice) FROM lineitem WHERE l_suppkey IN
            (SELECT ps_suppkey FROM partsupp WHERE ps_availqty > 100) GROUP BY l_returnflag""",
    },
    "tpcds": {
        "two channels": """
            SELECT DISTINCT c_last_name FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
            JOIN catalog_sales ON cs_bill_customer_sk = c_customer_sk""",
        "three channels": """
            SELECT c_birth_year, min(c_last_name), count(DISTINCT c_first_name)
            FROM customer, store_sales, catalog_sales, web_sales WHERE ss_customer_sk = c_customer_sk
            AND cs_bill_customer_sk = c_customer_sk AND ws_bill_customer_sk = c_customer_sk
            AND ss_quantity > 90 AND cs_quantity > 80 AND ws_quantity > 70 GROUP BY c_birth_year""",
        "sold and returned": """
            SELECT i_category, max(i_current_price) FROM item JOIN store_sales ON ss_item_sk = i_item_sk
            JOIN store_returns ON sr_item_sk = i_item_sk WHERE ss_quantity < 5 GROUP BY i_category""",
        "sums of two channels": """
            SELECT c_birth_country, sum(ss_net_paid), sum(ws_net_paid), avg(ws_quantity), count(*)
            FROM store_sales JOIN web_sales ON ss_customer_sk = ws_bill_customer_sk
            JOIN customer ON c_customer_sk = ss_customer_sk GROUP BY c_birth_country""",
        "sold and stored": """
            SELECT i_category, sum(ss_ext_sales_price), sum(inv_quantity_on_hand)
            FROM item JOIN store_sales ON ss_item_sk = i_item_sk JOIN inventory ON inv_item_sk = i_item_sk
            WHERE inv_warehouse_sk = 1 AND ss_quantity > 95 GROUP BY i_category""",
        "customers of stores": """
            SELECT c_birth_country, count(*) FROM customer WHERE EXISTS
            (SELECT 1 FROM store_sales WHERE ss_customer_sk = c_customer_sk AND ss_quantity > 20) AND NOT EXISTS
            (SELECT 1 FROM web_sales WHERE ws_bill_customer_sk = c_customer_sk) GROUP BY c_birth_country""",
        "last sales": """
            SELECT ss_ticket_number, ss_item_sk, ss_net_paid, c_last_name, i_product_name FROM store_sales
            LEFT JOIN customer ON ss_customer_sk = c_customer_sk LEFT JOIN item ON ss_item_sk = i_item_sk
            ORDER BY ss_net_paid DESC, ss_ticket_number, ss_item_sk LIMIT 100""",
    },
}
