"""Five queries on the shop, as people typically write them, in which the join order matters.

None of them has a hint. Spark runs them with its defaults: adaptive execution, and broadcasts below 10 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjoinopt.demo.measure import Query


def _sql(text: str) -> Callable[[Any], Any]:
    return lambda spark: spark.sql(text)


_STAR = """
SELECT customer_id, name, email, address, sum(quantity * price) AS spent
FROM lines
  JOIN orders    ON orders.order_id = lines.order_id
  JOIN customers ON customer_id = buyer_id
  JOIN shops     ON shops.shop_id = orders.shop_id
  JOIN products  ON products.product_id = lines.product_id
WHERE city = 'City 7' AND category = 'Category 17'
GROUP BY customer_id, name, email, address
"""

_COMMA_JOIN = """
SELECT name, email, address, ordered_on, title, quantity * price AS refund
FROM customers, orders, lines, products, returns
WHERE customer_id = buyer_id AND orders.order_id = lines.order_id AND lines.product_id = products.product_id
  AND lines.line_id = returns.line_id AND reason = 'Reason 7'
"""

_MANY_TO_MANY = """
SELECT category, count(*) AS bought_after_a_look, avg(seconds) AS seconds
FROM visits
  JOIN lines    ON lines.product_id = visits.product_id
  JOIN orders   ON orders.order_id = lines.order_id AND buyer_id = visitor_id
  JOIN products ON products.product_id = lines.product_id
WHERE ordered_on >= DATE'2025-12-01'
GROUP BY category
"""

_SEMI_JOIN = """
SELECT customer_id, name, email, address, count(*) AS items
FROM lines
  JOIN orders    ON orders.order_id = lines.order_id
  JOIN shops     ON shops.shop_id = orders.shop_id
  JOIN customers ON customer_id = buyer_id
WHERE customer_id IN (
    SELECT visitor_id FROM visits JOIN products ON products.product_id = visits.product_id
    WHERE category = 'Category 17' AND seconds > 300)
GROUP BY customer_id, name, email, address
"""


def _outer_chain(spark: Any) -> Any:
    lines, orders, customers = spark.table("lines"), spark.table("orders"), spark.table("customers")
    returns, products = spark.table("returns"), spark.table("products")
    return (
        lines.join(orders, lines["order_id"] == orders["order_id"], "left")
        .join(customers, orders["buyer_id"] == customers["customer_id"], "left")
        .join(returns, lines["line_id"] == returns["line_id"], "left")
        .join(products, lines["product_id"] == products["product_id"], "left")
        .filter("category = 'Category 17'")
        .select("title", "ordered_on", "name", "email", "address", "reason")
    )


QUERIES = (
    Query(
        "star order", "SQL", "the fact table first, its dimensions next, the selective one last", _sql(_STAR)
    ),
    Query(
        "outer chain", "DataFrame", "left joins throughout, to be safe, and a filter on the table that is joined last",
        _outer_chain,
    ),
    Query(
        "comma join", "SQL", "tables in any order, all conditions in WHERE, the selective table last", _sql(_COMMA_JOIN)
    ),
    Query(
        "many-to-many", "SQL", "visits and lines of the same product first, and only then those of the same customer",
        _sql(_MANY_TO_MANY),
    ),
    Query(
        "late semi join", "SQL", "an IN on the table that is joined last", _sql(_SEMI_JOIN)
    ),
)  # fmt: skip
