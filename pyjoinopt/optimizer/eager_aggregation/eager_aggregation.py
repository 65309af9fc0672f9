"""Rows are grouped before they are joined, and the results of the groups once more above (eager aggregation).

    SELECT d.name, sum(f.x), count(*) FROM fact f JOIN dim d ON f.k = d.k GROUP BY d.name

    before  Aggregate(name; sum(x), count(1)) - Join(f.k = d.k) - fact, dim
    after   Aggregate(name; sum(s), coalesce(sum(c), 0)) - Join(f.k = d.k) - e, dim
            e: Aggregate(k; k, sum(x) AS s, count(1) AS c) - fact

The join above reads a row for each key instead of all rows of `fact`, and repeats it as often as it would have repeated
the rows. So each group above adds up the same numbers.

Where repetitions make no difference above, no function is needed:

    SELECT DISTINCT c.name, f.day FROM fact f JOIN customer c ON f.c = c.id

    after   Distinct(name, day) - Join(f.c = c.id) - e, customer
            e: Aggregate(c, day) - fact

That is a DISTINCT, a GROUP BY without functions, and one whose only functions are MIN and MAX of other columns.

**Legal** where all of this holds:

* between the aggregate and the plan that is grouped are inner, cross and outer joins, semi, anti and existence joins
  whose left side it is, filters, projections, names, and what makes the copies of rows for ROLLUP, CUBE and GROUPING
  SETS. Their predicates and columns have the same value everywhere and cannot fail;
* the plan is grouped by all of its columns that something above reads: join conditions, filters, the GROUP BY. There is
  at least one, for an aggregate without GROUP BY gives a row where there is none. They are of types in which equal
  values are identical, as a group is represented by any of its rows;
* each function can be computed in two steps with the same result and type (`split_functions`), and its arguments and
  FILTER read the plan alone. They cannot fail, for they are evaluated on rows that a join drops. MIN and MAX of other
  columns may remain as they are, since repetitions do not change them;
* what a row without partners adds, whose columns of the plan an outer join pads with NULLs, is known: nothing, or 1 to
  a count;
* nothing is cached or pinned between, nothing refers to an outer query, and nothing between is computed once for
  several places.

A count of no group is 0, where a sum would be NULL. A query that has early aggregates was optimised before, and gets no
more. No aggregate is put right below a semi or anti join, because Spark moves these below it.

**Price** (`price`), in the units of the cost model: done if the work up to the upper aggregate's result becomes less by
a factor, and if the groups are at most a quarter of the rows where nothing between is shuffled. Distinct values of all
keys must be known.

Source: Yan and Larson, Eager aggregation and lazy aggregation, VLDB 1995 (eager group-by; eager count, for sums over
both sides, is not done). Grouping below outer joins: Eich and Moerkotte, Dynamic programming: the next step, ICDE 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.join_selection import JoinOperator, Version, select
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
from pyjoinopt.optimizer.eager_aggregation.candidates import (
    Candidate,
    Step,
    as_aggregate,
    candidates,
    columns_of_lists,
    read_positions,
)
from pyjoinopt.optimizer.eager_aggregation.price import Price, Pricing
from pyjoinopt.optimizer.eager_aggregation.split_functions import (
    SplitConditions,
    first_step,
    may_be_split,
    never_null,
    over_results,
)
from pyjoinopt.optimizer.eager_aggregation.value_bounds import value_bounds
from pyjoinopt.optimizer.operator_work import OperatorWork
from pyjoinopt.optimizer.prefilter.places import SharedPlans
from pyjoinopt.plan.constructors import ColumnFactory, aggregate, project
from pyjoinopt.plan.expressions import Expression, reference, rewrite
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order

#: By this name it can be switched off.
NAME = "eager_aggregation"
#: Function -> the name of the column with its results; by these names an early aggregate is recognised later.
_RESULTS = {"Count": "early_count", "Sum": "early_sum", "Min": "early_min", "Max": "early_max"}
_NAMES = frozenset(_RESULTS.values())
#: The work must become less by this factor: estimates err. With 0, everything that is legal is done.
_MARGIN = 1.25
#: [rows] of a group at least, if all joins between are broadcast: only the work in place becomes less.
_LEAST_ROWS_OF_GROUP = 4.0


@dataclass(frozen=True)
class EagerAggregation:
    """What decides about a plan.

    Attributes:
        estimate: statistics of any sub-plan.
        sizes: Spark's estimates of sizes, by which it chooses operators.
        fresh: gives out columns.
        conf: Spark's settings for joins.
        ansi: whether the session is in ANSI mode.
        work: what single operators cost.
        spark: Spark's version.
    """

    estimate: StatisticsOf
    sizes: SparkSizes
    fresh: ColumnFactory
    conf: JoinConf
    ansi: bool
    work: OperatorWork = OperatorWork(DEFAULT)
    spark: Version = (4, 3)

    def apply(self, root: LogicalPlan) -> Rewritten:
        """The plan with early aggregates, `root` itself if there are none, and one sentence for each."""
        chosen = self._chosen(root)
        if not chosen:
            return Rewritten(root)
        return Rewritten(self._rebuilt(root, chosen), tuple(map(str, chosen.values())))

    def saved(self, root: LogicalPlan) -> float:
        """By how much the early aggregates of a plan reduce its work, in the units of the cost model."""
        return sum(max(0.0, one.price.before - one.price.after) for one in self._chosen(root).values())

    def _chosen(self, root: LogicalPlan) -> dict[int, _Chosen]:
        """The id of each aggregate or DISTINCT for which rows are grouped early, with the best place."""
        found = [(node, as_aggregate(node)) for node in post_order(root) if not node.cached]
        aggregates = [(node, upper) for node, upper in found if upper is not None and _reads_joins(upper)]
        if not aggregates:
            return {}
        shared = SharedPlans(root)
        pricing = Pricing(self.estimate, self._operator, self.work)
        chosen: dict[int, _Chosen] = {}
        for node, upper in aggregates:
            legal = self._legal(upper, shared)
            priced = [_Chosen(c, pricing(c)) for c in legal if pricing.rows_of_group(c) > _MARGIN]
            paying = [one for one in priced if _pays(one.price)]
            if paying:
                chosen[id(node)] = min(paying, key=lambda one: one.price.after - one.price.before)
        return chosen

    def _operator(self, join: Join) -> JoinOperator:
        return select(join, self.sizes(join.left), self.sizes(join.right), self.conf, self.spark)

    def _legal(self, node: Aggregate, shared: SharedPlans) -> list[Candidate]:
        found = []
        for candidate in candidates(node, shared):
            bounds = value_bounds(candidate.plan, self.estimate)
            rows, joined = (self.estimate(plan).upper_bound for plan in (candidate.plan, node.child))
            conditions = SplitConditions(rows, joined, self.ansi, bounds)
            if all(may_be_split(candidate.below[i], conditions) for i in candidate.early):
                found.append(candidate)
        return found

    def _rebuilt(self, root: LogicalPlan, chosen: Mapping[int, _Chosen]) -> LogicalPlan:
        done: dict[int, LogicalPlan] = {}
        for node in post_order(root):
            found = chosen.get(id(node))
            if found is not None:
                done[id(node)] = self._eager(found.candidate, done)
            else:
                done[id(node)] = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
        return done[id(root)]

    def _result(self, function: Expression) -> Expression:
        """The column with the results of a function over groups of rows."""
        return self.fresh.alias(function, _RESULTS[function.info["fn"]], not never_null(function))

    def _eager(self, candidate: Candidate, done: Mapping[int, LogicalPlan]) -> LogicalPlan:
        """The aggregate over what it reads with the early aggregate.

        A projection on top keeps functions from being added to the upper aggregate: Spark does so for a filter with
        `count(1) > 3` right above an aggregate, and would count groups.
        """
        keys = [reference(a) for a in candidate.keys]
        below = [candidate.below[i] for i in candidate.early]
        results = [list(map(self._result, first_step(f))) for f in below]
        plan: LogicalPlan = aggregate(keys, [*keys, *chain(*results)], done[id(candidate.plan)])
        final: dict[object, Expression] = {}
        for i, aliases, padded in zip(candidate.early, results, candidate.padded or (), strict=True):
            columns = [alias.attribute for alias in aliases if alias.attribute is not None]
            final[candidate.functions[i].key] = over_results(candidate.functions[i], columns, padded)
        for step in reversed(candidate.path):
            plan = _over(step, candidate.read_of(step), plan, done)
        upper = candidate.aggregate
        listed = [_over_results(e, final) for e in upper.aggregates]
        return project(upper.output, aggregate(upper.grouping, listed, plan, like=upper))


@dataclass(frozen=True)
class _Chosen:
    """An early aggregate that pays."""

    candidate: Candidate
    price: Price

    def __str__(self) -> str:
        keys = ", ".join(a.name for a in self.candidate.keys)
        upper = ", ".join(map(str, self.candidate.aggregate.grouping)) or "no column"
        return (
            f"the aggregate by {upper} reads {relation_name(self.candidate.plan)} grouped by {keys}: "
            f"about {self.price.rows:,.0f} rows in {self.price.groups:,.0f} groups"
        )


def may_be_early(node: LogicalPlan) -> bool:
    """Whether a node of a query may have been added when the query was optimised before; once is enough."""
    listed = node.aggregates if isinstance(node, Aggregate) else ()
    return any(e.kind == "Alias" and e.attribute is not None and e.attribute.name in _NAMES for e in listed)


def _pays(price: Price) -> bool:
    """Whether the work becomes so much less that an error of the estimates does not matter."""
    enough = price.shuffled or price.groups * _LEAST_ROWS_OF_GROUP <= price.rows
    return not _MARGIN or (price.counted and enough and price.after * _MARGIN < price.before)


def _reads_joins(node: Aggregate) -> bool:
    """Whether there is a join below an aggregate, under names, projections, filters and copies of rows."""
    below = node.child
    while not below.cached and (
        isinstance(below, (Filter, Project)) or is_only_a_name(below) or below.kind == "Expand"
    ):
        below = below.children[0]
    return isinstance(below, Join)


def _over(step: Step, read: int, plan: LogicalPlan, done: Mapping[int, LogicalPlan]) -> LogicalPlan:
    """An operator over a plan that has results of functions instead of their arguments; names are left out."""
    node = step.node
    if is_only_a_name(node):
        return plan
    if isinstance(node, Project):
        picked = [e for e in node.projections if e.attribute is not None and e.attribute.mask & read]
        results = [reference(a) for a in plan.output if not a.mask & node.child.output_set]
        return Project((*picked, *results), plan)
    if node.kind == "Expand":
        return _expand(node, read, plan)
    children = [done[id(each)] for each in node.children]
    children[step.child] = plan
    return node.with_children(tuple(children))


def _expand(node: LogicalPlan, read: int, plan: LogicalPlan) -> LogicalPlan:
    """An Expand with what something above reads, and with the results of functions in each copy of a row."""
    results = [a for a in plan.output if not a.mask & node.children[0].output_set]
    listed = [columns_of_lists(node)[i] for i in read_positions(node, read)]
    copies = len(node.info["lists"])
    listed += [(reference(a),) * copies for a in results]
    lists = [tuple(column[i] for column in listed) for i in range(copies)]
    output = (*(node.output[i] for i in read_positions(node, read)), *results)
    reads = reduce(or_, (e.references for column in listed for e in column), 0)
    info = {**node.info, "narrowed": True, "lists": lists, "reads_set": reads}
    expressions = tuple(e for each in lists for e in each)
    return LogicalPlan(node.kind, (plan,), output, expressions, None, node.origin, info)


def _over_results(listed: Expression, final: Mapping[object, Expression]) -> Expression:
    """A column of the upper aggregate, over the results of the early one."""

    def change(e: Expression) -> Expression:
        return final.get(e.key, e) if e.kind == "AggregateExpression" else e

    return rewrite(listed, change)
