"""Compares rules with Catalyst's own on every intermediate plan of Spark's optimizer for the TPC queries.

    python -m tests.oracles.catalyst.states ColumnPruning LimitPushDown --benchmark tpcds --queries 1,5,14

prints the table and the first difference of each rule.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyjoinopt.bridge.decode import Export
from pyjoinopt.catalyst.rules.registry import RULES, NamedRule
from pyjoinopt.catalyst.rules.rule_context import RuleContext
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, reported_by_spark
from pyjoinopt.plan.constructors import ColumnFactory
from tests.oracles.catalyst.oracle import HEADER, Canon, Oracle, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def context_of(oracle: Oracle, export: Export) -> RuleContext:
    """The information about an exported plan that a rule may use."""
    statistics = SparkStatistics(reported_by_spark(partial(oracle.relations, export), export.nodes), export.version)
    return RuleContext(ColumnFactory(len(export.attributes)), export.conf, export.filters_null, statistics,
    export.version)


def compare(
    oracle: Oracle, name: str, states: Iterable[Export], rules: dict[str, NamedRule], tallies: dict[str, Tally]
) -> None:
    """Count, for each rule and state, whether it fired on either side and whether both made the same plan.

    Every plan of ours that differs from the state is built by the JVM, and compared as the JVM has it.
    """
    for number, state in enumerate(states):
        theirs = oracle.effective(state, {name: rule.rounds for name, rule in rules.items()})
        for rule, ours in rules.items():
            tally = tallies[rule]
            tally.plans += 1
            plan = ours.to_fixed_point(state.root, context_of(oracle, state))
            catalyst = theirs[rule].root if rule in theirs else state.root
            canon = Canon(a.id for a in state.attributes)
            start = canon.plan(state.root)
            python = state.root if plan is state.root else oracle.built(state, plan).root
            numbers = canon.plan(catalyst), canon.plan(python)
            tally.fired_in_catalyst += numbers[0] != start
            tally.fired_in_python += numbers[1] != start
            tally.equal += numbers[0] == numbers[1]
            if numbers[0] != numbers[1]:
                tally.differs(f"{name}, state {number}", state.root, catalyst, python)


def passages(oracle: Oracle, frames: dict[str, DataFrame]) -> Iterator[tuple[str, list[Export]]]:
    """The states of each query from the end of Spark's first batch on; the next query's request releases them."""
    for name, df in frames.items():
        yield name, [state for state in oracle.intermediate_plans(df) if finished(state)]
        oracle.release()


def finished(state: Export) -> bool:
    """True if names and common expressions are gone: Spark runs none of these rules earlier."""
    return not any(node.kind in ("SubqueryAlias", "View", "ResolvedHint") for node in state.nodes) and not any(
        e.kind in ("With", "Between") for e in state.expressions
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", default=[], help=f"of {', '.join(RULES)} (default: all)")
    parser.add_argument("--benchmark", choices=("tpch", "tpcds"), default="tpch")
    parser.add_argument("--queries", help="numbers, separated by commas (default: all)")
    parser.add_argument("--differences", type=int, default=1, help="how many to print of each rule")
    chosen = parser.parse_args(arguments)
    from pyspark.sql import SparkSession

    from tests.support import tpc

    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "3g").getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    tpc.register(spark, chosen.benchmark)
    texts = tpc.spark_queries(chosen.benchmark)
    wanted = set(json.loads(f"[{chosen.queries}]")) if chosen.queries else set(texts)
    rules = {name: RULES[name] for name in chosen.rules or RULES}
    tallies = {name: Tally(name) for name in rules}
    with Oracle(spark) as oracle:
        frames = {f"{chosen.benchmark} {n}": spark.sql(text) for n, text in texts.items() if n in wanted}
        for name, states in passages(oracle, frames):
            compare(oracle, name, states, rules, tallies)
    print(HEADER, *(t.row() for t in tallies.values()), sep="\n")
    for tally in tallies.values():
        print(*(f"\n== {tally.rule}: {text}" for text in tally.different[: chosen.differences]), sep="\n")
    return 1 if any(t.different for t in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
