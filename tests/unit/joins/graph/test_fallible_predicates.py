"""Where a predicate may be copied to columns that are equated with its own."""

from __future__ import annotations

import pytest

from pyjoinopt.joins.graph import fallible_predicates
from pyjoinopt.joins.graph.fallible_predicates import substitution_sets
from tests.support.letters import Letters


@pytest.fixture
def w() -> Letters:
    w = Letters()
    for name in ("a", "b", "c"):
        w.relation(name, f"{name}1 {name}2")
    return w


def _vertices(w: Letters) -> dict[int, int]:
    return {w.attribute(f"{name}{n}").bit: 1 << v for v, name in enumerate("abc") for n in (1, 2)}


def test_of_every_column_that_is_equal(w: Letters) -> None:
    equals = {w.attribute("a1").bit: 0b101, w.attribute("c1").bit: 0b101}
    assert substitution_sets(w("a1 > b2"), equals, _vertices(w)) == [0b011, 0b110]
    assert substitution_sets(w("a1 > c1"), equals, _vertices(w)) == [0b001, 0b100, 0b101]
    assert substitution_sets(w("a2 > b2"), equals, _vertices(w)) == [0b011]


def test_too_many_to_compare(w: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallible_predicates, "_MOST", 3)
    equals = {w.attribute(name).bit: 0b111 for name in ("a1", "b1")}
    assert substitution_sets(w("a1 > b1"), equals, _vertices(w)) == [0]
