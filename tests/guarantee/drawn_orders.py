"""Random legal join orders in place of the cheapest one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import pyjoinopt.optimizer.order_group
from pyjoinopt.joins.emit.join_predicates import join_predicates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import SearchResult
from pyjoinopt.joins.search.search_context import SearchContext
from tests.oracles.joins.small_worlds import Orders
from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def drawn_orders(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> Iterator[list[tuple[str, str]]]:
    """In this context every search draws a random order; the list gets the written and the drawn orders as text."""
    shown: list[tuple[str, str]] = []

    def draw(context: SearchContext, budget: int, written: JoinTree) -> SearchResult:
        graph = context.graph
        trees = Orders(graph).trees
        if graph.co_required:  # the search makes no product then, either
            trees = [tree for tree in trees if not _has_product(graph, tree)]
        tree = rng.choice(trees)
        shown.append((written.show(graph.names, graph.sign), tree.show(graph.names, graph.sign)))
        return SearchResult(tree, -1.0, "drawn", 0)

    with monkeypatch.context() as patch:
        patch.setattr(pyjoinopt.optimizer.order_group, "choose_order", draw)
        yield shown


def _has_product(graph: JoinGraph, tree: JoinTree) -> bool:
    sides = ((node.left.relations, node.right.relations) for node in tree.post_order() if node.left and node.right)
    return any(graph.operator(*both) is None and not join_predicates(graph, *both) for both in sides)


def in_drawn_orders(
    plain: DataFrame, monkeypatch: pytest.MonkeyPatch, seed: str, times: int
) -> list[list[tuple[str, str]]]:
    """Check schema and rows of a query in drawn orders against the query as written.

    Returns:
        For each repetition, a pair per group: the written order and the drawn one.
    """
    expected, rng, drawn = plain.collect(), random.Random(seed), []
    for _ in range(times):
        with drawn_orders(monkeypatch, rng) as shown:
            fast = plain.optimize_joins(strict=True, hints=False)
        assert_same_schema(plain, fast)
        assert_same_rows(expected, fast.collect(), label=("as written", str(shown)))
        drawn.append(shown)
    return drawn
