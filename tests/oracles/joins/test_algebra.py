"""The tables of `conflicts`, checked on all small relations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from pyjoinopt.joins.graph.algebra import (
    ASSOCIATIVE,
    FIRST,
    JOIN_TYPES,
    LEFT_ASSCOM,
    NEVER,
    OPEN,
    RIGHT_ASSCOM,
    SECOND,
    Table,
)  # fmt: skip
from pyjoinopt.plan.facts.null_rejection import rejects_nulls
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, Join, LogicalPlan
from tests.oracles.joins.small_worlds import World, same
from tests.support.letters import Letters

#: Conditions over l (left) and r (right), by whether they reject NULLs of l and of r.
CONDITIONS = {
    (True, True): "{l} = {r}",
    (True, False): "{l} = coalesce({r}, 0)",
    (False, True): "coalesce({l}, 0) = {r}",
    (False, False): "{l} <=> {r}",
}
N = None
#: One-column relations of up to two rows, and two-column ones; duplicates and NULLs among them.
NARROW = [list(c) for k in range(3) for c in itertools.combinations_with_replacement([(N,), (0,)], k)]
WIDE = [[], *([row] for row in itertools.product((N, 0, 1), repeat=2))]
WIDE += [list(c) for c in itertools.combinations_with_replacement(list(itertools.product((N, 0), repeat=2)), 2)]


class Move:
    """One of the three moves: where the conditions of a and b stand, and both sides of the equation."""

    def __init__(self, name: str, table: Table, shared: int, a: tuple[int, int], b: tuple[int, int]) -> None:
        self.name, self.table, self.shared, self.a, self.b = name, table, shared, a, b

    def plans(self, r: list[LogicalPlan], a: str, on_a, b: str, on_b) -> tuple[LogicalPlan, LogicalPlan] | None:
        """Both sides; None if a condition would read columns that a semi or anti join does not output."""
        if self.name == "associative":
            one = Join(Join(r[0], r[1], a, on_a), r[2], b, on_b)
            other = Join(r[0], Join(r[1], r[2], b, on_b), a, on_a)
        elif self.name == "left asscom":
            one = Join(Join(r[0], r[1], a, on_a), r[2], b, on_b)
            other = Join(Join(r[0], r[2], b, on_b), r[1], a, on_a)
        else:
            one = Join(r[0], Join(r[1], r[2], b, on_b), a, on_a)
            other = Join(r[1], Join(r[0], r[2], a, on_a), b, on_b)
        for top in (one, other):
            outputs = top.left.output_set | top.right.output_set
            if top.condition.references & ~outputs:
                return None
        return one, other


MOVES = [
    Move("associative", ASSOCIATIVE, 1, (0, 1), (1, 2)),
    Move("left asscom", LEFT_ASSCOM, 0, (0, 1), (0, 2)),
    Move("right asscom", RIGHT_ASSCOM, 2, (0, 2), (1, 2)),
]


def worlds(shared: int) -> Iterator[tuple]:
    """Rows of three relations; the shared one has a column for each condition."""
    return itertools.product(*(WIDE if i == shared else NARROW for i in range(3)))


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_every_cell_is_true_of_all_small_relations(move: Move) -> None:
    w = Letters()
    columns = {i: ("p", "q") if i == move.shared else ("x" + str(i),) for i in range(3)}
    relations = [w.relation(f"r{i + 1}", " ".join(columns[i])) for i in range(3)]

    def conditions(sides: tuple[int, int], own: str) -> dict:
        left, right = (own if i == move.shared else columns[i][0] for i in sides)
        return {key: w(text.format(l=left, r=right)) for key, text in CONDITIONS.items()}

    of_a, of_b = conditions(move.a, "p"), conditions(move.b, "q")
    place_a, place_b = move.a.index(move.shared), move.b.index(move.shared)
    for key, on in of_a.items():
        mask = w.attribute("p").mask
        assert rejects_nulls(on, mask) == key[place_a]
    all_worlds = [World(relations, tables) for tables in worlds(move.shared)]
    for a, b in itertools.product(JOIN_TYPES, JOIN_TYPES):
        kept: dict[tuple[bool, bool], bool] = {}
        for (key_a, on_a), (key_b, on_b) in itertools.product(of_a.items(), of_b.items()):
            plans = move.plans(relations, a, on_a, b, on_b)
            if plans is None:
                continue
            rejects = key_a[place_a], key_b[place_b]
            if kept.get(rejects, True):
                kept[rejects] = all(same(world.of_plan(plans[0]), world.of_plan(plans[1])) for world in all_worlds)
        assert _need(kept) == move.table[a, b], (move.name, a, b, kept)


def _need(kept: dict[tuple[bool, bool], bool]) -> int:
    """The table cell: for which conditions, null-rejecting or not, the move was correct."""
    if not kept or not kept[True, True]:
        assert not any(kept.values())
        return NEVER
    for need in (0, FIRST, SECOND, FIRST | SECOND):
        if kept == {(a, b): (not need & FIRST or a) and (not need & SECOND or b) for a, b in kept}:
            return need
    raise AssertionError(kept)


def test_open_sides() -> None:
    assert OPEN == {
        INNER: (True, True), SEMI: (True, False), ANTI: (True, False), LEFT: (True, False), FULL: (False, False),
    }  # fmt: skip
