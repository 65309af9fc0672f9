"""The page on testing: every snippet runs, and every test in it passes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.testing import JoinOpt

pytest.importorskip("pyspark")
from pyjoinopt_pytest import joinopt  # noqa: F401  the fixture, whether or not the plugin is registered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
NAMES = re.findall(r"^def (test_\w+)", "\n".join(BLOCKS), re.MULTILINE)


def test_all_snippets_are_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCKS) == len(re.findall(r"^```\w", text, re.MULTILINE)) == 7 and len(NAMES) == 6


@pytest.mark.ci
@pytest.mark.parametrize("name", NAMES)
def test_a_test_of_the_page_passes(name: str, spark: SparkSession, joinopt: JoinOpt) -> None:  # noqa: F811
    names: dict[str, Any] = {"__name__": "page"}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    by_rows = JoinOpt({**joinopt.options, "cost": "c_out"})
    given = {"spark": spark, "joinopt": joinopt, "joinopt_by_rows": by_rows}
    test = names[name]
    test(**{parameter: given[parameter] for parameter in inspect.signature(test).parameters})
