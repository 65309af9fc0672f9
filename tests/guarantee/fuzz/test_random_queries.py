"""Random queries: plain Spark, `optimize_joins` and DuckDB give the same rows; for some, so does an enabled session.

60 run by default, the next 300 as slow tests; `pytest tests/guarantee/fuzz --fuzz-n 10000` runs more. A failing query
is shrunk and printed with the command that repeats it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.fuzz.differential import Places, Tally, compare, smallest
from tests.guarantee.fuzz.extension import enabled_session
from tests.support import sampledata
from tests.support.generator import Generator, row_counter
from tests.support.querytree import Query
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fuzz
ENOUGH_FAILURES = 3
#: Of the slow tests.
FURTHER = 300
#: One in this many queries also runs in an enabled session.
ENABLED = 4
#: With these constants it pays to filter the input of an aggregate of a few rows.
FREE = str(Path(sampledata.__file__).parent / "free_broadcasts.json")
#: The default cost model never broadcasts tables this small, so most queries use another model.
OPTIONS: tuple[dict[str, str], ...] = (
    {"cost": "c_out", "cost_constants": FREE}, {"cost": "c_out"}, {}, {"cost": "c_out", "cost_constants": FREE},
    {"strategy": "heuristic"}, {"cost": "c_out", "cost_constants": FREE}, {"strategy": "spark"},
)  # fmt: skip
SETTINGS: tuple[dict[str, str], ...] = (
    {"spark.sql.adaptive.enabled": "true"},
    {"spark.sql.autoBroadcastJoinThreshold": "10"},  # no keys fit, but a Bloom filter of them may be made
    {"spark.sql.autoBroadcastJoinThreshold": "300"},  # the keys of a filtered relation fit, and little else
)


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "further"])
def tally(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tally:
    """All queries of this run, a third of them in each of three sessions with different settings, side by side."""
    config = request.config
    seed, total, only = (config.getoption(name) for name in ("--fuzz-seed", "--fuzz-n", "--fuzz-only"))
    start = config.getoption("--fuzz-from")
    numbers = range(total, total + FURTHER) if request.param else range(start, total) if only is None else [only]
    tables = sampledata.sample_tables(seed)
    folder = tmp_path_factory.mktemp("fuzz")
    sampledata.write_parquet(tables, folder)
    database = sampledata.duckdb_database(tables)
    tally = Tally()
    started = time.monotonic()

    def share(settings_number: int) -> None:
        session, enabled = session_for_tiny_tables(spark), session_for_tiny_tables(spark)
        for one in (session, enabled):
            for key, value in SETTINGS[settings_number].items():
                one.conf.set(key, value)
            sampledata.register(one, tables, folder)
        places = [Places(session, None, database), Places(session, enabled_session(enabled), database)]
        generator = Generator(seed, row_counter(database.cursor()))
        for number in numbers:
            if number % len(SETTINGS) == settings_number and len(tally.failures) < ENOUGH_FAILURES:
                _one(places[number // len(SETTINGS) % ENABLED == 0], generator.query(number), number, tally)
                if total > 1000 and tally.counts["queries"] % 500 == 0:
                    print(f"{tally.counts['queries']} queries, {time.monotonic() - started:.0f} s", flush=True)

    with ThreadPoolExecutor(max_workers=min(len(SETTINGS), os.cpu_count() or 1)) as pool:
        for done in [pool.submit(share, number) for number in range(len(SETTINGS))]:
            done.result()
    tally.counts["seconds"] = round(time.monotonic() - started)
    return tally


def _one(places: Places, query: Query, number: int, tally: Tally) -> None:
    form = "sql" if number // 2 % 2 else "dataframe"
    options = OPTIONS[number % len(OPTIONS)]
    try:
        tally.counts.update(compare(places, query, form, options))
    except Exception:
        tally.failures.append(smallest(places, number, query, form, options))


@pytest.mark.timeout(0)
def test_all_answers_agree(tally: Tally, pytestconfig: pytest.Config) -> None:
    print(dict(tally.counts))
    seed = pytestconfig.getoption("--fuzz-seed")
    if tally.failures:
        pytest.fail("\n" + "\n".join(failure.text(seed) for failure in tally.failures), pytrace=False)


@pytest.mark.parametrize(
    ("what", "least"),
    [("with_rows", 0.7), ("with_groups", 0.3), ("changed", 0.12), ("outer_joins_eliminated", 0.1),
     ("extension_changed", 0.03)],
)
def test_doing_nothing_would_fail(what: str, least: float, tally: Tally, pytestconfig: pytest.Config) -> None:
    """Shares of the queries that have rows, joins to order, another order afterwards, a needless outer join."""
    if pytestconfig.getoption("--fuzz-only") is not None or pytestconfig.getoption("--fuzz-n") < 60:
        pytest.skip("shares of a few queries say nothing")
    assert tally.counts["queries"] > 0
    assert tally.counts[what] >= least * tally.counts["queries"]


def test_some_aggregates_and_sides_get_fewer_rows(tally: Tally) -> None:
    if tally.counts["queries"] < 300:
        pytest.skip("one query in fifty has such an aggregate, and not every one of them is worth it")
    assert tally.counts["aggregates_filtered"] > 0 and tally.counts["sides_filtered"] > 0


def test_generator_repeats_itself(tally: Tally, pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--fuzz-seed")
    make: Callable[[], Generator] = lambda: Generator(  # noqa: E731
        seed, row_counter(sampledata.duckdb_database(sampledata.sample_tables(seed)))
    )
    assert [make().query(number) for number in (7, 3)] == [make().query(number) for number in (7, 3)]
