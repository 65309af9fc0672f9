"""Rows go before they are grouped or shuffled, if a join above has no partner for them.

    SELECT * FROM lineitem l JOIN part p ON p_partkey = l_partkey
             JOIN (SELECT l_partkey AS k, avg(l_quantity) AS a FROM lineitem GROUP BY l_partkey) x ON k = p_partkey
    WHERE p_brand = 'Brand#23' AND l_quantity < 0.2 * a

    before  x: Aggregate(lineitem)
    after   x: Aggregate(lineitem LEFT SEMI JOIN (SELECT p_partkey FROM part WHERE p_brand = 'Brand#23') ON ...)

    SELECT * FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'

    before  (orders JOIN customer) JOIN lineitem, both sides shuffled
    after   (orders JOIN customer) JOIN (lineitem LEFT SEMI JOIN (SELECT o_orderkey FROM orders JOIN customer ...))

Below an aggregate the semi join keeps or drops whole groups, for it compares a grouping key. Groups and rows that it
drops have no partner in a result of the joins above, so no result changes, and no other value of an aggregate. The
filtered plan is read twice, which is cheap where it is small: its keys are broadcast, and nothing is shuffled that was
not before. Keys that are too many to be broadcast become a Bloom filter, which keeps a few rows too many.

**Legal** where all of this holds:

* the plan is an input of inner joins or semi joins, or a side of an outer, anti or existence join whose rows without a
  partner go nowhere; or it stands in such a side or below an aggregate, and its rows without a partner are only in rows
  and groups without one;
* a column of it (of an aggregate, a grouping key) is equal to a key of the source in every row that the joins above
  keep: by equalities of inner and semi joins, by that of an outer, anti or existence join with the side that is
  filtered, and by the grouping keys of the aggregates between;
* nothing between is nondeterministic or can fail, for an outer join above may see NULL where it saw a value. Where rows
  only become fewer, an aggregate between may fail: its groups are whole or gone;
* the source is a filtered relation of files, or such relations joined by broadcasts. They have the same rows when they
  are read again, and their filters can neither fail nor read other relations. If they are grouped in the query, their
  keys are read before that. The key is of a type that equality compares exactly, and no fallible predicate reads a
  column that equals it, because Spark copies predicates across the new equality.

A source is not grouped itself: of `HAVING sum(l_quantity) > 300` there is no estimate of the selectivity, and its keys
cost as much as what they would filter. Spark copies `a IN (SELECT ...)` to columns that equal `a` and below aggregates
by itself, so TPC-H 20 has its filter there already.

**Where** it goes: as far down as its column comes unchanged, below joins and further aggregates. It is not put below a
sub-plan that the query has twice, because Spark computes such a one once, nor into a join that it has twice if the
source is outside.

**Price**, in the units of the cost model: the rows that need not be hashed for groups or sorted, and the groups and
rows that need not be shuffled, against one broadcast or Bloom filter, the second reading of the source, and the probes.
Done if less than two thirds of the work are left.

Source: magic sets (Mumick and others, SIGMOD 1990) for aggregates, semi-join reducers (Bernstein and Chiu, JACM 1981)
for joins; Spark's runtime filters do the latter where a side has ten gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyjoinopt.catalyst.planner.build_side import BROADCAST, JoinConf
from pyjoinopt.catalyst.planner.join_selection import BROADCAST_HASH, SHUFFLED_HASH, SORT_MERGE, Version, select
from pyjoinopt.catalyst.planner.size_in_bytes import SparkSizes
from pyjoinopt.cost.constants import DEFAULT, Constants
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf, row_width
from pyjoinopt.hints.choose_hint import is_worth_a_broadcast
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.optimizer.operator_work import OperatorWork
from pyjoinopt.optimizer.prefilter.places import Place, SharedPlans, groups, lowest_place
from pyjoinopt.optimizer.prefilter.regions import Input, Region, Side, regions
from pyjoinopt.optimizer.prefilter.sources import Source
from pyjoinopt.plan.constructors import ColumnFactory, might_contain
from pyjoinopt.plan.expressions import Attribute, call, conjuncts, reference
from pyjoinopt.plan.nodes import SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: By these names they can be switched off.
AGGREGATES, JOINS = "prefilter_aggregates", "prefilter_joins"
#: The work must become less by this factor: estimates err, and the second reading of a file may find a cold cache.
_MARGIN = 1.5

#: [keys] More of them are not worth a Bloom filter, as for Spark (spark.sql.optimizer.runtime.bloomFilter.maxNumItems).
_MOST_KEYS = 4_000_000
#: [keys] A Bloom filter has room for twice the keys that are expected, and for so many at least.
_SPARE, _LEAST_KEYS = 2, 10_000
#: [rows' worth of work] A key that is hashed and put into a Bloom filter or looked up.
_HASHED = 2.0
#: The part of the rows without a partner that a Bloom filter with eight bits for a key keeps.
_FALSE_POSITIVES = 0.03


@dataclass(frozen=True)
class Prefilter:
    """What decides about a plan.

    Attributes:
        estimate: statistics of any sub-plan.
        sizes: Spark's estimates of sizes, by which it chooses operators; None if they are not known.
        fresh: gives out columns.
        sensitive: attributes that a fallible predicate reads, or that equal one of them.
        conf: Spark's settings.
        allowance: what may be proved of a side that is built; 0 for no hints.
        constants: of the cost model.
        spark: Spark's version.
        without: the names of what is switched off.
    """

    estimate: StatisticsOf
    sizes: SparkSizes | None
    fresh: ColumnFactory
    sensitive: int
    conf: JoinConf
    allowance: MemoryAllowance
    constants: Constants = DEFAULT
    spark: Version = (4, 3)
    without: frozenset[str] = frozenset()

    def apply(self, root: LogicalPlan) -> tuple[LogicalPlan, list[str]]:
        """The plan with these semi joins, `root` itself if there are none, and one sentence for each."""
        if self.conf.threshold <= 0:
            return root, []
        aggregates = AGGREGATES not in self.without and any(map(groups, post_order(root)))
        shuffled = {} if JOINS in self.without else dict(self._shuffled(root))
        if not aggregates and not shuffled:
            return root, []
        chosen: dict[int, _Chosen] = {}
        shared = SharedPlans(root)
        for region in regions(root):
            for target in region.aggregates if aggregates else ():
                _keep(chosen, self._best(region, target, shared, None))
            for side in region.sides:
                work = shuffled.get((id(side.join), id(side.plan)))
                if work is not None:
                    _keep(chosen, self._best(region, side, shared, work))
        if not chosen:
            return root, []
        return _replaced(root, {at: self._joined(c) for at, c in chosen.items()}), [str(c) for c in chosen.values()]

    def _shuffled(self, root: LogicalPlan) -> Iterator[tuple[tuple[int, int], float]]:
        """The sides of joins that are shuffled, by join and side, with what that costs; only where it costs much."""
        if self.sizes is None:
            return
        c = self.constants
        for node in post_order(root):
            if not isinstance(node, Join):
                continue
            for side in node.children:
                known = self.estimate(side)
                work = known.rows * (1.0 + c.shuffled_row + c.sorted_row + known.width * c.shuffled_byte)
                if work > _MARGIN * c.broadcast and self._operator(node) in (SORT_MERGE, SHUFFLED_HASH):
                    yield (id(node), id(side)), work

    def _operator(self, join: Join) -> str:
        assert self.sizes is not None
        return select(join, self.sizes(join.left), self.sizes(join.right), self.conf, self.spark).name

    def _best(self, region: Region, target: Input | Side, shared: SharedPlans, work: float | None) -> _Chosen | None:
        """The filter of a plan that spares most, if any pays.

        Args:
            region: the joins above.
            target: what is to be filtered.
            shared: what the query has twice.
            work: what it costs to shuffle the plan; None for an aggregate.
        """
        found = []
        inside: set[int] = set()  # what filters there does so already
        joined: set[int] = set()  # what filters outside would make two joins of one that Spark computes once
        for source, column, key in region.sources_of(target):
            inside = inside or set(map(id, post_order(target.plan)))
            if (column.mask | key.mask) & self.sensitive or any(id(leaf) in inside for leaf in source.leaves):
                continue
            if isinstance(target, Side) and shared(target.join):
                joined = joined or set(map(id, post_order(target.join)))
                if any(id(leaf) not in joined for leaf in source.leaves):
                    continue
            if not self._is_broadcast(source):
                continue
            place = lowest_place(target.plan, column, shared)
            if place is None or (work is None and place.aggregate is None):
                continue
            priced = self._priced(source, key, place, work)
            if priced is not None:
                found.append(priced)
        return max(found, key=lambda c: c.saved, default=None)

    def _is_broadcast(self, source: Source) -> bool:
        """Whether nothing is shuffled for a source."""
        return not source.joins or (
            self.sizes is not None and all(self._operator(join) == BROADCAST_HASH for join in source.joins)
        )

    def _priced(self, source: Source, key: Attribute, place: Place, work: float | None) -> _Chosen | None:
        rows, built = self.estimate(place.node), self.estimate(source.plan)
        width = row_width([key], built.columns)
        fits = is_worth_a_broadcast(built.rows * width, rows.rows * rows.width, self.conf)
        is_exact = fits and built.likely_bound * width <= self.conf.threshold * self.allowance.broadcast
        if not is_exact and (built.rows > _MOST_KEYS or self.allowance.broadcast <= 0):
            return None
        condition = call("EqualTo", reference(place.column), reference(key))
        kept = self.estimate(Join(place.node, source.plan, SEMI, condition))
        share = min(1.0, kept.rows / max(1.0, rows.rows))
        before = self._grouping(place, rows) if work is None else work
        if is_exact:
            made, probed = OperatorWork(self.constants).broadcast(built.rows, width), rows.rows
        else:
            made, probed = self.constants.broadcast + _HASHED * built.rows, _HASHED * rows.rows
            share += (1.0 - share) * _FALSE_POSITIVES
        added = made + probed + self._reading(source)
        if (added + share * before) * _MARGIN >= before:
            return None
        items = None if is_exact else max(_LEAST_KEYS, int(_SPARE * built.rows))
        return _Chosen(source, key, place, share, rows, (1.0 - share) * before - added, work is None, items)

    def _grouping(self, place: Place, rows: RelationStatistics) -> float:
        """What it costs to group the rows of a place."""
        assert place.aggregate is not None
        c, found = self.constants, self.estimate(place.aggregate)
        return rows.rows * c.hashed_row + found.rows * (1.0 + c.shuffled_row + found.width * c.shuffled_byte)

    def _reading(self, source: Source) -> float:
        """What it costs to read a source once more: its relations, and its joins by broadcasts."""
        work = sum(self.estimate(leaf).rows for leaf in source.leaves)
        for join in source.joins:
            built = min(map(self.estimate, join.children), key=lambda known: known.rows * known.width)
            work += OperatorWork(self.constants).broadcast(built.rows, built.width) + self.estimate(join).rows
        return work

    def _joined(self, chosen: _Chosen) -> LogicalPlan:
        """The place with the semi join on top of it."""
        keys, key = chosen.source.keys(chosen.key, self.fresh)
        if chosen.items is not None:
            return might_contain(chosen.place.node, chosen.place.column, keys, chosen.items)
        condition = call("EqualTo", reference(chosen.place.column), reference(key))
        return Join(chosen.place.node, keys, SEMI, condition, (None, BROADCAST))


def may_be_a_prefilter(node: LogicalPlan) -> bool:
    """Whether a node of a query may have been added when the query was optimised before; once is enough."""
    if isinstance(node, Join):
        return node.join_type == SEMI and node.hint == (None, BROADCAST)
    return isinstance(node, Filter) and any(p.kind == "BloomFilterMightContain" for p in conjuncts(node.condition))


@dataclass(frozen=True)
class _Chosen:
    """A filter that pays.

    Attributes:
        source, key: whose keys.
        place: what it filters.
        share: the part of the rows that it keeps.
        rows: what is known of the rows before.
        saved: work that it spares.
        grouped: whether for an aggregate.
        items: the keys that a Bloom filter has room for; None for a semi join.
    """

    source: Source
    key: Attribute
    place: Place
    share: float
    rows: RelationStatistics
    saved: float
    grouped: bool
    items: int | None

    def __str__(self) -> str:
        name = self.place.column.name
        what = f"the aggregate by {name} gets" if self.grouped else f"the join by {name} gets"
        how = "" if self.items is None else " by a Bloom filter"
        return (
            f"{what} only rows whose {self.key.name} is in the filtered {self.source.name}{how}: "
            f"about {self.share:.1%} of {self.rows.rows:,.0f}"
        )


def _keep(chosen: dict[int, _Chosen], found: _Chosen | None) -> None:
    """A place gets a single filter: the one that spares most."""
    if found is not None:
        known = chosen.get(id(found.place.node))
        if known is None or known.saved < found.saved:
            chosen[id(found.place.node)] = found


def _replaced(root: LogicalPlan, new: Mapping[int, LogicalPlan]) -> LogicalPlan:
    done: dict[int, LogicalPlan] = {}
    for node in post_order(root):
        made = node if node.cached else node.with_children(tuple(done[id(child)] for child in node.children))
        semi = new.get(id(node))
        done[id(node)] = made if semi is None else semi.with_children((made, semi.children[1]))
    return done[id(root)]
