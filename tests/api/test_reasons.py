"""Every report of an unchanged query gives a reason."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.errors import NotRunError
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, B, C = (f"(SELECT id, id % 9 AS k, id * 2 AS v FROM range(99)) {name}" for name in "abc")
TWICE = f"WITH s AS (SELECT a.k, sum(b.v) AS v FROM {A} JOIN {B} ON a.k = b.k GROUP BY 1) "

#: A query without joins to order, and a part of the reason.
UNCHANGED = {
    f"SELECT * FROM {A}": "it has no join",
    "SELECT 1": "it has no join",
    f"SELECT * FROM {A} JOIN {B} ON a.k = b.k": "it joins two relations",
    f"SELECT * FROM {A} LEFT JOIN {B} ON a.k = b.k": "it joins two relations",
    f"SELECT * FROM {A} JOIN {B} ON a.k = b.k LIMIT 3": "it joins two relations",
    TWICE + "SELECT * FROM s JOIN s t ON s.v = t.k": "that is read several times, Aggregate",
    TWICE + "SELECT * FROM s UNION ALL SELECT * FROM s": "it joins two relations",
    f"SELECT * FROM {A} WHERE v > (SELECT max(b.v) FROM {B} JOIN {C} ON b.k = c.k) AND k IN (SELECT id FROM {B})":
        "its 2 joins are in different subqueries",
    f"SELECT * FROM {A} JOIN {B} ON a.k = b.k UNION ALL SELECT * FROM {A} JOIN {B} ON a.v = b.v": "no other order",
    f"SELECT * FROM {A} JOIN (SELECT b.k FROM {B} JOIN {C} ON b.k = c.k LIMIT 5) d ON a.k = d.k": "Limit",
    f"SELECT /*+ BROADCAST(a) */ * FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON c.k = b.k": "a join hint of yours",
}  # fmt: skip


def reasons(report: pyjoinopt.JoinReport) -> str:
    return "; ".join(r.reason for r in report.refusals)


def speaks(report: pyjoinopt.JoinReport) -> bool:
    """Whether a report names a change or a reason for none; a group that keeps its order has its own reason."""
    done = report.eliminated_outer_joins or report.spared_joins or report.hints
    if report.changed:
        return bool(done or any(group.changed for group in report.groups))
    return bool(report.groups or report.refusals or report.error)


@pytest.mark.parametrize("text", UNCHANGED)
@pytest.mark.parametrize("strategy", ["auto", "spark", "heuristic", "none"])
def test_a_plan_that_stays_has_a_reason(spark: SparkSession, text: str, strategy: str) -> None:
    report = spark.sql(text).optimize_joins(strategy=strategy, strict=True).join_report()
    assert not report.changed and speaks(report), report.to_text()
    if strategy in ("auto", "none"):
        assert UNCHANGED[text] in reasons(report), report.to_text()
    assert "Left as written" in report.to_text()


@pytest.mark.jvm
@pytest.mark.parametrize("name", ["tpch", "tpcds"])
@pytest.mark.parametrize(
    ("strategy", "step"),
    [("auto", 5), *(pytest.param(*one, marks=pytest.mark.ci) for one in (("auto", 1), ("spark", 5), ("heuristic", 5)))],
)
def test_benchmarks_and_each_of_their_subqueries(
    request: pytest.FixtureRequest, name: str, strategy: str, step: int
) -> None:
    session: SparkSession = request.getfixturevalue(name)
    silent = []
    for number, text in list(tpc.spark_queries(name).items())[::step]:
        report = session.sql(text).optimize_joins(strategy=strategy, statistics="none").join_report()
        assert report.error is None, (number, report.error)
        if not speaks(report):
            silent.append(number)
    assert not silent


def test_cached_joins_are_named(spark: SparkSession) -> None:
    joined = spark.sql(f"SELECT a.k, b.v FROM {A} JOIN {B} ON a.k = b.k").cache()
    try:
        report = joined.filter("v > 3").optimize_joins().join_report()
        assert "cached" in reasons(report) and not report.changed
    finally:
        joined.unpersist()


def test_the_report_is_that_of_the_call(spark: SparkSession) -> None:
    df = spark.sql(f"SELECT * FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON b.id = c.k WHERE c.v < 4")
    fast = df.optimize_joins(cost="c_out")
    report = fast.join_report()
    assert report.changed and report is pyjoinopt.join_report(fast) is fast.join_report()
    other = pyjoinopt.join_report(df, strategy="none")
    assert other is not report and not other.changed and other.strategy == "none"
    assert pyjoinopt.join_report(fast, strategy="none").strategy == "none"
    assert fast.filter("a.k = 1").join_report() is not report
    fast.collect()
    assert report.observe()
    with pytest.raises(NotRunError, match=r"fast\.join_report\(\)\.observe\(\)"):
        pyjoinopt.JoinReport().observe()


def test_a_declaration_that_matches_nothing_is_noted(spark: SparkSession, caplog: Any, tmp_path: Any) -> None:
    for name in ("orders", "items", "parts"):
        spark.range(99).selectExpr("id", "id % 9 AS k").write.parquet(f"{tmp_path}/{name}")
        spark.read.parquet(f"{tmp_path}/{name}").createOrReplaceTempView(f"noted_{name}")
    text = "SELECT * FROM noted_orders o JOIN noted_items i ON o.id = i.k JOIN noted_parts p ON p.id = i.id"
    try:
        pyjoinopt.statistics.declare("items", key="id")
        assert not spark.sql(text).optimize_joins().join_report().notes
        pyjoinopt.statistics.declare("nosuch", key="id")
        pyjoinopt.statistics.declare("order", key="id")
        pyjoinopt.statistics.declare("parts", key=["k", "idd"])
        with caplog.at_level(logging.WARNING, "pyjoinopt"):
            for _ in range(2):
                report = spark.sql(text).optimize_joins().join_report()
        assert len(report.notes) == 3, report.notes
        reported = "\n".join(report.notes)
        assert "'nosuch' match nothing" in reported and "did you mean 'orders'" in reported
        assert "no column 'idd'" in reported
        assert all(note.split(";")[0] in report.to_text().replace("\n    ", " ") for note in report.notes)
        assert pyjoinopt.JoinReport.from_dict(report.to_dict()).notes == report.notes
        warned = [record.getMessage() for record in caplog.records if "match" in record.getMessage()]
        assert len(warned) == 2 and not any("nosuch" in message for message in warned)
    finally:
        pyjoinopt.statistics.forget_declared()


def test_an_unknown_setting_is_warned_of_once(spark: SparkSession, caplog: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.pairBugdet", "7")
    with caplog.at_level(logging.WARNING, "pyjoinopt"):
        for _ in range(2):
            session.range(3).optimize_joins()
    (warned,) = [r.getMessage() for r in caplog.records if "pairBugdet" in r.getMessage()]
    assert "did you mean 'spark.pyjoinopt.pairBudget'?" in warned


def test_the_jvm_knows_the_same_settings(spark: SparkSession) -> None:
    from pyjoinopt.bridge.shim import bridge_for
    from pyjoinopt.config import OPTIONS, SESSION_KEYS

    bridge_for(spark.range(1))
    known = spark._jvm.org.apache.spark.sql.pyjoinopt.UnknownKeys.Known()  # type: ignore[union-attr]
    names = {f"spark.pyjoinopt.{known.apply(i)}" for i in range(known.size())}
    assert names == {*(option.key for option in OPTIONS), *(key for key, _, _ in SESSION_KEYS)}


class _Shell:
    """An IPython shell; that of a notebook has a kernel."""

    def __init__(self, kernel: object) -> None:
        self.kernel = kernel


@pytest.mark.parametrize(
    ("kernel", "options", "picture"),
    [(1, {}, True), (1, {"mode": "text"}, False), (1, {"ascii_only": True}, False), (None, {}, False)],
)
def test_in_a_notebook_it_is_a_picture(
    spark: SparkSession, monkeypatch: Any, capsys: Any, kernel: object, options: dict[str, Any], picture: bool
) -> None:
    """The output that a notebook's kernel receives; `notebooks/` has real ones."""
    import IPython
    from IPython import display

    shown: list[Any] = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: _Shell(kernel))
    monkeypatch.setattr(display, "display", shown.append)
    df = spark.sql(f"SELECT * FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON b.id = c.k")
    df.explain_joins(**options)
    assert ("Group 1" in capsys.readouterr().out) is not picture
    assert [type(one) for one in shown] == [pyjoinopt.JoinReport] * picture
    assert all("<img" in one._repr_mimebundle_()["text/html"] for one in shown)
