"""One random query, three answers: plain Spark, Spark with optimised joins, and DuckDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb

import pyjoinopt
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.querytree import Query, Table, all_nodes
from tests.support.render_dataframe import run_pyspark, to_pyspark
from tests.support.render_sql import to_sql
from tests.support.run import collect_both
from tests.support.sampledata import sample_tables
from tests.support.shrink import shrunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = dict[str, str]


@dataclass
class Failure:
    """A query whose answers differ, or that cannot be answered at all."""

    number: int
    query: Query
    form: str
    options: Options
    reason: str

    def text(self, seed: int) -> str:
        """Everything needed to see it again: how to repeat the run, and code to paste, tables included."""
        again = f"pytest tests/fuzz --fuzz-seed {seed} --fuzz-only {self.number}"
        used = {node.name for node in all_nodes(self.query) if isinstance(node, Table)}
        views = [
            f'spark.sql("""{table.values_sql()}""").createOrReplaceTempView("{table.name}")'
            for table in sample_tables(seed)
            if table.name in used
        ]
        code = to_pyspark(self.query) if self.form == "dataframe" else f'df = spark.sql("""{to_sql(self.query)}""")'
        named = "".join(f", {name}={value!r}" for name, value in self.options.items())
        lines = [*views, code, f"df.optimize_joins(strict=True{named})"]
        return "\n".join([f"query {self.number} ({again})", self.reason, "", "smallest form found:", *lines, ""])


@dataclass
class Tally:
    """What happened over a run; the floors in the test read it."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def frame(spark: SparkSession, query: Query, form: str) -> DataFrame:
    """The query in Spark, as SQL or as DataFrame code."""
    return spark.sql(to_sql(query)) if form == "sql" else run_pyspark(spark, to_pyspark(query))


def compare(
    spark: SparkSession, database: duckdb.DuckDBPyConnection, query: Query, form: str, options: Options
) -> Counter[str]:
    """Run one query three ways.

    Args:
        spark: the session to run in.
        database: the same tables in DuckDB.
        query: what to ask.
        form: "sql" or "dataframe".
        options: for `optimize_joins`.

    Returns:
        What the optimizer did.

    Raises:
        AssertionError: the answers differ.
    """
    plain = frame(spark, query, form)
    fast = plain.optimize_joins(strict=True, **options)
    assert_same_schema(plain, fast)
    rows, fast_rows = collect_both(plain, fast)
    assert_same_rows(rows, fast_rows, label=("plain Spark", "optimised"))
    try:
        third = database.cursor().execute(to_sql(query)).fetchall()
    except duckdb.InternalException:  # a fault of DuckDB 1.5.5 that now and then meets an OR of equalities in a join
        third = rows
    assert_same_rows(third, rows, loose=True, label=("DuckDB", "plain Spark"))

    report: pyjoinopt.JoinReport = fast.join_report()
    done = report.eliminated_outer_joins or report.spared_joins or report.hints or any(g.changed for g in report.groups)
    assert done if report.changed else report.groups or report.refusals, f"a silent report: {report.to_text()}"
    return Counter(
        queries=1,
        with_rows=bool(rows),
        with_groups=bool(report.groups),
        changed=any(group.changed for group in report.groups),
        outer_joins_eliminated=bool(report.eliminated_outer_joins),
        refused=bool(report.refusals),
    )


def complaint(
    spark: SparkSession, database: duckdb.DuckDBPyConnection, query: Query, form: str, options: Options
) -> str | None:
    """What is wrong with the answers, or None."""
    try:
        compare(spark, database, query, form, options)
    except Exception as problem:  # any failure of any kind is what this is looking for
        return f"{type(problem).__name__}: {str(problem)[:1500]}"
    return None


def smallest(
    spark: SparkSession,
    database: duckdb.DuckDBPyConnection,
    number: int,
    query: Query,
    form: str,
    options: Options,
    budget: int = 120,
) -> Failure:
    """The failure of one query, after shrinking it. A cut that fails in another way is not taken."""
    first = complaint(spark, database, query, form, options) or "it failed once and not again"
    kind = first.split(":")[0]

    def fails(candidate: Query) -> bool:
        return (complaint(spark, database, candidate, form, options) or "").split(":")[0] == kind

    small = shrunk(query, fails, budget)
    return Failure(number, small, form, options, complaint(spark, database, small, form, options) or first)
