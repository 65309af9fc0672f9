"""Which plan a query gets after earlier runs, with an optimizer that gives the plans of the test."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pyjoinopt.config import Options
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.planned_query import PlannedQuery, planned_query
from pyjoinopt.feedback.query_shape import query_shape
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import Join, LogicalPlan, relation
from pyjoinopt.worker.guarded_planning import Guarded, GuardedPlanning, PlannedPart

A, B, C = (relation(name, [Attribute(bit, bit, name)]) for bit, name in enumerate("abc"))
WRITTEN, OURS, WITHOUT_FEEDBACK = Join(Join(A, B), C), Join(A, Join(B, C)), Join(Join(A, C), B)
CONF = {"pyjoinopt.master": "yarn", "pyjoinopt.parallelism": "4"}
SHAPE = query_shape(WRITTEN)
EVER = math.inf


def part_of(plan: LogicalPlan) -> PlannedPart:
    return PlannedPart(query_shape(plan).shape, {"edits": {}}, dict)


BY_OURS, BY_WITHOUT_FEEDBACK = part_of(OURS), part_of(WITHOUT_FEEDBACK)


def optimize(options: Options) -> PlannedPart:
    return BY_WITHOUT_FEEDBACK if "feedback" in options.without else BY_OURS


def leave(reason: str) -> PlannedPart:
    return PlannedPart(AS_WRITTEN, {"edits": None}, lambda: {"reason": reason})


def next_part(before: PlannedQuery | None = None, part: int = 1, **conf: str) -> PlannedQuery:
    return planned_query(SHAPE, {**CONF, **conf}, "4.3.0", before, part)


def plan_of(plan: LogicalPlan | None, query: PlannedQuery) -> str:
    return query.with_plan(AS_WRITTEN if plan is None else query_shape(plan).shape).plan


@pytest.fixture
def store(tmp_path: Path) -> QueryStore:
    return QueryStore(Store(tmp_path / "statistics.sqlite"))


@pytest.fixture
def query() -> PlannedQuery:
    return next_part()


def ran(store: QueryStore, query: PlannedQuery, plan: str, *seconds: float) -> None:
    """Runs of a query; the first one of the driver does not count."""
    for each in (seconds[0], *seconds):
        run = Run("i", plan, "", "driver", False, 4.0, query.bytes, time.time(), each)
        store.add(query.shape, query.conditions, ("t",), run)


def choose(
    store: QueryStore, query: PlannedQuery, guard: str = "observe", until: float = EVER, is_recorded: bool = True
) -> Guarded:
    return GuardedPlanning(query, store, Options(guard=guard), optimize, leave, until, is_recorded).run()


def revoke(store: QueryStore, query: PlannedQuery, *plans: LogicalPlan) -> None:
    ran(store, query, AS_WRITTEN, 1.0, 1.0)
    for plan in plans:
        ran(store, query, plan_of(plan, query), 9.0, 9.0)


def test_without_earlier_runs(store: QueryStore, query: PlannedQuery) -> None:
    chosen = choose(store, query)
    assert chosen.part is BY_OURS and chosen.query.plan == plan_of(OURS, query) and chosen.warning is None


def test_a_revoked_plan(store: QueryStore, query: PlannedQuery) -> None:
    revoke(store, query, OURS, WITHOUT_FEEDBACK)
    chosen = choose(store, query)
    assert chosen.part.shape == AS_WRITTEN and chosen.query.plan == AS_WRITTEN
    assert "9.00 times as long" in chosen.part.deferred()["reason"]
    ran(store, query, AS_WRITTEN, 1.1)
    assert chosen.warning is not None and choose(store, query).warning == chosen.warning  # it is logged once
    assert choose(store, query, guard="off").part is BY_OURS


def test_row_counts_that_made_a_plan_worse_are_left_out(store: QueryStore, query: PlannedQuery) -> None:
    revoke(store, query, OURS)
    chosen = choose(store, query)
    assert chosen.part is BY_WITHOUT_FEEDBACK and chosen.warning is None


def test_the_same_without_times_as_written(store: QueryStore, query: PlannedQuery) -> None:
    ran(store, query, plan_of(WITHOUT_FEEDBACK, query), 1.0, 1.0)
    ran(store, query, plan_of(OURS, query), 9.0, 9.0)
    assert choose(store, query).part is BY_WITHOUT_FEEDBACK


def test_there_must_be_time_to_plan_twice(store: QueryStore, query: PlannedQuery) -> None:
    revoke(store, query, OURS)
    assert choose(store, query, until=time.perf_counter()).part.shape == AS_WRITTEN


def test_a_plan_that_is_slower_than_one_that_is_gone_is_kept(store: QueryStore, query: PlannedQuery) -> None:
    """Nobody can make that plan again, and as written the query takes still longer."""
    ran(store, query, "gone", 1.0, 1.0)
    ran(store, query, plan_of(OURS, query), 5.0, 5.0)
    ran(store, query, plan_of(WITHOUT_FEEDBACK, query), 9.0, 9.0)
    ran(store, query, AS_WRITTEN, 20.0, 20.0)
    assert choose(store, query).part is BY_OURS


def test_exploring(store: QueryStore, query: PlannedQuery) -> None:
    ran(store, query, plan_of(OURS, query), 1.0, 1.0)
    assert choose(store, query).part is BY_OURS
    chosen = choose(store, query, guard="explore")
    assert chosen.part.shape == AS_WRITTEN and chosen.query.plan == AS_WRITTEN and chosen.warning is None
    assert choose(store, query, guard="explore").part is BY_OURS  # also if that run is never recorded


def test_nothing_is_explored_of_which_no_run_is_recorded(store: QueryStore, query: PlannedQuery) -> None:
    ran(store, query, plan_of(OURS, query), 1.0, 1.0)
    whole = next_part(query, 2)
    store.lead(query.shape, query.conditions, whole.shape)
    ran(store, whole, "p", 1.0, 1.0)
    for _ in range(3):
        assert choose(store, query, guard="explore", is_recorded=False).part is BY_OURS
    assert store.entry(query.shape, query.conditions).explored == 0
    assert choose(store, query, guard="explore").part.shape == AS_WRITTEN


def test_the_time_of_a_cached_plan_is_that_of_its_planning(store: QueryStore, query: PlannedQuery) -> None:
    """There may be no time for another plan, however soon the cache has given the first one."""
    revoke(store, query, OURS)
    slow = replace(BY_OURS, seconds=1000.0)

    def cached(options: Options) -> PlannedPart:
        return BY_WITHOUT_FEEDBACK if "feedback" in options.without else slow

    planning = GuardedPlanning(query, store, Options(), cached, leave, time.perf_counter() + 1400.0)
    assert planning.run().part.shape == AS_WRITTEN
    planning = GuardedPlanning(query, store, Options(), cached, leave, time.perf_counter() + 1600.0)
    assert planning.run().part is BY_WITHOUT_FEEDBACK


@pytest.mark.parametrize("guard", ["observe", "explore"])
def test_parts_of_a_query_go_together(store: QueryStore, query: PlannedQuery, guard: str) -> None:
    whole = next_part(query, 2)
    assert whole.shorter == (query.shape,) and whole.shape != query.shape
    store.lead(query.shape, query.conditions, whole.shape)
    ran(store, whole, plan_of(OURS, next_part(query.with_plan(query_shape(OURS).shape), 2)), 9.0, 9.0)
    if guard == "observe":
        ran(store, whole, AS_WRITTEN, 1.0, 1.0)
    first = choose(store, query, guard)
    assert first.part.shape == AS_WRITTEN and first.query.reason_as_written and first.warning is None
    second = choose(store, next_part(first.query, 2), guard)
    assert second.part.shape == AS_WRITTEN and second.query.plan == AS_WRITTEN
    assert (second.warning is not None) == (guard == "observe")
    assert store.entry(whole.shape, whole.conditions).explored == (guard == "explore")
    not_held = next_part(query.with_plan(query_shape(OURS).shape), 2)
    assert choose(store, not_held, guard).part is BY_OURS


def test_queries_that_begin_alike(store: QueryStore, query: PlannedQuery) -> None:
    """The subquery runs as written only if that is good for both; and the query that is only the subquery decides."""
    slow, fast = (PlannedQuery(**{**vars(next_part(query, 2)), "shape": name}) for name in ("slow", "fast"))
    for whole in (slow, fast):
        store.lead(query.shape, query.conditions, whole.shape)
        ran(store, whole, AS_WRITTEN, 3.0, 3.0)
    ran(store, slow, "p", 9.0, 9.0)
    ran(store, fast, "p", 1.0, 1.0)
    assert choose(store, query).part is BY_OURS
    revoke(store, query, OURS, WITHOUT_FEEDBACK)
    assert choose(store, query).part.shape == AS_WRITTEN


def test_a_query_of_which_parts_are_missing(store: QueryStore) -> None:
    """Another worker planned its subquery."""
    part = next_part(None, 2)
    assert not part.complete and choose(store, part).part is BY_OURS
    part.record(store, {"ended": time.time(), "seconds": 1.0}, "driver")
    assert store.queries() == ()
    assert not next_part(next_part(), 3).complete and next_part(next_part(), 2).complete
    first = next_part()
    for parts, recorded in ((2, 0), (1, 1)):  # another worker planned the second part
        first.record(store, {"ended": time.time(), "seconds": 1.0, "parts": parts}, "driver")
        assert len(store.runs(first.shape, first.conditions)) == recorded


def test_conditions(query: PlannedQuery) -> None:
    assert next_part(**{"spark.pyjoinopt.guard": "off"}).conditions == query.conditions
    for other in ({"spark.sql.shuffle.partitions": "7"}, {"pyjoinopt.master": "local[2]"}):
        assert next_part(None, 1, **other).conditions != query.conditions
    assert planned_query(SHAPE, CONF, "4.0.0", None).conditions != query.conditions
