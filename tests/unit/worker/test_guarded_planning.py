"""Which plan a query gets after earlier runs, with an optimizer that gives the plans of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjoinopt.config import Options
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.planned_query import PlannedQuery, planned_query
from pyjoinopt.feedback.query_store import AS_WRITTEN, Outlook, QueryStore
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import Join, LogicalPlan, relation
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.worker.guarded_planning import Guarded, PlannedPart, guarded

A, B, C = (relation(name, [Attribute(bit, bit, name)]) for bit, name in enumerate("abc"))
WRITTEN, OURS, WITHOUT_FEEDBACK = Join(Join(A, B), C), Join(A, Join(B, C)), Join(Join(A, C), B)
CONF = {"pyjoinopt.master": "yarn", "pyjoinopt.parallelism": "4"}


def optimize(options: Options) -> PlannedPart:
    return PlannedPart(WITHOUT_FEEDBACK if "feedback" in options.without else OURS, JoinReport())


def plan_of(plan: LogicalPlan, query: PlannedQuery) -> str:
    return query.with_plan(plan, WRITTEN, ()).plan


@pytest.fixture
def store(tmp_path: Path) -> QueryStore:
    return QueryStore(Store(tmp_path / "statistics.sqlite"))


@pytest.fixture
def query() -> PlannedQuery:
    return planned_query(WRITTEN, CONF, None)


def choose(store: QueryStore, query: PlannedQuery, outlook: Outlook | None, guard: str = "observe") -> Guarded:
    if outlook is not None:
        store.set_outlook(query.shape, query.conditions, outlook)
    return guarded(query, store, Options(guard=guard), WRITTEN, optimize)


def test_without_earlier_runs(store: QueryStore, query: PlannedQuery) -> None:
    chosen = choose(store, query, None)
    assert chosen.part.plan is OURS and chosen.query.plan == plan_of(OURS, query) and chosen.revoked is None


def test_a_revoked_plan(store: QueryStore, query: PlannedQuery) -> None:
    slower = {plan_of(plan, query): {AS_WRITTEN: f"slow {n}"} for n, plan in enumerate((OURS, WITHOUT_FEEDBACK))}
    chosen = choose(store, query, Outlook(slower))
    assert chosen.part.plan is WRITTEN and chosen.query.plan == AS_WRITTEN and chosen.revoked == "slow 0"
    assert [refusal.reason for refusal in chosen.part.report.refusals] == ["slow 0"]
    assert choose(store, query, Outlook(slower), guard="off").part.plan is OURS


@pytest.mark.parametrize("than", ["as written", "another plan"])
def test_row_counts_that_made_a_plan_worse_are_left_out(store: QueryStore, query: PlannedQuery, than: str) -> None:
    other = AS_WRITTEN if than == "as written" else plan_of(WITHOUT_FEEDBACK, query)
    chosen = choose(store, query, Outlook({plan_of(OURS, query): {other: "slow"}}))
    assert chosen.part.plan is WITHOUT_FEEDBACK and chosen.revoked is None


def test_a_plan_that_is_slower_than_one_that_is_gone_is_kept(store: QueryStore, query: PlannedQuery) -> None:
    """Nobody can make that plan again, and as written the query may take still longer."""
    slower = {plan_of(OURS, query): {"gone": "slow"}, plan_of(WITHOUT_FEEDBACK, query): {AS_WRITTEN: "slow"}}
    assert choose(store, query, Outlook(slower)).part.plan is OURS


def test_another_size(store: QueryStore, query: PlannedQuery) -> None:
    slower = {plan_of(plan, query): {AS_WRITTEN: "slow"} for plan in (OURS, WITHOUT_FEEDBACK)}
    sized = PlannedQuery(**{**vars(query), "bytes": 100.0})
    assert choose(store, sized, Outlook(slower, bytes=90.0)).part.plan is WRITTEN
    assert choose(store, sized, Outlook(slower, bytes=10.0)).part.plan is OURS


def test_exploring(store: QueryStore, query: PlannedQuery) -> None:
    outlook = Outlook(explore=True, last="p")
    assert choose(store, query, outlook).part.plan is OURS
    chosen = choose(store, query, outlook, guard="explore")
    assert chosen.part.plan is WRITTEN and chosen.query.plan == AS_WRITTEN and chosen.revoked is None


@pytest.mark.parametrize("how", ["revoked", "explored"])
def test_parts_of_a_query_go_together(store: QueryStore, query: PlannedQuery, how: str) -> None:
    whole = planned_query(WRITTEN, CONF, query)
    assert whole.shorter == (query.shape,) and whole.shape != query.shape
    store.set_outlook(query.shape, query.conditions, Outlook(whole=whole.shape))
    outlook = Outlook({"p": {AS_WRITTEN: "slow"}}, last="p") if how == "revoked" else Outlook(explore=True, last="p")
    guard = "observe" if how == "revoked" else "explore"
    store.set_outlook(whole.shape, whole.conditions, outlook)
    first = choose(store, query, None, guard)
    assert first.part.plan is WRITTEN and first.query.held and first.revoked is None
    second = choose(store, planned_query(WRITTEN, CONF, first.query), None, guard)
    assert second.part.plan is WRITTEN and second.query.plan == AS_WRITTEN
    assert second.revoked == ("slow" if how == "revoked" else None)
    not_held = planned_query(WRITTEN, CONF, query.with_plan(OURS, WRITTEN, ()))
    assert choose(store, not_held, None, guard).part.plan is OURS


def test_conditions(query: PlannedQuery) -> None:
    def conditions(**settings: str) -> str:
        return planned_query(WRITTEN, {**CONF, **settings}, None).conditions

    same, other = {"spark.pyjoinopt.guard": "off"}, {"spark.sql.shuffle.partitions": "7"}
    assert conditions(**same) == query.conditions != conditions(**other)
    assert conditions(**{"pyjoinopt.master": "local[2]"}) != query.conditions
