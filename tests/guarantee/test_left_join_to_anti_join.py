"""Left joins that become anti joins: the rows stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import shop
from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("select c_id, c_name from customers left join orders on c_id = o_customer where o_customer is null", True),
        ("select c_id from orders right join customers on c_id = o_customer and o_region = c_region "
         "where o_region is null and c_name is not null", True),
        ("select o_id, c_name from orders left join lines on o_id = l_order and l_qty > 6 join customers "
         "on o_customer = c_id where l_order is null", True),
        ("select o_region, count(*) from orders left join lines on o_id = l_order and l_price > 3 left join vip "
         "on v_customer = o_customer where l_price is null group by o_region", True),
        ("select c_id from customers where c_id in (select o_id from orders left join vip on o_customer = v_customer "
         "where v_customer is null)", True),
        ("select c_id from customers left join orders on c_id = o_customer join lines on true where exists "
         "(select 1 from vip where v_customer = l_order + 1 and o_customer is null)", False),
        ("select c_id, o_day from customers left join orders on c_id = o_customer where o_customer is null", False),
        ("select c_id from customers left join orders on c_id = o_customer where o_region is null", False),
        ("select * from customers left join orders on c_id = o_customer where o_customer is null", False),
        ("select c_id from customers left join orders on c_id = o_customer where o_customer is null "
         "union all select v_customer from vip", True),
    ],
)  # fmt: skip
def test_the_same_rows(db: SparkSession, text: str, changes: bool) -> None:
    df = db.sql(text)
    fast, report = shop.optimised(df)
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    assert any("became anti" in line for line in report.eliminated_outer_joins) is changes, report.to_text()
    if changes:
        assert "LeftAnti" in shop.executed(fast)
