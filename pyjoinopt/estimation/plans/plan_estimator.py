"""Estimates of many sub-plans of one plan, each operator estimated once.

The optimizer estimates the inputs of every join group, then for both sides of every join of the finished plan, which
share most of their nodes. A common table expression is defined in one place and read in others, so its definition is
looked up among all nodes of the plan, not only below the node that is estimated.

Filters over a relation of which there is a sample are counted there, all of a chain at once, through
projections. So are the different values that are left of the columns by which the relation is joined. What else the
columns hold after the filter is a matter of arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.comparisons import and_operands
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import (
    ColumnStatistics,
    LikelyBound,
    RelationStatistics,
    StatisticsOf,
)
from pyjoinopt.estimation.plans.filters_above_groups import filter_above_groups
from pyjoinopt.estimation.plans.operators import estimate_operator, renamed
from pyjoinopt.estimation.plans.runs import with_runs
from pyjoinopt.estimation.plans.selectivity import apply_filter, selectivity
from pyjoinopt.estimation.sources.joined_sample import JoinedSample
from pyjoinopt.estimation.sources.sampled_selectivity import Share, is_weak
from pyjoinopt.estimation.sources.sampled_values import SampledValues
from pyjoinopt.estimation.sources.samples import Counted, Samples
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import Expression, conjunction
from pyjoinopt.plan.nodes import Filter, LogicalPlan
from pyjoinopt.plan.operator_kinds import ROW_SUBSETS, ROWS_ONE_TO_ONE
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.node_memo import NodeMemo

#: Operators above a leaf whose rows are the leaf's, one to one; the names that they give columns are looked up.
_SAME_ROWS = (ROWS_ONE_TO_ONE & ROW_SUBSETS) | {"Project"}
#: Operators whose result has all values of a column that it has.
_SAME_VALUES = _SAME_ROWS | {"Aggregate", "Distinct"}


@dataclass(frozen=True, slots=True)
class FilteredLeaf:
    """Some rows of one leaf: those that fulfil all conjuncts; `share` of them by arithmetic."""

    leaf: LogicalPlan
    conjuncts: tuple[Expression, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class FilteredSample:
    """Some sampled rows of one leaf, as bits."""

    leaf: LogicalPlan
    hits: int


@dataclass(frozen=True, slots=True)
class JoinRows:
    """What the estimator of a join group found of one operator's result.

    Attributes:
        rows: the estimate.
        bound: rows that are proved not to be exceeded.
        likely: a bound by samples.
        distinct: attribute number -> different values that are left of a column, where a sample of the join shows them.
        values: column of a leaf -> these values, where the sample has nearly all of them.
        sampled: the sampled rows of leaves that are in the result.
    """

    rows: float
    bound: float
    likely: LikelyBound | None = None
    distinct: Mapping[int, float] = field(default_factory=dict)
    values: Mapping[int, SampledValues] = field(default_factory=dict)
    sampled: tuple[FilteredSample, ...] = ()


class PlanEstimates:
    """Callable: plan -> statistics of what it gives.

    Args:
        leaf: statistics of the nodes without children.
        nodes: all nodes of the plan, to find the definitions of common table expressions.
        samples: of the leaves, if there are any.
        applied: keys of conjuncts that the statistics of leaves take into account already.
    """

    def __init__(
        self,
        leaf: StatisticsOf,
        nodes: Iterable[LogicalPlan] = (),
        samples: Samples | None = None,
        applied: Collection[object] = (),
    ) -> None:
        self._leaf = leaf
        self._definitions: dict[object, LogicalPlan] = {}
        self.add_ctes(nodes)
        self._samples = samples
        self._applied = applied
        self._filtered = NodeMemo[LogicalPlan, FilteredLeaf]()
        self._known = NodeMemo[LogicalPlan, RelationStatistics]()
        self._overridden = NodeMemo[LogicalPlan, JoinRows]()
        # Node -> the common table expressions read in it, with the definitions that it was estimated by.
        self._read = NodeMemo[LogicalPlan, dict[object, LogicalPlan]]()

    def add_ctes(self, nodes: Iterable[LogicalPlan]) -> None:
        """Look up common table expressions among these nodes from now on: predicates may have moved in them."""
        self._definitions.update((node.info.get("cte"), node) for node in nodes if node.kind == "CTERelationDef")

    def override_rows(self, plan: LogicalPlan, found: JoinRows) -> None:
        """Override the estimate of a sub-plan, and its bounds, by those of the join group's estimator.

        That estimator sees composite keys and samples of joins, which an estimate operator by operator does not. Later
        calls for this node give the new rows; ancestors that were estimated before keep theirs.
        """
        self._overridden[plan] = found
        before = self._known.get(plan)
        if before is not None:
            self._known[plan] = _corrected(before, found)

    def filtered_leaf(self, plan: LogicalPlan) -> FilteredLeaf | None:
        """The leaf of which a plan has some rows, one to one, and which; None for others, and without samples."""
        return self._filtered.get(plan)

    def leaf_column(self, e: Expression) -> int | None:
        """The bit of the leaf's column that an expression has the values of, looking through names and projections."""
        if self._samples is None:
            return None
        column = column_of(self._samples.meaning(e))
        return None if column is None else column.bit

    def joined_samples(self, leaf: LogicalPlan) -> list[JoinedSample]:
        """A leaf's sampled rows with their partners in its dimensions; several samples if it has large ones."""
        return [] if self._samples is None else self._samples.joined(leaf)

    def distinct_among(self, leaf: LogicalPlan, hits: int, kept: float) -> dict[int, float]:
        """Different values that some of a leaf's rows have of its join keys, where its sample shows them.

        Args:
            leaf: whose sample it is.
            hits: its sampled rows that are among them, as bits.
            kept: how many these are of all rows.
        """
        return {} if self._samples is None else self._samples.distinct_among(leaf, hits, self(leaf), kept)

    def values_of(self, plan: LogicalPlan, e: Expression) -> SampledValues | None:
        """The values that a column of a plan's result has, where samples have nearly all of them."""
        column, source = self.leaf_column(e), self._with_all_values(plan)
        if column is None or self._samples is None or source is None:
            return None
        found, filtered = self._overridden.get(source), self._filtered.get(source)
        if filtered is not None:
            return self._samples.values_among(filtered.leaf, filtered.conjuncts, column)
        return found.values.get(column) if found is not None else None

    def share_among(
        self, left: LogicalPlan, right: LogicalPlan, keys: tuple[Expression, Expression]
    ) -> float | None:
        """Which share of a plan's rows are among those of another one; None if they are not of one relation.

        Args:
            left: some rows of a leaf.
            right: some rows of a leaf, perhaps joined with others.
            keys: what is compared of each: it has to be the same column.
        """
        of_left, source = self._filtered.get(left), self._with_all_values(right)
        columns = [self.leaf_column(e) for e in keys]
        if self._samples is None or of_left is None or source is None or None in columns:
            return None
        found, filtered = self._overridden.get(source), self._filtered.get(source)
        sampled = found.sampled if found is not None else ()
        if filtered is not None:
            hits = self._samples.hits(filtered.leaf, filtered.conjuncts)
            sampled = (FilteredSample(filtered.leaf, hits),) if hits is not None else ()
        for one in sampled:
            if self._samples.is_same_column((of_left.leaf, columns[0]), (one.leaf, columns[1])):
                hits = self._samples.hits(of_left.leaf, of_left.conjuncts)
                if hits is not None and hits.bit_count() >= ASSUMPTIONS.distinct_least_hits:
                    return (hits & one.hits).bit_count() / hits.bit_count()
        return None

    def _with_all_values(self, plan: LogicalPlan) -> LogicalPlan | None:
        """The join group or filtered leaf below a plan, or the plan itself, with all values that its columns have."""
        while self._overridden.get(plan) is None and self._filtered.get(plan) is None:
            if plan.kind not in _SAME_VALUES or plan.cached:
                return None
            (plan,) = plan.children
        return plan

    def is_clustered(self, filtered: FilteredLeaf | None, column: int) -> bool:
        """Whether rows of a leaf that are stored together have the same values of a join key."""
        if self._samples is None or filtered is None:
            return False
        return self._samples.is_clustered(filtered.leaf, column)

    def prefetch_samples(self, plan: LogicalPlan) -> None:
        """Send one request for the filters of a whole plan, before its parts are estimated one by one."""
        if self._samples is not None:
            self._samples.prefetch(plan, self)
            for leaf in post_order(plan):
                runs = self._samples.runs(leaf) if not leaf.children else None
                if runs:
                    known = self(leaf)
                    self._known[leaf] = replace(known, columns=with_runs(known.columns, runs))

    def __call__(self, plan: LogicalPlan) -> RelationStatistics:
        stack: list[tuple[LogicalPlan, bool]] = [(plan, False)]
        while stack:
            node, expanded = stack.pop()
            if self._is_known(node):
                continue
            below = self._below(node)
            if not expanded and below:
                stack.append((node, True))
                stack.extend((child, False) for child in below)
            else:
                self._remember(node, self._estimate(node))
                read = {cte: one for child in below for cte, one in (self._read.get(child) or {}).items()}
                if (definition := self._definition(node)) is not None:
                    read[node.info.get("cte")] = definition
                if read:
                    self._read[node] = read
        return self._known[plan]

    def _is_known(self, node: LogicalPlan) -> bool:
        """Whether a node's statistics are there, and are of what the definitions read in it are now."""
        read = self._read.get(node) or {}
        return node in self._known and all(self._definitions[cte] is found for cte, found in read.items())

    def _definition(self, node: LogicalPlan) -> LogicalPlan | None:
        return self._definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None

    def _below(self, node: LogicalPlan) -> tuple[LogicalPlan, ...]:
        definition = self._definition(node)
        if definition is not None:
            return (definition,)
        return () if node.cached else node.children

    def _estimate(self, node: LogicalPlan) -> RelationStatistics:
        below = self._below(node)
        if node.kind == "CTERelationRef" and below:
            return renamed(self._known[below[0]], below[0].output, node.output)
        inputs = [self._known[child] for child in below]
        known = self._filtered_rows(node, inputs[0]) if isinstance(node, Filter) and inputs else None
        if known is None:
            known = estimate_operator(node, inputs, self._leaf)
        return known if self._samples is None else self._counted(node, below, known, self._samples)

    def _filtered_rows(self, node: Filter, child: RelationStatistics) -> RelationStatistics | None:
        """A filter's estimate, if it is another one than its child's columns give."""
        if not self._applied:
            return filter_above_groups(node, self, self._definition)
        rest = conjunction(self._not_applied(and_operands(inline_common_expressions(node.condition))))
        if rest is None:  # what was filtered when its leaf was counted
            return child
        return filter_above_groups(node, self, self._definition) or apply_filter(child, rest)

    def _not_applied(self, conjuncts: Iterable[Expression]) -> tuple[Expression, ...]:
        return tuple(e for e in conjuncts if not self._applied or e.key not in self._applied)

    def _counted(
        self, node: LogicalPlan, below: tuple[LogicalPlan, ...], known: RelationStatistics, samples: Samples
    ) -> RelationStatistics:
        """A filter's estimate with the rows that its leaf's sample gives."""
        if not below:
            if node.cached or node.children:
                return known
            self._filtered[node] = FilteredLeaf(node)
            return known
        before = self._filtered.get(below[0])
        if before is None:
            return known
        if isinstance(node, Filter):
            first = self._known[below[0]]
            own = self._not_applied(samples.conjuncts(node.condition))
            conjuncts = (*before.conjuncts, *own)
            share = before.share
            for e in own if self._applied else (node.condition,):
                share *= selectivity(e, first)
            self._filtered[node] = after = FilteredLeaf(before.leaf, conjuncts, share)
            return self._sampled(after, known, samples)
        if node.kind in _SAME_ROWS:
            samples.add_aliases(node)
            self._filtered[node] = before
        return known

    def _sampled(self, filtered: FilteredLeaf, known: RelationStatistics, samples: Samples) -> RelationStatistics:
        base = self._known[filtered.leaf]
        share = samples.share(filtered.leaf, filtered.conjuncts, base)
        if share is None:
            return known
        rows = _rows_left(filtered, share, base)
        better = samples.random_share(filtered.leaf, filtered.conjuncts, base, share, rows)
        if better is not share:
            share, rows = better, _rows_left(filtered, better, base)
        counted = _is_count(share, base)
        bound = rows if counted else known.upper_bound
        source = f"{base.source}, sample{'' if share.hits or share.complete else ' without a hit'}"
        columns, most = dict(known.columns), dict(known.max_rows_per_value)
        for bit, found in samples.distinct(filtered.leaf, filtered.conjuncts, share, base, rows).items():
            columns[bit] = _counted_key(columns.get(bit, ColumnStatistics()), found)
            if found.most is not None and share.complete and base.exact and share.rows == base.rows:
                most[bit] = min(most.get(bit, math.inf), found.most)
        frequencies = dict(known.frequency_bounds)
        for bit, sampled in samples.frequency_bounds(filtered.leaf, share, base).items():
            if bit not in frequencies or sampled.most < frequencies[bit].most:
                frequencies[bit] = replace(sampled, norm=frequencies[bit].norm if bit in frequencies else math.inf)
        result = replace(known.with_rows(rows, bound), source=source, exact=counted, columns=columns)
        result = replace(result, max_rows_per_value=most, frequency_bounds=frequencies)
        return result.with_likely(samples.likely_bound(share, base))

    def _remember(self, node: LogicalPlan, known: RelationStatistics) -> None:
        overridden = self._overridden.get(node)
        self._known[node] = known if overridden is None else _corrected(known, overridden)


def _counted_key(column: ColumnStatistics, found: Counted) -> ColumnStatistics:
    """A join key after a filter. Of one that is unique it matters how many values it has without the filter."""
    if found.most is not None and found.most <= 1.0:
        return replace(column, guessed=False)
    ndv = found.ndv if column.ndv is None else min(column.ndv, found.ndv)
    return replace(column.with_ndv(ndv), key_values=column.key_values if found.most is None else None)


def _is_count(share: Share, base: RelationStatistics) -> bool:
    return share.complete and not share.unknown and base.exact and share.rows == base.rows


def _rows_left(filtered: FilteredLeaf, share: Share, base: RelationStatistics) -> float:
    """The rows of a leaf that its filters keep, by their share in a sample."""
    if _is_count(share, base):
        return float(share.hits)
    rest = 1.0
    for e in share.unknown:
        rest *= selectivity(e, base)
    arithmetic = min(1.0, filtered.share / rest) if rest else 0.0
    sound = not any(is_weak([e], base) for e in filtered.conjuncts if e not in share.unknown)
    return base.rows * share.estimate(arithmetic, sound) * rest


def _corrected(known: RelationStatistics, found: JoinRows) -> RelationStatistics:
    columns = dict(known.columns)
    for bit, ndv in found.distinct.items():
        column = known.column(bit)
        columns[bit] = column.with_ndv(ndv if column.ndv is None else min(column.ndv, ndv))
    rows = known.with_rows(found.rows, min(found.bound, known.upper_bound)).with_likely(found.likely)
    return replace(rows, columns=columns) if found.distinct else rows
