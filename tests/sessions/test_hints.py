"""OPTIMIZE_JOINS and KEEP_JOIN_ORDER, in SQL and on DataFrames, in enabled and disabled sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
OPTIMIZE = BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS */")
KEEP = BAD_ORDER.format(hint="/*+ KEEP_JOIN_ORDER */")


@pytest.fixture
def off(session: SparkSession) -> SparkSession:
    """A disabled session that parses the hints."""
    pyjoinopt.disable(session)
    return session


def test_in_a_session_that_is_off_the_hinted_query_is_optimised_and_no_other(off: SparkSession) -> None:
    for text, expected in ((SQL, []), (OPTIMIZE, [BETTER]), (SQL, []), (OPTIMIZE, [BETTER]), (KEEP, [])):
        assert orders(planned(off, lambda text=text: rows(off.sql(text)))[1]) == expected
    assert rows(off.sql(OPTIMIZE)) == rows(off.sql(SQL))


def test_in_a_session_that_is_on_one_query_is_kept_and_no_other(session: SparkSession) -> None:
    for text, changed in ((KEEP, [False]), (SQL, [True]), (KEEP, [False])):
        found, reports = planned(session, lambda text=text: rows(session.sql(text)))
        assert [report.changed for report in reports] == changed
    assert rows(session.sql(KEEP)) == rows(session.sql(SQL))


@pytest.mark.parametrize("strategy", ["auto", "spark", "HEURISTIC", "none"])
def test_a_strategy_is_named(off: SparkSession, strategy: str) -> None:
    in_sql = BAD_ORDER.format(hint=f"/*+ OPTIMIZE_JOINS({strategy}) */")
    in_quotes = BAD_ORDER.format(hint=f"/*+ optimize_joins('{strategy}') */")
    for run in (
        lambda: off.sql(in_sql), lambda: off.sql(in_quotes), lambda: off.sql(SQL).hint("optimize_joins", strategy)
    ):  # fmt: skip
        _, reports = planned(off, lambda run=run: rows(run()))
        assert [report.strategy for report in reports] == [strategy.lower()]


@pytest.mark.parametrize("parameters", ["wrong", "'auto', 'spark'", "3", "a.b.c"])
def test_an_unknown_parameter_does_no_harm(
    off: SparkSession, warnings: Callable[[], list[str]], parameters: str
) -> None:
    expected = rows(off.sql(SQL))
    warnings()
    text = BAD_ORDER.format(hint=f"/*+ OPTIMIZE_JOINS({parameters}) */")
    found, reports = planned(off, lambda: rows(off.sql(text)))
    assert (found, orders(reports)) == (expected, [BETTER])
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert "The hint OPTIMIZE_JOINS takes one of auto, spark, heuristic, none, not (" in warning


def test_keeping_takes_no_parameters(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    warnings()
    _, reports = planned(session, lambda: rows(session.sql(SQL).hint("KEEP_JOIN_ORDER", "spark")))
    assert [report.changed for report in reports] == [False]
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert warning == "WARN The hint KEEP_JOIN_ORDER takes no parameters; they are ignored."


def test_on_dataframes(off: SparkSession) -> None:
    df = off.sql(SQL)
    assert orders(planned(off, lambda: rows(df.hint("OPTIMIZE_JOINS")))[1]) == [BETTER]
    above = df.hint("OPTIMIZE_JOINS").filter("fact_k > 100").select("mid_v").distinct()
    found, reports = planned(off, lambda: rows(above))
    assert found == rows(df.filter("fact_k > 100").select("mid_v").distinct())
    assert orders(reports) == [BETTER]
    assert planned(off, lambda: rows(df))[1] == []


def test_filters_go_through_a_hint(session: SparkSession) -> None:
    df = session.sql(SQL)

    def scans(frame: Any) -> list[list[str]]:
        """The filters that are pushed into each scan, independently of the join order."""
        lines = frame._jdf.queryExecution().executedPlan().toString().splitlines()
        pushed = [line.partition("PushedFilters: [")[2].partition("]")[0] for line in lines]
        return sorted(sorted(filters.split(", ")) for filters in pushed if filters)

    assert scans(df.hint("KEEP_JOIN_ORDER").filter("fact_k > 100")) == scans(df.filter("fact_k > 100"))


def test_in_a_part_of_a_query(off: SparkSession) -> None:
    """The hinted part is ordered; joins outside of it stay."""
    outer = "SELECT * FROM ({}) x JOIN note ON mid_v = note_k JOIN dim d ON d.dim_k = note_v"
    found, reports = planned(off, lambda: rows(off.sql(outer.format(OPTIMIZE))))
    assert found == rows(off.sql(outer.format(SQL)))
    (report,) = reports
    assert [group.order_after for group in report.groups] == [BETTER]
    assert len(report.refusals) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM (SELECT note_k, note_v, note_f FROM note UNION ALL {})",
        "SELECT * FROM note WHERE note_k IN (SELECT mid_v FROM ({}))",
        "CREATE TABLE hints_target USING parquet AS {}",
        "CREATE VIEW hints_target AS {}",
    ],
)
def test_in_statements_of_all_kinds(off: SparkSession, statement: str) -> None:
    text = OPTIMIZE
    if "VIEW" in statement:  # it lasts, so it reads no temporary views
        path = off.table("fact").inputFiles()[0].rpartition("/fact/")[0]
        for name in ("fact", "mid", "dim"):
            text = text.replace(f"FROM {name} ", f"FROM parquet.`{path}/{name}` ")
            text = text.replace(f"JOIN {name} ", f"JOIN parquet.`{path}/{name}` ")
    try:
        made = planned(off, lambda: off.sql(statement.format(text)).collect())[1]
        if "VIEW" in statement:
            made = planned(off, lambda: rows(off.table("hints_target")))[1]
        assert set(orders(made)) == {BETTER}
    finally:
        off.sql(f"DROP {'VIEW' if 'VIEW' in statement else 'TABLE'} IF EXISTS hints_target")


def test_keeping_a_part(session: SparkSession) -> None:
    """The kept part is one relation of the group around it."""
    outer = "SELECT * FROM ({}) x JOIN note ON mid_v = note_k JOIN dim d ON d.dim_k = note_v"
    found, reports = planned(session, lambda: rows(session.sql(outer.format(KEEP))))
    assert found == rows(session.sql(outer.format(SQL)))
    (report,) = reports
    assert [len(group.relations) for group in report.groups] == [3]
    assert sum("keeps it in place" in refusal.reason for refusal in report.refusals) == 2


@pytest.mark.parametrize("hint", ["/*+ OPTIMIZE_JOINS, BROADCAST(dim) */", "/*+ KEEP_JOIN_ORDER */"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} mid_v FROM {} ORDER BY dim_v, fact_k",
        "SELECT {} mid_v, count(*) c FROM {} GROUP BY mid_v HAVING count(*) > 1 ORDER BY max(dim_v), count(*)",
        "SELECT {} DISTINCT mid_v FROM {} ORDER BY mid_v",
        "SELECT {} dim.*, row_number() OVER w FROM {} WINDOW w AS (PARTITION BY mid_v ORDER BY fact_k)",
        "SELECT {} fact_k, e FROM {} LATERAL VIEW explode(array(1, 2)) AS e",
        "WITH c AS (SELECT {} fact_k, mid_v FROM {}) SELECT * FROM c a JOIN c b ON a.fact_k = b.fact_k ORDER BY 1",
        "SELECT * FROM note WHERE EXISTS (SELECT {} 1 FROM {} WHERE mid_v = note_k)",
        "SELECT *, (SELECT {} max(fact_v) FROM {} WHERE mid_v = note_k) FROM note",
        "SELECT {} fact_v FROM {} UNION ALL SELECT fact_k FROM fact",
    ],
)
def test_a_hint_changes_no_meaning(session: SparkSession, text: str, hint: str) -> None:
    tables = "fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k"
    with_hint, without = session.sql(text.format(hint, tables)), session.sql(text.format("", tables))
    assert with_hint.schema == without.schema
    assert rows(with_hint) == rows(without)


def test_cached_data_below_a_hint_is_used(session: SparkSession) -> None:
    df = session.sql(SQL).cache()
    try:
        df.count()
        for name in ("OPTIMIZE_JOINS", "KEEP_JOIN_ORDER"):
            assert "InMemoryTableScan" in df.hint(name)._jdf.queryExecution().executedPlan().toString()
    finally:
        df.unpersist()


def test_a_kept_order_is_kept_by_a_single_call_too(session: SparkSession) -> None:
    df = session.sql(SQL)
    assert pyjoinopt.join_report(df.hint("OPTIMIZE_JOINS")).changed
    report = pyjoinopt.join_report(df.hint("KEEP_JOIN_ORDER"))
    assert not report.changed and all("keeps it in place" in refusal.reason for refusal in report.refusals)


def test_without_the_extension_a_hint_is_spark_s_to_ignore(new_session: Callable[[], SparkSession]) -> None:
    session = new_session()
    assert rows(session.sql(OPTIMIZE)) == rows(session.sql(SQL))
