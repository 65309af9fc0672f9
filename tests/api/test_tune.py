"""`pyjoinopt.tune`: it tries plans that differ, stops slow ones, learns from each run, and finds a faster plan."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.api import baselines
from pyjoinopt.api.candidate_plans import CandidatePlans
from pyjoinopt.api.dataframe import run_with_baseline
from pyjoinopt.bridge.run_with_limit import TimedRun, run_with_limit
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.baseline import PinnedGroup
from pyjoinopt.feedback.neighbour_orders import neighbours
from pyjoinopt.report.tuning import TriedPlan, Tuning
from pyjoinopt.testing import assert_same_rows
from tests.support.small_session import own_store_of, session_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: `big ⋈ wide` has 1.8 million rows; `big ⋈ few` has none of them but a few.
TABLES = {
    "big": "SELECT id b_id, id % 20 b_wide, id % 3000 b_few FROM range(6000)",
    "wide": "SELECT id % 20 w_key, id w_id FROM range(6000)",
    "few": "SELECT id * 100 f_key, id % 2 f_v FROM range(4)",
}
SQL = "SELECT count(*), sum(w_id) FROM big JOIN wide ON b_wide = w_key JOIN few ON b_few = f_key WHERE f_v < 7"

#: `r ⋈ s` has eight rows, and `q ⋈ r ⋈ s` eighty; `p ⋈ q ⋈ r` has 300,000.
CHAIN = {
    "p": "SELECT id p_id, id % 30 p_q FROM range(3000)",
    "q": "SELECT id % 30 q_p, id % 30 q_r FROM range(300)",
    "r": "SELECT id % 30 r_q, id DIV 2 r_s FROM range(300)",
    "s": "SELECT id DIV 2 + 148 s_key, id % 10 s_x, id % 9 s_y, id % 8 s_z FROM range(1500)",
    **{name: f"SELECT id {name}_key FROM range(10)" for name in "xyz"},
}
CHAIN_SQL = (
    "SELECT p_id, r_s FROM p JOIN q ON p_q = q_p JOIN r ON q_r = r_q JOIN s ON r_s = s_key "
    "JOIN x ON s_x = x_key JOIN y ON s_y = y_key JOIN z ON s_z = z_key"
)


class Lying:
    """A source of statistics by which the first join has ten rows, and each row of `big` many partners in `few`."""

    name = "lying"

    def lookup(self, relation: Any) -> pyjoinopt.statistics.Known | None:
        column = pyjoinopt.statistics.Column
        found = {
            "few": (5000.0, {"f_key": column(ndv=1)}),
            "wide": (10.0, {"w_key": column(ndv=10)}),
            "big": (10.0, {"b_few": column(ndv=1), "b_wide": column(ndv=10)}),
            "r": (300.0, {"r_q": column(ndv=30), "r_s": column(ndv=1)}),
            "s": (1500.0, {"s_key": column(ndv=1)}),
        }.get(relation.name)
        return None if found is None else pyjoinopt.statistics.Known(found[0], columns=found[1], source="lying")


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_over(spark, tmp_path_factory.mktemp("tuned"), TABLES | CHAIN)


@pytest.fixture(autouse=True)
def store(session: SparkSession, tmp_path: Path) -> Iterator[str]:
    yield from own_store_of(session, tmp_path)


@pytest.fixture
def lying(session: SparkSession) -> Iterator[None]:
    """Wrong statistics, without the samples and proofs that would correct them."""
    source = Lying()
    pyjoinopt.statistics.register(source)
    settings = {"statisticsWithout": "samples,keys,bounds", "cost": "c_out"}
    for name, value in settings.items():
        session.conf.set(f"spark.pyjoinopt.{name}", value)
    yield
    for name in settings:
        session.conf.unset(f"spark.pyjoinopt.{name}")
    pyjoinopt.statistics.unregister(source)


@pytest.fixture
def timed_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose times are the rows that the operators made, in milliseconds: the same on a busy machine."""

    def run(df: Any, limit: float) -> TimedRun:
        done = run_with_limit(df, math.inf)
        seconds = sum(operator["m"].get("numOutputRows", 0) for operator in done.operators) / 1000
        return TimedRun(limit, cancelled=True) if seconds > limit else replace(done, seconds=seconds)

    monkeypatch.setattr("pyjoinopt.api.tune.run_with_limit", run)


@pytest.mark.usefixtures("lying", "timed_by_rows")
def test_a_misled_plan_is_replaced_and_pinned(session: SparkSession, store: str) -> None:
    df = session.sql(SQL)
    assert pyjoinopt.join_report(df).groups[0].order_after == "((big ⋈ wide) ⋈ few)"
    found = pyjoinopt.tune(df, runs=9, pin="tuned")
    assert found.runs == 9 and found.same is True and found.pinned == "tuned"
    # Spark itself reorders a product such as (few ⋈ wide) ⋈ big, so that plan is as good as the expected one.
    assert "big ⋈ wide" not in found.best.order and "wide ⋈ big" not in found.best.order
    assert found.speed_up > 10
    assert found.plan("default").order == "((big ⋈ wide) ⋈ few)"
    worst = found.learned[0]
    assert worst.q_error > 1000
    fast = df.optimize_joins(baseline="tuned")
    assert_same_rows(df, fast)
    (group,) = pyjoinopt.join_report(fast).groups
    assert group.strategy == "baseline"
    assert pyjoinopt.baselines.get("tuned", store=store).name == "tuned"
    # What was counted is used from now on, without a baseline, too.
    assert "wide) ⋈ few" not in pyjoinopt.join_report(session.sql(SQL)).groups[0].order_after


@pytest.mark.usefixtures("lying", "timed_by_rows")
def test_a_join_that_no_plan_of_the_model_makes(session: SparkSession) -> None:
    """`r ⋈ s` is estimated at 450,000 rows and has eight; no other plan makes it, so nothing else corrects that."""
    df = session.sql(CHAIN_SQL)
    found = pyjoinopt.tune(df, statistics_without="samples,bounds", cost="c_out", statistics="auto")
    assert found.speed_up > 10 and found.same is True
    assert "(p ⋈ q)" not in found.plan("default").order and "(q ⋈ r)" in found.plan("default").order
    tried = found.plan("0.1 × rows of r ⋈ s")
    assert tried.typical < found.plan("default").typical / 3
    assert found.plan("counted after 0.1 × rows of r ⋈ s").typical < tried.typical / 2
    assert_same_rows(df, df.optimize_joins(baseline=pin(session, found)))
    assert 1 <= sum("× rows of" in plan.name for plan in found.plans) <= 8
    # The assumption only chooses the order: the plan itself is made with the estimates as they are.
    (joined,) = [seen for seen in found.learned if set(seen.relations) == set("rsxyz")]
    assert joined.estimated == pytest.approx(450_000, rel=0.01) and joined.actual == 8


def pin(session: SparkSession, found: Tuning) -> str:
    baselines.put(replace(found.best.baseline, name="found"), open_store(session.conf.get("spark.pyjoinopt.store")))
    return "found"


@pytest.mark.usefixtures("lying")
def test_the_assumption_does_not_reach_a_plan(session: SparkSession) -> None:
    """Hints and estimates of a plan that was found by it are those of its order without it."""
    key = "spark.sql.autoBroadcastJoinThreshold"
    before = session.conf.get(key)
    session.conf.set(key, "300")
    try:
        df, options = session.sql(CHAIN_SQL), {"statistics_without": "samples"}
        plans = CandidatePlans(df, options)
        found = next(plans.if_wrong(lambda candidate: False))
        _, report = run_with_baseline(df, found.baseline, options, hints=False)
        default = plans.default()
    finally:
        session.conf.set(key, before)
    assert " × rows of " in found.name and found.order != default.order
    assert report.hints == found.report.hints and not found.report.refusals
    assert [replace(group, seconds=0) for group in report.groups] == [
        replace(group, seconds=0) for group in found.report.groups
    ]
    # Only relations whose rows are bounded are built; nothing bounds `r`, `s` and their joins.
    assert found.report.hints and all("at most 10 rows" in hint.reason for hint in found.report.hints)


@pytest.mark.ci
def test_plans_are_tried_once_each(session: SparkSession) -> None:
    found = pyjoinopt.tune(session.sql(SQL), runs=20)
    names = [name for plan in found.plans for name in plan.name.split(", ")]
    assert {"default", "as written", "by counted rows", "no hints"} <= set(names)
    assert len(names) == len(set(names) - {"near the best"}) + names.count("near the best")
    assert len({(plan.order, plan.name) for plan in found.plans}) == len(found.plans)
    assert found.ended == "all plans that differ were tried" and found.runs == 20
    assert sum(len(plan.seconds) + (plan.stopped is not None) for plan in found.plans) <= 20
    text = found.to_text()
    assert text.splitlines()[0].startswith(f"{len(found.plans)} plans, 20 runs")
    assert "OTHER ROWS" not in text
    bundle = found._repr_mimebundle_()
    assert bundle["text/plain"] == text and bundle["text/html"].startswith("<img ")


def test_plans_that_are_stopped_are_not_repeated(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all others were stopped, nothing is left to compare."""
    limits = []

    def only_the_first_ends(df: Any, limit: float) -> TimedRun:
        limits.append(limit)
        return TimedRun(2.0, cancelled=limit < math.inf)

    monkeypatch.setattr("pyjoinopt.api.tune.run_with_limit", only_the_first_ends)
    found = pyjoinopt.tune(session.sql(SQL), runs=12)
    assert limits[:2] == [math.inf] * 2, "the warm-up and the default plan"
    assert limits[2:] == pytest.approx([1.3 * found.plan("default").typical] * (found.runs - 1))
    assert found.runs == len(found.plans) == len(limits) - 1
    assert found.best is found.plan("default")


def test_the_session_is_left_as_it_was(session: SparkSession) -> None:
    before = {row.key: row.value for row in session.sql("SET").collect()}
    pyjoinopt.tune(session.sql(SQL), runs=3, seconds=0.001)
    assert {row.key: row.value for row in session.sql("SET").collect()} == before


def test_the_time_is_limited(session: SparkSession) -> None:
    found = pyjoinopt.tune(session.sql(SQL), runs=50, seconds=0.001)
    assert found.runs == 1 and found.ended == "the time is over"
    assert found.best.name == "default"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"runs": 2}, ValueError, "runs is 2, but must be at least 3"),
        ({"runs": 2.5}, TypeError, "runs is 2.5"),
        ({"seconds": "1"}, TypeError, "seconds is '1'"),
        ({"seconds": 0}, ValueError, "seconds is 0, but must be more than 0"),
        ({"pin": "a b"}, ValueError, "name is 'a b'"),
        ({"pin": 3}, TypeError, "name is 3"),
        ({"check_rows": -1}, ValueError, "check_rows is -1"),
        ({"progress": "yes"}, TypeError, "progress"),
        ({"strategy": "spark"}, ValueError, "strategy is 'spark', but must be 'auto'"),
        ({"hint": True}, ValueError, "unknown option 'hint'"),
        ({"store": "off"}, ValueError, "store is 'off'"),
    ],
)
def test_wrong_arguments(session: SparkSession, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pyjoinopt.tune(session.sql(SQL), **options)


def test_a_query_without_orders(session: SparkSession) -> None:
    with pytest.raises(ValueError, match="nothing to try"):
        pyjoinopt.tune(session.sql("SELECT * FROM big JOIN few ON b_few = f_key"))


def test_a_query_that_fails(session: SparkSession) -> None:
    df = session.sql(f"SELECT raise_error('no') FROM ({SQL})")
    with pytest.raises(Exception, match="no"):
        pyjoinopt.tune(df, runs=3)


class TestLimit:
    def test_a_run_is_stopped(self, session: SparkSession) -> None:
        df = session.sql("SELECT count(*) FROM range(40000) a JOIN range(400000) b ON a.id + b.id <> 1")
        started = time.monotonic()
        done = run_with_limit(df, 1.0)
        assert done.cancelled and 0.9 <= done.seconds and not done.operators
        assert time.monotonic() - started < 30
        assert session.sql("SELECT 1").collect()[0][0] == 1

    def test_a_run_without_a_limit(self, session: SparkSession) -> None:
        done = run_with_limit(session.sql(SQL), math.inf)
        assert not done.cancelled and done.operators and done.seconds > 0

    def test_its_own_error_is_raised(self, session: SparkSession) -> None:
        with pytest.raises(Exception, match="mine"):
            run_with_limit(session.sql("SELECT raise_error('mine')"), 60.0)


def test_neighbours_join_all_relations_once() -> None:
    names = "abcde"
    order = (("a", "b"), ("c", "d"), ("#1", "#2"), ("#3", "e"))
    group = PinnedGroup({name: (name,) for name in names}, (), order)
    found = list(neighbours(group))
    assert len({n.order for n in found}) == len(found) > 20
    for neighbour in found:
        sides = [side for step in neighbour.order for side in step]
        assert sorted(side for side in sides if not side.startswith("#")) == list(names)
        assert len(sides) == len(set(sides)) == 8


def test_the_picture_escapes_what_it_shows() -> None:
    plan = TriedPlan("<script>alert(1)</script>", "(a ⋈ <b>)", (1.0,), 2.0)
    svg = Tuning((plan,), plan, 1).to_svg()
    assert "<script" not in svg and "<b>" not in svg and "&lt;script" in svg
