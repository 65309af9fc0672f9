"""The row counts that `analyze` takes from Spark's metrics equal those of separate COUNT queries.

For every join group of a query, and every set of relations that the written or the optimised plan joined, a separate
query counts the join of just these relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.subplans import Group, as_plan, groups_of, is_correlated, normal_plans
from benchmarks.truth import as_frame
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.feedback import listener
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.plan.expressions import call, reference
from pyjoinopt.plan.nodes import ANTI, INNER, SEMI, Filter, LogicalPlan
from tests.oracles.catalyst.oracle import Oracle
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Adaptive execution, and up to how many bytes a side is broadcast.
WAYS = (("true", "10485760"), ("true", "-1"), ("false", "10485760"), ("false", "-1"))
#: Queries of TPC-DS in which Spark filters a group by predicates outside of it: a city that is compared with another
#: one is not NULL, and an outer join of three groups propagates a year.
FILTERED_FROM_OUTSIDE = frozenset({46, 68, 78})


def may_be_smaller(graph: JoinGraph, relations: int) -> bool:
    """Whether Spark may derive a filter for some of these relations from predicates that connect them to others.

    From `n1 = FRANCE and n2 = GERMANY or n1 = GERMANY and n2 = FRANCE` one on n1; from `a = b` and `b < 5` one on a.
    """
    for edge in graph.edges:
        if not edge.tes & relations or not edge.tes & ~relations:
            continue
        columns = edge.predicate.references
        filters = (e for v, listed in enumerate(graph.filters) if not relations >> v & 1 for e in listed)
        if edge.predicate.kind != "EqualTo" or any(e.references & columns for e in filters):
            return True
    return False


def as_spark_reads(graph: JoinGraph, relations: int) -> LogicalPlan | None:
    """The join of some relations without the NULLs that Spark drops, since predicates on other relations reject them.

    None where that is more than columns with a value: of other expressions it depends on how they treat NULL.
    """
    plan = as_plan(graph, relations)
    for edge in graph.edges:
        if edge.join_type == ANTI or not edge.tes & relations or not edge.tes & ~relations:
            continue
        for side, expression in edge.keys or ():
            if not side & ~relations:
                if expression.kind != "AttributeReference":
                    return None
                plan = Filter(call("IsNotNull", expression), plan)
    return plan


class Truth:
    """Counts of sub-plans of one query, each by a separate query that runs once."""

    def __init__(self, df: DataFrame, spark: SparkSession) -> None:
        self._spark = spark
        self._counted: dict[tuple[tuple[str, ...], int, bool], float] = {}
        # Its plan is built upon for as long as it is open.
        self._gateway = Py4jGateway(bridge_for(df), df._jdf, optimizing=True)
        export = self._gateway.export
        found = list(groups_of(export, normal_plans(export), 1))
        keys: dict[tuple[str, ...], set[str]] = {}  # a watch identifies its group by the names alone
        for group in found:
            keys.setdefault(group.graph.names, set()).add(group.key)
        self._groups = {g.graph.names: g for g in found if self._countable(g) and len(keys[g.graph.names]) == 1}

    def __enter__(self) -> Truth:
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.__exit__()

    @staticmethod
    def _countable(group: Group) -> bool:
        kinds = {edge.join_type for edge in group.graph.edges}
        return not is_correlated(group.graph) and kinds <= {INNER, SEMI, ANTI}

    def count(self, names: tuple[str, ...], relations: int, filled: bool = False) -> float | None:
        """Rows of the join of a set of relations; None if this group's cannot be counted.

        `filled`: only those without a NULL in any key. What stands above the group may reject NULLs, too.
        """
        group = self._groups.get(names)
        if group is None or may_be_smaller(group.graph, relations):
            return None
        if any(
            right & relations and edge.tes & ~relations for right, edge in group.graph.semi_rights.items()
        ):
            return None
        key = names, relations, filled
        if key not in self._counted:
            plan = as_spark_reads(group.graph, relations)
            if plan is None:
                return None
            for column in plan.output if filled else ():
                if column.name.endswith("_sk"):
                    plan = Filter(call("IsNotNull", reference(column)), plan)
            with Oracle(self._spark) as oracle:
                self._counted[key] = as_frame(oracle, group.export, plan, self._spark).count()
        return self._counted[key]


def check(spark: SparkSession, number: int, text: str, truth: Truth, seen: Counter[str]) -> int:
    """Run a query both ways and compare every count with the truth; returns the number of compared counts."""
    df = spark.sql(text)
    fast = df.optimize_joins(strict=True)
    shim, watches, checked = bridge_for(df), fast._pyjoinopt_report._watches, 0
    for frame in (df, fast):
        operators: list[dict[str, Any]] = listener.executed_plan(shim, frame)["operators"]
        seen.update(operator["c"] for operator in operators)
        for watch in watches:
            for relations, rows in watch.observe(operators).items():
                counted = truth.count(watch.names, relations)
                if counted is not None:
                    names = [name for v, name in enumerate(watch.names) if relations >> v & 1]
                    if rows != counted:
                        least = truth.count(watch.names, relations, filled=True)
                        least = 0 if number in FILTERED_FROM_OUTSIDE else least
                        assert least is not None and least <= rows < counted, f"query {number}: {names}"
                    checked += rows == counted
    return checked


def checked_all(
    numbers: Iterable[int], benchmark: str, spark: SparkSession, ways: Iterable[tuple[str, str]]
) -> Counter[int]:
    """Run queries in each way; how many counts of each query were the true ones."""
    seen, checked = Counter[str](), Counter[int]()
    sessions = [session(spark, *way, benchmark=benchmark) for way in ways]
    texts = tpc.spark_queries(benchmark)
    for number in numbers:
        with Truth(spark.sql(texts[number]), spark) as truth:
            for one in sessions:
                checked[number] += check(one, number, texts[number], truth, seen)
    print(dict(checked), dict(seen))
    assert {"BroadcastHashJoin", "SortMergeJoin", "ReusedExchange", "AQEShuffleRead"} <= set(seen)
    return checked


def session(tpch: SparkSession, adaptive: str, threshold: str, benchmark: str = "tpch") -> SparkSession:
    made = tpch.newSession()
    tpc.register(made, benchmark)
    made.conf.set("spark.sql.codegen.wholeStage", "false")
    made.conf.set("spark.sql.adaptive.enabled", adaptive)
    made.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    return made


@pytest.mark.parametrize("number", [3])
def test_a_query_two_ways(tpch: SparkSession, number: int) -> None:
    text = tpc.spark_queries("tpch")[number]
    seen = Counter[str]()
    with Truth(tpch.sql(text), tpch) as truth:
        for adaptive, threshold in WAYS[::3]:
            assert check(session(tpch, adaptive, threshold), number, text, truth, seen) >= 6
    assert {"BroadcastHashJoin", "SortMergeJoin"} <= set(seen)


@pytest.mark.slow
def test_every_query_four_ways(tpch: SparkSession) -> None:
    """Broadcast and sort merge joins, reused exchanges, stages that adaptive execution replaced or skipped."""
    checked = checked_all(range(1, 23), "tpch", tpch, WAYS)
    assert sum(n > 0 for n in checked.values()) >= 10 and sum(checked.values()) >= 600


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_queries_with_keys_that_are_null(tpcds: SparkSession) -> None:
    """All of TPC-DS; Spark drops rows whose key is NULL before it joins them.

    Where what rejects the NULLs stands above the group, the count lies between that with and that without them.
    """
    checked = checked_all(range(1, 100), "tpcds", tpcds, WAYS[::3])
    assert sum(n > 0 for n in checked.values()) >= 70 and sum(checked.values()) >= 1900


EMPTY = {
    "a relation": """SELECT * FROM orders, customer, nation WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey
        AND n_name = 'ATLANTIS'""",
    "a join": """SELECT * FROM lineitem, orders, customer WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey
        AND o_totalprice < 0 AND c_mktsegment = 'BUILDING'""",
}


@pytest.mark.parametrize("adaptive", ["false", pytest.param("true", marks=pytest.mark.slow)])
@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_what_is_empty_is_counted_as_empty_or_not_at_all(tpch: SparkSession, text: str, adaptive: str) -> None:
    """Adaptive execution removes operators that cannot give rows; operators that did not run have no reported count."""
    seen = Counter[str]()
    with Truth(tpch.sql(text), tpch) as truth:
        checked = check(session(tpch, adaptive, "10485760"), 0, text, truth, seen)
    assert checked >= 1 or "EmptyRelation" in seen


def test_a_stage_that_is_used_again_counts_its_rows(tpch: SparkSession) -> None:
    text = """SELECT * FROM orders a JOIN orders b ON a.o_custkey = b.o_custkey JOIN customer ON a.o_custkey = c_custkey
        WHERE a.o_orderkey < 1000 AND b.o_orderkey < 1000 AND c_acctbal > 9000"""
    with Truth(tpch.sql(text), tpch) as truth:
        assert check(session(tpch, "true", "-1"), 0, text, truth, Counter()) >= 4
    again = session(tpch, "true", "-1").sql(text)
    shim = bridge_for(again)
    first, second = (listener.executed_plan(shim, again)["operators"] for _ in range(2))
    rows = [[o["m"].get("numOutputRows") for o in reported if o["c"].endswith("Join")] for reported in (first, second)]
    assert rows[0] == rows[1], "a second run may take over finished stages, their counts too"


@pytest.mark.parametrize(
    ("numbers", "adaptive"),
    [
        ((5, 7), "false"),
        pytest.param(range(1, 23), "false", marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_operators_are_as_foreseen(tpch: SparkSession, numbers: Sequence[int], adaptive: str) -> None:
    """With adaptive execution Spark may switch to a broadcast if a side is small at run time, but not away from one."""
    spark = session(tpch, adaptive, "20000")
    right = wrong = 0
    for number in numbers:
        df = spark.sql(tpc.spark_queries("tpch")[number])
        fast = df.optimize_joins(strict=True)
        report = fast._pyjoinopt_report
        listener.analyze(report, df, fast, "after")
        ran = {frozenset(o.relations): o for o in report.runs[0].operators if o.name.endswith("Join")}
        for join in (join for group in report.groups for join in group.estimated_rows):
            operator = ran.get(frozenset(join.relations))
            if operator is None:
                continue
            side = operator.detail.rsplit("build ", 1)[1] if "build " in operator.detail else ""
            if (operator.name, side) == (join.operator, join.build) or (not side and operator.name == join.operator):
                right += 1
            else:
                wrong += 1
                assert adaptive == "true" and operator.name == "BroadcastHashJoin", (number, join, operator)
    assert right > 2 * wrong and right >= len(numbers)
