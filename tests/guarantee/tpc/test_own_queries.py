"""Queries over the tables of TPC-DS that are not TPC's: each pattern of a rewrite in other words, and near misses.

What matters is the meaning: joins in another order, a common table expression or the same inline, USING, aliases, more
columns, DataFrames. A near miss looks alike and is left alone; of most, rows would be other ones if it was rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pyjoinopt
from pyjoinopt.optimizer.eager_aggregation import eager_aggregation
from tests.support.compare import assert_same_rows
from tests.support.eager import FREE as FREE_AGGREGATES
from tests.support.prefilters import FREE as FREE_BROADCASTS
from tests.support.prefilters import checked
from tests.support.rewritten_plans import is_changed_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.ci

SALES = "store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk"
PAID = f"SELECT ss_customer_sk k, ss_store_sk, d_year AS y, sum(ss_net_paid) s FROM {SALES} GROUP BY 1, 2, d_year"
YEARS = f"SELECT ss_store_sk k, d_year y, sum(ss_net_paid) s, count(*) n FROM {SALES} GROUP BY ss_store_sk, d_year"
WEB = "SELECT count(*) {0} FROM web_sales WHERE ws_quantity"


class Own(NamedTuple):
    """A query, the rewrite that it is for, and whether that changes it."""

    rewrite: str
    changes: bool
    text: str


QUERIES = {
    # -- aggregates side by side over the same rows ---------------------------------------------------------------
    "two counts": Own("fuse_aggregates", True, f"SELECT a / b FROM ({WEB.format('a')} < 40), ({WEB.format('b')} > 60)"),
    "three in other words": Own("fuse_aggregates", True, f"""
        SELECT x.a, y.b, z.c FROM ({WEB.format('a')} BETWEEN 1 AND 20) x CROSS JOIN ({WEB.format('b')} > 60) y
        CROSS JOIN (SELECT max(w.ws_net_paid) c FROM web_sales w WHERE 90 < w.ws_quantity) z"""),
    "as common table expressions": Own("fuse_aggregates", True, f"""
        WITH few AS ({WEB.format('a')} < 40), many AS ({WEB.format('b')} > 60) SELECT a, b FROM many, few"""),
    "over a join in another order": Own("fuse_aggregates", True, """
        SELECT * FROM (SELECT count(*) a FROM web_sales, web_page WHERE ws_web_page_sk = wp_web_page_sk
                       AND wp_char_count < 3000),
                      (SELECT count(*) b FROM web_page JOIN web_sales ON wp_web_page_sk = ws_web_page_sk
                       WHERE wp_char_count >= 3000)"""),
    "over two tables": Own("fuse_aggregates", False, f"""
        SELECT a / b FROM ({WEB.format('a')} < 40), (SELECT count(*) b FROM catalog_sales WHERE cs_quantity > 60)"""),
    "with a limit inside": Own("fuse_aggregates", False, f"""
        SELECT * FROM ({WEB.format('a')} < 40), (SELECT count(*) b FROM (SELECT * FROM web_sales LIMIT 10))"""),
    "with groups": Own("fuse_aggregates", False, """
        SELECT * FROM (SELECT ws_quantity q, count(*) a FROM web_sales WHERE ws_quantity < 4 GROUP BY ws_quantity),
                      (SELECT ws_quantity r, count(*) b FROM web_sales WHERE ws_quantity > 97 GROUP BY ws_quantity)"""),
    # -- groups joined with themselves ----------------------------------------------------------------------------
    "a year and the next": Own("pivot_self_join", True, f"""
        WITH t AS ({YEARS}) SELECT a.k, a.s, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.y = 2001 AND b.y = 2002"""),
    "the same with USING": Own("pivot_self_join", True, f"""
        WITH t AS ({YEARS}) SELECT k, p.s / q.s r FROM (SELECT * FROM t WHERE y = 2002) q
        JOIN (SELECT * FROM t WHERE y = 2001) p USING (k)"""),
    "three years and more columns": Own("pivot_self_join", True, f"""
        WITH t AS ({YEARS}) SELECT b.k, a.n + b.n + c.n, c.s > a.s FROM t b, t c, t a
        WHERE b.k = a.k AND c.k = b.k AND a.y = 2000 AND 2001 = b.y AND c.y = 2002"""),
    "with a condition on the sums": Own("pivot_self_join", True, f"""
        WITH t AS ({YEARS}) SELECT a.k FROM t a, t b WHERE a.k = b.k AND a.y = 2001 AND b.y = 2002 AND b.s > a.s"""),
    "another key": Own("pivot_self_join", False, f"""
        WITH t AS ({YEARS}) SELECT a.k, a.s, b.s FROM t a JOIN t b ON a.n = b.n WHERE a.y = 2001 AND b.y = 2002"""),
    "the other year may be missing": Own("pivot_self_join", False, f"""
        WITH t AS ({YEARS}) SELECT a.k, a.s, b.s FROM (SELECT * FROM t WHERE y = 2001) a
        LEFT JOIN (SELECT * FROM t WHERE y = 1902) b ON a.k = b.k"""),
    "any two years": Own("pivot_self_join", False, f"""
        WITH t AS ({YEARS}) SELECT a.k, a.s, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.y < b.y"""),
    # -- common table expressions of which readers read a part ----------------------------------------------------
    "readers of two years": Own("filter_common_tables", True, f"""
        WITH t AS ({YEARS}) SELECT * FROM t WHERE y = 2001 UNION ALL SELECT * FROM t WHERE y = 2002"""),
    "a reader of all years": Own("filter_common_tables", False, f"""
        WITH t AS ({YEARS}) SELECT * FROM t WHERE y = 2001 UNION ALL SELECT * FROM t"""),
    # -- outer joins ----------------------------------------------------------------------------------------------
    "padded rows are dropped": Own("simplify_outer_joins", True, """
        SELECT ss_ticket_number, sr_return_quantity FROM store_sales LEFT JOIN store_returns
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk WHERE sr_return_quantity > 10"""),
    "by a later join": Own("simplify_outer_joins", True, """
        SELECT ss_ticket_number, r_reason_desc FROM store_returns RIGHT JOIN store_sales
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk
        JOIN reason ON r_reason_sk = sr_reason_sk"""),
    "padded rows are kept": Own("simplify_outer_joins", False, """
        SELECT ss_ticket_number, sr_return_quantity FROM store_sales LEFT JOIN store_returns
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk
        WHERE sr_return_quantity > 10 OR sr_return_quantity IS NULL"""),
    "coalesced": Own("simplify_outer_joins", False, """
        SELECT ss_ticket_number FROM store_sales LEFT JOIN store_returns
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk
        WHERE coalesce(sr_return_quantity, 20) > 10"""),
    "never returned": Own("left_join_to_anti_join", True, """
        SELECT ss_ticket_number, ss_item_sk FROM store_sales LEFT JOIN store_returns
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk WHERE sr_ticket_number IS NULL"""),
    "never returned, from the right": Own("left_join_to_anti_join", True, """
        SELECT s.ss_item_sk FROM (SELECT sr_item_sk i, sr_ticket_number t FROM store_returns) r
        RIGHT JOIN store_sales s ON i = s.ss_item_sk AND s.ss_ticket_number = t WHERE t IS NULL"""),
    "returned for no known reason": Own("left_join_to_anti_join", False, """
        SELECT ss_ticket_number, ss_item_sk FROM store_sales LEFT JOIN store_returns
        ON ss_ticket_number = sr_ticket_number AND sr_item_sk = ss_item_sk WHERE sr_reason_sk IS NULL"""),
    # -- rows that only look for others of the same table ---------------------------------------------------------
    "orders from two warehouses": Own("self_join_to_semi_join", True, """
        SELECT count(*) FROM web_returns WHERE wr_order_number IN (
          SELECT b.ws_order_number FROM web_sales a JOIN web_sales b
          ON b.ws_order_number = a.ws_order_number AND NOT a.ws_warehouse_sk = b.ws_warehouse_sk)"""),
    "the same with a join above": Own("self_join_to_semi_join", True, """
        WITH w AS (SELECT a.ws_order_number o FROM web_sales a, web_sales b
                   WHERE a.ws_order_number = b.ws_order_number AND a.ws_warehouse_sk <> b.ws_warehouse_sk)
        SELECT sum(ws_net_paid) FROM web_sales WHERE ws_order_number IN (
          SELECT wr_order_number FROM web_returns, w WHERE wr_order_number = w.o)"""),
    "duplicates are counted": Own("self_join_to_semi_join", False, """
        SELECT count(*) FROM web_sales a JOIN web_sales b
        ON b.ws_order_number = a.ws_order_number AND a.ws_warehouse_sk <> b.ws_warehouse_sk"""),
    # -- alternatives with something in common --------------------------------------------------------------------
    "two kinds of buyers": Own("extract_common_factors", True, """
        SELECT count(*) FROM store_sales, household_demographics, store WHERE ss_store_sk = s_store_sk
        AND (ss_hdemo_sk = hd_demo_sk AND hd_dep_count = 3 OR hd_dep_count = 1 AND hd_demo_sk = ss_hdemo_sk)"""),
    "nothing in common": Own("extract_common_factors", False, """
        SELECT count(*) FROM customer, household_demographics
        WHERE c_customer_sk < 20 AND (c_current_hdemo_sk = hd_demo_sk OR c_current_hdemo_sk + 1 = hd_demo_sk)"""),
    "alternatives of two tables": Own("push_extra_predicate", True, """
        SELECT count(*) FROM store_sales JOIN household_demographics ON ss_hdemo_sk = hd_demo_sk
        WHERE ss_quantity < 5 AND hd_dep_count = 3 OR hd_vehicle_count = 2 AND ss_quantity > 90"""),
    "an alternative without the table": Own("push_extra_predicate", False, """
        SELECT count(*) FROM store_sales JOIN household_demographics ON ss_hdemo_sk = hd_demo_sk
        WHERE ss_quantity < 5 OR hd_vehicle_count = 2"""),
    # -- sets -----------------------------------------------------------------------------------------------------
    "items of all channels": Own("set_operations_to_joins", True, """
        SELECT count(*) FROM (
          SELECT i_brand_id, i_class_id FROM store_sales JOIN item ON ss_item_sk = i_item_sk INTERSECT
          SELECT i.i_brand_id, i.i_class_id FROM item i, web_sales WHERE i.i_item_sk = ws_item_sk)"""),
    "brands of one channel": Own("set_operations_to_joins", True, """
        SELECT i_brand_id FROM item JOIN store_sales ON ss_item_sk = i_item_sk WHERE ss_quantity > 95 EXCEPT
        SELECT i_brand_id FROM item JOIN web_sales ON ws_item_sk = i_item_sk"""),
    "with duplicates": Own("set_operations_to_joins", False, """
        SELECT i_brand_id FROM item JOIN store_sales ON ss_item_sk = i_item_sk WHERE ss_quantity > 95 EXCEPT ALL
        SELECT i_brand_id FROM item JOIN web_sales ON ws_item_sk = i_item_sk WHERE ws_quantity > 95"""),
    # -- groups of the rows that they are joined with -------------------------------------------------------------
    "dearer than the others": Own("aggregate_to_window", True, """
        SELECT i_item_id FROM item i WHERE i.i_current_price > (
          SELECT 1.2 * avg(j.i_current_price) FROM item j WHERE j.i_category = i.i_category)"""),
    "the same as a join": Own("aggregate_to_window", True, """
        SELECT i_item_id, a * 2 FROM (SELECT i_category c, avg(i_current_price) a FROM item GROUP BY i_category)
        JOIN item ON c = i_category WHERE a < i_current_price"""),
    "the dearest, with USING": Own("aggregate_to_window", True, """
        SELECT i_category, i_item_id, m FROM item
        JOIN (SELECT i_category, max(i_current_price) m FROM item GROUP BY i_category) USING (i_category)
        WHERE m = i_current_price"""),
    "the last purchase of some customers": Own("aggregate_to_window", True, """
        SELECT ss_ticket_number, c_last_name FROM customer, store_sales s WHERE c_birth_year = 1970 AND
        c_customer_sk = ss_customer_sk AND s.ss_sold_date_sk = (
          SELECT max(t.ss_sold_date_sk) FROM store_sales t WHERE t.ss_customer_sk = c_customer_sk)"""),
    "with a table expression": Own("aggregate_to_window", True, f"""
        WITH t AS (SELECT ss_customer_sk k, ss_store_sk, sum(ss_net_paid) s FROM {SALES} WHERE d_year = 2001
                   GROUP BY 1, 2)
        SELECT t.k, t.s FROM t, (SELECT k, min(s) least FROM t GROUP BY k HAVING count(*) > 1) u
        WHERE t.k = u.k AND t.s > least"""),
    "over the same days": Own("aggregate_to_window", True, """
        SELECT ws_order_number FROM item JOIN web_sales ON ws_item_sk = i_item_sk JOIN date_dim d
        ON d.d_date_sk = ws_sold_date_sk WHERE d.d_year = 2000 AND i_manufact_id < 100 AND ws_sales_price > (
          SELECT avg(w.ws_sales_price) FROM date_dim e, web_sales w
          WHERE e.d_date_sk = w.ws_sold_date_sk AND e.d_year = 2000 AND w.ws_item_sk = i_item_sk)"""),
    "over other days": Own("aggregate_to_window", False, """
        SELECT ws_order_number FROM item JOIN web_sales ON ws_item_sk = i_item_sk JOIN date_dim d
        ON d.d_date_sk = ws_sold_date_sk WHERE d.d_year = 2000 AND i_manufact_id < 100 AND ws_sales_price > (
          SELECT avg(w.ws_sales_price) FROM date_dim e, web_sales w
          WHERE e.d_date_sk = w.ws_sold_date_sk AND e.d_year = 1999 AND w.ws_item_sk = i_item_sk)"""),
    "dearer than in another table": Own("aggregate_to_window", False, """
        SELECT ss_ticket_number FROM store_sales, item WHERE i_item_sk = ss_item_sk AND ss_sales_price > (
          SELECT 3 * avg(ws_sales_price) FROM web_sales WHERE ws_item_sk = i_item_sk)"""),
    "dearer than all": Own("aggregate_to_window", False, """
        SELECT i_item_id FROM item WHERE i_current_price > (SELECT 1.2 * avg(i_current_price) FROM item)"""),
    "than those of another category": Own("aggregate_to_window", False, """
        SELECT i_item_id FROM (SELECT i_category c, i_class k, avg(i_current_price) a FROM item GROUP BY 1, 2)
        JOIN item i ON c = i_category WHERE i_current_price > a"""),
    # -- readers that differ by a constant ------------------------------------------------------------------------
    "two years of a customer": Own("share_common_tables", True, f"""
        WITH t AS ({PAID}) SELECT a.k, a.s, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.y = 2001 AND b.y = 2002"""),
    "three years, with more conditions": Own("share_common_tables", True, f"""
        WITH t AS ({PAID}) SELECT c.k, a.s + b.s FROM t b, t c, t a WHERE b.k = c.k AND a.k = c.k AND c.s > a.s
        AND 2000 = a.y AND b.y = 2001 AND c.y = 2002"""),
    "of two channels": Own("share_common_tables", True, f"""
        WITH t AS ({PAID.replace("SELECT", "SELECT 's' c,").replace("1, 2", "2, 3")} UNION ALL
                   SELECT 'w', ws_bill_customer_sk, ws_web_site_sk, d_year AS z, sum(ws_net_paid)
                   FROM web_sales, date_dim WHERE d_date_sk = ws_sold_date_sk GROUP BY 2, 3, d_year)
        SELECT a.s, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.c = 'w' AND b.c = 'w' AND a.y = 2001 AND b.y = 2002"""),
    "the same year twice": Own("share_common_tables", False, f"""
        WITH t AS ({PAID}) SELECT a.k, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.y = 2001 AND b.y = 2001"""),
    "a year and all years": Own("share_common_tables", False, f"""
        WITH t AS ({PAID}) SELECT a.k, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.y = 2001"""),
    "a year and another sum": Own("share_common_tables", False, f"""
        WITH t AS ({PAID}) SELECT a.k, b.y FROM t a JOIN t b ON a.k = b.k
        WHERE a.y = 2001 AND b.y = 2002 AND a.s > 9"""),
    "of two channels, named outside": Own("share_common_tables", True, f"""
        WITH t AS (SELECT 's' c, * FROM ({PAID}) UNION ALL SELECT 'w', * FROM ({PAID}))
        SELECT a.s, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.c = 'w' AND b.c = 'w' AND a.y = 2001 AND b.y = 2002"""),
    # -- scalar subqueries over the same rows ---------------------------------------------------------------------
    "two figures of a table": Own("fuse_scalar_subqueries", True, """
        SELECT r_reason_sk, (SELECT count(*) FROM store_sales WHERE ss_quantity < 20) few,
               (SELECT avg(s.ss_net_paid) FROM store_sales s WHERE 80 < s.ss_quantity) much
        FROM reason WHERE r_reason_sk < 3"""),
    "chosen by a third": Own("fuse_scalar_subqueries", True, """
        SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 10
               THEN (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
               ELSE (SELECT max(ss_net_profit) FROM store_sales WHERE ss_quantity > 20) END x
        FROM reason WHERE r_reason_sk = 1"""),
    # A common table expression is not looked into: it would be right, but is not done.
    "of a common table expression": Own("fuse_scalar_subqueries", False, """
        WITH s AS (SELECT ss_quantity q, ss_net_paid p FROM store_sales WHERE ss_store_sk IS NOT NULL)
        SELECT r_reason_sk, (SELECT sum(p) FROM s WHERE q < 20) a, (SELECT min(p) FROM s WHERE q > 90) b
        FROM reason WHERE r_reason_sk = 2"""),
    "figures of two tables": Own("fuse_scalar_subqueries", False, """
        SELECT r_reason_sk, (SELECT count(*) FROM store_sales WHERE ss_quantity < 20) a,
               (SELECT count(*) FROM web_sales WHERE ws_quantity < 20) b FROM reason WHERE r_reason_sk = 1"""),
    "one of some rows": Own("fuse_scalar_subqueries", False, """
        SELECT r_reason_sk, (SELECT count(*) FROM store_sales WHERE ss_quantity < 20) a,
               (SELECT count(*) FROM (SELECT * FROM store_sales LIMIT 10)) b FROM reason WHERE r_reason_sk = 1"""),
    "one at random": Own("fuse_scalar_subqueries", False, """
        SELECT r_reason_sk, (SELECT count(*) FROM store_sales WHERE ss_quantity < 20) a,
               (SELECT count(*) FROM store_sales WHERE rand() < 2) b FROM reason WHERE r_reason_sk = 1"""),
    # -- joins that only look for partners -------------------------------------------------------------------------
    "customers of two channels": Own("inner_to_semi_joins", True, """
        SELECT DISTINCT c_last_name FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
        JOIN catalog_sales ON cs_bill_customer_sk = c_customer_sk"""),
    "everything compared": Own("inner_to_semi_joins", True, """
        SELECT min(c_last_name), max(c_birth_year) FROM web_sales, store_sales, customer
        WHERE ss_customer_sk = c_customer_sk AND ws_bill_customer_sk = c_customer_sk
        AND ws_bill_customer_sk = ss_customer_sk"""),
    "a group for each year of birth": Own("inner_to_semi_joins", True, """
        SELECT c_birth_year, max(c_last_name), count(DISTINCT c_first_name) FROM customer, store_sales s, web_sales w
        WHERE s.ss_customer_sk = c_customer_sk AND w.ws_bill_customer_sk = c_customer_sk GROUP BY c_birth_year"""),
    "with the dates of one channel": Own("inner_to_semi_joins", True, """
        SELECT c_last_name FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
        JOIN (SELECT cs_bill_customer_sk b FROM catalog_sales JOIN date_dim ON cs_sold_date_sk = d_date_sk
              WHERE d_moy < 12) x ON b = c_customer_sk GROUP BY c_last_name"""),
    "how many purchases": Own("inner_to_semi_joins", False, """
        SELECT count(*) FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
        JOIN catalog_sales ON cs_bill_customer_sk = c_customer_sk"""),
    "a sum beside": Own("inner_to_semi_joins", False, """
        SELECT min(c_last_name), sum(c_birth_year) FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
        JOIN catalog_sales ON cs_bill_customer_sk = c_customer_sk"""),
    "one partner each": Own("inner_to_semi_joins", False, """
        SELECT DISTINCT ss_item_sk FROM store_sales JOIN customer ON ss_customer_sk = c_customer_sk
        JOIN customer_address ON c_current_addr_sk = ca_address_sk"""),
    "what they bought": Own("inner_to_semi_joins", False, """
        SELECT DISTINCT ss_item_sk, cs_item_sk FROM customer JOIN store_sales ON ss_customer_sk = c_customer_sk
        JOIN catalog_sales ON cs_bill_customer_sk = c_customer_sk WHERE c_birth_year = 1970"""),
}  # fmt: skip
#: Rewrites that pay only at a larger scale, so other operators cost nothing here.
PRICED = {
    # -- aggregates that are computed in part before joins -----------------------------------------------------------
    "brands by store": Own("eager_aggregation", True, """
        SELECT i_brand_id, ss_store_sk, sum(ss_net_paid), count(*) FROM store_sales, item WHERE i_item_sk = ss_item_sk
        GROUP BY ss_store_sk, i_brand_id"""),
    "below a left join": Own("eager_aggregation", True, """
        SELECT c_birth_year, count(*) n, min(ss_net_paid) FROM store_sales LEFT JOIN customer
        ON ss_customer_sk = c_customer_sk GROUP BY c_birth_year"""),
    "with FILTER": Own("eager_aggregation", True, """
        SELECT d_moy, sum(ws_net_paid) FILTER (WHERE ws_quantity > 50) a, count(ws_quantity) b
        FROM web_sales JOIN date_dim ON d_date_sk = ws_sold_date_sk WHERE d_year = 2001 GROUP BY d_moy"""),
    "customers with their sales": Own("eager_aggregation", True, """
        SELECT c_customer_id, count(ss_item_sk) n, count(*) m, sum(ss_net_paid) FROM customer
        LEFT JOIN store_sales ON c_customer_sk = ss_customer_sk GROUP BY c_customer_id"""),
    "averages by brand": Own("eager_aggregation", True, """
        WITH s AS (SELECT ws_item_sk k, ws_quantity q, ws_sales_price p FROM web_sales)
        SELECT i_brand_id, avg(q), avg(p), avg(p) FILTER (WHERE q > 10) FROM item JOIN s ON k = i_item_sk
        GROUP BY i_brand_id"""),
    "a ROLLUP of classes": Own("eager_aggregation", True, """
        SELECT i_category, i_class, grouping_id(), avg(inv_quantity_on_hand), count(*) FROM inventory
        JOIN item ON i_item_sk = inv_item_sk GROUP BY ROLLUP (i_category, i_class)"""),
    "a CUBE above two joins": Own("eager_aggregation", True, """
        SELECT d_year, i_category, sum(cs_quantity), max(cs_sales_price) FROM catalog_sales, date_dim, item
        WHERE d_date_sk = cs_sold_date_sk AND i_item_sk = cs_item_sk GROUP BY CUBE (d_year, i_category)"""),
    "sums of two channels": Own("eager_aggregation", True, """
        SELECT c_birth_country, sum(ss_net_paid), sum(w.ws_net_paid), avg(w.ws_quantity) FROM web_sales w, customer,
        store_sales WHERE ss_customer_sk = c_customer_sk AND ws_bill_customer_sk = c_customer_sk
        GROUP BY c_birth_country"""),
    "prices of items that were sold": Own("eager_aggregation", True, """
        SELECT i_category, sum(i_current_price), count(i_brand) FROM store_sales
        LEFT JOIN item ON i_item_sk = ss_item_sk GROUP BY i_category"""),
    "a product of both": Own("eager_aggregation", False, """
        SELECT i_category, sum(i_current_price * ss_quantity) FROM store_sales JOIN item ON i_item_sk = ss_item_sk
        GROUP BY i_category"""),
    "customers, with what NULL stands for": Own("eager_aggregation", False, """
        SELECT c_customer_id, sum(coalesce(ss_quantity, 1)) FROM customer LEFT JOIN store_sales
        ON c_customer_sk = ss_customer_sk GROUP BY c_customer_id"""),
    "averages of what is computed of both": Own("eager_aggregation", False, """
        SELECT i_brand_id, avg(ws_quantity * i_current_price) FROM item JOIN web_sales ON ws_item_sk = i_item_sk
        GROUP BY i_brand_id"""),
    "different buyers": Own("eager_aggregation", False, """
        SELECT i_brand_id, count(DISTINCT ss_customer_sk) FROM store_sales JOIN item ON ss_item_sk = i_item_sk
        GROUP BY i_brand_id"""),
    "a percentile": Own("eager_aggregation", False, """
        SELECT i_brand_id, percentile(ss_quantity, 0.5) FROM store_sales JOIN item ON ss_item_sk = i_item_sk
        GROUP BY i_brand_id"""),
    "sums of floating-point numbers": Own("eager_aggregation", False, """
        SELECT i_brand_id, sum(CAST(ss_net_paid AS DOUBLE)) FROM store_sales JOIN item ON ss_item_sk = i_item_sk
        GROUP BY i_brand_id"""),
    # -- groups that nobody will join ----------------------------------------------------------------------------
    "totals of some customers": Own("prefilter_aggregates", True, """
        SELECT c_last_name, s FROM customer, (SELECT ss_customer_sk k, sum(ss_net_paid) s FROM store_sales GROUP BY 1)
        WHERE k = c_customer_sk AND c_birth_year = 1970 AND c_birth_month = 2"""),
    "the same with USING": Own("prefilter_aggregates", True, """
        WITH t AS (SELECT ws_item_sk AS i_item_sk, max(ws_net_paid) m FROM web_sales GROUP BY ws_item_sk)
        SELECT i_item_id, m FROM t JOIN item USING (i_item_sk) WHERE i_manufact_id = 7"""),
    "of which some have none": Own("prefilter_aggregates", True, """
        SELECT i_item_id, n FROM (SELECT * FROM item WHERE i_manufact_id = 7) x LEFT JOIN
        (SELECT sr_item_sk, count(*) n FROM store_returns GROUP BY sr_item_sk HAVING count(*) > 1) y
        ON y.sr_item_sk = x.i_item_sk"""),
    "totals of all customers": Own("prefilter_aggregates", False, """
        SELECT c_last_name, s FROM customer, (SELECT ss_customer_sk k, sum(ss_net_paid) s FROM store_sales GROUP BY 1)
        WHERE k = c_customer_sk"""),
    "joined by the total": Own("prefilter_aggregates", False, """
        SELECT i_item_id FROM item JOIN (SELECT ss_store_sk k, count(*) n FROM store_sales GROUP BY 1) ON n = i_item_sk
        WHERE i_manufact_id = 7"""),
    "totals that are all kept": Own("prefilter_aggregates", False, """
        SELECT k, i_item_id FROM (SELECT ss_item_sk k, count(*) n FROM store_sales GROUP BY 1) LEFT JOIN
        (SELECT * FROM item WHERE i_manufact_id = 7) ON k = i_item_sk"""),
}  # fmt: skip
#: Constants with which each pays for any table.
CONSTANTS = {"eager_aggregation": FREE_AGGREGATES, "prefilter_aggregates": FREE_BROADCASTS}
#: Rewrites that are not, or not only, applied to the plan of the query itself: their reports differ.
REPORTED = frozenset(
    {
        "aggregate_to_window",
        "fuse_scalar_subqueries",
        "inner_to_semi_joins",
        "self_join_to_semi_join",
        "share_common_tables",
    }
)


def _never_returned(spark: SparkSession) -> DataFrame:
    sales, returns = spark.table("store_sales"), spark.table("store_returns")
    same = (sales.ss_ticket_number == returns.sr_ticket_number) & (sales.ss_item_sk == returns.sr_item_sk)
    return sales.join(returns, same, "left").where(returns.sr_ticket_number.isNull()).select("ss_item_sk")


def _large_returns(spark: SparkSession) -> DataFrame:
    sales, returns = spark.table("store_sales"), spark.table("store_returns")
    same = (sales.ss_ticket_number == returns.sr_ticket_number) & (sales.ss_item_sk == returns.sr_item_sk)
    return sales.join(returns, same, "left").filter("sr_return_quantity > 50").select("ss_item_sk", "sr_item_sk")


def _all_sales(spark: SparkSession) -> DataFrame:
    sales, returns = spark.table("store_sales"), spark.table("store_returns")
    same = (sales.ss_ticket_number == returns.sr_ticket_number) & (sales.ss_item_sk == returns.sr_item_sk)
    return sales.join(returns, same, "left").filter("ss_quantity > 90").select("ss_item_sk", "sr_item_sk")


FRAMES: dict[str, tuple[str, bool, Callable[[SparkSession], DataFrame]]] = {
    "never returned": ("left_join_to_anti_join", True, _never_returned),
    "large returns": ("simplify_outer_joins", True, _large_returns),
    "all sales": ("simplify_outer_joins", False, _all_sales),
}


def _is_changed(df: DataFrame, rewrite: str) -> bool:
    """Whether the rewrite makes a difference to the plan."""
    if rewrite in REPORTED:
        with_it, without = (
            pyjoinopt.join_report(df, store="off", rewrites_without=names).spared_joins for names in ("", rewrite)
        )
        return with_it != without
    return is_changed_by(df, rewrite)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_in_other_words(tpcds: SparkSession, name: str) -> None:
    own = QUERIES[name]
    _check(tpcds.sql(own.text), own.rewrite, own.changes)


@pytest.mark.parametrize("name", PRICED)
def test_one_that_pays_at_a_larger_scale(tpcds: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = PRICED[name]
    monkeypatch.setattr(eager_aggregation, "_MARGIN", 0.0)
    report = checked(tpcds.sql(own.text), store="off", cost_constants=CONSTANTS[own.rewrite])
    notes = {"eager_aggregation": report.eager_aggregations, "prefilter_aggregates": report.prefilters}
    assert bool(notes[own.rewrite]) is own.changes


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame(tpcds: SparkSession, name: str) -> None:
    rewrite, changes, frame = FRAMES[name]
    _check(frame(tpcds), rewrite, changes)


def _check(df: DataFrame, rewrite: str, changes: bool) -> None:
    assert _is_changed(df, rewrite) is changes
    fast = df.optimize_joins(strict=True, store="off")
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
