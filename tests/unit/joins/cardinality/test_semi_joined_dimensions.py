"""Semi joins of a calendar: facts that fill a part of it are taken to be on the days that are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import pytest

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Partner, Synopsis
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.plan.nodes import ANTI, INNER, SEMI, Join
from pyjoinopt.util.bitset import members
from tests.support.letters import Letters

DAYS, SALES, RETURNS, KEPT, FEW = 73_000.0, 1e6, 1e5, 20.0, 5.0
ROWS = {"days": DAYS, "sales": SALES, "returns": RETURNS, "kept": KEPT, "few": FEW}
#: Days that some sale or return may be of.
PART = 1825.0


def numbers(low: float, high: float, key: bool = False) -> ColumnStatistics:
    values = high - low + 1.0
    return ColumnStatistics(ndv=values, min=low, max=high, guessed=not key, key_values=values if key else None)


COLUMNS = {
    "d_id": numbers(1, DAYS, key=True), "d_date": numbers(1, DAYS, key=True),
    "s_day": numbers(36_001, 37_825), "r_day": numbers(36_501, 37_500),
    "k_date": numbers(1, DAYS), "f_date": numbers(1, DAYS),
}  # fmt: skip


def calendar(
    semi_joins: Sequence[tuple[str, str]] = (("kept", SEMI),),
    facts: Sequence[str] = ("sales",),
    days: float = DAYS,
    kept: float = KEPT,
    synopses: Sequence[Synopsis] = (),
) -> tuple[JoinGraph, GraphEstimates]:
    """Facts and their days, of which semi joins keep some; vertices are in the order of the arguments."""
    w = Letters()
    leaves = {name: w.relation(name, f"{name[0]}_day {name[0]}_x") for name in ("sales", "returns")}
    plan = w.relation("days", "d_id d_date")
    for name in facts:
        plan = Join(plan, leaves[name], INNER, w(f"d_id = {name[0]}_day"))
    for name, kind in semi_joins:
        plan = Join(plan, w.relation(name, f"{name[0]}_date"), kind, w(f"d_date = {name[0]}_date"))
    (group,) = find_groups(plan).groups.values()
    graph, _ = build_graph(group, {})
    rows = {**ROWS, "days": days, "kept": kept}
    known = [
        RelationStatistics(
            rows[name], 40.0 * rows[name], "test", False,
            {a.bit: COLUMNS[a.name] for a in leaf.output if a.name in COLUMNS},
            unfiltered=DAYS if name == "days" else rows[name],
        )
        for name, leaf in zip(graph.names, graph.relations)
    ]  # fmt: skip
    return graph, GraphEstimates(graph, known, synopses=synopses)


def rows_of(found: tuple[JoinGraph, GraphEstimates], *names: str) -> float:
    graph, estimates = found
    return estimates.size(sum(1 << graph.names.index(name) for name in names)).rows


def test_a_semi_join_keeps_days_of_the_facts() -> None:
    found = calendar()
    assert rows_of(found, "days", "kept") == pytest.approx(KEPT)
    assert rows_of(found, "days", "sales") == pytest.approx(SALES)
    assert rows_of(found, "days", "kept", "sales") == pytest.approx(SALES * KEPT / PART)


def test_a_filter_of_the_calendar_is_taken_to_mean_that_part_only_once() -> None:
    """Of 1,000 filtered days 20 in 73,000 are kept: less than one of the days that have sales."""
    found = calendar(days=1000.0)
    assert rows_of(found, "days", "sales") == pytest.approx(SALES * 1000 / PART)
    assert rows_of(found, "days", "kept", "sales") == pytest.approx(SALES * 1000 / PART * KEPT / DAYS)


def test_no_more_is_kept_than_all_facts() -> None:
    """Half of the calendar's days: these are all days that have sales, no more."""
    found = calendar(kept=DAYS / 2)
    assert rows_of(found, "days", "kept") == pytest.approx(DAYS / 2)
    assert rows_of(found, "days", "kept", "sales") == pytest.approx(SALES)


def test_an_anti_join_raises_nothing() -> None:
    found = calendar([("kept", ANTI)])
    assert rows_of(found, "days", "kept", "sales") == pytest.approx(SALES * (1 - KEPT / DAYS))


def test_two_facts_raise_the_rows_once() -> None:
    found = calendar(facts=("sales", "returns"))
    before = rows_of(found, "days", "sales", "returns")
    for fact, rows in (("sales", SALES), ("returns", RETURNS)):
        assert rows_of(found, "days", "kept", fact) == pytest.approx(rows * KEPT / PART)
    assert rows_of(found, "days", "kept", "sales", "returns") == pytest.approx(before * KEPT / PART)


def test_of_two_semi_joins_the_more_selective_one_counts() -> None:
    found = calendar([("kept", SEMI), ("few", SEMI)])
    together = rows_of(found, "days", "kept", "few", "sales")
    assert together == pytest.approx(SALES * KEPT / PART * FEW / DAYS)


@pytest.mark.parametrize("facts", [("sales",), ("sales", "returns")])
def test_a_set_has_as_many_rows_in_whatever_order_it_is_joined(facts: Sequence[str]) -> None:
    joins = [("kept", SEMI), ("few", SEMI)]
    graph, estimates = calendar(joins, facts)
    for order in permutations(range(len(graph))):
        _, fresh = calendar(joins, facts)
        part, relations = fresh.part(order[0]), 1 << order[0]
        fresh.size(relations)
        for vertex in order[1:]:
            part, relations = fresh.joined(part, fresh.part(vertex)), relations | 1 << vertex
            if relations not in graph.semi_rights:
                expected = estimates.size(relations).rows
                assert fresh.size(relations, 1 << vertex).rows == pytest.approx(expected)
                assert math.exp(part.log_rows) == pytest.approx(expected)


def test_what_a_sample_shows_is_not_raised_again() -> None:
    """All sales are in the sample, and a tenth of them is on the days that are kept."""
    graph, _ = calendar()
    days, sales, kept = (1 << graph.names.index(name) for name in ("days", "sales", "kept"))
    everything = (1 << 1000) - 1
    partners = Partner(days, sales, everything), Partner(kept, days, (1 << 100) - 1)
    for complete in (True, False):
        sample = Synopsis(sales, 1000, complete, everything, (), partners)
        found = calendar(synopses=[sample])
        assert rows_of(found, "days", "kept", "sales") == pytest.approx(SALES / 10, rel=0.05)


def test_the_facts_join_is_no_factor_that_is_the_same_for_all_sides() -> None:
    graph, estimates = calendar()
    for vertex in members(graph.everything):
        assert estimates.log_factor(vertex) is None
    plain, estimates = calendar([])
    assert estimates.log_factor(plain.names.index("days")) == pytest.approx(0.0)
