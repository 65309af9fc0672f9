"""The tutorial's code runs from top to bottom, with the results that the text describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def switched_off(spark: SparkSession) -> Iterator[None]:
    """The last step enables the session that `getOrCreate` returns, which all tests share."""
    yield
    pyjoinopt.disable(spark)


@pytest.mark.slow
def test_every_step(spark: SparkSession, switched_off: None, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    printed = []
    for block in BLOCKS:
        exec(compile(block, str(TUTORIAL), "exec"), names)
        printed.append(capsys.readouterr().out)
    slow, fast = names["slow"], names["fast"]
    assert sorted(slow.collect()) == sorted(fast.collect()) and len(slow.collect()) == 3
    (group,) = pyjoinopt.join_report(slow).groups
    assert group.changed and fast.columns == slow.columns
    assert fast.select(names["orders"]["customer_id"]).count() == 3, "columns keep their identities"
    explained, compared, analyzed = [text for text in printed if text]
    assert "after   " in explained and "Spark will choose" in explained
    assert "as written" in compared and "optimised" in compared
    assert "Run as written" in analyzed and "Run optimised" in analyzed
    assert pyjoinopt.is_enabled(spark)
