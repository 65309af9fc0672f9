"""Arithmetic that cannot fail in ANSI mode: examples, and random expressions over extreme values, run by Spark."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.fallible.value_ranges import range_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "b": ("tinyint", ["-128", "127", "0", "1", "-1"]),
    "i": ("int", ["-2147483648", "2147483647", "0", "1", "-1"]),
    "l": ("bigint", ["-9223372036854775808", "9223372036854775807", "0", "1", "-1"]),
    "p": ("decimal(7,2)", ["-99999.99", "99999.99", "0", "0.01", "-0.01"]),
    "q": ("decimal(21,6)", [f"{'9' * 15}.{'9' * 6}", f"-{'9' * 15}.{'9' * 6}", "0", "0.000001", "-1"]),
    "r": ("decimal(38,18)", [f"{'9' * 20}.{'9' * 18}", f"-{'9' * 20}.{'9' * 18}", "0", f"0.{'0' * 17}1", "1"]),
    "w": ("decimal(38,0)", ["9" * 38, "-" + "9" * 38, "0", "1", "-1"]),
    "x": ("double", ["1.7e308", "-1.7e308", "0", "4.9e-324", "-1"]),
}
NUMBERS = ["0", "1", "2", "-1", "100", "0.9", "1.3", "0.01", "0.5D"]
TYPES = ["tinyint", "int", "bigint", "double", "decimal(10,0)", "decimal(12,2)", "decimal(38,18)"]
#: Rounded to 34 digits it has one before the point more. Scala 2.12, which Spark 3.5 is made with, does not round it.
ROUNDED = "-r"
ROWS, SEED = 800, 7
SEEDS = [
    0,
    pytest.param(1, marks=pytest.mark.ci),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6)),
]


@pytest.fixture(scope="module")
def extremes(spark: SparkSession) -> DataFrame:
    return _extremes(spark, ansi=True)


@pytest.fixture(scope="module")
def lenient(spark: SparkSession) -> DataFrame:
    return _extremes(spark, ansi=False)


def _extremes(spark: SparkSession, ansi: bool) -> DataFrame:
    """Every column's lowest and highest values, those next to zero and NULL, in rows drawn by lot."""
    lots = random.Random(SEED)
    rows = [[lots.choice([*values, None]) for _, values in COLUMNS.values()] for _ in range(ROWS)]
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    texts = session.createDataFrame(rows, ", ".join(f"{name} string" for name in COLUMNS))
    return texts.selectExpr(*(f"cast({name} as {type}) as {name}" for name, (type, _) in COLUMNS.items()))


def mirrored(df: DataFrame) -> tuple[Expression, ...]:
    """The expressions of the projection on top."""
    from pyjoinopt.bridge.decode import decode
    from pyjoinopt.bridge.shim import bridge_for

    return tuple(e.children[0] for e in decode(bridge_for(df).export(df._jdf, "{}")).root.expressions)


SAFE = [
    "p * 1.3",
    "p + p - p",
    "p * p",
    "q * 0.9 + 1",
    "abs(p) / 100",
    "-p",
    "r + r",  # a decimal(38,17)
    "cast(b as int) * 100",
    "i % 10",
    "i div 7",
    "pmod(i, 16)",
    "x * x - x",
    "x / 2",
    "-x",
    "cast(i as decimal(10,0))",
    "cast(b + 1 as int)",
    "1.0 * i / nullif(q, 0)",
    "case when q > 0 then abs(p - q) / q end",
    "case when q = 0 then 1 else p / q end",
    "case when x <> 0 then i / x end",
    "case when p >= 0.01 and b = 1 then 1 / p end",
    "case when not (l <= 0) then 100 % l end",
    "if(i < 0 or i > 0, 1, 2)",
    "case when 0 < i then 10 / i end",
    "case when i is null or i = 0 then null else l / i end",
    "case when b > 0 then i / cast(b as bigint) end",
    "10 / coalesce(nullif(i, 0), 1)",
    "i + cast(5 as bigint)",
    "i + 2147483648",
]
RISKY = [
    "i + 1",
    "-i",
    "abs(i)",
    "l * 2",
    "i div b",
    "l div -1",
    "r * r",
    "b + b",
    ROUNDED,
    "p / q",
    "p % q",
    "w % 0.00000000000000000007",  # the whole quotient has 58 digits
    "x / x",
    "cast(p as tinyint)",
    "cast(x as int)",
    "case when q >= 0 then p / q end",
    "1 / q + case when q <> 0 then 1 end",
    "case when q < 5 then p / q end",
    "case when q > 0 then 0 else p / q end",
    "case when q = 1 then 0 else p / q end",
    "case when q > 0 or p > 0 then p / q end",
    "case when cast(q as int) <> 1 then p / q end",
    "case when r > 0 then 1 / cast(r as int) end",
    "p / nullif(q, 1)",
    "b + b + cast(100 as tinyint)",
    "case when i > 0 then cast(1 as int) / 0 else i end",
]


def test_safe_examples(extremes: DataFrame) -> None:
    """All in one query: none of them fails."""
    df = extremes.selectExpr(*(f"{text} as r{i}" for i, text in enumerate(SAFE)))
    assert [text for text, expression in zip(SAFE, mirrored(df)) if may_throw(expression)] == []
    assert len(df.collect()) == ROWS


@pytest.mark.parametrize("text", RISKY)
def test_risky_examples(extremes: DataFrame, text: str) -> None:
    (expression,) = mirrored(extremes.selectExpr(f"{text} as result"))
    assert may_throw(expression)
    assert _fails(extremes, text) is _rounds(extremes, text)


@pytest.mark.parametrize("text", [ROUNDED, "w % 0.00000000000000000007", "pmod(w, 0.00000000000000000007)"])
def test_what_fails_in_any_mode(lenient: DataFrame, text: str) -> None:
    (expression,) = mirrored(lenient.selectExpr(f"{text} as result"))
    assert may_throw(expression)
    assert _fails(lenient, text) is _rounds(lenient, text)


def _rounds(df: DataFrame, text: str) -> bool:
    """False for expressions that fail only because of rounding, if this Spark does not round."""
    return text != ROUNDED or df.sparkSession.version >= "4"


@pytest.mark.ci
@pytest.mark.parametrize("seed", SEEDS)
def test_what_cannot_fail_does_not_and_most_of_the_rest_does(extremes: DataFrame, seed: int) -> None:
    """Random expressions: all that are classified as safe have a value on every row, within the derived range."""
    safe, risky = _told_apart(extremes, f"{SEED} {seed}")
    _check_answers(extremes, safe)
    assert len(safe) > 10 and len(risky) > 10
    failed = sum(_fails(extremes, text) for text in risky[:12])
    assert failed >= 6, risky[:12]


@pytest.mark.parametrize("seed", SEEDS)
def test_without_ansi_mode(lenient: DataFrame, seed: int) -> None:
    safe, risky = _told_apart(lenient, f"{SEED} {seed}")
    _check_answers(lenient, safe)
    assert all(re.search(r"-\(|abs|%|pmod", text) for text in risky)  # of decimals, which fail in any mode


def _told_apart(df: DataFrame, seed: str) -> tuple[list[tuple[str, Expression]], list[str]]:
    """Random expressions that cannot fail, and those that may."""
    lots = random.Random(seed)
    texts = list(dict.fromkeys(_expression(lots, 3) for _ in range(80)))
    expressions = mirrored(df.selectExpr(*(f"{text} as r{i}" for i, text in enumerate(texts))))
    safe = [(text, e) for text, e in zip(texts, expressions) if not may_throw(e)]
    return safe, [text for text, e in zip(texts, expressions) if may_throw(e)]


def _check_answers(df: DataFrame, safe: list[tuple[str, Expression]]) -> None:
    answered = df.selectExpr(*(f"{text} as r{i}" for i, (text, _) in enumerate(safe))).collect()
    for i, (text, e) in enumerate(safe):
        reported = range_of(e)
        values = [row[i] for row in answered if row[i] is not None]
        assert reported is None or all(reported.low <= value <= reported.high for value in values), text


def _expression(lots: random.Random, depth: int) -> str:
    """An expression with at least one column in each of its parts that Spark might fold."""
    if depth == 0 or lots.random() < 0.15:
        return lots.choice(list(COLUMNS))
    below = _expression(lots, depth - 1)
    other = lots.choice(NUMBERS) if lots.random() < 0.5 else _expression(lots, depth - 1)
    kind = lots.randrange(10)
    if kind < 5:
        operator = lots.choice(["+", "-", "*", "*", "/", "/", "%"])
        return f"({below} {operator} {other})"
    if kind == 5:
        return lots.choice([f"-({below})", f"abs({below})", f"pmod({below}, {other})"])
    if kind == 6:
        return f"cast({below} as {lots.choice(TYPES)})"
    if kind == 7:
        return f"coalesce({below}, {other})"
    divisor = lots.choice(list(COLUMNS))
    guard = f"{divisor} {lots.choice(['>', '<', '=', '<>', '>=', '<='])} {lots.choice(NUMBERS)}"
    if kind == 8:
        return f"({below} / nullif({divisor}, {lots.choice(['0', '1'])}))"
    branches = [f"{below} / {divisor}", other]
    lots.shuffle(branches)
    return f"(case when {guard} then {branches[0]} else {branches[1]} end)"


def _fails(df: DataFrame, text: str) -> Any:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        df.selectExpr(f"{text} as result").collect()
    except (PySparkException, Py4JJavaError):
        return True
    return False
