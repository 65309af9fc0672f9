"""Rows are grouped before they are joined, and the results of the groups once more above (eager aggregation).

    SELECT d.name, sum(f.x), count(*) FROM fact f JOIN dim d ON f.k = d.k GROUP BY d.name

    before  Aggregate(name; sum(x), count(1)) - Join(f.k = d.k) - fact, dim
    after   Aggregate(name; sum(s), coalesce(sum(c), 0)) - Join(f.k = d.k) - e, dim
            e: Aggregate(k; k, sum(x) AS s, count(1) AS c) - fact

The join above reads a row for each key instead of all rows of `fact`, and repeats it as often as it would have repeated
the rows. So each group above adds up the same numbers.

A function of another side reads a row for each group, and counts it as often as the group has rows:

    sum(d.y)  becomes  sum(d.y * c)

So both sides of a join may be grouped, each with a count.

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
  FILTER read the plan alone, or nothing of it. They cannot fail, for they are evaluated on rows that a join drops. Of
  functions of other columns, MIN and MAX remain as they are, since repetitions do not change them, and the sum of all
  joined rows must fit for the others (`second_step`);
* what a row without partners adds, whose columns of the plan an outer join pads with NULLs, is known: nothing, or 1 to
  a count;
* nothing is cached or pinned between, nothing refers to an outer query, and nothing between is computed once for
  several places.

A count of no group is 0, where a sum would be NULL. A query that has early aggregates was optimised before, and gets no
more. No aggregate is put right below a semi or anti join, because Spark moves these below it.

**Price** (`price`), in the units of the cost model: done if the work up to the upper aggregate's result becomes less by
a factor, and if the groups are at most a quarter of the rows where nothing between is shuffled. Distinct values of all
keys must be known. Rows of a second side are grouped as well if the work up to the join with the first becomes less by
as much.

Source: Yan and Larson, Eager aggregation and lazy aggregation, VLDB 1995. Grouping below outer joins: Eich and
Moerkotte, Dynamic programming: the next step, ICDE 2015.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.join_selection import JoinOperator, Version, select
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
from pyjoinopt.optimizer.eager_aggregation.candidates import Candidate, as_aggregate, candidates, meeting_join
from pyjoinopt.optimizer.eager_aggregation.early_plan import with_early_aggregates
from pyjoinopt.optimizer.eager_aggregation.price import Price, Pricing
from pyjoinopt.optimizer.eager_aggregation.split_functions import SplitConditions, may_be_repeated, may_be_split
from pyjoinopt.optimizer.eager_aggregation.value_bounds import value_bounds
from pyjoinopt.optimizer.operator_work import OperatorWork
from pyjoinopt.optimizer.prefilter.places import SharedPlans
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order

#: By this name it can be switched off.
NAME = "eager_aggregation"
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
        unscaled: whether Spark adds up short decimals as BIGINT.
        work: what single operators cost.
        spark: Spark's version.
    """

    estimate: StatisticsOf
    sizes: SparkSizes
    fresh: ColumnFactory
    conf: JoinConf
    ansi: bool
    unscaled: bool = True
    work: OperatorWork = OperatorWork(DEFAULT)
    spark: Version = (4, 3)

    def apply(self, root: LogicalPlan) -> Rewritten:
        """The plan with early aggregates, `root` itself if there are none, and one sentence for each."""
        chosen = self._chosen(root)
        if not chosen:
            return Rewritten(root)
        return Rewritten(self._rebuilt(root, chosen), tuple(str(early) for found in chosen.values() for early in found))

    def saved(self, root: LogicalPlan) -> float:
        """By how much the early aggregates of a plan reduce its work, in the units of the cost model."""
        return sum(max(0.0, early.saved) for found in self._chosen(root).values() for early in found)

    def _chosen(self, root: LogicalPlan) -> dict[int, list[_Early]]:
        """The id of each aggregate or DISTINCT for which rows are grouped early, with the best places."""
        nodes = [(node, as_aggregate(node)) for node in post_order(root) if not node.cached]
        aggregates = [(node, upper) for node, upper in nodes if upper is not None and _reads_joins(upper)]
        if not aggregates:
            return {}
        shared = SharedPlans(root)
        pricing = Pricing(self.estimate, self._operator, self.work)
        chosen: dict[int, list[_Early]] = {}
        for node, upper in aggregates:
            found = [candidate for candidate in candidates(upper, shared) if self._may_pay(candidate)]
            if not found:
                continue
            conditions = self._conditions(upper)
            legal = [candidate for candidate in found if self._is_legal(candidate, conditions)]
            priced = [_Early(c, pricing(c)) for c in legal if pricing.rows_of_group(c) > _MARGIN]
            paying = [one for one in priced if _pays(one.price)]
            if paying:
                best = max(paying, key=lambda one: one.saved)
                chosen[id(node)] = [best, *self._of_another_side(best, legal, pricing, conditions)]
        return chosen

    def _of_another_side(
        self, first: _Early, legal: Sequence[Candidate], pricing: Pricing, conditions: SplitConditions
    ) -> list[_Early]:
        """The best early aggregate of rows that are joined with those of the first one, if it pays up to that join."""
        paying = []
        for candidate in legal:
            join = meeting_join(first.candidate, candidate)
            if join is None or pricing.rows_of_group(candidate) <= _MARGIN:
                continue
            if all(self._may_be_repeated(each, conditions) for each in (first.candidate, candidate)):
                found = _Early(candidate, pricing(candidate, up_to=join))
                paying += [found] if _pays(found.price) else []
        return [max(paying, key=lambda one: one.saved)] if paying else []

    def _operator(self, join: Join) -> JoinOperator:
        return select(join, self.sizes(join.left), self.sizes(join.right), self.conf, self.spark)

    def _may_pay(self, candidate: Candidate) -> bool:
        """Whether each of its keys is known to have fewer values than there are rows, before anything is priced."""
        known = self.estimate(candidate.plan)
        values = (known.column(a.bit).ndv for a in candidate.keys)
        return not _MARGIN or all(ndv is not None and ndv * _MARGIN < known.rows for ndv in values)

    def _is_legal(self, candidate: Candidate, conditions: SplitConditions) -> bool:
        """Whether the functions can be computed of groups, by what is proved of the rows."""
        own = self._of(candidate, conditions)
        return all(may_be_split(candidate.below[i], own) for i in candidate.early) and all(
            may_be_repeated(candidate.below[i], own, early=False) for i in candidate.late
        )

    def _conditions(self, node: Aggregate) -> SplitConditions:
        """What is proved of the rows that an aggregate reads."""
        joined, bounds = self.estimate(node.child).upper_bound, value_bounds(node.child, self.estimate)
        return SplitConditions(joined, joined, self.ansi, self.unscaled, bounds)

    def _of(self, candidate: Candidate, conditions: SplitConditions) -> SplitConditions:
        """The same, with the rows of a candidate."""
        return replace(conditions, rows=self.estimate(candidate.plan).upper_bound)

    def _may_be_repeated(self, candidate: Candidate, conditions: SplitConditions) -> bool:
        """Whether the results of groups may stand for as many rows as they are joined with."""
        own = self._of(candidate, conditions)
        return all(may_be_repeated(candidate.below[i], own, early=True) for i in candidate.early)

    def _rebuilt(self, root: LogicalPlan, chosen: Mapping[int, Sequence[_Early]]) -> LogicalPlan:
        done: dict[int, LogicalPlan] = {}
        for node in post_order(root):
            found = chosen.get(id(node))
            if found is not None:
                done[id(node)] = with_early_aggregates([early.candidate for early in found], done, self.fresh)
            else:
                done[id(node)] = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
        return done[id(root)]


@dataclass(frozen=True)
class _Early:
    """An early aggregate that pays."""

    candidate: Candidate
    price: Price

    @property
    def saved(self) -> float:
        """The work that it saves."""
        return self.price.before - self.price.after

    def __str__(self) -> str:
        keys = ", ".join(a.name for a in self.candidate.keys)
        upper = ", ".join(map(str, self.candidate.aggregate.grouping)) or "no column"
        return (
            f"the aggregate by {upper} reads {relation_name(self.candidate.plan)} grouped by {keys}: "
            f"about {self.price.rows:,.0f} rows in {self.price.groups:,.0f} groups"
        )


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
