"""The semi and anti joins of an order that are pinned, given the row counts of its sets."""

from __future__ import annotations

import pytest

from pyjoinopt.joins.emit.pinned_semi_joins import should_pin
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import call
from pyjoinopt.plan.nodes import ANTI, FULL, LEFT, SEMI
from tests.support.graphs import Builder

A, B, C, D = (1 << i for i in range(4))


class Rows:
    """Estimates that are given."""

    def __init__(self, rows: dict[int, float]) -> None:
        self.rows = rows.__getitem__



def graph(*operators: OperatorEdge, kind: str = "EqualTo", asks: int = A) -> tuple[JoinGraph, OperatorEdge]:
    """A and B joined (by the first operator, if given), D as right side of a semi join with `asks`, C unconstrained."""
    builder = Builder([1000, 100, 10, 500])
    if not operators:
        builder.equal(0, 1)
    looking = OperatorEdge(
        call(kind, builder.column(asks.bit_length() - 1), builder.column(3)), asks | D, asks | D, join_type=SEMI,
        left_tes=asks, right_tes=D, max_left=~D, max_right=D, semi_right=D,
    )  # fmt: skip
    builder.edges += [*operators, looking]
    return builder.graph(), looking


def outer(join_type: str) -> OperatorEdge:
    return OperatorEdge(call("EqualTo"), A | B, A | B, join_type=join_type, left_tes=A, right_tes=B)


AB: JoinTree = join(leaf(0), leaf(1))


@pytest.mark.parametrize("rows, held", [(1000, False), (501, False), (500, True), (0, True)])
def test_at_most_half_the_rows(rows: float, held: bool) -> None:
    g, edge = graph()
    assert should_pin(g, edge, AB, Rows({A: 1000.0, A | B: rows})) is held


def test_on_either_side_of_an_inner_join() -> None:
    g, edge = graph(asks=B)
    assert should_pin(g, edge, AB, Rows({B: 100.0, A | B: 10.0}))


@pytest.mark.parametrize("join_type, asks, held", [(LEFT, A, True), (LEFT, B, False), (FULL, A, False)])
def test_outer_joins_let_it_through_on_the_side_that_they_keep(join_type: str, asks: int, held: bool) -> None:
    g, edge = graph(outer(join_type), asks=asks)
    rows = {A: 1000.0, B: 1000.0, A | B: 10.0}
    assert should_pin(g, edge, AB, Rows(rows)) is held


def test_a_relation_alone_holds_nothing() -> None:
    g, edge = graph()
    assert not should_pin(g, edge, leaf(0), Rows({A: 1000.0}))


@pytest.mark.parametrize("kind, held", [("EqualTo", True), ("EqualNullSafe", True), ("LessThan", False), ("Or", False)])
def test_without_a_key_spark_has_operators_of_its_own(kind: str, held: bool) -> None:
    g, edge = graph(kind=kind)
    assert should_pin(g, edge, AB, Rows({A: 1000.0, A | B: 10.0})) is held


def test_an_anti_join_passes_a_semi_join_unless_that_is_held() -> None:
    builder = Builder([1000, 100, 10, 500])
    builder.equal(0, 1)
    looking = [
        OperatorEdge(
            call("EqualTo", builder.column(0), builder.column(i)), A | 1 << i, A | 1 << i, join_type=kind,
            left_tes=A, right_tes=1 << i, max_left=~(1 << i), max_right=1 << i, semi_right=1 << i,
        )
        for i, kind in ((2, SEMI), (3, ANTI))
    ]  # fmt: skip
    builder.edges += looking
    g, below = builder.graph(), join(AB, leaf(2))
    rows = {A: 1000.0, A | B: 300.0, A | B | C: 200.0}
    assert should_pin(g, looking[1], below, Rows(rows))
    assert not should_pin(g, looking[1], below, Rows(rows), {A | B | C})
