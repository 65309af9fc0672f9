"""`docs/guarantee.md` lists every rule of the running Spark's optimizers exactly once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantee.md"
#: Rules that run in two optimizers and have a sentence of their own in the second.
TWICE = {"EliminateLimits"}


def accounted_for() -> Counter[str]:
    """The rules that the page names: in a row's first cell, or in a list of names."""
    text = PAGE.read_text().split("## Spark's rules")[1]
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("|"):
            line = line.split("|")[1]
        found.update(re.findall(r"`([A-Z]\w+)`", line))
    return found


def running(optimizer: Any) -> set[str]:
    batches = optimizer.batches()
    found = set()
    for i in range(batches.length()):
        rules = batches.apply(i).rules()
        found |= {rules.apply(k).ruleName() for k in range(rules.length())}
    return {re.split(r"[.$]", name.rstrip("$"))[-1] for name in found}


@pytest.mark.parametrize("adaptive", [False, True])
def test_every_rule_of_this_spark_is_accounted_for(spark: SparkSession, adaptive: bool) -> None:
    state = spark._jsparkSession.sessionState()
    optimizer = state.optimizer()
    if adaptive:
        jvm = spark.sparkContext._jvm
        none = jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
        optimizer = jvm.org.apache.spark.sql.execution.adaptive.AQEOptimizer(state.conf(), none)
    rules = running(optimizer)
    assert len(rules) > (3 if adaptive else 80), rules
    ours = {"OptimizeJoins", "TakeHintScopes"}
    unknown = rules - set(accounted_for()) - ours
    assert not unknown, f"docs/guarantee.md does not say what these do to our plans: {sorted(unknown)}"


def test_no_rule_is_accounted_for_twice() -> None:
    twice = {name for name, times in accounted_for().items() if times > 1} - TWICE
    assert not twice
