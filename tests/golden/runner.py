"""Runs each statement of a file in three sessions, and compares the outcomes.

Every file gets three new sessions, each with its own database, so that no session sees the objects of another. A
statement runs in all of them: as written, through `optimize_joins`, and in an enabled session. A statement that plain
Spark runs must run in all three, with the same schema and the same rows in any order; floats may differ in their last
digits.

Not compared: statements that plain Spark refuses; rows of EXPLAIN, DESCRIBE and SHOW; and statements that give other
rows when plain Spark runs them again (`rand()`, a LIMIT without an order).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyjoinopt
from tests.golden.statements import SqlFile
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The possible outcomes of a statement.
SAME, UNSTABLE, PLAIN_FAILS, DIFFERS = "same", "unstable", "plain fails", "differs"
WAYS = ("plain", "call", "extension")
_TELLS_OF_PLANS = ("explain", "desc", "describe", "show")


@dataclass(frozen=True)
class Difference:
    """A statement whose outcome differs through one of the entrances."""

    file: str
    number: int
    statement: str
    entrance: str
    reason: str


@dataclass
class Result:
    """The outcomes of a file."""

    file: SqlFile
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


@dataclass(frozen=True)
class _Outcome:
    schema: str = ""
    rows: list[Any] = field(default_factory=list)
    error: str | None = None
    changed: bool = False


def run_file(spark: SparkSession, file: SqlFile, conf: Mapping[str, str], cost: str = "c_out") -> Result:
    """Run one file.

    Args:
        spark: any session of the application.
        file: the file.
        conf: settings of all sessions; those of the file win.
        cost: the cost model. Test tables are tiny, so row counts are a better cost than Spark's costs.
    """
    result = Result(file)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        sessions = {way: _session(spark, way, folder, {**conf, **file.settings}) for way in WAYS}
        pyjoinopt.enable(sessions["extension"], cost=cost)
        sessions["extension"].conf.set("spark.pyjoinopt.timeout", "60s")
        runs: dict[str, Callable[[str], _Outcome]] = {
            "plain": lambda text: _run(lambda: sessions["plain"].sql(text)),
            "call": lambda text: _run(lambda: sessions["call"].sql(text).optimize_joins(cost=cost)),
            "extension": lambda text: _run(lambda: sessions["extension"].sql(text)),
        }
        for number, statement in enumerate(file.statements, 1):
            _compare(runs, result, number, statement)
        for way in WAYS:
            spark.sql(f"DROP DATABASE IF EXISTS {_database(way)} CASCADE")
    return result


def _session(spark: SparkSession, way: str, folder: str, conf: Mapping[str, str]) -> SparkSession:
    session = spark.newSession()
    session.sql(f"DROP DATABASE IF EXISTS {_database(way)} CASCADE")
    session.sql(f"CREATE DATABASE {_database(way)} LOCATION '{folder}/{way}'")
    session.sql(f"USE {_database(way)}")
    for key, value in conf.items():
        session.conf.set(key, value)
    return session


def _database(way: str) -> str:
    return f"golden_{way}"


def _run(make: Callable[[], DataFrame]) -> _Outcome:
    try:
        df = make()
        report = getattr(df, "_pyjoinopt_report", None)
        if report is not None and report.error:
            return _Outcome(error=f"the optimizer failed: {report.error}")
        return _Outcome(df.schema.simpleString(), df.collect(), None, bool(report and report.changed))
    except Exception as error:  # any exception of a statement is its outcome
        return _Outcome(error=f"{type(error).__name__}: {str(error)[:400]}")


def _compare(runs: Mapping[str, Callable[[str], _Outcome]], result: Result, number: int, statement: str) -> None:
    outcomes = {way: run(statement) for way, run in runs.items()}
    plain, verdict = outcomes["plain"], SAME
    if plain.error is not None:
        verdict = PLAIN_FAILS
    else:
        rows = statement.split(None, 1)[0].lower() not in _TELLS_OF_PLANS
        reasons = {way: reason for way in WAYS[1:] if (reason := _difference(plain, outcomes[way], rows))}
        if reasons and any(outcomes[way].error is None for way in reasons):
            again = runs["plain"](statement)
            if again.error is None and _difference(plain, again, rows):
                verdict = UNSTABLE
        if reasons and verdict == SAME:
            verdict = DIFFERS
            for way, reason in reasons.items():
                result.differences.append(Difference(result.file.name, number, statement, way, reason))
    result.counts.update({"statements": 1, verdict: 1, "changed": int(outcomes["call"].changed)})


def _difference(plain: _Outcome, other: _Outcome, rows: bool) -> str | None:
    if other.error is not None:
        return f"plain Spark runs it, and here: {other.error}"
    if plain.schema != other.schema:
        return f"schema {plain.schema} became {other.schema}"
    if rows:
        try:
            assert_same_rows(plain.rows, other.rows, label=("plain Spark", "here"))
        except AssertionError as error:
            return str(error)
    return None
