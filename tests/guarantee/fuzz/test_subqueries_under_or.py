"""Random queries with IN and EXISTS under OR, and NOT IN: early joins of them give the rows of plain Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.fuzz.differential import Places, Tally, compare, smallest
from tests.guarantee.fuzz.extension import enabled_session, frame
from tests.support import sampledata
from tests.support.compare import assert_same_rows
from tests.support.generator import Generator, row_counter
from tests.support.random_cost import RandomCost
from tests.support.run import session_for_tiny_tables
from tests.support.shop import analysed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fuzz
#: One in this many of the `--fuzz-n` queries.
SHARE = 2
#: Random cost models for each query.
MODELS = 2
OPTIONS = {"cost": "c_out"}


@pytest.mark.ci
@pytest.mark.timeout(0)
def test_early_joins_keep_the_rows(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seed, total, start = (request.config.getoption(name) for name in ("--fuzz-seed", "--fuzz-n", "--fuzz-from"))
    tables, folder = sampledata.sample_tables(seed), tmp_path_factory.mktemp("subqueries")
    sampledata.write_parquet(tables, folder)
    database = sampledata.duckdb_database(tables)
    session, enabled = session_for_tiny_tables(spark), session_for_tiny_tables(spark)
    for one in (session, enabled):
        sampledata.register(one, tables, folder)
    places = [Places(session, None, database), Places(session, enabled_session(enabled), database)]
    generator, tally = Generator(seed, row_counter(database.cursor()), subqueries=True), Tally()
    seen: Counter[str] = Counter()
    for number in range(start // SHARE, max(1, total // SHARE)):
        query, form = generator.query(number), "dataframe" if number % 2 else "sql"
        place = places[number % 3 == 0]
        try:
            seen.update(compare(place, query, form, OPTIONS))
            plain = frame(session, query, form)
            others = [plain.optimize_joins(strict=True, hints=False, cost=RandomCost(model)) for model in range(MODELS)]
            changed = [fast for fast in others if fast is not plain]
            rows = plain.collect() if changed else []
            for fast in changed:
                assert_same_rows(rows, fast, label=("plain Spark", "in another order"))
            seen["marked"] += any("ExistenceJoin" in analysed(fast) for fast in changed)
            seen["anti"] += any("LeftAnti" in analysed(fast) for fast in changed)
        except Exception:
            tally.failures.append(smallest(place, number, query, form, OPTIONS))
    print(dict(seen))
    if tally.failures:
        pytest.fail("\n" + "\n".join(failure.text(seed) for failure in tally.failures), pytrace=False)
    if seen["queries"] >= 30:
        assert seen["marked"] >= seen["queries"] / 15 and seen["changed"] >= seen["queries"] / 8, seen
