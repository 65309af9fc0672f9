"""Every rule compared with Catalyst's own object, on the plans of all TPC-H and TPC-DS queries.

`pytest -s tests/oracles/catalyst/statistics/test_against_catalyst.py` prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, reported_by_spark
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import to_fixed_point
from tests.oracles.catalyst.oracle import HEADER, Oracle, Tally
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSH = ["PushDownPredicates"]
NORMAL = ["EliminateOuterJoin", "PushDownPredicates"]
BEFORE_CBO = [*NORMAL, "ReorderJoin", "ColumnPruning", "CollapseProject", "RemoveNoopOperators"]
CBO = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}


@pytest.fixture(params=["tpch", "tpcds"])
def queries(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, DataFrame]]]:
    session = request.getfixturevalue(request.param)
    texts = tpc.spark_queries(request.param)
    yield request.param, {f"{request.param} {n}": session.sql(text) for n, text in texts.items()}


push_all = partial(push_down_predicates, as_catalyst=True)


def reordered(plan: LogicalPlan) -> LogicalPlan:
    return to_fixed_point(plan, partial(reorder_join, as_catalyst=True))


def pushed(plan: LogicalPlan) -> LogicalPlan:
    return to_fixed_point(plan, push_all)


@pytest.mark.ci
def test_rules_without_statistics(queries: tuple[str, dict[str, DataFrame]], oracle: Oracle) -> None:
    benchmark, frames = queries
    push, outer = Tally(f"{benchmark} PushDownPredicates"), Tally(f"{benchmark} EliminateOuterJoin")
    written, chains = Tally(f"{benchmark} ReorderJoin as written"), Tally(f"{benchmark} ReorderJoin after both")
    for name, df in frames.items():
        start = oracle.finished(df)
        push.count(name, start.root, oracle.applied(start, PUSH).root, pushed(start.root))
        eliminated = eliminate_outer_join(start.root, filters_null=start.filters_null).plan
        outer.count(name, start.root, oracle.applied(start, ["EliminateOuterJoin"], once=True).root, eliminated)
        written.count(name, start.root, oracle.applied(start, ["ReorderJoin"]).root, reordered(start.root))
        normal = oracle.applied(start, NORMAL)
        ours = reordered(normal.root)
        chains.count(name, normal.root, oracle.applied(normal, ["ReorderJoin"]).root, ours)
        oracle.applied(normal, [], plan=ours)  # raises if the JVM does not accept the plan
    report(push, outer, written, chains)
    assert push.fired_in_python and written.fired_in_python and chains.fired_in_python


def report(*tallies: Tally) -> None:
    print("", HEADER, *(tally.row() for tally in tallies), sep="\n")
    for tally in tallies:
        assert not tally.different, tally.different[0]
        assert tally.fired_in_catalyst == tally.fired_in_python


PREDICATES = [
    "b > 1 AND d > 2", "d > 2", "a <=> 2", "b > 2", "e IS NOT NULL", "NOT (e IS NULL) OR (d IS NOT NULL AND f IS NULL)",
    "e IN (1, 2)", "e NOT IN (1, 2)", "b + 3 = e", "coalesce(e, a) = 0", "coalesce(e, a) IS NOT NULL", "e IS NULL",
    "(if(d > 0, true, raise_error('bad'))) IS NULL", "b + d >= 3", "e <=> b", "NOT (e <=> b)", "e BETWEEN 1 AND 2",
    "CASE WHEN e > 1 THEN true END", "CASE WHEN e > 1 THEN true ELSE b IS NULL END", "nvl(e, 0) = 0", "e LIKE '1%'",
    "CAST(e AS STRING) || 'x' = '1x'", "array_contains(array(1, 2), e)", "e > 1 OR b > 1", "e > 1 OR f > 1",
    "e > (SELECT max(a) FROM x)", "EXISTS (SELECT 1 FROM x AS i WHERE i.a = e)", "e IN (SELECT a FROM x)", "false",
    "nullif(e, 1) = 2", "isnan(CAST(e AS DOUBLE))", "e > 1 AND rand() > 0.5", "rand() > 0.5", "greatest(e, 1) = 1",
    "e % 2 = 0", "year(date_add(DATE '2020-01-01', CAST(e AS INT))) = 2020", "NOT (e > 1 AND f > 1)", "hash(e) > 0",
]  # fmt: skip
ABOVE = [
    "SELECT DISTINCT {one} FROM {join}", "SELECT {one}, max({two}) FROM {join} GROUP BY {one}",
    "SELECT {one}, sum({two}) FROM {join} GROUP BY {one}", "SELECT count(DISTINCT {one}), min({two}) FROM {join}",
    "SELECT {one}, max({other}) FROM {join} GROUP BY {one}", "SELECT first({one}), collect_set({two}) FROM {join}",
    "SELECT DISTINCT {one} AS n, true FROM {join}", "SELECT DISTINCT {one}, rand() > 2 FROM {join}",
]  # fmt: skip
UNIQUE = [
    "SELECT a, b, c FROM x LEFT JOIN (SELECT d FROM y GROUP BY d) ON a = d",
    "SELECT a, b, c FROM x LEFT JOIN (SELECT d, count(d) AS n FROM y GROUP BY d) ON a = d AND b = n",
    "SELECT d, e, f FROM (SELECT a FROM x GROUP BY a) RIGHT JOIN y ON a = d",
    "SELECT a FROM x LEFT JOIN (SELECT d FROM y GROUP BY d) ON a > d",
    "SELECT a FROM x LEFT JOIN (SELECT d, e FROM y GROUP BY d, e) ON a = d",
    "SELECT a, d FROM x LEFT JOIN (SELECT d FROM y GROUP BY d) ON a = d",
    "SELECT a FROM x LEFT JOIN (SELECT DISTINCT d FROM y) ON a = d AND b > 1",
    "SELECT a FROM x LEFT JOIN (SELECT DISTINCT d FROM y WHERE d > 1 ORDER BY d) ON a = d",
    "SELECT a FROM x LEFT JOIN (SELECT DISTINCT d + 1 AS k FROM y) ON a = k",
    "SELECT a FROM x LEFT JOIN (SELECT * FROM y LIMIT 1) ON a = d AND b = e AND c = f",
    "SELECT a FROM x LEFT JOIN (SELECT DISTINCT d FROM y LEFT SEMI JOIN x ON a = d) ON a = d",
    "SELECT a FROM x LEFT JOIN (SELECT d FROM y INTERSECT SELECT a FROM x) ON a = d",
    "SELECT a FROM x LEFT JOIN (SELECT DISTINCT d FROM y) ON a <=> d",
    "SELECT a FROM x LEFT JOIN (SELECT d, count(*) OVER (ORDER BY d) AS r FROM (SELECT DISTINCT d FROM y)) ON a = d",
]


def test_outer_joins(spark: SparkSession, oracle: Oracle) -> None:
    session = spark.newSession()
    session.sql("CREATE TEMP VIEW x AS SELECT id AS a, nullif(id, 1) AS b, id + 2 AS c FROM range(3)")
    session.sql("CREATE TEMP VIEW y AS SELECT id AS d, nullif(id, 2) AS e, id + 2 AS f FROM range(3)")
    filters = [f"SELECT * FROM x {t} JOIN y ON a = d WHERE {p}" for t in ("LEFT", "RIGHT", "FULL") for p in PREDICATES]
    joins = {"x LEFT JOIN y ON a = d": ("a", "b", "e"), "x RIGHT JOIN y ON a = d": ("d", "e", "b")}
    above = [t.format(join=j, one=c[0], two=c[1], other=c[2]) for t in ABOVE for j, c in joins.items()]
    outer, both = Tally("EliminateOuterJoin on outer joins"), Tally("EliminateOuterJoin, PushDownPredicates")
    alone = Tally("EliminateOuterJoin, NULLs in Python")
    for text in filters + above + UNIQUE:
        start = oracle.applied(oracle.finished(session.sql(text)), ["ReplaceDistinctWithAggregate", "CollapseProject"])
        theirs = oracle.applied(start, ["EliminateOuterJoin"], once=True).root
        eliminate = partial(eliminate_outer_join, filters_null=start.filters_null)
        outer.count(text, start.root, theirs, eliminate(start.root).plan)
        alone.count(text, start.root, theirs, eliminate_outer_join(start.root).plan)
        if "EXISTS" not in text:  # the columns that a correlated subquery reads are not rewritten here
            normal = to_fixed_point(start.root, lambda plan: push_all(eliminate(plan).plan))  # noqa: B023
            both.count(text, start.root, oracle.applied(start, NORMAL).root, normal)
    report(outer, both)
    print(alone.row(), *(d.splitlines()[0] for d in alone.different), sep="\n")
    assert outer.fired_in_python > 40
    # Joins whose conditions Python cannot evaluate are left unchanged: it rewrites fewer joins, never others.
    assert alone.equal > 0.9 * alone.plans and alone.fired_in_python <= outer.fired_in_python


@pytest.mark.ci
def test_cost_based_join_reorder(analysed: tuple[str, SparkSession], oracle: Oracle) -> None:
    benchmark, session = analysed
    tally = Tally(f"{benchmark} CostBasedJoinReorder")
    for number, text in tpc.spark_queries(benchmark).items():
        start = oracle.finished(session.sql(text))
        ready = oracle.applied(start, BEFORE_CBO)
        statistics = SparkStatistics(reported_by_spark(partial(oracle.relations, ready), ready.nodes), ready.version)
        theirs = oracle.applied(ready, ["CostBasedJoinReorder"], once=True, confs=CBO)
        ours = cost_based_join_reorder(ready.root, statistics, as_catalyst=True)
        tally.count(f"{benchmark} {number}", ready.root, theirs.root, ours)
        oracle.applied(ready, [], plan=ours)  # the JVM accepts the plan
    report(tally)
    assert tally.fired_in_python > 3
