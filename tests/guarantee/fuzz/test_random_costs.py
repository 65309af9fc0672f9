"""Random queries with a random cost model: every chosen order gives the rows of plain Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.fuzz.extension import frame
from tests.support import sampledata
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.generator import Generator, row_counter
from tests.support.random_cost import RandomCost
from tests.support.render_sql import to_sql
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fuzz
#: One in this many of the `--fuzz-n` queries, and the number of models for each.
SHARE, MODELS = 6, 3


@pytest.mark.ci
@pytest.mark.timeout(0)
def test_any_order_that_a_random_cost_prefers(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seed, total, start = (request.config.getoption(name) for name in ("--fuzz-seed", "--fuzz-n", "--fuzz-from"))
    tables, folder = sampledata.sample_tables(seed), tmp_path_factory.mktemp("costs")
    sampledata.write_parquet(tables, folder)
    session = session_for_tiny_tables(spark)
    sampledata.register(session, tables, folder)
    generator = Generator(seed, row_counter(sampledata.duckdb_database(tables)))
    counts: Counter[str] = Counter()
    for number in range(start // SHARE, max(1, total // SHARE)):
        if total > 1000 and number % 200 == 0:
            print(f"query {number}: {dict(counts)}", flush=True)
        # Numbers of their own: these queries are not those of the other tests.
        query = generator.query(1_000_000 + number)
        plain = frame(session, query, "sql")
        expected, orders = None, set()
        for model in range(MODELS):
            fast = plain.optimize_joins(strict=True, hints=False, cost=RandomCost(model))
            groups = fast._pyjoinopt_report.groups
            order = tuple(group.order_after for group in groups)
            if fast is plain or order in orders:
                continue
            expected = plain.collect() if expected is None else expected
            assert_same_schema(plain, fast)
            assert_same_rows(expected, fast, label=("plain Spark", f"{order} of {number}: {to_sql(query)}"))
            counts["changed"] += any(group.changed for group in groups)
            orders.add(order)
        counts.update(queries=1, several=len(orders) > 1)
    print(dict(counts))
    if counts["queries"] >= 10:
        assert counts["changed"] >= counts["queries"] / 2 and counts["several"] >= counts["queries"] / 5, counts
