"""Random queries with baselines of random orders, most of them illegal: rows and failures are those of plain Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.api.baselines import planned
from pyjoinopt.api.dataframe import run_with_baseline
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline import STRATEGIES, Baseline, PinnedGroup, PinnedHint
from pyjoinopt.feedback.baseline_store import BaselineStore
from tests.guarantee.fuzz import hazards
from tests.guarantee.fuzz.entrances import luck_of, signed
from tests.guarantee.fuzz.extension import enabled_session, frame, through_extension
from tests.support import sampledata
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.generator import Generator, row_counter
from tests.support.hazard_queries import HazardGenerator
from tests.support.hazards import create_hazards, duckdb_hazards, hazard_tables
from tests.support.querytree import Query
from tests.support.render_sql import to_sql
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.fuzz, pytest.mark.ci, pytest.mark.timeout(0)]
#: One in this many of the `--fuzz-n` queries, the number of baselines for each, and how many run in a session, too.
SHARE, DRAWN, IN_SESSIONS = 3, 3, 4
#: These queries are not those of the other tests.
FIRST = 2_000_000


def drawn(baseline: Baseline, rng: random.Random) -> Baseline:
    """The same groups in random orders, with random hints."""
    hints = [
        PinnedHint(rng.choice(STRATEGIES), rng.choice(tables), rng.choice(tables))
        for group in baseline.groups
        for tables in [list(group.relations.values())]
        for _ in range(len(tables))
    ]
    return replace(
        baseline,
        name="drawn",
        groups=tuple(replace(group, order=_order(group, rng)) for group in baseline.groups),
        hints=(*baseline.hints, *hints),
    )


def _order(group: PinnedGroup, rng: random.Random) -> tuple[tuple[str, str], ...]:
    sides, steps = list(group.relations), []
    while len(sides) > 1:
        left, right = (sides.pop(rng.randrange(len(sides))) for _ in range(2))
        steps.append((left, right))
        sides.append(f"#{len(steps)}")
    return tuple(steps)


class Trial:
    """Runs queries with drawn baselines, by calls and in a session, and counts what happened."""

    def __init__(self, plain: SparkSession, enabled: SparkSession, path: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._plain, self._enabled, self._store = plain, enabled, Store(path)
        for session in (plain, enabled):
            session.conf.set("spark.pyjoinopt.store", str(path))

    def run(self, query: Query, number: int) -> None:
        """Compare one query."""
        self.counts["queries"] += 1
        try:
            df = frame(self._plain, query, "sql")
            expected = signed(df.collect())
        except Exception:  # plain Spark does not run it
            return
        baseline = planned(df, {})
        if not baseline.groups:
            return
        self.counts["compared"] += 1
        rng = random.Random(number)
        for turn in range(DRAWN):
            one = drawn(baseline, rng)
            self._checked(query, expected, number, one, lambda one=one: self._call(df, one))
            if turn == 0 and number % IN_SESSIONS == 0:
                self._checked(query, expected, number, one, lambda one=one: self._in_session(df, query, one))

    def _call(self, df: Any, baseline: Baseline) -> list[Any]:
        fast, report = run_with_baseline(df, baseline, {"strict": True})
        assert_same_schema(df, fast)
        self.counts["used"] += any(group.strategy == "baseline" for group in report.groups)
        self.counts["refused"] += any("cannot be proved" in refusal.reason for refusal in report.refusals)
        return fast.collect()

    def _in_session(self, df: Any, query: Query, baseline: Baseline) -> list[Any]:
        assert BaselineStore(self._store).put(baseline)
        rows, _ = through_extension(self._enabled, df, query, "sql", {})
        self.counts["in sessions"] += 1
        return rows

    def _checked(
        self, query: Query, expected: list[Any], number: int, baseline: Baseline, run: Callable[[], list[Any]]
    ) -> None:
        try:
            assert_same_rows(expected, signed(run()), label=("plain Spark", "with a baseline"))
        except Exception as error:
            luck = luck_of(self._plain, query, "sql", expected, rows=isinstance(error, AssertionError))
            if luck is None:
                raise AssertionError(f"query {number}: {to_sql(query)}\n{baseline.to_json()}\n{error}") from error
            self.counts[luck] += 1


@pytest.mark.parametrize("kind", ["ordinary", "hazards"])
def test_any_baseline_keeps_the_rows(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    seed, total, start = (request.config.getoption(name) for name in ("--fuzz-seed", "--fuzz-n", "--fuzz-from"))
    folder = tmp_path_factory.mktemp("baselines")
    generator: Generator | HazardGenerator
    if kind == "hazards":
        dangerous = hazard_tables(seed)
        create_hazards(session_for_tiny_tables(spark), dangerous, str(folder / "tables"))
        sessions = hazards.sessions_for(spark, hazards.SETTINGS[0])
        plain, enabled = sessions.plain, sessions.enabled
        generator = HazardGenerator(seed, row_counter(duckdb_hazards(dangerous)))
    else:
        tables = sampledata.sample_tables(seed)
        sampledata.write_parquet(tables, folder)
        plain, enabled = session_for_tiny_tables(spark), enabled_session(session_for_tiny_tables(spark))
        for session in (plain, enabled):
            sampledata.register(session, tables, folder)
        generator = Generator(seed, row_counter(sampledata.duckdb_database(tables)))
    enabled.conf.set("spark.pyjoinopt.baseline", "drawn")
    trial = Trial(plain, enabled, folder / "store.sqlite")
    for number in range(FIRST + start // SHARE, FIRST + max(1, total // SHARE)):
        trial.run(generator.query(number), number)
        if total > 1000 and number % 100 == 0:
            print(f"query {number - FIRST}: {dict(trial.counts)}", flush=True)
    print(dict(trial.counts))
    if trial.counts["queries"] >= 20:
        assert trial.counts["used"] >= trial.counts["compared"] / 3, trial.counts
        assert trial.counts["refused"] > 0 and trial.counts["in sessions"] > 0, trial.counts
