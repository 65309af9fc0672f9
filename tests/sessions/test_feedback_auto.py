"""`feedback = auto`: a session records its queries while that takes less than a hundredth of their time."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.worker.pending_feedback import PendingFeedback
from tests.sessions.conftest import rows
from tests.sessions.test_feedback import heard, sources
from tests.sessions.test_guard import SQL, WITH_SUBQUERY, as_written, changed, pretend, recorded, run
from tests.sessions.test_metrics import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000_000
CLASS = "org.apache.spark.sql.pyjoinopt.FeedbackBudget"


def loaded(session: SparkSession, name: str) -> Any:
    return session._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)


def budget_of(session: SparkSession) -> Any:
    return loaded(session, f"{CLASS}$").getField("MODULE$").get(None).of(session._jsparkSession)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def learning(new_session: Callable[[], SparkSession], session: SparkSession, path: Path) -> SparkSession:
    made = new_session()
    pyjoinopt.enable(made, feedback="auto", store=str(path), statistics="auto")
    made.conf.set("spark.pyjoinopt.timeout", "60s")
    made.conf.set("spark.pyjoinopt.test.store", str(path))
    return made


def never(session: SparkSession) -> None:
    """All that the session has earned is spent."""
    budget_of(session).spend(1e6 * SECOND)


def always(session: SparkSession) -> None:
    """The session has run for years."""
    budget_of(session).earn(10**9 * SECOND)


def test_it_records_what_it_can_afford(learning: SparkSession) -> None:
    before = counted(learning)
    rows(learning.sql(SQL))
    heard(learning)
    assert recorded(learning) == [], "the first query of a session has earned nothing"
    always(learning)
    run(learning, SQL)
    never(learning)
    always(learning)
    run(learning, SQL)
    budget_of(learning).spend(1e12 * SECOND)
    rows(learning.sql(SQL))
    heard(learning)
    assert len(recorded(learning)) == 2 and "feedback" in sources(learning, SQL)
    after = counted(learning)
    found = {name: after[name] - before[name] for name in ("feedback.recorded", "feedback.leftOut")}
    assert found == {"feedback.recorded": 2, "feedback.leftOut": 3}, "EXPLAIN is planned, too"


def test_queries_earn_a_hundredth_of_their_time(learning: SparkSession) -> None:
    """Also those without joins, and those that are not recorded."""
    budget = budget_of(learning)
    rows(learning.sql(SQL))
    heard(learning)
    budget.earn(-budget_earned(budget) * 100)
    waiting = "SELECT count(*) FROM range(10) WHERE java_method('java.lang.Thread', 'sleep', 300L) IS NULL"
    learning.sql(waiting).collect()
    heard(learning)
    assert 0.003 <= budget_earned(budget) / SECOND < 0.6


def budget_earned(budget: Any) -> int:
    field = budget.getClass().getDeclaredField("earned")
    field.setAccessible(True)
    return int(field.get(budget))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_spent_is_bounded_by_what_is_earned(session: SparkSession, seed: int) -> None:
    """Whatever the queries and recordings take; each is accounted for before the next query."""
    draw, budget = random.Random(seed), loaded(session, CLASS).getConstructors()[0].newInstance(None)
    run_time = cost_of_recordings = most = 0.0
    recordings = 0
    for _ in range(300):
        if budget.takeOne():
            recordings += 1
            cost = draw.uniform(0.5, 1.5) * 5e-3 * SECOND
            budget.spend(cost)
            cost_of_recordings, most = cost_of_recordings + cost, max(most, cost)
        seconds = draw.choice([0.05, 0.2, 1.0, 5.0])
        budget.earn(int(seconds * SECOND))
        run_time += seconds * SECOND
    assert cost_of_recordings <= 0.01 * run_time + most and recordings > 100


@pytest.mark.ci
@pytest.mark.parametrize("text", [SQL, WITH_SUBQUERY], ids=["one plan", "two plans"])
def test_a_revoked_plan_remains_revoked_while_nothing_is_recorded(
    learning: SparkSession, path: Path, text: str
) -> None:
    text = text.replace("dim_v = 1", "dim_v = 1 AND dim_k >= 0")  # each query is warned of once
    always(learning)
    as_written(learning, text)
    run(learning, text, 2)
    assert changed(learning, text)[0]
    heard(learning)
    pretend(path, {True: 9.0, False: 1.0})
    never(learning)
    budget_of(learning).spend(1e12 * SECOND)
    runs = len(recorded(learning))
    for _ in range(2):
        was_changed, reasons = changed(learning, text)
        assert not was_changed and "times as long" in reasons
    heard(learning)
    assert len(recorded(learning)) == runs


def test_a_run_out_of_memory_is_recorded_in_any_case() -> None:
    """A plan that fails is revoked, however little the session has earned."""
    recorded_runs = []

    class Planned:
        def record(self, store: Any, run: dict[str, Any], driver: str) -> None:
            recorded_runs.append(run["query"])

    learned = PendingFeedback()
    for number, record in ((1, True), (2, False), (3, False)):
        learned.expect_run(number, Planned(), object(), record)  # type: ignore[arg-type]
    learned.learn([{"query": 1, "seconds": 1.0, "operators": []}, {"query": 2, "seconds": 1.0, "failed": "memory"}])
    learned.learn([{"query": 2, "seconds": 1.0, "failed": "memory"}])
    assert recorded_runs == [1, 2] and learned.planned(3) is not None


@pytest.mark.parametrize("given", ["often", "True ", 1, None])
def test_other_values(session: SparkSession, given: Any) -> None:
    with pytest.raises(TypeError, match="must be true or false, or 'auto'"):
        pyjoinopt.enable(session, feedback=given)
