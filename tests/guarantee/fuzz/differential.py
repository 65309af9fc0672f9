"""Compares four results of a random query: plain Spark, `optimize_joins`, an enabled session, and DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb

import pyjoinopt
from tests.guarantee.fuzz.extension import Options, frame, through_extension
from tests.support.compare import assert_can_be_combined, assert_same_rows, assert_same_schema
from tests.support.operators import SPARK_ONLY
from tests.support.querytree import Call, Query, Table, all_expressions, all_nodes
from tests.support.render_dataframe import to_pyspark
from tests.support.render_sql import to_sql
from tests.support.run import collect_both
from tests.support.sampledata import sample_tables
from tests.support.shrink import shrunk

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@dataclass
class Failure:
    """A query whose results differ, or that fails."""

    number: int
    query: Query
    form: str
    options: Options
    reason: str

    def text(self, seed: int) -> str:
        """Everything needed to reproduce it: the command that repeats the run, and code to paste, tables included."""
        again = f"pytest tests/guarantee/fuzz --fuzz-seed {seed} --fuzz-only {self.number}"
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
    """Counts of a run; the test compares them with its minimums."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Places:
    """Where a query runs: two sessions over the same tables, and the same tables in DuckDB.

    Attributes:
        spark: a plain session.
        enabled: one that optimises every query; None leaves it out.
        database: DuckDB.
    """

    spark: SparkSession
    enabled: SparkSession | None
    database: duckdb.DuckDBPyConnection


def compare(places: Places, query: Query, form: str, options: Options) -> Counter[str]:
    """Run one query in all ways.

    Args:
        places: where to run it.
        query: the query.
        form: "sql" or "dataframe".
        options: for `optimize_joins`.

    Returns:
        The optimizer's report.

    Raises:
        AssertionError: the results differ.
    """
    plain = frame(places.spark, query, form)
    fast = plain.optimize_joins(strict=True, **options)
    assert_same_schema(plain, fast)
    rows, fast_rows = collect_both(plain, fast)
    assert_same_rows(rows, fast_rows, label=("plain Spark", "optimised"))
    assert_can_be_combined(plain, fast)
    if duckdb_means_the_same(query):
        assert_same_rows(_third(places, query, rows), rows, loose=True, label=("DuckDB", "plain Spark"))
    extension: Counter[str] = Counter()
    if places.enabled is not None:
        found, extension = through_extension(places.enabled, plain, query, form, options)
        assert_same_rows(rows, found, label=("plain Spark", "extension"))

    report: pyjoinopt.JoinReport = fast.join_report()
    spared = [*report.eliminated_outer_joins, *report.spared_joins, *report.eager_aggregations, *report.prefilters]
    done = [*spared, *report.hints, *report.changes]
    assert done if report.changed else report.groups or report.refusals, f"a silent report: {report.to_text()}"
    return Counter(
        queries=1,
        with_rows=bool(rows),
        with_groups=bool(report.groups),
        changed=any(group.changed for group in report.groups),
        outer_joins_eliminated=bool(report.eliminated_outer_joins),
        grouped_early=bool(report.eager_aggregations),
        aggregates_filtered=any("aggregate" in line for line in report.prefilters),
        sides_filtered=any("join" in line for line in report.prefilters),
        refused=bool(report.refusals),
        **extension,
    )


def duckdb_means_the_same(query: Query) -> bool:
    """Whether the query uses only operations that both databases compute identically."""
    return not any(isinstance(part, Call) and part.op in SPARK_ONLY for part in all_expressions(query))


def _third(places: Places, query: Query, rows: list[Row]) -> Sequence[Sequence[Any]]:
    try:
        return places.database.cursor().execute(to_sql(query, "duckdb")).fetchall()
    except duckdb.NotImplementedException:  # some correlated subqueries
        return rows
    except duckdb.InternalException:  # a bug of DuckDB 1.5.5 that sometimes occurs with an OR of equalities in a join
        return rows


def complaint(places: Places, query: Query, form: str, options: Options) -> str | None:
    """The difference between the results, or None."""
    try:
        compare(places, query, form, options)
    except Exception as problem:  # this test looks for failures of any kind
        return f"{type(problem).__name__}: {str(problem)[:1500]}"
    return None


def smallest(
    places: Places, number: int, query: Query, form: str, options: Options, budget: int = 120
) -> Failure:
    """The failure of one query, after shrinking it. A smaller query that fails in another way is rejected."""
    first = complaint(places, query, form, options) or "it failed once and not again"
    kind = first.split(":")[0]

    def fails(candidate: Query) -> bool:
        return (complaint(places, candidate, form, options) or "").split(":")[0] == kind

    small = shrunk(query, fails, budget)
    return Failure(number, small, form, options, complaint(places, small, form, options) or first)
