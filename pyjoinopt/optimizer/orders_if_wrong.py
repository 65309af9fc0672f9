"""Orders that would be the best ones if an estimate was wrong: the plans that a query should be tried with.

    a ⋈ b ⋈ c ⋈ d      the plan (a ⋈ b) ⋈ c ⋈ d ran, so its joins are counted; c ⋈ d is estimated at a million rows

No run of this plan can show that c ⋈ d has no more than ten rows. So the search assumes a tenth of the estimated rows
for c ⋈ d, and for all joins that contain it, and may find a ⋈ (b ⋈ (c ⋈ d)). A join that the chosen order makes, but
that was not counted, gets ten times the rows instead, as long as no proven bound forbids that. Errors grow
exponentially with the number of joins: each assumption that a set rests on adds a factor of ten, up to a thousand.

The estimates are the least certain ones (`joins.cardinality.weakest_estimates`), one at a time. An order is of use if
it would be clearly cheaper than the chosen one. Two kinds are tried in turns: the order that costs least by the
estimates as they are, which loses least if nothing was wrong, and the one that gains most if the assumption is right.
An assumption only chooses an order. The plan is made of this order with estimates and bounds as they are, so hints do
not rest on it.

If even a thousandth of the rows of a ⋈ b makes no other order clearly cheaper, fewer rows of a ⋈ b ⋈ c alone do not
either, so larger sets are left out.

Source: the perturbed row counts are those of Doshi et al., "Kepler: Robust Learning for Faster Parametric Query
Optimization", SIGMOD 2023 (row count evolution). There they are random; the choice of sets and directions is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.config import Options
from pyjoinopt.cost import CostModel, cost_model
from pyjoinopt.feedback.baseline import PinnedGroup, pinned_group
from pyjoinopt.joins.cardinality.weakest_estimates import weakest_sets
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import choose_order
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.optimizer.order_group import OrderedGroup
from pyjoinopt.optimizer.reorder import ChangedGroup

#: How many times the cost of the new order the chosen one has to have, if the assumption is right.
_CHEAPER = 1.02
#: By how much each assumption may be wrong, all of a set together, and what is too little to look for another order.
_WRONG_BY, _MOST_WRONG, _NEARLY_RIGHT = 10.0, 1000.0, 2.0


@dataclass(frozen=True)
class OrderIfWrong:
    """An order that would be the best one.

    Attributes:
        assumption: which rows would have to be others, for people.
        group: number of the join group.
        order: the group in this order.
        loss: its cost less that of the chosen order, by the estimates as they are.
        gain: how many times its cost the chosen order has if the assumption is right.
    """

    assumption: str
    group: int
    order: PinnedGroup
    loss: float
    gain: float


def orders_if_wrong(groups: Sequence[ChangedGroup], options: Options, conf: Mapping[str, str]) -> list[OrderIfWrong]:
    """The orders that the search finds under other estimates, those that lose least first.

    Args:
        groups: those of a plan, with the orders that were chosen.
        options: by which they were; all searches together may take as long as that of one group.
        conf: Spark's settings.
    """
    cost = cost_model(options.cost, conf, options.cost_constants)
    deadline = Deadline(options.search_seconds)
    found = [
        order
        for number, group in enumerate(groups)
        if not group.ordered.why_not
        for order in _of_group(number, group.ordered, cost, options.pair_budget, deadline)
    ]
    return sorted(found, key=lambda order: order.loss)


def _of_group(
    number: int, ordered: OrderedGroup, cost: CostModel, budget: int, deadline: Deadline
) -> Iterator[OrderIfWrong]:
    group = ordered.estimated
    graph, estimates, chosen = group.graph, group.estimates, ordered.chosen
    before = ordered.costs.order(chosen)
    seen = {chosen.sets}
    hopeless: list[int] = []

    def find(relations: int, factor: float) -> tuple[JoinTree, float]:
        """The best order under an assumption, and its gain."""
        search = SearchContext(graph, estimates.assuming(relations, factor), cost, deadline)
        tree = choose_order(search, budget, chosen).tree
        return tree, search.costs.order(chosen) / max(search.costs.order(tree), 1.0)

    def is_hopeless(relations: int) -> bool:
        return any(not part & ~relations for part in hopeless)

    for relations, assumptions in weakest_sets(graph, estimates, group.synopses, is_hopeless):
        wrong = min(_WRONG_BY**assumptions, _MOST_WRONG)
        factor = 1 / wrong
        if relations in chosen.sets:
            factor = min(wrong, estimates.upper_bound(relations) / estimates.rows(relations))
            if factor < _NEARLY_RIGHT:
                continue
        tree, gain = find(relations, factor)
        if gain < _CHEAPER and factor < 1 and (wrong == _MOST_WRONG or find(relations, 1 / _MOST_WRONG)[1] < _CHEAPER):
            hopeless.append(relations)
        if deadline.passed:
            return
        if gain >= _CHEAPER and tree.sets not in seen and graph.allows_order(tree):
            seen.add(tree.sets)
            loss = ordered.costs.order(tree) - before
            assumption = f"{factor:.2g} × rows of {' ⋈ '.join(graph.names_of(relations))}"
            yield OrderIfWrong(assumption, number, pinned_group(graph, tree), loss, gain)
