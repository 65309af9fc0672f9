"""Shadow mode, the switch, a share of the queries, lists, and locked keys, in sessions and in calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.config import OPTIONS, PREFIX
from pyjoinopt.feedback.query_store import AS_WRITTEN
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.test_guard import recorded, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
INNER = "SELECT max(dim_v) FROM note JOIN dim ON note_f = dim_k JOIN mid ON mid_f = dim_k"
COMPARED = ("<", "<=", "=", ">=", ">", "!=")
HINTED = BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS */")


def optimised(session: SparkSession, text: str = SQL) -> str:
    """The optimised plan of a new query, without the numbers of columns."""
    plan = session.sql(text)._jdf.queryExecution().optimizedPlan()
    return str(plan.canonicalized().toString())


@pytest.fixture
def written(session: SparkSession) -> str:
    pyjoinopt.disable(session)
    plan = optimised(session)
    pyjoinopt.enable(session)
    assert optimised(session) != plan
    return plan


class TestMode:
    def test_report_changes_no_plan_and_has_the_order(self, session: SparkSession, written: str) -> None:
        expected = rows(session.sql(SQL))
        session.conf.set("spark.pyjoinopt.mode", "report")
        for text in (SQL, HINTED, BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS('auto') */")):
            plan, reports = planned(session, lambda text=text: optimised(session, text))  # type: ignore[misc]
            assert plan == written
            assert orders(reports) == [BETTER] and not reports[0].changed
        assert rows(session.sql(SQL)) == expected
        session.conf.set("spark.pyjoinopt.mode", "on")
        assert optimised(session) != written

    def test_off_plans_nothing_whatever_is_requested(self, session: SparkSession, written: str) -> None:
        session.conf.set("spark.pyjoinopt.mode", "off")
        for text in (SQL, HINTED):
            assert planned(session, lambda text=text: optimised(session, text)) == (written, [])  # type: ignore[misc]
        slow = session.sql(SQL)
        report = slow.join_report()
        assert slow.optimize_joins() is slow
        assert [(r.where, r.reason) for r in report.refusals] == [("the whole query", "spark.pyjoinopt.mode is off")]
        assert "set spark.pyjoinopt.mode to on" in report.to_text()
        assert slow.optimize_joins(mode="on") is not slow

    def test_calls_follow_the_mode_but_measuring_ones_do_not(self, session: SparkSession, tmp_path: Path) -> None:
        session.conf.set("spark.pyjoinopt.mode", "report")
        pyjoinopt.disable(session)
        slow, store = session.sql(SQL), str(tmp_path / "store.sqlite")
        assert slow.optimize_joins() is slow
        assert slow.join_report().groups[0].order_after == BETTER
        assert pyjoinopt.compare(session.sql(SQL), repeat=1).report.changed
        pinned = pyjoinopt.baselines.pin(session.sql(SQL), "better", store=store)
        assert pinned.groups[0].order == (("mid", "dim"), ("fact", "#1"))

    def test_a_wrong_mode_leaves_queries_as_written(
        self, session: SparkSession, written: str, warnings: Callable[[], list[str]]
    ) -> None:
        session.conf.set("spark.pyjoinopt.mode", "shadow")
        assert optimised(session) == written
        assert any("'on', 'report', 'off'" in line for line in warnings())
        with pytest.raises(ValueError, match="spark.pyjoinopt.mode is 'shadow'"):
            session.sql(SQL).optimize_joins()


class TestLists:
    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            ("canary", "0", "spark.pyjoinopt.canary = 0"),
            ("denyTables", "*/mid", "spark.pyjoinopt.denyTables (*/mid)"),
            ("allowTables", "fact, mid", "not in spark.pyjoinopt.allowTables"),
            ("denyDescriptions", "nightly*", "spark.pyjoinopt.denyDescriptions (nightly*)"),
            ("allowDescriptions", "hourly*", "not in spark.pyjoinopt.allowDescriptions"),
        ],
    )
    def test_a_query_that_is_left_out_has_the_reason(
        self, session: SparkSession, written: str, key: str, value: str, reason: str
    ) -> None:
        session.sparkContext.setJobDescription("nightly 7")
        try:
            session.conf.set(f"spark.pyjoinopt.{key}", value)
            for text in (SQL, HINTED):
                plan, reports = planned(session, lambda text=text: optimised(session, text))  # type: ignore[misc]
                assert plan == written and reason in str(reports[0].refusals)
            assert "optimize_joins() in the driver" in reports[0].to_text()
            slow = session.sql(SQL)
            assert slow.optimize_joins() is not slow, "a call"
            session.conf.set(f"spark.pyjoinopt.{key}", "1" if key == "canary" else "")
            assert optimised(session) != written
        finally:
            session.sparkContext._jsc.sc().setJobDescription(None)

    def test_the_description_of_the_moment_decides(self, session: SparkSession, written: str) -> None:
        """Even if the query was planned before under another one."""
        session.conf.set("spark.pyjoinopt.allowDescriptions", 'a "quoted" *')
        try:
            for description, changed in (('a "quoted" one', True), ("another", False), ('a "quoted" two', True)) * 2:
                session.sparkContext.setJobDescription(description)
                assert (optimised(session) != written) == changed
        finally:
            session.sparkContext._jsc.sc().setJobDescription(None)
        assert optimised(session) == written, "without a description"

    def test_a_query_stays_on_its_side_of_a_share(self, session: SparkSession) -> None:
        some = COMPARED[:4]  # all sixteen are on one side once in 30,000 times
        texts = [SQL.replace("dim_v = 1", f"dim_v {op} 1 AND mid_v {other} 2") for op in some for other in some]
        sides = {}
        session.conf.set("spark.pyjoinopt.canary", "0.5")
        for constant in "135":
            for number, text in enumerate(texts):
                other = text.replace("1", constant)
                reports = planned(session, lambda other=other: optimised(session, other))[1]  # type: ignore[misc]
                left_out = any("canary" in refusal.reason for refusal in reports[0].refusals)
                assert sides.setdefault(number, left_out) == left_out
        assert set(sides.values()) == {True, False}

    def test_parts_of_a_query_are_decided_by_themselves(
        self, new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path,
        warnings: Callable[[], list[str]],
    ) -> None:  # fmt: skip
        """Spark plans the subquery first. If it is left as written, that is no reason for the rest."""
        learning = new_session()
        pyjoinopt.enable(learning, feedback=True, store=str(tmp_path / "store.sqlite"))
        for made in (session, learning):
            made.conf.set("spark.pyjoinopt.timeout", "60s")
            made.conf.set("spark.pyjoinopt.canary", "0.5")

        def left_out(made: SparkSession, text: str) -> list[bool]:
            _, reports = planned(made, lambda: rows(made.sql(text)))
            return ["canary" in str(report.refusals) for report in reports]

        # Which side a plan is on depends on the path of its tables, so queries are tried in which both parts differ.
        texts = [
            f"{SQL} AND fact_k {op} 3 AND mid_v {other} 9 AND mid_v <= "
            f"({INNER} WHERE note_v {op} 3 AND mid_v {other} 2)"
            for op in COMPARED
            for other in COMPARED
        ]
        mixed = next(text for text in texts if left_out(session, text) == [True, False])
        warnings()
        assert left_out(learning, mixed) == [True, False]
        assert not [line for line in warnings() if "took longer" in line]

    def test_runs_of_what_is_left_out_are_those_as_written(
        self, new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path
    ) -> None:
        made = new_session()
        path = tmp_path / "store.sqlite"
        pyjoinopt.enable(made, feedback=True, store=str(path), canary=0.0)
        made.conf.set("spark.pyjoinopt.timeout", "60s")
        made.conf.set("spark.pyjoinopt.test.store", str(path))
        run(made, SQL)
        assert [each.plan for each in recorded(made)] == [AS_WRITTEN]
        made.conf.set("spark.pyjoinopt.canary", "1")
        run(made, SQL)
        assert [each.plan == AS_WRITTEN for each in recorded(made)] == [True, False]


class TestLocked:
    @pytest.fixture
    def lock(self, session: SparkSession) -> Iterator[Callable[[str], None]]:
        def locking(names: str) -> None:
            values = f'{{"spark.pyjoinopt.locked": "{names}"}}'
            bridge_of(session).setApplicationSettings(session._jsparkSession, values)

        yield locking
        locking("")

    def test_a_locked_key_has_the_application_s_value(
        self, session: SparkSession, written: str, lock: Callable[[str], None], warnings: Callable[[], list[str]]
    ) -> None:
        session.conf.set("spark.pyjoinopt.mode", "report")
        session.conf.set("spark.pyjoinopt.canary", "0")
        assert optimised(session) == written
        warnings()
        lock("mode, spark.pyjoinopt.canary")
        plan, reports = planned(session, lambda: optimised(session))
        assert plan != written, "by default the mode is on"
        assert {r.where for r in reports[0].refusals} >= {"spark.pyjoinopt.mode", "spark.pyjoinopt.canary"}
        optimised(session)
        lines = [line for line in warnings() if "the application has locked it" in line]
        assert len(lines) == 2, "one for each key"
        slow = session.sql(SQL)
        assert slow.optimize_joins() is not slow, "calls have the application's value, too"
        assert slow.optimize_joins(mode="report") is slow, "but for their own keywords"

    def test_what_the_jvm_reads_is_locked_too(
        self, session: SparkSession, written: str, lock: Callable[[str], None]
    ) -> None:
        session.conf.set("spark.pyjoinopt.mode", "off")
        session.conf.set("spark.pyjoinopt.timeout", "1ms")
        lock("*")
        session.conf.set("spark.pyjoinopt.enabled", "true")
        assert optimised(session) == written, "the application has not enabled this session"
        lock("mode, timeout")
        assert optimised(session) != written

    def test_hints_do_not_get_round_a_lock(
        self, session: SparkSession, written: str, lock: Callable[[str], None]
    ) -> None:
        lock("strategy")
        hinted = BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS('none') */")
        assert optimised(session, hinted) != written, "the default is auto"
        lock("")
        assert optimised(session, hinted) == written
        lock("*")
        assert optimised(session, BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS('none', 'baseline=x') */")) != written

    def test_a_locked_store_cannot_be_switched_off(
        self, session: SparkSession, lock: Callable[[str], None], warnings: Callable[[], list[str]]
    ) -> None:
        session.conf.set("spark.pyjoinopt.store", "off")
        _, reports = planned(session, lambda: optimised(session))
        assert not any(r.where == "spark.pyjoinopt.store" for r in reports[0].refusals)
        lock("store")
        _, reports = planned(session, lambda: optimised(session, SQL + " AND fact_v < 3"))
        assert any(r.where == "spark.pyjoinopt.store" for r in reports[0].refusals)
        assert any("spark.pyjoinopt.store. It is ignored" in line for line in warnings())

    def test_a_locked_switch_is_the_application_s(self, session: SparkSession, lock: Callable[[str], None]) -> None:
        """It has not enabled this session by its own configuration."""
        lock("enabled")
        assert not pyjoinopt.is_enabled(session)
        lock("")
        assert pyjoinopt.is_enabled(session)

    def test_every_option_can_be_locked(self, session: SparkSession, lock: Callable[[str], None]) -> None:
        wrong = {"spark.pyjoinopt.enabled": "true", **{option.key: "wrong" for option in OPTIONS}}
        for key, value in wrong.items():
            session.conf.set(key, value)
        lock(", ".join(option.key.removeprefix(PREFIX) for option in OPTIONS))
        _, reports = planned(session, lambda: optimised(session))
        assert orders(reports) == [BETTER] and reports[0].error is None


def test_tune_and_compare_run_plans_as_they_are(session: SparkSession) -> None:
    """Those of their own thread, in a session that optimises every query."""
    df = session.sql(SQL)
    assert not planned(session, lambda: pyjoinopt.tune(df, runs=4, progress=False))[1]
    assert not planned(session, lambda: pyjoinopt.compare(df, repeat=1))[1]
    assert not planned(session, lambda: df.explain_joins(analyze=True))[1]
    with pytest.raises(ValueError, match="nothing to try"):
        pyjoinopt.tune(session.table("dim"), progress=False)
    assert session.sparkContext.getLocalProperty("pyjoinopt.rule") is None
    assert orders(planned(session, df.collect)[1]) == [BETTER]
