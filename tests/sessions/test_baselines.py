"""Baselines in sessions: by the key, by the hint, and in a worker that planned the query before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline_store import BaselineStore
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
PINNED = "((dim ⋈ mid) ⋈ fact)"


@pytest.fixture
def pinning(new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """An enabled session with a store of its own, which has a baseline."""
    made = new_session()
    path = str(tmp_path / "store.sqlite")
    pyjoinopt.enable(made, store=path)
    made.conf.set("spark.pyjoinopt.timeout", "60s")
    baseline = pyjoinopt.baselines.pin(made.sql(SQL), "daily", store=path)
    group = replace(baseline.groups[0], order=(("dim", "mid"), ("#1", "fact")))
    assert BaselineStore(Store(Path(path))).put(replace(baseline, groups=(group,), hints=()))
    yield made


def test_by_the_key(pinning: SparkSession) -> None:
    expected, before = planned(pinning, lambda: rows(pinning.sql(SQL)))
    assert orders(before) == [BETTER]
    pinning.conf.set("spark.pyjoinopt.baseline", "daily")
    found, reports = planned(pinning, lambda: rows(pinning.sql(SQL)))
    assert (found, orders(reports)) == (expected, [PINNED])
    assert reports[0].groups[0].strategy == "baseline"


@pytest.mark.parametrize("hint", ["OPTIMIZE_JOINS('baseline=daily')", "optimize_joins('auto', 'BASELINE=daily')"])
def test_by_the_hint(pinning: SparkSession, hint: str) -> None:
    expected = rows(pinning.sql(SQL))
    text = BAD_ORDER.format(hint=f"/*+ {hint} */")
    found, reports = planned(pinning, lambda: rows(pinning.sql(text)))
    assert (found, orders(reports)) == (expected, [PINNED])
    assert orders(planned(pinning, lambda: rows(pinning.sql(SQL)))[1]) == [BETTER]


def test_a_wrong_name_in_the_hint_does_no_harm(pinning: SparkSession, warnings: Callable[[], list[str]]) -> None:
    warnings()
    text = BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS('baseline=a\"b') */")
    _, reports = planned(pinning, lambda: rows(pinning.sql(text)))
    assert orders(reports) == [BETTER]
    assert any("takes names of baselines as baseline=NAME" in line for line in warnings())


def test_a_baseline_that_is_not_there(pinning: SparkSession) -> None:
    text = BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS('baseline=weekly') */")
    _, reports = planned(pinning, lambda: rows(pinning.sql(text)))
    assert orders(reports) == [BETTER]
    assert [refusal.where for refusal in reports[0].refusals] == ["the baseline weekly"]
