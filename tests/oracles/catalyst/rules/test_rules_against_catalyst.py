"""Every rule of the catalogue compared with Catalyst's own, on plan states of the TPC queries and on generated plans.

`pytest -s` prints the tables. Of the optimizer's states on the 121 queries two of each are drawn; `--all-states` takes
them all (some minutes). The default run takes all of TPC-H, one query in four of TPC-DS, and 75 generated ones.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from tests.oracles.catalyst import generated
from tests.oracles.catalyst.oracle import HEADER, Oracle, Tally
from tests.oracles.catalyst.states import compare, passages
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The most states of a TPC query to use.
SAMPLE = 2
#: The number of generated queries that run through all of Spark's optimizer.
PASSED = 10
BENCHMARKS = [
    ("tpch", 1), pytest.param("tpcds", 4, marks=pytest.mark.ci), pytest.param("tpcds", 1, marks=pytest.mark.slow),
]  # fmt: skip


def report(title: str, tallies: dict[str, Tally]) -> None:
    """Print the table; every difference fails. Those that are meant (docs/rules.md) have tests of their own."""
    print("", title, HEADER, *(tally.row() for tally in tallies.values()), sep="\n")
    for tally in tallies.values():
        different = tally.different
        assert not different, f"{len(different)} of {tally.plans} plans differ in {tally.rule}:\n{different[0]}"


@pytest.mark.parametrize(("benchmark", "step"), BENCHMARKS)
def test_states_of_the_tpc_queries(request: pytest.FixtureRequest, oracle: Oracle, benchmark: str, step: int) -> None:
    session = request.getfixturevalue(benchmark)
    texts = list(tpc.spark_queries(benchmark).items())[::step]
    frames = {f"{benchmark} {n}": session.sql(text) for n, text in texts}
    tallies = {name: Tally(name) for name in RULES}
    everything = request.config.getoption("--all-states")
    for name, states in passages(oracle, frames):
        some = random.Random(name).sample(states, min(SAMPLE, len(states)))
        compare(oracle, name, states if everything else some, RULES, tallies)
    report(f"{benchmark}, {'all' if everything else 'some'} states", tallies)
    for rule in ("PushDownPredicates", "ColumnPruning", "InferFiltersFromConstraints"):
        assert tallies[rule].fired_in_python > 5


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_generated_plans(tables: SparkSession, oracle: Oracle, count: int) -> None:
    tallies = {name: Tally(name) for name in RULES}
    for number, text in enumerate(generated.queries(count)):
        df = tables.sql(text)
        # Spark takes correlated predicates out of subqueries before it comes to most of the rules.
        start = oracle.applied(oracle.finished(df), ["PullupCorrelatedPredicates"], once=True)
        compare(oracle, text, [start], RULES, tallies)
        if number < PASSED:
            for name, states in passages(oracle, {text: df}):
                compare(oracle, name, states, RULES, tallies)
        oracle.release()
    report(f"{count} generated queries", tallies)
    idle = [t.rule for t in tallies.values() if not t.fired_in_python and t.rule != "CostBasedJoinReorder"]
    assert not idle, f"the generator gives no work to {idle}"
