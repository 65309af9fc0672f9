"""The table of how operators change the rows of their child, and its uses in the package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from pyjoinopt.catalyst.rules import push_predicate_through_non_join
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.operators import estimate_operator
from pyjoinopt.estimation.sources.partition_pruning import partition_filters
from pyjoinopt.plan import operator_kinds as kinds
from pyjoinopt.plan.expressions import Attribute, call, literal, reference
from pyjoinopt.plan.facts import distinct_keys, max_rows
from pyjoinopt.plan.facts.never_null import never_null_above
from pyjoinopt.plan.facts.or_extraction import top_filters
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, relation
from pyjoinopt.plan.operator_kinds import OPERATOR_KINDS, Rows, operator_kind
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join

A, B = Attribute(0, 1, "a", "int"), Attribute(1, 2, "b", "int")
POSITIVE = call("GreaterThan", reference(B), literal(0, "int"))

#: Operators over rows (a, b) as functions of a list; a limit takes the first, as one of the answers that there may be.
MODELS = {
    "Sort": lambda rows: sorted(rows, reverse=True),
    "Repartition": lambda rows: rows[::-1],
    "RebalancePartitions": lambda rows: rows[1::2] + rows[::2],
    "Filter": lambda rows: [r for r in rows if r[0] != 1],
    "Project": lambda rows: [(a + b, b) for a, b in rows],
    "Window": lambda rows: [(a, b, i) for i, (a, b) in enumerate(rows)],
    "GlobalLimit": lambda rows: rows[:2],
    "Offset": lambda rows: rows[1:],
    "Distinct": lambda rows: list(dict.fromkeys(rows)),
    "Deduplicate": lambda rows: list({a: (a, b) for a, b in rows}.values()),
    "SubqueryAlias": lambda rows: rows,
    "CollectMetrics": lambda rows: rows,
}


def worlds() -> Iterator[list[tuple[int, int]]]:
    cells = [(0, 0), (0, 1), (1, 1)]
    for count in range(4):
        yield from map(list, product(cells, repeat=count))


@pytest.mark.parametrize("kind", MODELS)
def test_the_table_holds_of_small_worlds(kind: str) -> None:
    known, model = OPERATOR_KINDS[kind], MODELS[kind]
    for rows in worlds():
        result = [row[:2] for row in model(rows)]
        if known.rows is Rows.EACH:
            assert len(result) == len(rows)
        assert len(result) <= len(rows)
        if known.columns:
            assert all(result.count(row) <= rows.count(row) for row in result)
        if known.filters:
            assert sorted(r for r in result if r[1]) == sorted(r[:2] for r in model([r for r in rows if r[1]]))
        if known.duplicates:
            assert set(result) == {row[:2] for row in model(list(dict.fromkeys(rows)))}


def test_what_cannot_be_computed_is_not_shown() -> None:
    """A world that shows why for each kind that has no mark."""
    limit, dedup, window = MODELS["GlobalLimit"], MODELS["Deduplicate"], MODELS["Window"]
    assert [r for r in limit([(0, 0), (0, 0), (0, 1)]) if r[1]] != limit([(0, 1)])
    assert set(limit([(0, 0), (0, 0), (0, 1)])) != set(limit([(0, 0), (0, 1)]))
    assert [r for r in dedup([(0, 1), (0, 0)]) if r[1]] != dedup([(0, 1)])
    assert [r for r in window([(0, 0), (0, 1)]) if r[1]] != window([(0, 1)])
    for kind in ("GlobalLimit", "Deduplicate", "Window", "CollectMetrics"):
        assert kind not in kinds.PASSES_FILTERS | kinds.IGNORES_DUPLICATES


@pytest.mark.parametrize("kind", ["Aggregate", "Generate", "Expand", "Sample", "Join", "Union", "NewInSpark5"])
def test_an_operator_that_is_not_in_the_table_may_do_anything(kind: str) -> None:
    assert operator_kind(LogicalPlan(kind)) == kinds.OperatorKind()
    assert all(kind not in known for known in (kinds.NEVER_MORE_ROWS, kinds.PASSES_FILTERS, kinds.ROW_SUBSETS))


def over(kind: str, child: LogicalPlan) -> LogicalPlan:
    return LogicalPlan(kind, (child,), child.output)


@pytest.mark.parametrize("kind", sorted(OPERATOR_KINDS.keys() - {"Filter", "Project", "Window"}))
def test_rooms_agree(kind: str) -> None:
    """RebalancePartitions, HintScope and the like are transparent either everywhere or nowhere."""
    known = OPERATOR_KINDS[kind]
    table, other = relation("t", [A]), relation("u", [B])
    outer = Join(table, other, "LeftOuter", call("EqualTo", reference(A), reference(B)))
    filtered = Filter(POSITIVE, over(kind, outer))
    demoted = demote_outer_join(filtered).plan is not filtered
    assert demoted == known.filters
    assert bool(never_null_above(filtered)[id(outer)]) == known.filters
    assert list(top_filters(over(kind, Filter(POSITIVE, other)))) == [POSITIVE]
    given = RelationStatistics(100.0, 800.0, upper_bound=100.0)
    kept = estimate_operator(over(kind, table), [given], lambda leaf: given)
    assert (kept.rows, kept.upper_bound) == (100.0, 100.0) or known.rows is Rows.SOME
    leaf = LogicalPlan("LogicalRelation", (), (B,), number=7, info={"rel": {"partitionCols": [1]}})
    nodes = [leaf, between := over(kind, leaf), Filter(POSITIVE, between)]
    assert bool(partition_filters(nodes)) == known.is_name


def test_lists_of_catalyst_are_their_own() -> None:
    """They cover fewer operators, and claim no more about rows than the table, except for Catalyst-only ones."""
    assert distinct_keys._KEEP_KEYS <= kinds.ROW_SUBSETS | {"Window"}
    assert {"CollectMetrics", "EventTimeWatermark"} & distinct_keys._KEEP_KEYS == set()
    assert (max_rows._NO_MORE | max_rows._NO_MORE_BY_PARTITION) & OPERATOR_KINDS.keys() <= kinds.NEVER_MORE_ROWS
    pushed = push_predicate_through_non_join._GENERIC & OPERATOR_KINDS.keys()
    assert pushed == {"Distinct", "RepartitionByExpression", "Repartition", "RebalancePartitions", "Sort"}
    assert pushed <= kinds.PASSES_FILTERS
