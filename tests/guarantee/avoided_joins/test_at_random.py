"""Random queries give the rows of plain Spark, and the rules change many of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins import draws
from tests.guarantee.avoided_joins.tables import checked

if TYPE_CHECKING:
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
