"""Star detection compared with Catalyst's own rules, on TPC-DS tables in whose statistics the fact tables are large.

`pytest -s -m "slow or not slow"` on this file runs all queries and prints the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.catalyst.rules.registry import RULES
from pyjoinopt.plan.nodes import LogicalPlan
from tests.oracles.catalyst.oracle import HEADER, Canon, Oracle, Tally
from tests.oracles.catalyst.states import context_of
from tests.oracles.catalyst.suites import scaled_catalog
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.decode import Export

STAR = {"spark.sql.cbo.starSchemaDetection": "true"}
PLAN_STATS = {**STAR, "spark.sql.cbo.planStats.enabled": "true"}


@pytest.fixture(scope="module")
def stars(spark: SparkSession) -> SparkSession:
    """A session with TPC-DS in a catalog, where the facts are large enough to be facts."""
    session = spark.newSession()
    scaled_catalog.create(session, "stars_tpcds", 1000)
    return session


NORMAL = ["EliminateOuterJoin", "PushDownPredicates"]
BEFORE_CBO = [*NORMAL, "ReorderJoin", "ColumnPruning", "CollapseProject", "RemoveNoopOperators"]
CBO = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}
FILTER = {**CBO, "spark.sql.cbo.joinReorder.dp.star.filter": "true"}


def ours(oracle: Oracle, export: Export, rule: str, conf: dict[str, str]) -> LogicalPlan:
    context = context_of(oracle, export)
    context = replace(context, conf={**context.conf, **conf})
    return RULES[rule].to_fixed_point(export.root, context)


def compared(
    stars: SparkSession,
    oracle: Oracle,
    rule: str,
    before: list[str],
    confs: tuple[dict[str, str], dict[str, str]],
    step: int,
) -> int:
    """The rule compared with Catalyst's, on every nth query; returns how often the tested switch made a difference.

    Args:
        confs: with the switch, and without.
    """  # fmt: skip
    tally, mattered, once = Tally(f"tpcds {rule}, stars"), 0, RULES[rule].once
    for number, text in list(tpc.spark_queries("tpcds").items())[::step]:
        ready = oracle.applied(oracle.finished(stars.sql(text)), before)
        theirs, plain = (oracle.applied(ready, [rule], once=once, confs=conf).root for conf in confs)
        tally.count(f"tpcds {number}", ready.root, theirs, ours(oracle, ready, rule, confs[0]))
        canon = Canon()
        mattered += canon.plan(theirs) != canon.plan(plain)
        oracle.release()
    print(f"\n{HEADER}\n{tally.row()}   the star mattered in {mattered}")
    assert not tally.different, tally.different[0]
    assert tally.fired_in_python == tally.fired_in_catalyst
    return mattered


STEPS = [pytest.param(4, id="every-fourth"), pytest.param(1, id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("step", STEPS)
def test_reorder_join_beside_catalyst(stars: SparkSession, oracle: Oracle, step: int) -> None:
    assert compared(stars, oracle, "ReorderJoin", NORMAL, (PLAN_STATS, {}), step) >= 60 // step - 3


@pytest.mark.parametrize("step", STEPS)
def test_cost_based_join_reorder_beside_catalyst(stars: SparkSession, oracle: Oracle, step: int) -> None:
    assert compared(stars, oracle, "CostBasedJoinReorder", BEFORE_CBO, (FILTER, CBO), step) >= 8 // step


@pytest.mark.parametrize(("conf", "seen"), [(STAR, False), (PLAN_STATS, True)])
def test_stars_that_tables_keep_to_themselves(
    stars: SparkSession, oracle: Oracle, conf: dict[str, str], seen: bool
) -> None:
    """Without planStats the catalog's counts are hidden, and neither side sees a star."""
    for table in ("date_dim", "store_sales", "item"):
        stars.catalog.refreshTable(table)  # Spark's plan of a table caches its statistics
    ready = oracle.applied(oracle.finished(stars.sql(tpc.spark_queries("tpcds")[3])), NORMAL)
    theirs = oracle.applied(ready, ["ReorderJoin"], confs=conf).root
    canon = Canon()
    start = canon.plan(ready.root)
    assert canon.plan(theirs) == canon.plan(ours(oracle, ready, "ReorderJoin", conf))
    assert (canon.plan(theirs) != start) == seen
