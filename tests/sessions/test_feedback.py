"""True row counts of a session's queries: collected when they end, sent to the workers, used for repeated queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.worker.pending_feedback import PendingFeedback
from tests.sessions.conftest import BAD_ORDER, planned, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")


def heard(session: SparkSession) -> None:
    """Wait until Spark's listeners have received all events."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def sources(session: SparkSession, text: str) -> list[str]:
    """Where the row counts of a query's relations came from, in the order of their names."""
    _, reports = planned(session, lambda: session.sql(f"EXPLAIN {text}").collect())
    return [r.source for report in reports for g in report.groups for r in sorted(g.relations, key=lambda r: r.name)]


@pytest.fixture
def learning(new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path) -> SparkSession:
    made = new_session()
    pyjoinopt.enable(made, feedback=True, store=str(tmp_path / "store.sqlite"), statistics="auto")
    return made


def test_what_a_query_did_counts_when_it_comes_again(learning: SparkSession) -> None:
    assert "feedback" not in sources(learning, SQL)
    rows(learning.sql(SQL))
    heard(learning)
    assert sources(learning, SQL).count("feedback") >= 2


def test_two_queries_over_the_same_views_are_distinguished(learning: SparkSession) -> None:
    """They read columns of the same ids, and each learns from its own run only."""
    other = SQL.replace("dim_v = 1", "dim_v < 3")
    for text in (SQL, other):
        learning.sql(f"EXPLAIN {text}").collect()
    rows(learning.sql(SQL))
    heard(learning)
    assert "feedback" in sources(learning, SQL)
    assert "feedback" not in sources(learning, other)


def test_without_the_option_nothing_is_learnt(learning: SparkSession) -> None:
    learning.conf.set("spark.pyjoinopt.feedback", "false")
    rows(learning.sql(SQL))
    heard(learning)
    assert "feedback" not in sources(learning, SQL)
    learning.conf.set("spark.pyjoinopt.feedback", "true")
    assert "feedback" not in sources(learning, SQL)


def test_where_counts_come_from(session: SparkSession) -> None:
    """Footers without ANALYZE, the catalog after it."""
    session.sql("CREATE TABLE counted_dim USING parquet AS SELECT dim_k, dim_v FROM dim")
    text = SQL.replace("dim ON mid_f", "counted_dim ON mid_f")
    try:
        assert {source.split(", ")[0] for source in sources(session, text)} == {"footers"}
        session.sql("ANALYZE TABLE counted_dim COMPUTE STATISTICS FOR ALL COLUMNS")
        assert sorted(source.split(", ")[0] for source in sources(session, text)) == ["catalog", "footers", "footers"]
    finally:
        session.sql("DROP TABLE counted_dim")


class Watch:
    """A join group with these columns, and the row counts that it received."""

    fingerprint = "known"

    def __init__(self, *columns: int) -> None:
        self.owners = dict.fromkeys(columns, 0)
        self.shown: list[Any] = []

    def observe(self, plan: Any) -> dict[int, float]:
        return {1: 2.0}

    def remember(self, counted: dict[int, float], store: Any) -> None:
        self.shown.append(counted)


def test_groups_of_one_query_with_columns_in_common_learn_nothing() -> None:
    learned = PendingFeedback()
    first, second, third, store = Watch(1, 2), Watch(2, 3), Watch(4), object()
    learned.expect(7, [first, third], store)  # type: ignore[list-item, arg-type]
    learned.expect(7, [second], store)  # type: ignore[list-item, arg-type]
    learned.learn([{"query": 8, "operators": []}, {"query": 7, "operators": []}])
    assert (first.shown, second.shown, third.shown) == ([], [], [{1: 2.0}])


def test_only_the_last_queries_are_remembered() -> None:
    learned = PendingFeedback()
    for query in range(PendingFeedback.MOST + 10):
        learned.expect(query, [Watch(query)], object())  # type: ignore[list-item, arg-type]
    assert len(learned._expected) == PendingFeedback.MOST and 9 not in learned._expected and 10 in learned._expected
