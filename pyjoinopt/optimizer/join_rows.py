"""What the estimator of a join group found of the group's operators, for the plan above the group.

Operators above a group are estimated one by one (`estimation.plans`), from the rows of the group's result. A semi join
above it also needs to know how many different values of its key are left:

    SELECT * FROM flights WHERE tailnum IN (
      SELECT g.tailnum FROM flights g JOIN airports x ON g.dest = x.faa WHERE x.tzone = 'America/Anchorage')

Flights to Anchorage are few, and so are their planes. A sample of the join of `g` with `x` shows both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyjoinopt.estimation.plans.plan_estimator import JoinRows, PlanEstimates
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Synopsis
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.optimizer.semi_join_samples import distinct_values, sampled_result
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, SEMI, Join, LogicalPlan

#: Joins that only look for a partner on their right side.
_PARTNER_ONLY = frozenset({SEMI, ANTI, EXISTENCE})
#: Operators with the estimates of their group.
OperatorRows = tuple[tuple[LogicalPlan, JoinRows], ...]


def join_rows(
    joins: Iterable[tuple[LogicalPlan, int]],
    graph: JoinGraph,
    estimates: GraphEstimates,
    synopses: Sequence[Synopsis],
    estimate: PlanEstimates,
    below_semi: bool,
) -> OperatorRows:
    """The rows of operators of a group, as estimated from the whole group.

    Args:
        joins: operators, each with the vertices whose join it makes.
        graph: the group.
        estimates: of its sets.
        synopses: the samples of joins that these rest on.
        estimate: has estimated each vertex.
        below_semi: whether the group is part of the right side of a semi join, for which values of the keys count.
    """
    found = []
    for plan, joined in joins:
        rows = JoinRows(estimates.rows(joined), estimates.upper_bound(joined), estimates.likely(joined))
        if below_semi and synopses and joined == graph.everything:
            distinct = distinct_values(graph, synopses, plan.output, estimates, estimate)
            sampled, values = sampled_result(graph, synopses, estimate)
            rows = replace(rows, distinct=distinct, values=values, sampled=tuple(sampled))
        found.append((plan, rows))
    return tuple(found)


def below_semi_joins(nodes: Sequence[LogicalPlan]) -> frozenset[int]:
    """Ids of the nodes of the right sides of semi, anti and existence joins.

    Args:
        nodes: of a plan, children before parents.
    """
    found: set[int] = set()
    for node in reversed(nodes):
        if isinstance(node, Join) and node.join_type in _PARTNER_ONLY:
            found.add(id(node.right))
        if id(node) in found:
            found.update(id(child) for child in node.children)
    return frozenset(found)
