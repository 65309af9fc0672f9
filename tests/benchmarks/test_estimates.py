"""The sub-plans of a join group and their true counts, on tables small enough to count by hand."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks.estimates import table
from benchmarks.subplans import as_plan, connected_sets
from benchmarks.truth import Counter, Unprintable, compared_columns, to_sql
from benchmarks.workload_grader import SubPlan
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, OperatorEdge
from pyjoinopt.plan.expressions import Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import SEMI, Join, relation

K1, K2, J2, J3, K4 = (Attribute(i, i, name) for i, name in enumerate(("k1", "k2", "j2", "j3", "k4")))
BIG, SOME, FEW, SEEN = 1, 2, 4, 8


def equal(one: Attribute, side: int, other: Attribute, another: int) -> Edge:
    predicate = call("EqualTo", reference(one), reference(other))
    return Edge(predicate, side | another, side | another, ((side, reference(one)), (another, reference(other))))


@pytest.fixture
def graph() -> JoinGraph:
    """big - some - few, and a semi join of `some` with `seen` as the right side."""
    edges = (
        equal(K1, BIG, K2, SOME),
        equal(J2, SOME, J3, FEW),
        OperatorEdge(
            call("EqualTo", reference(K2), reference(K4)), SOME | SEEN, SOME | SEEN, join_type=SEMI, semi_right=SEEN
        ),
    )
    relations = (
        relation("big", [K1]), relation("some", [K2, J2]), relation("few", [J3]), relation("seen", [K4])
    )  # fmt: skip
    return JoinGraph(relations, ("big", "some", "few", "seen"), edges, ((),) * 4)


@pytest.fixture
def counter(graph: JoinGraph) -> Counter:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v0 AS SELECT * FROM (VALUES (1), (1), (2), (NULL)) t(c0)")
    connection.execute("CREATE TABLE v1 AS SELECT * FROM (VALUES (1, 10), (1, 11), (2, 10), (3, 10)) t(c1, c2)")
    connection.execute("CREATE TABLE v2 AS SELECT * FROM (VALUES (10), (10)) t(c3)")
    connection.execute("CREATE TABLE v3 AS SELECT * FROM (VALUES (1), (1), (3)) t(c4)")
    return Counter(graph, connection)


def test_sets_that_hang_together(graph: JoinGraph) -> None:
    singles, pairs = [1, 2, 4, 8], [BIG | SOME, SOME | FEW, SOME | SEEN]
    triples = [BIG | SOME | FEW, BIG | SOME | SEEN, SOME | FEW | SEEN]
    assert connected_sets(graph, 500, "") == [*singles, *pairs, *triples, 15]


def test_of_too_many_sets_the_same_ones_are_kept(graph: JoinGraph) -> None:
    some = connected_sets(graph, 5, "seed")
    assert len(some) == 5 and 15 in some and some == connected_sets(graph, 5, "seed")
    assert any(connected_sets(graph, 5, f"seed {i}") != some for i in range(5))


def test_a_set_as_a_plan(graph: JoinGraph) -> None:
    plan = as_plan(graph, 15)
    assert isinstance(plan, Join) and (plan.join_type, plan.right) == (SEMI, graph.relations[3])
    assert isinstance(plan.left, Join) and plan.left.right is graph.relations[2]
    assert as_plan(graph, FEW) is graph.relations[2]


def test_counts(counter: Counter) -> None:
    # big - some: each of the two rows of big with value 1 matches two rows, the row with value 2 matches one.
    assert counter.count(BIG) == 4 and counter.count(BIG | SOME) == 5
    # some - few: three rows with ten, each twice.
    assert counter.count(SOME | FEW) == 6
    # Of `some` the rows with one and three are seen.
    assert counter.count(SOME | SEEN) == 3
    # big - some: (1, 10) and (1, 11) twice each, (2, 10) once; those with ten meet few twice.
    assert counter.count(BIG | SOME | FEW) == 2 * 2 + 1 * 2
    assert counter.count(15) == 4


def test_only_what_is_compared_is_fetched(graph: JoinGraph) -> None:
    assert compared_columns(graph) == [[0], [1, 2], [3], [4]]


def test_predicates_for_duckdb() -> None:
    text = Expression("Like", (reference(K1), literal("a'b", "string")))
    test = call("Not", call("EqualNullSafe", reference(K1), literal("a'b", "string")))
    assert to_sql(test, "c{}".format) == "(NOT (c0 IS NOT DISTINCT FROM 'a''b'))"
    with pytest.raises(Unprintable, match="Like"):
        to_sql(text, "c{}".format)


def test_the_table() -> None:
    plans = [SubPlan("q", ("a",), 100.0, {"auto": rows, "footers": 1.0, "spark": None}) for rows in (100.0, 50.0, 0.1)]
    ours, footers = (line.split() for line in table(plans))
    assert ours[-4:] == ["2.00", "100", "100", "100"] and footers[-1] == "100"
