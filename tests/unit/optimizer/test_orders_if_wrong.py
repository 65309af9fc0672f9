"""Orders that would be the best ones if an estimate was wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyjoinopt.config import Options
from pyjoinopt.cost import cost_model
from pyjoinopt.feedback.match_baseline import order_text
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.search.choose_order import choose_order
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.optimizer.order_group import EstimatedGroup, OrderedGroup
from pyjoinopt.optimizer.orders_if_wrong import OrderIfWrong, orders_if_wrong
from pyjoinopt.optimizer.reorder import ChangedGroup
from tests.support.graphs import Builder

OPTIONS = Options(cost="c_out")
A, B, C, D = 1, 2, 4, 8


def ordered(true_rows: dict[int, float] | None = None, bound: float = float("inf")) -> OrderedGroup:
    """The chain A - B - C - D, ordered; A ⋈ B is estimated at 1,000 rows, B ⋈ C at 10,000, C ⋈ D at 20,000."""
    builder = Builder([1000.0] * 4)
    for left, ndv in enumerate((1000.0, 100.0, 50.0)):
        builder.equal(left, left + 1, builder.column(left, None, ndv), builder.column(left + 1, None, ndv))
    graph = builder.graph()
    statistics = [replace(known, upper_bound=bound) for known in builder.statistics()]
    estimates = GraphEstimates(graph, statistics, true_rows=true_rows)
    search = SearchContext(graph, estimates, cost_model(OPTIONS.cost, {}))
    found = choose_order(search)
    group = EstimatedGroup(graph, found.tree, statistics, estimates)
    nothing: Any = None
    cost = found.cost
    return OrderedGroup(nothing, group, search.costs, found.tree, cost, cost, "exact", 0, 0.0, False)


def orders(group: OrderedGroup, options: Options = OPTIONS) -> list[OrderIfWrong]:
    return orders_if_wrong([ChangedGroup(group, False)], options, {})


def counted(group: OrderedGroup) -> dict[int, float]:
    estimates = group.estimated.estimates
    return {s: estimates.size(s).rows for s in group.chosen.sets if s & (s - 1)}


def test_a_join_that_was_not_counted_may_be_small() -> None:
    group = ordered(counted(ordered()))
    assert repr(group.chosen) in ("(((0 ⋈ 1) ⋈ 2) ⋈ 3)", "(((1 ⋈ 0) ⋈ 2) ⋈ 3)")
    found = orders(group)
    texts = {order.assumption: order_text(order.order) for order in found}
    assert "(C ⋈ D)" in texts["0.1 × rows of C ⋈ D"] or "(D ⋈ C)" in texts["0.1 × rows of C ⋈ D"]
    assert all(order.loss >= 0 and order.gain >= 1.02 and order.group == 0 for order in found)
    assert not any(order.assumption.startswith("10") for order in found), "all joins of the chosen order are counted"
    assert [order.loss for order in found] == sorted(order.loss for order in found)


def test_a_join_of_the_chosen_order_may_be_large() -> None:
    names = {order.assumption for order in orders(ordered())}
    assert any(name.startswith("10 × rows of A ⋈ B") for name in names)


def test_no_more_rows_are_assumed_than_are_proved() -> None:
    """Four bounds of one row: nothing can be larger."""
    assert not any(order.assumption[:1] != "0" for order in orders(ordered(bound=1.0)))


@pytest.mark.parametrize("reason", ["it cannot be proved"])
def test_a_group_that_is_not_ordered(reason: str) -> None:
    assert orders(replace(ordered(), why_not=reason)) == []


def test_the_search_ends_with_its_time() -> None:
    assert orders(ordered(), replace(OPTIONS, search_seconds=0)) == []


def test_nothing_is_left_if_all_joins_were_counted() -> None:
    first = ordered()
    estimates = first.estimated.estimates
    everything = {s: estimates.size(s).rows for s in range(1, 16) if s & (s - 1)}
    assert orders(ordered(everything)) == []
