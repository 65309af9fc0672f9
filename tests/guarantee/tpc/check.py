"""Checks of every TPC query: same rows, same schema, and the known number of join groups found and changed.

DuckDB also runs each query over the same files. This reveals a query that plain Spark and the optimizer misread in the
same way.

The counts detect an optimizer that does nothing: one that silently returns its input also gives the right rows.
`PYJOINOPT_RECORD=1 pytest tests/guarantee/tpc` rewrites the table; review the difference before you commit.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import pyjoinopt  # noqa: F401 (attaches the methods)
from pyjoinopt.bridge.shim import bridge_for
from tests.support import tpc
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.run import collect_both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Sums in another order, and averages of decimals that are rounded elsewhere.
NEARLY = 1e-6
EXPECTED = Path(__file__).with_name("expected_groups.json")
RECORDING = bool(os.environ.get("PYJOINOPT_RECORD"))
Counts = dict[str, int]


def expected(benchmark: str) -> dict[str, Counts]:
    """The committed counts of one benchmark, by query number."""
    table: dict[str, dict[str, Counts]] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    return table.get(benchmark, {})


def totals(benchmark: str) -> Counts:
    """The committed counts of one benchmark, summed over its queries."""
    rows = expected(benchmark).values()
    return {
        name: sum(row[name] for row in rows) for name in ("groups", "changed", "outer_joins_eliminated", "joins_spared")
    }


def check_query(spark: SparkSession, benchmark: str, number: int, text: str) -> None:
    """Run one query plain and optimised, and make all comparisons listed in the module docstring."""
    plain = spark.sql(text)
    fast = plain.optimize_joins(strict=True)
    assert_same_schema(plain, fast)
    rows, fast_rows = collect_both(plain, fast)
    assert_same_rows(rows, fast_rows, label=("plain Spark", "optimised"))
    third = _duckdb(benchmark).execute(tpc.duckdb_queries(benchmark)[number]).fetchall()
    assert_same_rows(third, rows, loose=True, relative=NEARLY, absolute=NEARLY, label=("DuckDB", "plain Spark"))
    check_plan(plain, benchmark, number)


def check_plan(plain: DataFrame, benchmark: str, number: int) -> None:
    """Optimise one query, and compare its schema and the numbers of found and changed groups, without running it."""
    # Samples are drawn for this query alone, without a time limit: the counts depend neither on the load of the
    # machine, nor on earlier queries.
    bridge_for(plain).forgetSamples()
    fast = plain.optimize_joins(strict=True, statistics="full", store="off")
    assert_same_schema(plain, fast)
    report = fast._pyjoinopt_report
    counts = {
        "groups": len(report.groups),
        "changed": sum(group.changed for group in report.groups),
        "outer_joins_eliminated": len(report.eliminated_outer_joins),
        "joins_spared": len(report.spared_joins),
    }
    if RECORDING:
        _record(benchmark, number, counts)
    else:
        known = expected(benchmark)[str(number)]
        assert counts == known, f"counted {counts}, the table says {known}"


@cache
def _duckdb(benchmark: str) -> duckdb.DuckDBPyConnection:
    return tpc.duckdb_tables(benchmark)


def _record(benchmark: str, number: int, counts: Counts) -> None:
    table = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    table.setdefault(benchmark, {})[str(number)] = counts
    ordered = {name: {n: rows[n] for n in sorted(rows, key=int)} for name, rows in sorted(table.items())}
    lines = []
    for name, rows in ordered.items():
        entries = ",\n".join(f'    "{n}": {json.dumps(row)}' for n, row in rows.items())
        lines.append(f'  "{name}": {{\n{entries}\n  }}')
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def queries(benchmark: str) -> list[tuple[int, str]]:
    """Number and Spark text of every query of one benchmark."""
    return sorted(tpc.spark_queries(benchmark).items())
