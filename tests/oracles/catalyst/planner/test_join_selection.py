"""Predicted join operators compared with Spark's physical plans, on all TPC-H and TPC-DS queries (by default a fourth).

Every query is optimised once. Its plan, and the plans of its subqueries, are then planned by Spark under each
configuration, adaptive execution off, and predicted from the mirror of the same optimised plan. Only the sizes of
leaves come from Spark. `pytest -s tests/oracles/catalyst/planner/test_join_selection.py` prints the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.catalyst.planner.join_selection import JoinOperator
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.plan.nodes import EXISTENCE, SINGLE, Join, LogicalPlan
from pyjoinopt.plan.traversal import map_subqueries, transform_up
from tests.oracles.catalyst.planner.spark_planner import (
    items,
    mirror_with_subqueries,
    planned,
    predicted,
    settings,
    version_of,
    with_subqueries,
)
from tests.support import tpc
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THRESHOLD, PREFER_SORT = "spark.sql.autoBroadcastJoinThreshold", "spark.sql.join.preferSortMergeJoin"
PARTITIONS = "spark.sql.shuffle.partitions"
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "as Spark comes": {},
    "never broadcast": {THRESHOLD: "-1"},
    "threshold 20 kB": {THRESHOLD: "20kb"},
    "threshold 200 kB": {THRESHOLD: "200k"},
    "shuffled hash, 30 kB": {THRESHOLD: "30k", PREFER_SORT: "false", PARTITIONS: "40"},
    "shuffled hash, factor 10": {THRESHOLD: "4000", PREFER_SORT: "false", "spark.sql.shuffledHashJoinFactor": "10"},
}
#: Given to the left side of every other join and to the right side of the rest.
HINTS = ("BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL")

BENCHMARKS = [
    pytest.param(("tpch", 1), id="tpch"),
    pytest.param(("tpcds", 4), id="tpcds-one-in-4", marks=pytest.mark.slow),
    pytest.param(("tpcds", 1), id="tpcds", marks=pytest.mark.slow),
]


@dataclass
class Tally:
    """How often the prediction was right under one configuration."""

    joins: int = 0
    equal: int = 0
    operators: Counter[str] = field(default_factory=Counter)

    def add(self, theirs: list[JoinOperator], ours: list[JoinOperator]) -> None:
        assert len(theirs) == len(ours)
        self.joins += len(theirs)
        self.equal += sum(a == b for a, b in zip(theirs, ours))
        self.operators.update(operator.name for operator in theirs)

    def row(self, name: str) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.operators.most_common())
        return f"{name:<28}{self.joins:>6}{self.equal:>7}  {kinds}"


@pytest.fixture(params=BENCHMARKS, scope="module")
def queries(request: pytest.FixtureRequest) -> Iterator[tuple[str, SparkSession, dict[int, tuple[Any, Export]]]]:
    """For each query the optimised plan and its mirror."""
    from pyjoinopt.bridge.shim import bridge_for

    benchmark, step = request.param
    session = request.getfixturevalue(benchmark)
    shim = bridge_for(session.range(1))
    optimised = {}
    for number, text in list(tpc.spark_queries(benchmark).items())[::step]:
        df = session.sql(text)
        export = decode(oracle_of(session).exportStage(df._jdf, json.dumps({"stage": "optimized"})))
        optimised[number] = df._jdf.queryExecution().optimizedPlan(), export
    yield benchmark, session, optimised
    for _, export in optimised.values():
        shim.release(export.handle)


@pytest.mark.jvm
def test_sizes_of_every_node(queries: tuple[str, SparkSession, dict[int, tuple[Any, Export]]]) -> None:
    _, _, optimised = queries
    nodes, different = 0, []
    for number, (plan, export) in optimised.items():
        sizes = SparkSizes(export.conf)
        stack = [(plan, export.root)]
        while stack:
            theirs, ours = stack.pop()
            nodes += 1
            size = str(theirs.stats().productIterator().next())
            if size != str(sizes(ours)):
                different.append(f"query {number}: {ours.kind} {size} {sizes(ours)}")
            stack.extend(zip(items(theirs.children()), ours.children, strict=True))
    assert nodes > 400
    assert different == []


@pytest.mark.jvm
def test_operators_of_every_join(queries: tuple[str, SparkSession, dict[int, tuple[Any, Export]]]) -> None:
    benchmark, session, optimised = queries
    tallies = {name: Tally() for name in (*CONFIGURATIONS, *HINTS)}
    different = []

    def compare(name: str, number: int, conf: dict[str, str], plans: list[Any], mirrors: list[LogicalPlan]) -> None:
        theirs = [planned(session, plan) for plan in plans]
        ours = predicted(mirrors, conf, version_of(session))
        for a, b in zip(theirs, ours, strict=True):
            tallies[name].add(a, b)
        if theirs != ours:
            different.append(f"{benchmark} {number}, {name}: {theirs} {ours}")

    everything = {n: (with_subqueries(p), mirror_with_subqueries(e.root)) for n, (p, e) in optimised.items()}
    for name, changes in CONFIGURATIONS.items():
        with settings(session, changes):
            for number, (plans, mirrors) in everything.items():
                conf = {**optimised[number][1].conf, "spark.sql.adaptive.enabled": "false", **changes}
                compare(name, number, conf, plans, mirrors)
    with settings(session, {}):
        for name in HINTS:
            for number, (_, export) in optimised.items():
                mirror = hinted(export.root, name)
                if mirror is not export.root:
                    plans = with_subqueries(rebuilt(session, export, mirror))
                    compare(name, number, export.conf, plans, mirror_with_subqueries(mirror))
    print("", f"{benchmark:<28}{'joins':>6}{'equal':>7}", *(t.row(name) for name, t in tallies.items()), sep="\n")
    assert different == []
    assert all(tally.joins >= 60 for tally in tallies.values())
    assert len(sum((t.operators for t in tallies.values()), Counter())) >= 4


def hinted(plan: LogicalPlan, strategy: str) -> LogicalPlan:
    """The plan with a hint on all joins that can be rebuilt, including those of subqueries."""
    number = count()

    def at(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Join) or node.join_type in (EXISTENCE, SINGLE):
            return node
        hint = (strategy, None) if next(number) % 2 else (None, strategy)
        return Join(node.left, node.right, node.join_type, node.condition, hint)

    return transform_up(map_subqueries(plan, lambda subquery: hinted(subquery, strategy)), at)


def rebuilt(session: SparkSession, export: Export, plan: LogicalPlan) -> Any:
    """The same in the JVM, not optimised again."""
    from pyjoinopt.bridge.shim import bridge_for

    edits = Edits()
    shim = bridge_for(session.range(1))
    return shim.rebuild(export.handle, json.dumps(edits.message(edits.plan(plan)))).queryExecution().analyzed()
