"""Hints in correlated subqueries, and hints that a failed query left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = "fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k"
SQL = BAD_ORDER.format(hint="")


@pytest.mark.parametrize("hint", ["OPTIMIZE_JOINS", "KEEP_JOIN_ORDER"])
@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM note WHERE EXISTS (SELECT {{}} 1 FROM (SELECT * FROM {TABLES} WHERE mid_v = note_k) x)",
        "SELECT *, (SELECT {} max(fact_v) FROM (SELECT * FROM fact WHERE fact_v = note_k) f JOIN mid ON fact_f = mid_k "
        "JOIN dim ON mid_f = dim_k) FROM note",
        f"SELECT * FROM note, LATERAL (SELECT {{}} fact_k FROM {TABLES} WHERE mid_v = note_k) x",
        f"SELECT * FROM note, LATERAL (SELECT {{}} fact_k FROM (SELECT * FROM {TABLES} WHERE mid_v = note_k)) x",
        f"SELECT * FROM note WHERE note_k IN (SELECT {{}} mid_v FROM {TABLES} WHERE dim_v < note_v)",
    ],
)
def test_a_hint_in_a_correlated_subquery_changes_no_meaning(session: SparkSession, text: str, hint: str) -> None:
    with_hint, without = session.sql(text.format(f"/*+ {hint} */")), session.sql(text.format(""))
    assert with_hint.schema == without.schema
    assert rows(with_hint) == rows(without)


def test_a_hint_sinks_below_the_reference(session: SparkSession) -> None:
    """The outer reference is above the part whose order is kept."""
    text = f"SELECT * FROM note WHERE EXISTS (SELECT {{}} 1 FROM (SELECT * FROM {TABLES} WHERE mid_v = note_k) x)"
    _, reports = planned(session, lambda: rows(session.sql(text.format("/*+ KEEP_JOIN_ORDER */"))))
    assert any("KEEP_JOIN_ORDER keeps it" in refusal.reason for report in reports for refusal in report.refusals)


def test_a_hint_that_cannot_sink_is_ignored_with_a_warning(
    session: SparkSession, warnings: Callable[[], list[str]]
) -> None:
    text = (
        "SELECT * FROM note WHERE EXISTS (SELECT {} 1 FROM (SELECT * FROM fact WHERE fact_v = note_k) f "
        "JOIN (SELECT * FROM mid WHERE mid_v = note_v) m ON fact_f = mid_k)"
    )
    expected = rows(session.sql(text.format("")))
    warnings()
    assert rows(session.sql(text.format("/*+ KEEP_JOIN_ORDER */"))) == expected
    reported = [line for line in warnings() if line.startswith("WARN")]
    assert reported == ["WARN The hint KEEP_JOIN_ORDER is ignored where joins refer to the query further out."]


def test_a_hint_on_a_dataframe_with_an_outer_reference(session: SparkSession) -> None:
    note, fact = session.table("note"), session.table("fact")
    if not hasattr(note, "exists"):
        pytest.skip("DataFrames have subqueries from Spark 4 on")
    from pyspark.sql.functions import col

    inner = fact.where(col("fact_v") == col("note_k").outer())
    assert rows(note.where(inner.hint("OPTIMIZE_JOINS").exists())) == rows(note.where(inner.exists()))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} b.mid_k, a.* FROM (SELECT fact_f AS mid_k FROM fact) a JOIN mid b USING (mid_k) "
        "JOIN dim ON mid_f = dim_k",
        "SELECT {} f._metadata.file_size, fact_k FROM parquet.`{files}/fact` f JOIN mid ON fact_f = mid_k "
        "WHERE fact_k < 5",
        "SELECT {} a.fact_k FROM fact a NATURAL JOIN fact b JOIN mid ON a.fact_f = mid_k",
    ],
)  # fmt: skip
def test_hidden_columns_are_found_through_a_hint(session: SparkSession, small_files: Path, text: str) -> None:
    hinted, plain = (text.format(hint, files=small_files) for hint in ("/*+ OPTIMIZE_JOINS */", ""))
    with_hint, without = session.sql(hinted), session.sql(plain)
    assert with_hint.schema == without.schema and rows(with_hint) == rows(without)


def test_a_hint_of_a_query_that_failed_is_not_taken_by_the_next(session: SparkSession) -> None:
    pyjoinopt.disable(session)
    df = session.sql(SQL)
    left_behind = df.hint("OPTIMIZE_JOINS")._jdf.queryExecution().analyzed()
    rule = session._jvm.org.apache.spark.sql.pyjoinopt.TakeHintScopes
    rule.apply(left_behind)
    assert planned(session, lambda: rows(df))[1] == []
    assert orders(planned(session, lambda: rows(df.hint("OPTIMIZE_JOINS")))[1]) == [BETTER]
    assert planned(session, lambda: rows(df))[1] == []


def test_why_a_join_was_left(session: SparkSession) -> None:
    outer = "SELECT * FROM ({}) x JOIN note ON mid_v = note_k JOIN dim d ON d.dim_k = note_v"

    def reasons(hint: str) -> set[str]:
        text = outer.format(BAD_ORDER.format(hint=f"/*+ {hint} */"))
        _, reports = planned(session, lambda: rows(session.sql(text)))
        return {refusal.reason for report in reports for refusal in report.refusals}

    assert reasons("KEEP_JOIN_ORDER") == {"the hint KEEP_JOIN_ORDER keeps it in place"}
    assert reasons("MERGE(mid)") == {"it carries a join hint of yours, which keeps it in place"}
    pyjoinopt.disable(session)
    assert reasons("OPTIMIZE_JOINS") == {"the session is switched off, and no OPTIMIZE_JOINS hint covers it"}
