"""The right sides of semi and anti joins become distinct, where they have many rows with the same key.

    SELECT * FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders WHERE o_orderdate > DATE '1995-01-01')

    before  customer LEFT SEMI JOIN orders
    after   customer LEFT SEMI JOIN (SELECT DISTINCT o_custkey FROM orders ...)

Spark shuffles and sorts every row of the right side, or collects all of them for a broadcast. The distinct keys may be
so few that they can be broadcast where the rows cannot, and then the left side is not shuffled either.

**Legal** where all of this holds:

* it is a semi, anti or existence join: none of them distinguishes one partner from several;
* its condition has the same value for equal rows and cannot fail, so that it does not matter which pairs are compared;
* the right side is grouped by all of its columns that the condition reads, at least one, of types in which equal values
  are identical. A NULL is a group;
* neither is cached or refers to an outer query, and Spark does not compute the right side once for several places.

An aggregate or a DISTINCT on the right side is left alone.

**Price** (`operator_work`), in the units of the cost model: done if the join and what it shuffles, sorts and builds
become cheaper by a factor, the aggregate included. Each way has the hint that it would get. Distinct values of all keys
must be known. A right side that is broadcast without the aggregate is left unchanged: the aggregate saved no time in
TPC-H 22 and TPC-DS 95 (1.02 and 1.03 of the time without it), though it left a tenth and a twentieth of the rows.

Source: Bernstein and Chiu, Using semi-joins to solve relational queries, JACM 1981: distinct keys are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.catalyst.planner.join_selection import (
    BROADCAST_HASH,
    SHUFFLED_HASH,
    SORT_MERGE,
    JoinOperator,
    Version,
    select,
)
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.cost.constants import DEFAULT
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf, row_width
from pyjoinopt.estimation.plans.runs import shared_run
from pyjoinopt.hints.apply_hints import pruned
from pyjoinopt.hints.choose_hint import join_hint
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.optimizer.eager_aggregation.split_functions import EXACT
from pyjoinopt.optimizer.operator_work import OperatorWork, Rows
from pyjoinopt.optimizer.partitioning import join_keys, partitioning_of, satisfies
from pyjoinopt.optimizer.prefilter.places import SharedPlans, is_grouped
from pyjoinopt.optimizer.prefilter.safety import is_safe
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import (
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Attribute,
    conjuncts,
    reference,
)
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, NO_HINT, SEMI, Join, LogicalPlan, Project, attribute_set
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order

#: By this name it can be switched off.
NAME = "distinct_build_sides"
#: The work must become less by this factor: estimates err. With 0, everything that is legal is done.
_MARGIN = 1.25
#: Joins of which a row of the left side is in the result once, however many partners it has, and their names.
_NAMES = {SEMI: "semi", ANTI: "anti", EXISTENCE: "existence"}


@dataclass(frozen=True)
class DistinctBuildSides:
    """What decides about a plan.

    Attributes:
        root: the plan.
        estimate: statistics of any sub-plan.
        sizes: Spark's estimates of sizes, by which it chooses operators.
        conf: Spark's settings for joins.
        allowance: what may be proved of a side that is built.
        work: what single operators cost.
        spark: Spark's version.
    """

    root: LogicalPlan
    estimate: StatisticsOf
    sizes: SparkSizes
    conf: JoinConf
    allowance: MemoryAllowance
    work: OperatorWork = OperatorWork(DEFAULT)
    spark: Version = (4, 3)

    def apply(self) -> Rewritten:
        """The plan with distinct right sides, `root` itself if there are none, and one sentence for each."""
        tests = [node for node in post_order(self.root) if isinstance(node, Join) and node.join_type in _NAMES]
        shared = SharedPlans(self.root) if tests else None
        chosen: dict[int, _Chosen] = {}
        for join in tests:
            keys = _keys(join)
            if keys and shared is not None and not shared(_bare(join.right)):
                found = self._priced(join, keys)
                if found is not None:
                    chosen[id(join)] = found
        if not chosen:
            return Rewritten(self.root)
        done: dict[int, LogicalPlan] = {}
        for node in post_order(self.root):
            if node.cached:
                done[id(node)] = node
                continue
            children = tuple(done[id(child)] for child in node.children)
            if id(node) in chosen:
                children = (children[0], _distinct(chosen[id(node)].keys, children[1]))
            done[id(node)] = node.with_children(children)
        return Rewritten(done[id(self.root)], tuple(map(str, chosen.values())))

    def _priced(self, join: Join, keys: tuple[Attribute, ...]) -> _Chosen | None:
        """The price of a distinct right side; None if it does not pay."""
        known = self.estimate(join.right)
        rows, width = max(1.0, known.rows), row_width(keys, known.columns)
        plain = Rows(rows, width, partitioning_of(join.right, self._operator))
        operator = self._operator(join)
        before = self._cost(join, operator, plain)
        if before is None or (_MARGIN and (operator.name == BROADCAST_HASH or before < _MARGIN * self.work.compiled)):
            return None
        by, distinct = attribute_set(keys), _distinct(keys, join.right)
        found = min(rows, max(1.0, self.estimate(distinct).rows))
        partitioned = plain.partitioning if satisfies(plain.partitioning, by) else (by,)
        again = join.with_children((join.left, distinct))
        assert isinstance(again, Join)
        after = self._cost(again, self._operator(again), Rows(found, width, partitioned))
        if after is None:
            return None
        run = shared_run(known.column(a.bit) for a in keys)
        after += self.work.compiled + self.work.grouping(plain, by, found, width, run)
        counted = all(known.column(a.bit).ndv is not None for a in keys)
        if _MARGIN and (not counted or after * _MARGIN >= before):
            return None
        return _Chosen(join, keys, rows, found)

    def _cost(self, join: Join, operator: JoinOperator, right: Rows) -> float | None:
        """What it costs to bring both sides of a join together; None for other operators than those by keys."""
        if operator.name == BROADCAST_HASH and operator.build == "right":
            return self.work.broadcast(right.number, right.width)
        if operator.name not in (SORT_MERGE, SHUFFLED_HASH):
            return None
        known = self._pruned(join.left)
        left = Rows(known.rows, known.bytes / max(1.0, known.rows), partitioning_of(join.left, self._operator))
        return sum(
            self._moved(rows, keys, operator, side)
            for rows, keys, side in zip((left, right), join_keys(join), ("left", "right"), strict=True)
        )

    def _moved(self, rows: Rows, keys: int, operator: JoinOperator, side: str) -> float:
        """What a shuffled join costs one side."""
        c = self.work.constants
        work = 0.0 if keys and keys in rows.partitioning else self.work.shuffle(rows.number, rows.width)
        if operator.name == SORT_MERGE:
            return work + rows.number * c.sorted_row
        return work + rows.number * (c.hashed_row if operator.build == side else 1.0)

    def _operator(self, join: Join) -> JoinOperator:
        """Spark's choice for a join, with the hint that it will get."""
        sizes = self.sizes(join.left), self.sizes(join.right)
        if join.hint == NO_HINT and extract_equi_keys(join) is not None:
            left, right = map(self._pruned, join.children)
            given = join_hint(join.join_type, left, right, *sizes, self.conf, self.allowance)
            if (given.left, given.right) != NO_HINT:
                join = join.with_hint((given.left, given.right))
        return select(join, *sizes, self.conf, self.spark)

    def _pruned(self, side: LogicalPlan) -> RelationStatistics:
        return pruned(side, self.estimate(side), self._needed)

    @cached_property
    def _needed(self) -> Mapping[int, int]:
        return needed_columns(self.root)


@dataclass(frozen=True)
class _Chosen:
    """A right side that is made distinct."""

    join: Join
    keys: tuple[Attribute, ...]
    rows: float
    distinct: float

    def __str__(self) -> str:
        keys = ", ".join(a.name for a in self.keys)
        return (
            f"the {_NAMES[self.join.join_type]} join reads {relation_name(self.join.right)} with each {keys} once: "
            f"about {self.distinct:,.0f} of {self.rows:,.0f} rows"
        )


def _distinct(keys: tuple[Attribute, ...], plan: LogicalPlan) -> LogicalPlan:
    listed = [reference(a) for a in keys]
    return aggregate(listed, listed, plan)


def _bare(plan: LogicalPlan) -> LogicalPlan:
    """A plan without names and projections on top."""
    while not plan.cached and (isinstance(plan, Project) or is_only_a_name(plan)):
        plan = plan.children[0]
    return plan


def _keys(join: Join) -> tuple[Attribute, ...]:
    """The columns by which the right side may be grouped; none if that is not legal."""
    if join.cached or join.subquery is not None or join.condition is None or is_grouped(join.right):
        return ()
    predicates = conjuncts(join.condition)
    if not is_safe(predicates) or any(p.contains & (SUBQUERY | CORRELATED | PYTHON_UDF) for p in predicates):
        return ()
    keys = tuple(a for a in dict.fromkeys(join.right.output) if a.mask & join.condition.references)
    inside = (e for node in post_order(join.right) for e in node.expressions)
    if any(e.contains & (OUTER_REFERENCE | CORRELATED) for e in (join.condition, *inside)):
        return ()
    return keys if all(EXACT.fullmatch(a.type) for a in keys) else ()
