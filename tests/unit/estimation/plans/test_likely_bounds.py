"""Bounds by samples through operators and join graphs: as proven bounds are, and never mistaken for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from pyjoinopt.estimation.model.relation_statistics import LikelyBound, RelationStatistics
from pyjoinopt.estimation.plans.operators import estimate_plan
from pyjoinopt.estimation.plans.plan_estimator import JoinRows, PlanEstimates
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from tests.support.estimated_tables import KNOWN, TABLES, col, eq, leaf, lit
from tests.support.graphs import random_builder
from tests.unit.estimation.plans.test_operators import group, node

#: Table -> a bound by a sample; the others have none.
LIKELY = {"orders": LikelyBound(4000.0, 8192), "lines": LikelyBound(700.0, 5000), "nations": LikelyBound(3.0, 900)}
ORDERS, LINES, CUSTOMERS = TABLES["orders"], TABLES["lines"], TABLES["customers"]
UNIQUE = group(CUSTOMERS, "c_key")
PLANS: list[LogicalPlan] = [
    ORDERS,
    Filter(eq("o_cust", lit(3)), ORDERS),
    Project((col("o_key"),), node("Sort", ORDERS)),
    group(ORDERS, "o_cust"),
    group(ORDERS),
    node("Distinct", ORDERS),
    node("GlobalLimit", ORDERS, limit=100),
    node("GlobalLimit", ORDERS, limit=100_000),
    node("Union", ORDERS, LINES, CUSTOMERS),
    node("Union", TABLES["nations"], TABLES["nations"]),
    node("Intersect", ORDERS, LINES),
    node("Except", LINES, ORDERS),
    *(Join(ORDERS, LINES, kind, eq("o_key", "l_order")) for kind in ("Inner", "LeftSemi", "LeftAnti", "FullOuter")),
    *(Join(ORDERS, UNIQUE, kind, eq("o_cust", "c_key")) for kind in ("Inner", "LeftOuter", "RightOuter")),
    *(Join(UNIQUE, LINES, kind, eq("c_key", "l_part")) for kind in ("Inner", "LeftOuter", "RightOuter")),
]


def sampled(plan: LogicalPlan) -> RelationStatistics:
    known = leaf(plan)
    return known.with_likely(LIKELY.get(plan.info["rel"]["name"]))


def as_if_proved(plan: LogicalPlan) -> RelationStatistics:
    known = sampled(plan)
    return replace(known, upper_bound=known.likely_bound, likely=None)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.kind} {getattr(plan, 'join_type', '')}".strip())
def test_operators_treat_them_as_they_treat_proofs(plan: LogicalPlan) -> None:
    proved, both = estimate_plan(plan, leaf), estimate_plan(plan, sampled)
    assert replace(both, likely=None) == proved, "no estimate and no proof rests on a sample"
    assert both.likely_bound == min(proved.upper_bound, estimate_plan(plan, as_if_proved).upper_bound)
    assert both.likely is None or both.likely.rows < both.upper_bound
    if both.likely is not None:
        names = {n.info["rel"]["name"] for n in post_order(plan) if not n.children}
        assert both.likely.sampled == min(LIKELY[name].sampled for name in names & set(LIKELY))


@pytest.mark.parametrize("kind", ["Sample", "Generate", "Unheard"])
def test_operators_that_may_give_more_rows_lose_them(kind: str) -> None:
    assert estimate_plan(node(kind, ORDERS, fraction=2.0), sampled).likely is None


def test_a_bound_that_is_not_below_the_proof_is_none() -> None:
    known = KNOWN["nations"]
    assert known.with_likely(LikelyBound(25.0, 10)) is known
    better = known.with_likely(LikelyBound(9.0, 10))
    assert better.with_likely(LikelyBound(12.0, 99)).likely == LikelyBound(9.0, 10)
    assert better.with_rows(5.0, 8.0).likely is None and better.with_rows(5.0, 30.0).likely is None
    assert better.with_rows(5.0).likely == LikelyBound(9.0, 10)


def test_the_bound_of_a_whole_group_replaces_that_of_its_joins() -> None:
    plan = Join(ORDERS, LINES, "Inner", eq("o_key", "l_order"))
    estimates = PlanEstimates(sampled)
    assert estimates(plan).likely_bound == 4000 * 700
    estimates.override_rows(plan, JoinRows(5.0, 1e9, LikelyBound(700.0, 5000)))
    assert estimates(plan).likely == LikelyBound(700.0, 5000) and estimates(plan).upper_bound == 1e9
    assert estimates(Filter(eq("o_cust", lit(3)), plan)).likely_bound == 700


@pytest.mark.parametrize("seed", range(40))
def test_join_graphs_treat_them_as_they_treat_proofs(seed: int) -> None:
    lots = Random(seed)
    graph = random_builder(seed, 5).graph()

    def known(bound: Callable[[RelationStatistics], RelationStatistics]) -> GraphEstimates:
        return GraphEstimates(graph, [bound(s) for s in statistics])

    statistics = []
    for plan in graph.relations:
        rows = float(lots.randint(1, 10_000))
        keys = frozenset(column.mask for column in plan.output if lots.random() < 0.3)
        made = RelationStatistics(rows, rows * 8, "test", False, upper_bound=rows * lots.randint(1, 50), keys=keys)
        statistics.append(made.with_likely(LikelyBound(rows, 100)) if lots.random() < 0.6 else made)
    proved = known(lambda s: replace(s, likely=None))
    both, instead = known(lambda s: s), known(lambda s: replace(s, upper_bound=s.likely_bound, likely=None))
    for relations in range(1, 1 << len(graph)):
        assert both.upper_bound(relations) == proved.upper_bound(relations)
        assert both.likely_bound(relations) == min(proved.upper_bound(relations), instead.upper_bound(relations))
        assert both.rows(relations) == proved.rows(relations)
