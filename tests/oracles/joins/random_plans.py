"""Random small queries of every join type, for `test_legal_orders`."""

from __future__ import annotations

import random
from string import ascii_letters as NAMES

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from tests.support.letters import Letters

#: How often each type is drawn.
TYPES = {INNER: 5, LEFT: 6, RIGHT: 2, FULL: 3, SEMI: 1, ANTI: 1}

#: Conditions over two columns; NULL is kept by some.
PLAIN = ("{l} = {r}", "{l} = {r}", "{l} <=> {r}")
RICH = (
    *PLAIN, "{l} = {r}", "{l} < {r}", "coalesce({l}, 0) = {r}", "{l} = coalesce({r}, 1)", "{l} = {r} or {l} is null",
    "{l} = {r} or {r} is null", "not {l} = {r}", "{l} + {r} = 1",
)  # fmt: skip
ONE_SIDED = ("{l} is null", "{l} is not null", "coalesce({l}, 1) = 1", "{l} = 0", "{l} <=> 0")


class Draw:
    """Draws one query.

    Args:
        seed: of the drawing.
        n: relations.
        plain: only `=` and `<=>`, each on columns of its own, so that no order is right by coincidence.
        wide: how often a condition reads a third relation.
    """

    def __init__(
        self, seed: int, n: int, plain: bool = False, types: dict[str, int] = TYPES, wide: float = 0.05
    ) -> None:
        self.rng = random.Random(seed)
        self.letters = Letters()
        self.plain = plain
        self.types = types
        self.wide = 0.0 if plain else wide
        self._columns: list[list[str]] = [[] if plain else [f"{name}{i}" for i in range(2)] for name in NAMES[:n]]
        self._shape = self._tree(list(range(n)))
        self.relations: list[LogicalPlan] = []
        drawn = self._draw(self._shape)
        columns = zip(NAMES, self._columns)
        self.relations = [self.letters.relation(name, " ".join(own or [f"{name}9"])) for name, own in columns]
        self.plan = self._node(drawn[0])

    def _tree(self, leaves: list[int]):
        if len(leaves) == 1:
            return leaves[0]
        cut = self.rng.randint(1, len(leaves) - 1)
        return self._tree(leaves[:cut]), self._tree(leaves[cut:])

    def _column(self, vertex: int) -> str:
        if self.plain:
            self._columns[vertex].append(f"{NAMES[vertex]}{len(self._columns[vertex])}")
            return self._columns[vertex][-1]
        return self.rng.choice(self._columns[vertex])

    def _condition(self, left: list[int], right: list[int]) -> str:
        text = self.rng.choice(PLAIN if self.plain else RICH)
        one, other = self._column(self.rng.choice(left)), self._column(self.rng.choice(right))
        return text.format(l=one, r=other)

    def _draw(self, shape):
        """(join type, condition, left, right, filter above) for joins; a vertex for relations; visible ones beside."""
        if isinstance(shape, int):
            return shape, [shape]
        (left, l_seen), (right, r_seen) = self._draw(shape[0]), self._draw(shape[1])
        rng = self.rng
        join_type = rng.choices(list(self.types), list(self.types.values()))[0]
        if self.plain and join_type in (SEMI, ANTI) and not isinstance(right, int):
            join_type = LEFT  # the right side of a semi join is a separate group
        parts = [self._condition(l_seen, r_seen)]
        if rng.random() < 0.25:
            parts.append(self._condition(l_seen, r_seen))
        if not self.plain:
            if len(l_seen) > 1 and rng.random() < self.wide:
                one, two = (self._column(v) for v in rng.sample(l_seen, 2))
                parts.append(f"{one} + {two} = {self._column(rng.choice(r_seen))}")
            draw = rng.random()
            if draw < 0.1:
                parts.append(rng.choice(ONE_SIDED).format(l=self._column(rng.choice(l_seen))))
            elif draw < 0.2:
                parts.append(rng.choice(ONE_SIDED).format(l=self._column(rng.choice(r_seen))))
            elif draw < 0.25:
                parts = [rng.choice(ONE_SIDED).format(l=self._column(rng.choice(l_seen + r_seen)))]
            elif draw < 0.28 and join_type in (INNER, LEFT, FULL):
                parts = []
        seen = l_seen if join_type in (SEMI, ANTI) else l_seen + r_seen
        above = None
        if rng.random() < (0.1 if self.plain else 0.2):
            above = "{l} is null" if self.plain else rng.choice(ONE_SIDED)
            above = above.format(l=self._column(rng.choice(seen)))
        return (join_type, parts, left, right, above), seen

    def _node(self, node) -> LogicalPlan:
        if isinstance(node, int):
            return self.relations[node]
        join_type, parts, left, right, above = node
        condition: Expression | None = self.letters(" and ".join(f"({p})" for p in parts)) if parts else None
        plan: LogicalPlan = Join(self._node(left), self._node(right), join_type, condition)
        return Filter(self.letters(above), plan) if above else plan
