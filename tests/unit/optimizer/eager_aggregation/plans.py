"""A star of which the facts may be grouped early."""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.catalyst.planner.build_side import BROADCAST, MERGE, JoinConf
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.optimizer.eager_aggregation.eager_aggregation import EagerAggregation
from pyjoinopt.plan.constructors import ColumnFactory, aggregate, aggregate_call
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import NO_HINT, Aggregate, Hint, Join, LogicalPlan, relation

K, X, ID, NAME, OTHER, Z = (
    Attribute(bit, bit, name, type)
    for bit, (name, type) in enumerate(
        [("k", "int"), ("x", "int"), ("id", "int"), ("name", "string"), ("other", "int"), ("z", "int")]
    )
)
MERGED: Hint = (MERGE, None)
BROADCASTED: Hint = (None, BROADCAST)


def facts() -> LogicalPlan:
    """A relation with the columns k, x and other."""
    return relation("f", [K, X, OTHER])


def names() -> LogicalPlan:
    """A relation with the columns id and name."""
    return relation("d", [ID, NAME])


def joined(left: LogicalPlan, right: LogicalPlan, one: Attribute, other: Attribute, hint: Hint = NO_HINT) -> Join:
    """An inner join."""
    return Join(left, right, "Inner", call("EqualTo", reference(one), reference(other)), hint)


def summed(child: LogicalPlan, *by: Attribute) -> Aggregate:
    """SELECT by, sum(x) GROUP BY by."""
    keys = [reference(a) for a in by]
    listed: list[Expression] = [*keys, ColumnFactory(90).alias(aggregate_call("Sum", reference(X)), "s")]
    return aggregate(keys, listed, child)


def estimates(rows: Mapping[str, float], distinct: Mapping[Attribute, float]) -> PlanEstimates:
    """Estimates of relations by their names, with the numbers of values of these columns."""
    columns = {a.bit: ColumnStatistics(ndv=n) for a, n in distinct.items()}

    def leaf(node: LogicalPlan) -> RelationStatistics:
        number = rows[node.info["rel"]["name"]]
        own = {a.bit: columns[a.bit] for a in node.output if a.bit in columns}
        return RelationStatistics(number, number * 20, exact=True, columns=own, upper_bound=number)

    return PlanEstimates(leaf)


def early(estimate: PlanEstimates) -> EagerAggregation:
    """What decides about a plan with these estimates."""
    return EagerAggregation(estimate, SparkSizes({}), ColumnFactory(100), JoinConf(), ansi=False)
