"""What samples show of semi joins: which of their left rows have a partner.

Without them the values of both sides are taken to be independent of each other (`estimation.plans.join`). Samples show
three things more.

* **How many different values the right side has**, where it is a join of its own: those of the sampled rows that are in
  the join, extrapolated (`sampled_distinct`).
* **Which values these are**, if few enough: then each sampled row of the left side is looked up among them, which makes
  the semi join a dimension of the left side's sample (`sampled_values`, `joins.cardinality.join_synopses`).
* **Which left rows are among the right side's**, if both are rows of one relation. These find themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.estimation.model.relation_statistics import WHOLE_NUMBERS
from pyjoinopt.estimation.plans.plan_estimator import FilteredLeaf, FilteredSample, PlanEstimates
from pyjoinopt.estimation.sources.column_lineage import number_of
from pyjoinopt.estimation.sources.joined_sample import JoinedSample
from pyjoinopt.estimation.sources.sampled_values import NULL, SampledValues, values_among
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Partner, Synopsis
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import EQUALITIES, Attribute, Expression, conjuncts, reference
from pyjoinopt.plan.nodes import ANTI, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher
from pyjoinopt.util.bitset import members

_STRICT = frozenset({"LessThan", "GreaterThan"})


def distinct_values(
    graph: JoinGraph,
    synopses: Sequence[Synopsis],
    output: Sequence[Attribute],
    estimates: GraphEstimates,
    estimate: PlanEstimates,
) -> dict[int, float]:
    """Different values of join keys that are left in the result of a group, where samples of joins show them.

    Args:
        graph, synopses: the group.
        output: the columns of its result.
        estimates: of its sets.
        estimate: has estimated each vertex.

    Returns:
        Attribute number of a column of the result -> its values.
    """
    among: dict[int, float] = {}
    for synopsis in synopses:
        center = estimate.filtered_leaf(graph.relations[synopsis.center.bit_length() - 1])
        if center is not None and not synopsis.by_key:
            rows = estimates.rows(synopsis.touched)
            for column, ndv in estimate.distinct_among(center.leaf, synopsis.joined(graph.everything), rows).items():
                among[column] = min(ndv, among.get(column, ndv))
    if not among:
        return {}
    columns = ((a.bit, estimate.leaf_column(reference(a))) for a in output)
    return {bit: among[column] for bit, column in columns if column in among}


def sampled_result(
    graph: JoinGraph, synopses: Sequence[Synopsis], estimate: PlanEstimates
) -> tuple[list[FilteredSample], dict[int, SampledValues]]:
    """What samples of all joins of a group show of its result.

    Returns:
        The sampled rows of leaves that are in the result, and column of a leaf -> its values there, where the sample
        has nearly all of them.
    """
    rows: list[FilteredSample] = []
    values: dict[int, SampledValues] = {}
    leaves = [leaf for leaf in map(estimate.filtered_leaf, graph.relations) if leaf is not None]
    for synopsis in synopses:
        center = estimate.filtered_leaf(graph.relations[synopsis.center.bit_length() - 1])
        if center is None or synopsis.by_key or synopsis.touched != graph.everything:
            continue
        hits = synopsis.joined(graph.everything)
        rows.append(FilteredSample(center.leaf, hits))
        for column, hashed in synopsis.hashed.items():
            type = next(_type(leaf, column) for leaf in leaves if leaf.leaf.output_set >> column & 1)
            known = values_among(hashed, hits, type, synopsis.complete)
            if known is not None:
                values[column] = known
    return rows, values


def semi_joins(
    center: int,
    joined: JoinedSample,
    partners: Sequence[Partner],
    leaves: Sequence[FilteredLeaf | None],
    graph: JoinGraph,
    estimate: PlanEstimates,
) -> tuple[list[Partner], bool]:
    """The semi and anti joins of a centre or its dimensions, where the values of their right sides are known.

    Returns:
        These, and whether all of these values are known for certain.
    """
    found: list[Partner] = []
    counted = True
    clustered = {1 << center: False, **{p.vertex: p.clustered for p in partners}}
    everything = (1 << joined.rows) - 1
    for right, edge in graph.semi_rights.items():
        left = edge.tes & ~right
        leaf = leaves[left.bit_length() - 1]
        inside = graph.relations[right.bit_length() - 1]
        keys = _semi_keys(edge, inside)
        if leaf is None or left not in clustered or keys is None or len(conjuncts(edge.predicate)) > 1:
            continue
        column = estimate.leaf_column(keys[0])
        values = estimate.values_of(inside, keys[1])
        own = joined if left == 1 << center else joined.dimensions[number_of(leaf.leaf)]
        if column is None or column not in own.hashed or values is None:
            continue
        if not _comparable(_type(leaf, column), values.type):
            continue
        counted = counted and values.complete
        matches, filled = values.found(own.hashed[column]), None
        if edge.join_type == ANTI:
            matches ^= everything
        elif own is joined:
            filled = everything ^ NULL.found(own.hashed[column])
        found.append(Partner(right, left, matches, filled, clustered[left]))
    return found, counted


def own_rows(graph: JoinGraph, estimate: PlanEstimates) -> dict[int, float]:
    """Right side of a semi or anti join, as a set -> the share of the left side's rows that are among its rows.

    Where both sides have rows of one relation, such a row has a partner in itself, whatever the filters have to do with
    each other. Samples show how many there are; without them only what has the same filters is recognised. An order's
    line that looks for another one, from another warehouse, does not find itself.
    """
    found = {}
    for right, edge in graph.semi_rights.items():
        inside = graph.relations[right.bit_length() - 1]
        keys = _semi_keys(edge, inside)
        if keys is None or keys[0].attribute is None or keys[1].attribute is None or _excludes_itself(edge):
            continue
        for plan in (graph.relations[v] for v in members(edge.ses & ~right)):
            if plan.output_set & keys[0].references:
                share = estimate.share_among(plan, inside, keys)
                if share is None and _has_same_rows(plan, inside, keys):
                    share = 1.0
                if share is not None:
                    found[right] = share
    return found


def _excludes_itself(edge: Edge) -> bool:
    """Whether no row fulfils a condition with itself: it compares two columns of one name by <>, < or >."""
    for e in conjuncts(edge.predicate):
        compared = e.children[0] if e.kind == "Not" else e
        if compared.kind in (EQUALITIES if e.kind == "Not" else _STRICT):
            one, other = (side.attribute for side in compared.children)
            if one is not None and other is not None and one.name == other.name:
                return True
    return False


def _has_same_rows(left: LogicalPlan, right: LogicalPlan, keys: tuple[Expression, Expression]) -> bool:
    """Whether two plans are proved to have the same rows, and their keys to be the same column."""
    columns = PlanMatcher().columns(*map(_unpruned, (left, right)))
    same = columns.get(keys[1].references.bit_length() - 1) if columns is not None else None
    return same is not None and same.references == keys[0].references


def _unpruned(plan: LogicalPlan) -> LogicalPlan:
    """A plan without the projections on top of it that only choose columns."""
    while isinstance(plan := without_aliases(plan), Project) and plan.only_attributes and not plan.cached:
        plan = plan.child
    return plan


def _semi_keys(edge: Edge, inside: LogicalPlan) -> tuple[Expression, Expression] | None:
    """The two operands of the one equality in a semi join's condition, that of the right side last."""
    equal = list(equalities(edge.predicate))
    if len(equal) != 1 or equal[0].null_safe:
        return None
    one, other = equal[0].left, equal[0].right
    return (other, one) if one.references & inside.output_set else (one, other)


def _type(leaf: FilteredLeaf, column: int) -> str:
    return next(a.type for a in leaf.leaf.output if a.bit == column)


def _comparable(one: str, other: str) -> bool:
    """Whether equal values of two types have the same hash."""
    return one == other or {one, other} <= WHOLE_NUMBERS
