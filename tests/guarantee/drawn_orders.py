"""Orders drawn from all that are legal, in the place of the cheapest one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import pyjoinopt.reorder
from pyjoinopt.joins.graph import JoinGraph
from pyjoinopt.joins.search import SearchResult
from pyjoinopt.joins.tree import JoinTree
from tests.groups.small_worlds import Orders


@contextmanager
def drawn_orders(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> Iterator[list[tuple[str, str]]]:
    """Inside, every search draws; the list gets what was written and what was drawn, as texts."""
    shown: list[tuple[str, str]] = []

    def draw(
        graph: JoinGraph, estimates: object, cost: object, budget: int, written: JoinTree, stop: object
    ) -> SearchResult:
        tree = rng.choice(Orders(graph).trees)
        shown.append((written.show(graph.names, graph.sign), tree.show(graph.names, graph.sign)))
        return SearchResult(tree, -1.0, "drawn", 0)

    with monkeypatch.context() as patch:
        patch.setattr(pyjoinopt.reorder, "search", draw)
        yield shown
