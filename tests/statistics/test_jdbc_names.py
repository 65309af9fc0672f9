"""The names of relations over JDBC; `tests/formats` has a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.report.model import GroupReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRETS = ("scott", "ti.ger", "tiger", "me@x")


@pytest.mark.parametrize(
    "url, name",
    [
        ("jdbc:postgresql://db1:5432/shop", "postgresql://db1:5432/shop"),
        ("jdbc:postgresql://db1,db2:5433/shop?user=scott&password=tiger&currentSchema=a", "postgresql://db1,db2:5433/shop;currentSchema=a"),
        ("jdbc:postgresql://scott:ti.ger@db1/shop", "postgresql://db1/shop"),
        ("jdbc:postgresql://scott:ti?ger@db1/shop", "postgresql"),
        ("jdbc:postgresql://scott:12?34@db1/shop", "postgresql"),
        ("jdbc:mysql://db1/shop?user=me@x&password=tiger", "mysql://db1/shop"),
        ("jdbc:mysql:loadbalance://scott:tiger@db1,db2/shop", "mysql:loadbalance://db1,db2/shop"),
        ("jdbc:mysql://(host=db1,port=3306,user=scott,password=tiger)/shop", "mysql://db1:3306/shop"),
        ("jdbc:mysql://address=(host=db1)(port=3306)(user=scott)(password=tiger)/shop", "mysql://db1:3306/shop"),
        ("jdbc:sqlserver://db1:1433;databaseName=shop;user=me@x;password=tiger", "sqlserver://db1:1433;databaseName=shop"),
        ("jdbc:sqlserver://db1\\inst;databaseName=shop;user=me@x", "sqlserver://db1\\inst;databaseName=shop"),
        ("jdbc:oracle:thin:scott/tiger@//db1:1521/shop", "oracle:thin://db1:1521/shop"),
        ("jdbc:oracle:thin:scott/tiger@db1:1521:shop", "oracle:thin://db1:1521:shop"),
        (
            "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=db1)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=shop)))",
            "oracle:thin://db1:1521:shop",
        ),
        ("jdbc:teradata://db1/DATABASE=shop,USER=scott,PASSWORD=tiger", "teradata://db1/DATABASE=shop"),
        ("jdbc:h2:mem:shop;USER=scott;PASSWORD=tiger", "h2:mem://shop"),
        ("jdbc:snowflake://a.b.com/?user=scott&password=tiger&db=shop&warehouse=w", "snowflake://a.b.com;db=shop;warehouse=w"),
        ("tiger", "?"),
        ("", "?"),
    ],
)  # fmt: skip
def test_addresses_have_no_secrets(spark: SparkSession, url: str, name: str) -> None:
    bridge_for(spark.range(1))
    found = spark.sparkContext._jvm.org.apache.spark.sql.pyjoinopt.JdbcName.address(url)
    assert found == name
    assert not any(secret in found for secret in SECRETS)


def test_nothing_is_cheaper_where_every_size_is_a_default() -> None:
    from pyjoinopt.report.model import RelationReport
    from pyjoinopt.report.render.text import title_of

    def title(*sources: str) -> str:
        relations = tuple(RelationReport(f"r{i}", 100.0, source) for i, source in enumerate(sources))
        return title_of(1, GroupReport(relations, (), "a b c", "c b a", (), 200.0, 100.0, "exact", 4, 0.1, True))

    assert "cheaper" not in title("default", "default", "default")
    assert "2.0x cheaper" in title("default", "footers", "default")
