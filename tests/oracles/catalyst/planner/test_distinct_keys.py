"""Distinct keys compared with those that Spark's own plans have (`LogicalPlan.distinctKeys`)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.decode import decode
from pyjoinopt.catalyst.planner.distinct_keys import DistinctKeyVisitor
from pyjoinopt.plan.expressions import reference
from tests.oracles.catalyst.planner.spark_planner import items, tree_order
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPED = "(SELECT x, y, count(*) n FROM nums GROUP BY x, y)"
QUERIES = {
    "groups": f"SELECT x, n, y FROM {GROUPED}",
    "groups under new names": f"SELECT x u, y v, y w FROM {GROUPED}",
    "groups of groups": f"SELECT x, y, n, max(n) FROM {GROUPED} GROUP BY x, y, n",
    "fewer groups of groups": f"SELECT x, sum(n) FROM {GROUPED} GROUP BY x",
    "no groups": "SELECT max(x) m, min(y) n FROM nums",
    "distinct": "SELECT DISTINCT x, y + 1 z FROM nums",
    "a single row": "SELECT x, y FROM nums LIMIT 1",
    "some rows": "SELECT DISTINCT x, y FROM nums LIMIT 5",
    "sorted, filtered": f"SELECT * FROM {GROUPED} WHERE n > 1 SORT BY n",
    "a window": f"SELECT *, row_number() OVER (PARTITION BY x ORDER BY n) r FROM {GROUPED}",
    "ranks with a limit": f"SELECT x, y, r FROM (SELECT *, rank() OVER (ORDER BY n) r FROM {GROUPED}) WHERE r < 4",
    "except": "SELECT x, y FROM nums EXCEPT SELECT y, x FROM nums",
    "intersect": "SELECT x, y FROM nums INTERSECT SELECT y, x FROM nums",
    "union": "SELECT DISTINCT x FROM nums UNION ALL SELECT DISTINCT y FROM nums",
    "cube": "SELECT x, y, count(*) FROM nums GROUP BY CUBE (x, y)",
    "semi": f"SELECT * FROM {GROUPED} WHERE x IN (SELECT y FROM nums)",
    "anti": f"SELECT * FROM {GROUPED} g WHERE NOT EXISTS (SELECT 1 FROM nums WHERE y = g.n)",
    "sample": "SELECT * FROM (SELECT DISTINCT x, y FROM nums) TABLESAMPLE (50 PERCENT)",
}
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
CONDITIONS = ("g.x = u.k", "g.x <=> u.k", "g.x = u.k AND g.y = u.k + 1", "g.x < u.k", "g.y = u.k AND g.n > 1")
for _join in JOINS:
    for _condition in CONDITIONS:
        _sides = f"{GROUPED} g {_join} (SELECT DISTINCT y k FROM nums) u"
        QUERIES[f"{_join} {_condition}"] = f"SELECT * FROM {_sides} ON {_condition}"


@pytest.fixture(scope="module")
def nums(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.range(50).selectExpr("id % 7 x", "id % 3 y").createOrReplaceTempView("nums")
    return session


def differences(df: DataFrame) -> tuple[int, list[str]]:
    """(number of operators with a key, differing operators) of the optimised plan."""
    export = decode(oracle_of(df.sparkSession).exportStage(df._jdf, json.dumps({"stage": "optimized"})))
    ours = DistinctKeyVisitor()
    names = {reference(a).key: repr(a) for node in tree_order(export.root) for a in node.output}
    with_keys, different = 0, []
    theirs = [df._jdf.queryExecution().optimizedPlan()]
    for node in tree_order(export.root):
        plan = theirs.pop()
        theirs.extend(reversed(items(plan.children())))
        expected = {frozenset(str(e) for e in items(key.toSeq())) for key in items(plan.distinctKeys().toSeq())}
        expected = {frozenset(re.sub(r"L$", "", e) for e in key) for key in expected}
        found = {frozenset(names[e] for e in key) for key in ours(node)}
        with_keys += bool(expected)
        if found != expected:
            different.append(f"{node.kind}: Spark has {expected}, predicted {found}")
    return with_keys, different


@pytest.mark.parametrize("name", QUERIES)
def test_keys(nums: SparkSession, name: str) -> None:
    with_keys, different = differences(nums.sql(QUERIES[name]))
    assert different == []
    assert with_keys or name in ("union", "cube")


def test_a_limit_on_ranks_has_no_keys(nums: SparkSession) -> None:
    df = nums.sql(QUERIES["ranks with a limit"])
    assert "WindowGroupLimit" in str(df._jdf.queryExecution().optimizedPlan().toString())
    assert items(df._jdf.queryExecution().optimizedPlan().distinctKeys().toSeq()) == []


def test_rows_drawn_twice_are_no_longer_unique(nums: SparkSession) -> None:
    rows = nums.sql("SELECT DISTINCT x, y FROM nums")
    once, twice = (differences(rows.sample(repeated, 0.5, seed=1)) for repeated in (False, True))
    assert once[1] == twice[1] == []
    assert twice[0] == once[0] - 1
