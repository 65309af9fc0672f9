"""Combinations of join types, conditions, hints and sizes: predicted operators compared with Spark's.

The joins are optimised once, a few hundred in all. Then each gets random hints, those too that Spark gives only
itself, and Spark plans all of them under some configuration. Nothing is ever run. The slow tests add rounds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.decode import decode
from pyjoinopt.catalyst.planner.build_side import (
    BROADCAST,
    HASH,
    MERGE,
    NO_BROADCAST,
    NO_BROADCAST_HASH,
    PREFER_HASH,
    REPLICATE,
)
from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys, null_aware_anti_keys
from pyjoinopt.catalyst.planner.join_selection import predict_joins
from pyjoinopt.catalyst.planner.key_types import is_binary_stable, is_orderable
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, INNER_LIKE, OUTER, SEMI, SINGLE, Hint, Join
from tests.oracles.catalyst.planner.spark_planner import (
    hint_of,
    items,
    joins_of,
    planned,
    settings,
    side_by_side,
    tree_order,
    version_of,
    with_hint,
)
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.ci

ROUNDS = [10, pytest.param(32, marks=pytest.mark.slow)]
ROWS = (10, 3_000, 400_000, 90_000_000)
COLUMNS = """
    nullif(id, 3) x, id % 7 y, nullif(cast(id as string), '') t, named_struct('a', id, 'b', array(id)) s,
    make_interval(0, 0, 0, cast(id as int)) i
"""
COLLATED = ", t collate UTF8_LCASE c, array(t collate UNICODE_CI) ca, t collate UTF8_BINARY b"
TYPES = ("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
CONDITIONS = (
    "l.x = r.x", "r.x = l.x AND l.y = r.y", "l.x + 1 = r.y * 2", "l.x <=> r.x", "l.x <=> r.x AND l.y = r.y",
    "l.x = r.x AND l.y < r.y", "l.x < r.y", "l.x = r.x OR l.y = r.y", "l.x = 5", "l.x <=> 5 AND l.y < r.y", "true",
    "l.x = r.x + l.y", "l.t = r.t", "l.s = r.s", "l.s <=> r.s", "upper(l.t) = r.t AND l.x > 3",
    "l.x = r.x OR l.x = r.x IS NULL",
)  # fmt: skip
COLLATED_CONDITIONS = ("l.c = r.c", "l.c <=> r.c AND l.x = r.x", "l.ca = r.ca", "l.b = r.b")
QUERIES = (
    "SELECT x FROM {l} WHERE x NOT IN (SELECT x FROM {r})",
    "SELECT x FROM {l} WHERE x + 1 NOT IN (SELECT y + x FROM {r})",
    "SELECT x FROM {l} WHERE (x, y) NOT IN (SELECT x, y FROM {r})",
    "SELECT x FROM {l} WHERE x IN (SELECT x FROM {r}) OR y = 1",
    "SELECT x FROM {l} l WHERE EXISTS (SELECT 1 FROM {r} r WHERE r.x > l.x) OR y = 1",
    "SELECT i FROM {l} INTERSECT SELECT i FROM {r}",
    "SELECT i, x FROM {l} EXCEPT SELECT i, x FROM {r}",
    "SELECT x, y FROM {l} INTERSECT SELECT x, y FROM {r}",
    "SELECT l.x FROM {l} l JOIN (SELECT x, count(*) n FROM {r} GROUP BY x) r ON l.x = r.x JOIN {r} z ON z.y = l.x",
    "SELECT l.x FROM {l} l LEFT JOIN (SELECT DISTINCT x, y FROM {r}) r USING (x, y) JOIN {r} z ON z.y < l.x",
    "SELECT l.x FROM {l} l JOIN (SELECT x FROM {r} LIMIT 1) r USING (x) JOIN (SELECT x FROM {r} LIMIT 50) z USING (x)",
    "SELECT l.x FROM (SELECT max(x) x FROM {l}) l JOIN (SELECT x FROM {r} TABLESAMPLE (3 PERCENT)) r ON l.x = r.x",
)  # fmt: skip
SINGLE_QUERY = "SELECT x, (SELECT r.y FROM {r} r WHERE r.x = l.x AND r.y > 2) v FROM {l} l"
STRATEGIES = (None, None, None, BROADCAST, MERGE, HASH, REPLICATE, NO_BROADCAST_HASH, NO_BROADCAST)
THRESHOLD, PREFER_SORT = "spark.sql.autoBroadcastJoinThreshold", "spark.sql.join.preferSortMergeJoin"
NOT_IN = "spark.sql.optimizeNullAwareAntiJoin"
CONFIGURATIONS: tuple[dict[str, str], ...] = (
    {}, {THRESHOLD: "-1"}, {THRESHOLD: "50k"}, {THRESHOLD: "2m", PREFER_SORT: "false"},
    {THRESHOLD: "50k", PREFER_SORT: "false", "spark.sql.shuffle.partitions": "100"},
    {THRESHOLD: "9000000000000000000", PREFER_SORT: "false", "spark.sql.shuffle.partitions": "3"},
    {NOT_IN: "false"}, {f"{NOT_IN}.broadcastThreshold": "1000", THRESHOLD: "-1"},
)  # fmt: skip


@dataclass
class Case:
    """A join of the JVM and its mirror."""

    theirs: Any
    ours: Join


@pytest.fixture(scope="module")
def cases(spark: SparkSession) -> Iterator[tuple[SparkSession, list[Case]]]:
    from pyjoinopt.bridge.shim import bridge_for

    session = spark.newSession()
    # INTERSECT of intervals becomes a join on keys without an order; a validation would refuse that plan.
    session.conf.set("spark.sql.planChangeValidation", "false")
    session.conf.set("spark.sql.lightweightPlanChangeValidation", "false")
    collated = version_of(session) >= (4, 0)
    for rows in ROWS:
        table = session.range(rows).selectExpr("*").createOrReplaceTempView
        table(f"ids{rows}")
        session.sql(f"SELECT {COLUMNS} FROM ids{rows}").createOrReplaceTempView(f"n{rows}")
        if collated:
            session.sql(f"SELECT * {COLLATED} FROM n{rows}").createOrReplaceTempView(f"n{rows}")
    chosen = random.Random(7)
    joins = []
    for join_type in TYPES:
        for condition in CONDITIONS + (COLLATED_CONDITIONS if collated else ()):
            left, right = chosen.choice(ROWS), chosen.choice(ROWS)
            tie = "WHERE" if join_type == "CROSS" else "ON"
            joins.append(f"SELECT l.x FROM n{left} l {join_type} JOIN n{right} r {tie} {condition}")
    texts = [" UNION ALL ".join(joins[i : i + 10]) for i in range(0, len(joins), 10)]
    for text in QUERIES + ((SINGLE_QUERY,) if collated else ()):
        for left in ROWS:
            texts.append(text.format(l=f"n{left}", r=f"n{chosen.choice(ROWS)}"))
    found, handles = [], []
    shim = bridge_for(session.range(1))
    for text in texts:
        df = session.sql(text)
        export = decode(oracle_of(session).exportStage(df._jdf, json.dumps({"stage": "optimized"})))
        handles.append(export.handle)
        stack = [df._jdf.queryExecution().optimizedPlan()]
        mirrors = tree_order(export.root)
        while stack:
            theirs, ours = stack.pop(), next(mirrors)
            if isinstance(ours, Join):
                found.append(Case(theirs, ours))
            if ours.children:
                stack.extend(reversed(items(theirs.children())))
    yield session, found
    for handle in handles:
        shim.release(handle)


def hint_rounds(cases: list[Case], spark: tuple[int, int], rounds: int) -> Iterator[tuple[dict[str, str], list[Hint]]]:
    """Per round a configuration and a hint for every join."""
    strategies = STRATEGIES + ((PREFER_HASH,) if spark < (4, 3) else ())
    chosen = random.Random(11)
    for number in range(rounds):
        conf = CONFIGURATIONS[number % len(CONFIGURATIONS)]
        if number < len(CONFIGURATIONS):
            yield conf, [(None, None)] * len(cases)
        else:
            hints = [(chosen.choice(strategies), chosen.choice(strategies)) for _ in cases]
            yield conf, [_accepted(case.ours, hint) for case, hint in zip(cases, hints)]


def _accepted(join: Join, hint: Hint) -> Hint:
    """Leaves out hints on which Spark should warn but fails: these types of join have no name in SQL."""
    refused = join.join_type in (EXISTENCE, SINGLE) and hint[0] in (BROADCAST, HASH)
    return (None, hint[1]) if refused else hint


@pytest.mark.parametrize("rounds", ROUNDS)
def test_generated_joins(cases: tuple[SparkSession, list[Case]], rounds: int) -> None:
    session, joins = cases
    version = version_of(session)
    operators: Counter[str] = Counter()
    compared, different = 0, []
    for changes, hints in hint_rounds(joins, version, rounds):
        known = {hint: hint_of(session, *hint) for hint in set(hints)}
        plans = [with_hint(session, case.theirs, known[hint]) for case, hint in zip(joins, hints)]
        mirrors = [
            Join(case.ours.left, case.ours.right, case.ours.join_type, case.ours.condition, hint)
            for case, hint in zip(joins, hints)
        ]
        with settings(session, changes):
            theirs = planned(session, side_by_side(session, plans))
        conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false", **changes}
        at = 0
        for mirror in mirrors:
            choices = {id(join): operator for join, operator in predict_joins(mirror, conf, spark=version)}
            ours = [choices[id(join)] for join in joins_of(mirror)]
            spark_chose = theirs[at : at + len(ours)]
            at += len(ours)
            compared += 1
            operators[spark_chose[0].name] += 1
            if spark_chose != ours:
                different.append(f"{show(mirror)} {changes}: {spark_chose} {ours}")
        assert at == len(theirs)
    print("", f"{compared} generated joins, {len(different)} different", dict(operators), sep="\n")
    assert different == []
    assert compared >= 150 * rounds and len(operators) == 5


def test_the_joins_are_as_varied_as_they_should_be(cases: tuple[SparkSession, list[Case]]) -> None:
    session, joins = cases
    recent = version_of(session) >= (4, 0)
    types = {case.ours.join_type for case in joins}
    expected = INNER_LIKE | OUTER | {SEMI, ANTI, EXISTENCE}
    assert types == expected | ({SINGLE} if recent else set())
    found = [extract_equi_keys(case.ours) for case in joins]
    keys = [e.type for pair in found if pair is not None for e in pair.left]
    assert {is_orderable(type) for type in keys} == {True, False}
    assert {is_binary_stable(type) for type in keys} == ({True, False} if recent else {True})
    assert sum(pair is None for pair in found) > 40 and sum(pair is not None for pair in found) > 80
    assert sum(null_aware_anti_keys(case.ours) is not None for case in joins) >= 4
    assert any(e.kind == "EqualNullSafe" for case in joins for e in case.ours.expressions)
