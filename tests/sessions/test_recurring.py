"""The plan cache: a repeated query gets its stored plan while everything that the plan depends on is unchanged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.sources.registry import Files
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore
from pyjoinopt.worker import planning as worker_planning
from pyjoinopt.worker.pending_feedback import PendingFeedback
from pyjoinopt.worker.plan_cache import PlanCache, RecordedRequests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

SQL = "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WHERE c.v < {most} AND a.name LIKE 'n1%'"


class OverPy4j:
    """Sends a worker's requests to the JVM of this process."""

    def __init__(self, df: DataFrame) -> None:
        self._shim = bridge_for(df)
        self.export = json.loads(self._shim.export(df._jdf, "{}"))
        self.requested = 0

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        self.requested += 1
        to_jvm = self._shim.samples if "relations" in question else self._shim.keys if "proofs" in question else None
        reported = (to_jvm or self._shim.statistics)(self.export["handle"], json.dumps(question))
        return dict(json.loads(reported))

    def close(self) -> None:
        self._shim.release(self.export["handle"])


class Planning:
    """A worker's planner, and how often it had to plan."""

    def __init__(self, store: Path) -> None:
        self._planner, self._learned = worker_planning.Planner(), PendingFeedback()
        self._store = store
        self.planned = self.requested = 0

    def __call__(self, df: DataFrame, **options: Any) -> dict[str, Any]:
        requests = OverPy4j(df)
        reported = {"store": str(self._store), "statistics_ms": 60_000, **options}
        request = {"milliseconds": 60_000, "options": reported, "export": requests.export}
        answer, report = self._planner.answer(requests, request, self._learned)
        requests.close()
        self.requested = requests.requested
        assert answer["answer"]["problem"] is None
        return json.loads(json.dumps({**answer["answer"], **report}))

    def settled(self, df: Callable[[], DataFrame], **options: Any) -> dict[str, Any]:
        """The response once samples are drawn, keys are proved and all results are stored."""
        for _ in range(20):
            before = self.planned
            answer = self(df(), **options)
            if self.planned == before:
                return answer
        raise AssertionError("it is planned anew each time")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planning:
    planning, optimize = Planning(tmp_path / "store.sqlite"), worker_planning.optimize

    def counted(*args: Any, **kwargs: Any) -> Any:
        planning.planned += 1
        return optimize(*args, **kwargs)

    monkeypatch.setattr(worker_planning, "optimize", counted)
    return planning


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    session = spark.newSession()
    for name, rows in (("a", 3000), ("b", 2000), ("c", 20)):
        path = str(tmp_path / name)
        spark.range(rows).selectExpr("id AS k", "id % 10 AS v", "'n' || id AS name").coalesce(1).write.parquet(path)
        session.read.parquet(path).createOrReplaceTempView(name)
    return lambda most=5: session.sql(SQL.format(most=most))


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    report = {name: part for name, part in answer["report"].items() if name not in ("seconds", "groups")}
    groups = [{name: part for name, part in g.items() if name != "seconds"} for g in answer["report"]["groups"]]
    return {**answer, "report": {**report, "groups": groups}}


def test_the_same_query_is_planned_once(plan: Planning, query: Callable[..., DataFrame]) -> None:
    again = plan.settled(query)
    assert again["edits"] is not None, "the order is changed"
    count = plan.planned
    assert plan(query()) == {**again, "report": {**again["report"], "seconds": pytest.approx(0, abs=60)}}
    assert plan.planned == count
    fresh = Planning(plan._store)
    anew = fresh(query())
    assert plan.planned == count + 1, "another process knows nothing of it"
    assert without_time(anew) == without_time(again)


def test_another_literal_or_option_is_another_query(plan: Planning, query: Callable[..., DataFrame]) -> None:
    plan.settled(query)
    count = plan.planned
    plan(query(6))
    plan(query(), hints=False)
    assert plan.planned == count + 2


def test_files_that_changed(plan: Planning, query: Callable[..., DataFrame], tmp_path: Path) -> None:
    before = plan.settled(query)
    count = plan.planned
    spark = query().sparkSession
    spark.range(50).selectExpr("id AS k", "id % 10 AS v", "'n' || id AS name").write.mode("append").parquet(
        str(tmp_path / "c")
    )
    spark.read.parquet(str(tmp_path / "c")).createOrReplaceTempView("c")
    after = plan(query())
    assert plan.planned == count + 1

    def rows(answer: dict[str, Any]) -> float:
        return next(r["rows"] for r in answer["report"]["groups"][0]["relations"] if r["name"] == "c")

    assert rows(after) > 2 * rows(before)


def test_what_another_process_wrote_to_the_store(plan: Planning, query: Callable[..., DataFrame]) -> None:
    """It may be anything, such as the true rows of this very join."""
    plan.settled(query)
    count, requested = plan.planned, plan.requested
    for i in (1, 2, 3):
        Store(plan._store).put_blob(Files("i", "s", 1, i, 0.0), "kind", b"")
        plan(query())
        assert plan.planned == count + i
    plan.settled(query)
    assert plan.requested == requested, "what was asked in vain is not asked again"


class Session:
    """A session with feedback: its queries are numbered, and what they did is sent back."""

    def __init__(self, plan: Planning, **options: Any) -> None:
        self._plan, self._number = plan, 0
        self._options = {"store": str(plan._store), "statistics_ms": 60_000, "feedback": True, **options}

    def run(self, df: DataFrame) -> dict[str, Any]:
        """Plan a query, run it with the plan that was chosen, and report the run; the answer and its report."""
        requests, shim, self._number = OverPy4j(df), bridge_for(df), self._number + 1
        request = {
            "milliseconds": 60_000, "options": self._options, "export": requests.export,
            "query": self._number, "part": 1,
        }  # fmt: skip
        answer, report = self._plan._planner.answer(requests, request, self._plan._learned)
        edits = answer["answer"]["edits"]
        ran = df._jdf if edits is None else shim.rebuild(requests.export["handle"], json.dumps(edits))
        requests.close()
        ran.count()
        ran.collectToPython()
        operators = json.loads(shim.executed(ran))
        groups, _ = self._plan._learned._expected.get(self._number) or ([], None)
        self.recognised = [relations for group in groups for relations in group.observe(operators)]
        run = {"query": self._number, "ended": time.time(), "seconds": 1.0, "operators": operators}
        self._plan._learned.learn([run])
        return json.loads(json.dumps({**answer["answer"], **report}))

    def settled(self, df: Callable[[], DataFrame]) -> dict[str, Any]:
        """The response once nothing new is learnt."""
        for _ in range(20):
            before = self._plan.planned
            answer = self.run(df())
            if self._plan.planned == before:
                return answer
        raise AssertionError("it is planned anew each time")


def test_a_query_of_a_session_with_feedback_is_planned_once(
    plan: Planning, query: Callable[..., DataFrame], tmp_path: Path
) -> None:
    """Its runs are recorded, and its joins are recognised, although its columns have other IDs each time."""
    session, runs = Session(plan), QueryStore(Store(plan._store))
    again = session.settled(query)
    assert again["edits"] is not None
    assert {relation["source"] for relation in again["report"]["groups"][0]["relations"]} == {"feedback"}
    (before,) = runs.queries()
    count, recognised = plan.planned, session.recognised
    for name in "abc":
        query().sparkSession.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    more = session.run(query())
    assert plan.planned == count and more["edits"] == again["edits"] and more["report"]["groups"]
    assert session.recognised == recognised and {relations.bit_count() for relations in recognised} == {1, 2, 3}
    assert len(more["expected"]) == 1 and more["expected"][0]["columns"] != again["expected"][0]["columns"]
    (after,) = runs.queries()
    assert len(after.runs) == len(before.runs) + 1 and after.runs[-1].plan == before.runs[-1].plan != AS_WRITTEN


def test_a_cached_plan_is_shown_in_the_ui(plan: Planning, query: Callable[..., DataFrame], tmp_path: Path) -> None:
    """With its pictures, and with joins that are recognised by the IDs of this query's columns."""

    def deferred() -> dict[str, Any]:
        requests = OverPy4j(query())
        options = {"store": str(plan._store), "statistics_ms": 60_000}
        request = {"milliseconds": 60_000, "options": options, "export": requests.export, "pictures": True}
        answer, deferred = plan._planner.answer(requests, request, plan._learned)
        requests.close()
        assert "expected" not in answer["answer"], "nothing is recorded of it"
        return dict(deferred)

    before = plan.settled(query)
    first, count = deferred(), plan.planned
    for name in "abc":
        query().sparkSession.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    again = deferred()
    assert plan.planned == count, "it is cached"
    assert again["pictures"] == first["pictures"] and len(again["pictures"]) > 1000
    (one,), (other,) = first["expected"], again["expected"]
    assert {**one, "columns": []} == {**other, "columns": []} and one["columns"] != other["columns"]
    assert plan(query())["report"]["groups"] == before["report"]["groups"]


def test_a_cached_plan_is_revoked(plan: Planning, query: Callable[..., DataFrame]) -> None:
    """And it is not planned anew for that, nor is the plan without learnt row counts after the first time."""
    session, runs = Session(plan), QueryStore(Store(plan._store))
    session.settled(query)
    (known,) = runs.queries()
    latest = known.runs[-1]
    for seconds, shape in ((1.0, AS_WRITTEN), (9.0, latest.plan)):
        for _ in range(4):
            runs.add(known.shape, known.conditions, known.tables, replace(latest, plan=shape, seconds=seconds))
    session.run(query())  # what another connection has written may be anything
    count = plan.planned
    answers = [session.run(query()) for _ in range(3)]
    assert plan.planned == count
    assert [answer["outcome"] for answer in answers] == ["revoked"] * 3 and answers[-1]["edits"] is None
    assert "times as long" in answers[-1]["report"]["refusals"][0]["reason"]


def test_a_question_that_fails_now_is_no_reason_to_fail() -> None:
    recurring = PlanCache()
    questions = RecordedRequests(lambda request: {"rows": 1})
    questions({"node": 0})
    recurring.remember(b"key", questions, None, None, ({"edits": None}, {}))

    def failing(request: dict[str, Any]) -> dict[str, Any]:
        raise BridgeError("the JVM failed while reading statistics")

    assert recurring.recall(b"key", failing) is None


def test_bytes_that_the_session_has_read_since_change_no_answer() -> None:
    """Proofs of keys for other queries are counted in the same number."""
    recurring, answers = PlanCache(), iter([{"proofs": [[True]], "read": 1}, {"proofs": [[True]], "read": 5}])
    requests = RecordedRequests(lambda request: next(answers))
    requests({"proofs": []})
    recurring.remember(b"k", requests, None, None, ({"edits": None}, {}))
    assert recurring.recall(b"k", lambda request: next(answers)) == ({"edits": None}, {})
    assert recurring.recall(b"k", lambda request: {"proofs": [[None]], "read": 5}) is None


def test_not_more_is_kept_than_configured() -> None:
    recurring = PlanCache()
    for i in range(PlanCache.MOST + 10):
        recurring.remember(str(i).encode(), RecordedRequests(lambda request: request), None, None, ({"i": i}, {}))
    assert recurring.recall(b"9", lambda request: request) is None
    assert recurring.recall(b"10", lambda request: request) == ({"i": 10}, {})
