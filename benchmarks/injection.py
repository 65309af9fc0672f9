"""Creates empty tables with given statistics: Spark plans queries as if the tables had this data."""

from __future__ import annotations

from typing import Any

_WIDTHS = {"int": 4, "bigint": 8, "string": 20, "double": 8, "date": 4}


def create_table(spark: Any, name: str, known: dict[str, Any], histograms: bool = True) -> None:
    """Create an empty table in the session's catalog, with a row count and column statistics.

    Args:
        spark: the session.
        name: of the table.
        known: {"rows", "columns": {name: {"type", "distinct", "nulls", "min", "max", "deciles"}}}.
        histograms: whether deciles become an equi-height histogram.
    """
    columns = known["columns"]
    fields = ", ".join(f"{column} {facts['type']}" for column, facts in columns.items())
    spark.sql(f"CREATE TABLE {name} ({fields}) USING parquet")
    gateway, rows = spark.sparkContext._gateway, known["rows"]
    jvm = gateway.jvm
    statistics = {c: _column(gateway, rows, facts, histograms) for c, facts in columns.items()}
    width = 8 + sum(_WIDTHS.get(facts["type"], 16) for facts in columns.values())
    whole = _statistics(gateway, rows * width, rows, statistics)
    state = spark._jsparkSession.sessionState()
    state.catalog().alterTableStats(state.sqlParser().parseTableIdentifier(name), _some(jvm, whole))
    spark.catalog.refreshTable(name)


def _column(gateway: Any, rows: int, facts: dict[str, Any], histograms: bool) -> Any:
    jvm = gateway.jvm
    distinct, nulls = (_count(jvm, facts.get(key)) for key in ("distinct", "nulls"))
    low, high = (_some(jvm, None if b is None else str(b)) for b in (facts.get("min"), facts.get("max")))
    deciles = facts.get("deciles") if histograms else None
    filled = rows - (facts.get("nulls") or 0)
    drawn = None if deciles is None else _histogram(gateway, filled, facts["distinct"], deciles)
    nothing = _some(jvm, None)
    make = jvm.org.apache.spark.sql.catalyst.catalog.CatalogColumnStat
    return make(distinct, low, high, nulls, nothing, nothing, _some(jvm, drawn), 2)


def _histogram(gateway: Any, filled: int, distinct: int, bounds: list[float]) -> Any:
    logical = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical
    bins = list(zip(bounds, bounds[1:]))
    array = gateway.new_array(logical.HistogramBin, len(bins))
    for i, (count, (low, high)) in enumerate(zip(spread(distinct, bins), bins)):
        array[i] = logical.HistogramBin(float(low), float(high), count)
    return logical.Histogram(filled / len(bins), array)


def spread(distinct: int, bins: list[tuple[float, float]]) -> list[int]:
    """Distinct values of each bin, which deciles do not contain: as many as fit, evenly, `distinct` in total.

    >>> spread(103, [(1, 1), (1, 3), (3, 1000)])
    [1, 3, 99]
    """
    room = [max(1, int(high) - int(low) + 1) for low, high in bins]
    counts = [1] * len(bins)
    left = distinct
    for rank, i in enumerate(sorted(range(len(bins)), key=room.__getitem__)):
        counts[i] = max(1, min(room[i], left // (len(bins) - rank)))
        left -= counts[i]
    return counts


def _count(jvm: Any, number: int | None) -> Any:
    """An Option[BigInt]. py4j converts a BigInt to a Python number, so it must stay inside Spark."""
    if number is None:
        return _some(jvm, None)
    text = {"n.distinctCount": str(int(number)), "n.version": "2"}
    parsed = jvm.org.apache.spark.sql.catalyst.catalog.CatalogColumnStat.fromMap("t", "n", _scala_map(jvm, text))
    return parsed.get().distinctCount()


def _statistics(gateway: Any, size: int, rows: int, columns: dict[str, Any]) -> Any:
    """A CatalogStatistics; its size is a plain BigInt, so it is created by reflection."""
    jvm = gateway.jvm
    arguments = gateway.new_array(jvm.java.lang.Object, 3)
    holder = jvm.scala.collection.JavaConverters.seqAsJavaList(_count(jvm, size).toList()).toArray()
    jvm.java.lang.System.arraycopy(holder, 0, arguments, 0, 1)
    arguments[1] = _count(jvm, rows)
    arguments[2] = _scala_map(jvm, columns)
    made = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.catalog.CatalogStatistics")
    return made.getConstructors()[0].newInstance(arguments)


def _scala_map(jvm: Any, entries: dict[str, Any]) -> Any:
    return jvm.PythonUtils.toScalaMap(entries)


def _some(jvm: Any, value: Any) -> Any:
    return jvm.scala.Option.apply(value)
