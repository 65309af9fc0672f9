"""The time of a query's tasks, and how uneven they are, as recorded with its run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from tests.sessions.test_feedback_auto import loaded
from tests.sessions.test_guard import recorded, run, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: One task of the last stage sleeps for a second.
SLEEPS = """
    SELECT java_method('java.lang.Thread', 'sleep', if(g = 3, 1000L, 1L)) FROM (
        SELECT /*+ REPARTITION(4, g) */ g FROM (
            SELECT fact_v % 5 AS g, count(*) FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k GROUP BY 1))
"""


@pytest.fixture
def learning(new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path) -> SparkSession:
    made, path = new_session(), str(tmp_path / "store.sqlite")
    pyjoinopt.enable(made, feedback=True, store=path)
    for key, value in {
        "spark.pyjoinopt.timeout": "60s",
        "spark.pyjoinopt.test.store": path,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
    }.items():
        made.conf.set(key, value)
    return made


def test_a_query_with_one_long_task(learning: SparkSession, tmp_path: Path) -> None:
    run(learning, SLEEPS)
    (one,) = recorded(learning)
    assert one.task_seconds >= 1.0 and 0.7 <= one.skew <= one.task_seconds
    (row,) = pyjoinopt.queries(str(tmp_path / "store.sqlite"), runs=True).to_dict("records")
    assert (row["task_seconds"], row["skew"]) == (one.task_seconds, one.skew)
    (shown,) = learning.sql("SELECT task_seconds, skew FROM joinopt_queries()").collect()
    assert tuple(shown) == (one.task_seconds, one.skew)
    assert len(stored(tmp_path / "store.sqlite")) == 1


def times(session: SparkSession) -> Any:
    return loaded(session, "org.apache.spark.sql.pyjoinopt.TaskTimes").getConstructors()[0].newInstance(None)


@pytest.mark.parametrize(
    ("stages", "total", "skew"),
    [
        ({}, 0, 0.0),
        ({1: [700]}, 700, 0.0),
        ({1: [1000, 1000, 2000, 8000], 2: [3000, 3000]}, 18_000, 8000 - 4000 / 3),
        ({1: [5, 5, 5]}, 15, 0.0),
        ({1: [0, 10], 2: [0, 30], 3: [0, 20]}, 60, 30.0),
    ],
)
def test_skew(session: SparkSession, stages: dict[int, list[int]], total: int, skew: float) -> None:
    found = times(session)
    for stage, tasks in stages.items():
        for milliseconds in tasks:
            found.add(stage, milliseconds)
    assert found.milliseconds() == total and found.skew() == pytest.approx(skew)
