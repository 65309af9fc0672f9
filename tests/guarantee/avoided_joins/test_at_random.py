"""Random queries give the rows of plain Spark, and the rules change many of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins import draws, tables
from tests.guarantee.avoided_joins.tables import checked
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def compared(session: SparkSession, draw: Callable[[Random], str], seed: int, count: int) -> int:
    """How many of the queries changed; none may give other rows."""
    changed, wrong = 0, []
    for number in range(count):
        text = draw(Random(f"{seed}/{number}"))
        try:
            changed += bool(checked(session.sql(text))[1])
        except Exception as problem:
            wrong.append(f"{number}: {text}\n{str(problem)[:600]}")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:5])
    return changed


#: By default half as many as in CI.
HALF = pytest.mark.parametrize("share", [2, pytest.param(1, marks=pytest.mark.ci)])


@pytest.mark.ci
@HALF
@pytest.mark.parametrize("repeat", [False, True], ids=["filters said once", "filters said twice"])
def test_products(tiny: SparkSession, pytestconfig: pytest.Config, repeat: bool, share: int) -> None:
    seed = pytestconfig.getoption("--fuzz-seed")
    count = (20 if repeat else 30) // share
    changed = compared(tiny, lambda draw: draws.product(draw, repeat), seed, count)
    assert changed > count // 4


@pytest.mark.ci
@HALF
def test_self_joins(tiny: SparkSession, pytestconfig: pytest.Config, share: int) -> None:
    changed = compared(tiny, draws.self_join, pytestconfig.getoption("--fuzz-seed"), 40 // share)
    assert changed > 10 // share


@pytest.mark.ci
def test_pivots(tiny: SparkSession, pytestconfig: pytest.Config) -> None:
    changed = compared(tiny, draws.pivot, pytestconfig.getoption("--fuzz-seed"), 40)
    assert changed > 8


@pytest.mark.ci
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("draw", [draws.self_join, draws.pivot, lambda draw: draws.product(draw, repeat=False)])
def test_over_files_of_text(
    tiny: SparkSession, tmp_path: Path, draw: Callable[[Random], str], format: str, mode: str
) -> None:
    """Some values are of other types, so which rows a scan has depends on the columns that it reads."""
    session = session_for_tiny_tables(tiny)
    for name in tables.TABLES:
        written = tiny.table(name)
        bad = [f"if(abs(hash(*)) % 9 = {i}, 'bad', cast({c} as string)) as {c}" for i, c in enumerate(written.columns)]
        written.selectExpr(*bad).write.format(format).save(str(tmp_path / name))
        scan = session.read.format(format).schema(written.schema).option("mode", mode).load(str(tmp_path / name))
        scan.createOrReplaceTempView(name)
    compared(session, draw, 3, 12)
