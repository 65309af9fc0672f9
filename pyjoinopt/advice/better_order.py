"""A better order of inner joins, found by the project's own search over the row counts of the run.

The order that ran and the best order are priced by the same cost model and the same estimates. An order is advised only
if it is clearly cheaper and returns clearly fewer rows from its joins; both margins are wide, because sets that the run
has not joined are estimated as if predicates were independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding, hours
from pyjoinopt.advice.join_groups import ObservedGroup, find_groups
from pyjoinopt.advice.operators import milliseconds, pipeline_stages
from pyjoinopt.advice.true_estimates import TrueEstimates
from pyjoinopt.cost.size import BROADCAST_HASH
from pyjoinopt.cost.spark import SparkCost
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.settings import broadcast_threshold
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import choose_order
from pyjoinopt.joins.search.deadline import Deadline
from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.report.render.number_format import memory, percent, quantity

#: The advised order costs at most this share of the one that ran, and returns at most this share of its joins' rows.
_COST, _ROWS = 0.8, 0.7
#: [rows] Fewer are not worth a remark.
_SAVED = 100_000
_SECONDS = 5.0
#: Certainty of the rows of a join that the run has not made: its predicates may depend on each other.
_INDEPENDENT = 0.7


@dataclass(frozen=True)
class BetterOrder(Finding):
    """Another order of inner joins is cheaper by the row counts of the run.

    Attributes:
        order: that is advised.
        ran: that ran.
        rows: estimated rows of its joins, without the last one.
        ran_rows: rows of the joins that ran, without the last one.
        shuffled: estimated bytes that its joins shuffle.
        ran_shuffled: bytes that the joins that ran shuffle, by the same estimates.
        observed: share of the selectivities that the run has shown.
    """

    kind: ClassVar[str] = "better join order"
    adds_up: ClassVar[bool] = True
    order: str = ""
    ran: str = ""
    rows: float = 0.0
    ran_rows: float = 0.0
    shuffled: float = 0.0
    ran_shuffled: float = 0.0
    observed: float = 0.0


def better_orders(execution: Execution) -> Iterator[BetterOrder]:
    """The groups of an execution that have a better order."""
    threshold = broadcast_threshold(execution.settings)
    for group in find_groups(execution.plan):
        found = _of_group(execution, group, TrueEstimates(group, threshold))
        if found is not None:
            yield found


def _of_group(execution: Execution, group: ObservedGroup, known: TrueEstimates) -> BetterOrder | None:
    if known.certainty == 0.0:
        return None
    context = SearchContext(known.graph, known.estimates, SparkCost(), Deadline(_SECONDS))
    best = choose_order(context, written=group.tree)
    ran_cost = context.costs.order(group.tree)
    rows, ran_rows = _inner_rows(best.tree, known), _inner_rows(group.tree, known)
    if best.cost > _COST * ran_cost or rows > _ROWS * ran_rows or ran_rows - rows < _SAVED:
        return None
    share = 1.0 - best.cost / ran_cost
    stages = {stage for each in group.joins for stage in pipeline_stages(each.join.node)}
    shuffled, ran_shuffled = _shuffled(best.tree, known), _shuffled(group.tree, known)
    order, ran, observed = best.tree.show(known.names), group.tree.show(known.names), known.certainty
    sure = observed * _share_known(best.tree, known)
    moved = (
        f", and all joins shuffle {memory(shuffled)} instead of {memory(ran_shuffled)}"
        if ran_shuffled > shuffled
        else ""
    )
    surer = "a run in the advised order"
    if any(relation.thinned for relation in group.relations):
        surer += "; Spark's run-time filters (dynamic pruning, Bloom filters) have already taken rows away"
    return BetterOrder(
        " ⋈ ".join(known.names),
        f"join as {order} instead of {ran}: the joins below the last one return {quantity(round(rows))} rows instead "
        f"of {quantity(ran_rows)}{moved}; {percent(observed)} of the selectivities were observed",
        hours(share * sure * milliseconds(execution, stages)), certainty=sure, surer=surer,
        order=order, ran=ran, rows=rows, ran_rows=ran_rows, shuffled=shuffled, ran_shuffled=ran_shuffled,
        observed=observed,
    )  # fmt: skip


def _share_known(tree: JoinTree, known: TrueEstimates) -> float:
    """How much is known of an order's joins: those that the run has made count whole, others less."""
    joins = [node for node in tree.post_order() if not node.is_leaf]
    return sum(1.0 if node.relations in known.joined_rows else _INDEPENDENT for node in joins) / len(joins)


def _inner_rows(tree: JoinTree, known: TrueEstimates) -> float:
    """Rows of all joins but the last one, which every order returns."""
    return sum(
        known.estimates.size(node.relations).rows
        for node in tree.post_order()
        if not node.is_leaf and node.relations != tree.relations
    )


def _shuffled(tree: JoinTree, known: TrueEstimates) -> float:
    """Bytes of both sides of each join of which no side can be broadcast."""
    total = 0.0
    for node in tree.post_order():
        if node.left is not None and node.right is not None:
            sides = [known.estimates.size(side.relations) for side in (node.left, node.right)]
            if all(side.build != BROADCAST_HASH for side in sides):
                total += sum(side.bytes for side in sides)
    return total
