"""The places of a query's predicates in a new order: each occurs once or follows from others, and none is late.

A conjunct of an inner join or a filter must be on the lowest part of an order that has all its columns, be that a
relation or the result of a join. It may be further up only on an outer join, if the rows would differ when it filtered
the side that has all its columns, because of padded rows. The test does not use the package to decide this, but
evaluates small sides full of NULLs. The condition of an outer, semi or anti join is one predicate, and stays the
condition of a join of its type.

An equality may be missing if a path of equalities between plain columns leads from one of its columns to the other, all
of them on the lowest join that has both columns or below it. Conjuncts that may fail at run time have further
requirements, and none is drawn. A derived predicate (an equality, a filter on a column that is equal to another) may be
added at most once.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pyjoinopt.cost import SparkCost
from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.plan.expressions import Expression, conjuncts, describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import FULL, INNER, INNER_LIKE, LEFT, RIGHT, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join
from pyjoinopt.util.bitset import members
from tests.oracles.joins.random_plans import Draw
from tests.oracles.joins.small_worlds import Orders, World, same
from tests.support.regions import estimates, region_of

#: By the number of relations that they read.
CONJUNCTS = {
    1: ("{0} is null", "{0} is not null", "coalesce({0}, 1) = 1", "{0} = 0"),
    2: ("{0} = {1}", "{0} <=> {1}", "coalesce({0}, 0) = {1}", "{0} = {1} or {1} is null", "{0} < {1} or {0} is null"),
    3: ("coalesce({0}, {1}) = {2}", "{0} = {1} or {1} = {2}", "{0} = {1} or {2} is null", "{0} <=> coalesce({1}, {2})"),
}


class Filtered(Draw):
    """Draws more conjuncts, over one to three relations, into inner joins and filters; now and then on one column."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, random.Random(seed).choice((3, 4, 4, 5)), plain=True)
        self.written = demote_outer_join(self.plan).plan

    def _column(self, vertex: int) -> str:
        known = self._columns[vertex]
        return self.rng.choice(known) if known and self.rng.random() < 0.2 else super()._column(vertex)

    def _draw(self, shape):
        node, seen = super()._draw(shape)
        if isinstance(node, int):
            return node, seen
        join_type, parts, left, right, above = node
        more: list[str] = []
        for chance in (0.5, 0.25):
            if self.rng.random() < chance:
                n = self.rng.randint(1, min(3, len(seen)))
                columns = [self._column(v) for v in self.rng.sample(seen, n)]
                more.append(f"({self.rng.choice(CONJUNCTS[n]).format(*columns)})")
        if join_type == INNER and self.rng.random() < 0.5:
            parts += more
        elif more:
            above = " and ".join([*more, *([above] if above else [])])
        return (join_type, parts, left, right, above), seen


class Placed:
    """Where a plan has its predicates.

    Attributes:
        joins: of each set of relations that is joined: the join, and the sets of its sides.
        inner: conjunct -> the sets that it stands on.
        others: how often there is each type of join with each condition, inner ones apart.
    """

    def __init__(self, plan: LogicalPlan, relations: list[LogicalPlan]) -> None:
        self.joins: dict[int, tuple[Join, int, int]] = {}
        self.inner: dict[str, list[tuple[Expression, int]]] = {}
        self.others: Counter[tuple[str, str]] = Counter()
        done: list[int] = []
        for node in post_order(plan):
            sides = [done.pop() for _ in node.children][::-1]
            below = sum(sides) + sum(1 << v for v, known in enumerate(relations) if known is node)
            done.append(below)
            if isinstance(node, Join):
                self.joins[below] = node, sides[0], sides[1]
            if isinstance(node, Join) and node.join_type not in INNER_LIKE:
                assert node.condition is not None
                kind = LEFT if node.join_type == RIGHT else node.join_type
                self.others[kind, describe(node.condition)] += 1
            elif isinstance(node, (Join, Filter)):
                for p in conjuncts(node.condition):
                    self.inner.setdefault(describe(p), []).append((p, below))


def follows(p: Expression, at: int, new: Placed) -> bool:
    """Does an equality follow from others that a set of relations, or a part of it, is joined on?"""
    if p.kind != "EqualTo" or any(side.kind != "AttributeReference" for side in p.children):
        return False
    equalities = [
        q.references
        for places in new.inner.values()
        for q, below in places
        if q.kind == "EqualTo" and not below & ~at and all(side.kind == "AttributeReference" for side in q.children)
    ]
    start, target = (side.references for side in p.children)
    reached, before = start, 0
    while reached != before:
        before = reached
        for pair in equalities:
            reached |= pair if pair & reached else 0
    return bool(target & reached)


def has_to_wait(join: Join, left: int, right: int, p: Expression, reads: int, draw: Draw) -> bool:
    """Does a filter on a join give other rows than on the side that has all it reads?"""
    rng = random.Random(describe(p))
    kind, on = join.join_type, join.condition
    for _ in range(5000):
        tables = [[tuple(rng.choices((0, 1, None), (3, 1, 1), k=len(r.output))) for _ in "xyz"] for r in draw.relations]
        world = World(draw.relations, tables)
        one, other = some_rows(world, left, rng), some_rows(world, right, rng)
        late = world.joined(one, other, kind, on, [p])
        test = world.test(p)
        sides = ([row for row in one if test(row)], other) if not reads & ~left else (one, [*filter(test, other)])
        if not same(late, world.joined(*sides, kind, on)):
            return True
    return False


def some_rows(world: World, relations: int, rng: random.Random) -> list[int]:
    """Rows that a join of some relations may have, some of these padded."""
    known = [world.rows(v) for v in members(relations)]
    return [sum(rng.choice(rows) for rows in known if rng.random() < 0.9) for _ in range(rng.randint(0, 3))]


@pytest.mark.parametrize("chunk", [*range(2), *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(2, 8))])
def test_every_predicate_once_and_as_early_as_it_may(chunk: int) -> None:
    counted: Counter[object] = Counter()
    for seed in range(chunk * 200, chunk * 200 + 200):
        draw = Filtered(seed)
        written = Placed(draw.written, draw.relations)
        if any(len(at) > 1 for at in written.inner.values()):
            continue  # written twice
        region = region_of(draw.written)
        graph, order = build_graph(region, {})
        rng = random.Random(seed)
        legal = Orders(graph).trees
        rows = [float(rng.choice((3, 100, 5000))) for _ in graph.relations]
        found = search(graph, estimates(graph, rows), SparkCost(), written=order).tree
        waits: dict[tuple[str, int, int], bool] = {}
        for tree in (found, *rng.sample(legal, min(3, len(legal)))):
            plan = emit(graph, tree, region).plan
            shown = f"{seed}\n{show(draw.written)}\n{show(plan)}"
            new = Placed(plan, draw.relations)
            assert new.others == written.others, shown
            assert all(len(at) == 1 for at in new.inner.values()), shown
            for text, ((p, _),) in written.inner.items():
                reads = sum(1 << v for v, r in enumerate(draw.relations) if r.output_set & p.references)
                if text not in new.inner:
                    assert follows(p, min(at for at in new.joins if not reads & ~at), new), f"{text} in {shown}"
                    counted["follows"] += 1
                    continue
                ((_, at),) = new.inner[text]
                assert reads and not reads & ~at, f"{text} in {shown}"
                counted[reads.bit_count()] += 1
                if at.bit_count() == 1:
                    continue
                join, left, right = new.joins[at]
                if reads & left and reads & right:
                    continue
                counted[join.join_type] += 1
                if (text, left, right) not in waits:
                    waits[text, left, right] = has_to_wait(join, left, right, p, reads, draw)
                assert waits[text, left, right], f"{text} in {shown}"
    assert counted.keys() == {1, 2, 3, LEFT, FULL, "follows"} and min(counted.values()) > 5, counted
