"""TPC-DS in a catalog in whose statistics the fact tables are large.

At the scale of the tests `date_dim` is larger than any fact table, so no query is a star. DuckDB, which is faster,
computes the statistics of ANALYZE. The row counts of fact tables are multiplied, and the results are stored in Spark's
catalog by the call that ANALYZE uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FACTS = ("sales", "returns", "inventory")
_SPARK_TYPES = {"VARCHAR": "STRING", "INTEGER": "INT"}
_BOUNDED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DATE", "DOUBLE")


def create(session: SparkSession, database: str, factor: int) -> None:
    """Make the tables in a new database, with all statistics, and use it."""
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    session.sql(f"USE {database}")
    with tpc.duckdb_tables("tpcds") as counts:
        for file in sorted(tpc.parquet_folder("tpcds").glob("*.parquet")):
            table = file.stem
            columns = counts.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
            schema = ", ".join(f"{c} {_SPARK_TYPES.get(type_, type_)}" for c, type_ in columns)
            session.sql(
                f"CREATE TABLE IF NOT EXISTS {table} ({schema}) USING parquet OPTIONS (path '{file.as_posix()}')"
            )
            parts = ", ".join(f'count("{c}"), count(DISTINCT "{c}"), min("{c}"), max("{c}")' for c, _ in columns)
            row = counts.execute(f"SELECT count(*), {parts} FROM {table}").fetchone()
            assert row is not None
            times = factor if table.endswith(FACTS) else 1
            found: dict[str, dict[str, str]] = {}
            for i, (column, type_) in enumerate(columns):
                filled, distinct, low, high = row[1 + 4 * i : 5 + 4 * i]
                found[column] = {"distinctCount": str(distinct), "nullCount": str((row[0] - filled) * times)}
                if low is not None and type_.startswith(_BOUNDED):
                    found[column] |= {"min": str(low), "max": str(high)}
            _tell(session, database, table, row[0] * times, found)


def _tell(session: SparkSession, database: str, table: str, rows: int, columns: dict[str, dict[str, str]]) -> None:
    jvm: Any = session.sparkContext._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    to_scala = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap

    def statistics(name: str, facts: dict[str, str]) -> Any:
        entries = {f"{name}.{key}": value for key, value in (facts | {"version": "2"}).items()}
        return catalyst.catalog.CatalogColumnStat.fromMap(table, name, to_scala(_java(jvm, entries))).get()

    # A BigInt turns into a Python number on its way through py4j, so the sizes never leave the JVM.
    size, count = (statistics("n", {"distinctCount": str(n)}).distinctCount() for n in (rows * 8 * len(columns), rows))
    arguments = jvm.java.util.ArrayList(jvm.scala.jdk.javaapi.CollectionConverters.asJava(size.toList()))
    arguments.add(count)
    arguments.add(to_scala(_java(jvm, {name: statistics(name, facts) for name, facts in columns.items()})))
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.catalog.CatalogStatistics")
    reported = kind.getConstructors()[0].newInstance(arguments.toArray())
    identifier = catalyst.TableIdentifier(table, jvm.scala.Some(database))
    java_session: Any = session._jsparkSession
    java_session.sessionState().catalog().alterTableStats(identifier, jvm.scala.Some(reported))


def _java(jvm: Any, entries: dict[str, Any]) -> Any:
    result = jvm.java.util.HashMap()
    for key, value in entries.items():
        result.put(key, value)
    return result
