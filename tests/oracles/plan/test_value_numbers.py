"""Value numbers of equivalent expressions, as Spark exports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.expressions import walk
from pyjoinopt.plan.facts.value_numbers import ValueNumbering
from tests.oracles.plan.test_value_ranges import mirrored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "other"),
    [("id + 1", "try_add(id, 1)"), ("cast(id as int)", "try_cast(id as int)"), ("id / 2", "try_divide(id, 2)")],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_gives_null_is_not_what_fails_or_wraps(spark: SparkSession, text: str, other: str, ansi: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    plain, twice, trying = mirrored(session.range(3).selectExpr(f"{text} a", f"{text} b", f"{other} c"))
    meanings = ValueNumbering()
    assert meanings(plain) == meanings(twice)
    (same_kind,) = (e for e in walk(trying) if e.kind == plain.kind)
    assert meanings(plain) != meanings(same_kind)
