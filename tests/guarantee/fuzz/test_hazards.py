"""Random queries that may fail, or that distinguish equal values: both entrances compared with plain Spark.

There are a third as many as ordinary random queries; `pytest tests/guarantee/fuzz --fuzz-n 10000` runs more. A query
that plain Spark runs must run through `optimize_joins` and in an enabled session, and give the same rows; -0.0 and 0.0
count as different.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.fuzz import hazards
from tests.guarantee.fuzz.hazards import HazardTally
from tests.support.generator import row_counter
from tests.support.hazard_queries import MAY_FAIL, TELLS, HazardGenerator
from tests.support.hazards import duckdb_hazards, hazard_tables
from tests.support.querytree import Call, Chain, Join, Query, Subquery, all_expressions, all_nodes
from tests.support.render_dataframe import to_pyspark
from tests.support.render_sql import to_sql
from tests.support.shrink import shrunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fuzz
#: One in this many of the `--fuzz-n` queries, starting with a number that once found a failing join order.
SHARE, FIRST = 3, 30
FAILING = frozenset(op for ops in MAY_FAIL.values() for op in ops)
TELLING = frozenset(op for tests in TELLS.values() for op, _ in tests)


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HazardTally:
    """All queries of this run."""
    seed, total, only = (request.config.getoption(name) for name in ("--fuzz-seed", "--fuzz-n", "--fuzz-only"))
    start = request.config.getoption("--fuzz-from")
    numbers = range(FIRST + start // SHARE, FIRST + total // SHARE) if only is None else [only]
    log = 500 if total > 1000 else 0
    return hazards.run(spark, tmp_path_factory.mktemp("hazards") / "tables", seed, numbers, log=log)


@pytest.mark.ci
@pytest.mark.timeout(0)
def test_both_entrances_agree_with_plain_spark(tally: HazardTally, pytestconfig: pytest.Config) -> None:
    print(dict(tally.counts))
    seed = pytestconfig.getoption("--fuzz-seed")
    if tally.failures:
        pytest.fail("\n" + "\n".join(failure.text(seed) for failure in tally.failures), pytrace=False)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("what", "least", "most"),
    [("with_rows", 0.4, 1.0), ("changed", 0.2, 1.0), ("extension_changed", 0.15, 1.0), ("not_runnable", 0.0, 0.35),
     ("plain_fails_by_plan", 0.0, 0.1), ("plain_differs_by_plan", 0.0, 0.1)],
)  # fmt: skip
def test_the_queries_prove_something(
    what: str, least: float, most: float, tally: HazardTally, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--fuzz-only") is not None or pytestconfig.getoption("--fuzz-n") < 60 or tally.failures:
        pytest.skip("shares of a few queries say nothing")
    assert least * tally.counts["queries"] <= tally.counts[what] <= most * tally.counts["queries"], tally.counts


@pytest.fixture(scope="module")
def generator() -> HazardGenerator:
    return HazardGenerator(1, row_counter(duckdb_hazards(hazard_tables(1))))


@pytest.mark.ci
def test_the_generator_draws_what_it_is_about(generator: HazardGenerator) -> None:
    drawn: Counter[str] = Counter()
    for number in range(150):
        query = generator.query(number)
        operators = {part.op for part in all_expressions(query) if isinstance(part, Call)}
        drawn.update(fails=bool(operators & FAILING), tells=bool(operators & TELLING))
        drawn.update(chain=any(isinstance(node, Chain) for node in all_nodes(query)))
        drawn.update(_hints(query))
        drawn.update(part.form + " not" * part.negated for part in all_expressions(query) if isinstance(part, Subquery))
        assert query == generator.query(number)
    floors = {"fails": 60, "tells": 60, "hint": 10, "hint and subquery": 3, "exists": 20, "exists not": 8, "in": 25}
    floors |= {"in not": 8, "chain": 2}
    assert all(drawn[what] >= least for what, least in floors.items()), drawn


def _hints(query: Query) -> Counter[str]:
    joins = [node for node in all_nodes(query) if isinstance(node, Join) and node.hint]
    asking = [join for join in joins if any(isinstance(part, Subquery) for part in join.condition)]
    return Counter({"hint": len(joins), "hint and subquery": len(asking)})


def test_queries_of_every_kind_shrink_to_queries(generator: HazardGenerator) -> None:
    """A chain is cut to two parts, a subquery to what it is kept for; each cut can be written in both forms."""

    def has(query: Query, what: str) -> bool:
        to_sql(query), to_pyspark(query)
        return any(
            isinstance(node, Chain) if what == "chain" else any(_is(part, what) for part in all_expressions(query))
            for node in all_nodes(query)
        )

    for what in ("chain", "in", "100 /"):
        found = next(query for number in range(400) if has(query := generator.query(number), what))
        small = shrunk(found, lambda query, what=what: has(query, what), 300)  # type: ignore[misc]
        assert len(to_sql(small)) < 700, to_sql(small)
        assert has(small, what)


def _is(part: object, what: str) -> bool:
    return isinstance(part, Subquery) and part.form == what or isinstance(part, Call) and part.op == what
