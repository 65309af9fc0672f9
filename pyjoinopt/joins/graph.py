"""The join graph: relations as vertices, join predicates as (hyper)edges.

Each conjunct of the inner joins is an edge of its own, over the set of vertices that it reads. A predicate over one
vertex is a filter of that vertex. A predicate over three or more makes a hyperedge: it can be applied by the first
join that has all of them. `required` is where an edge differs from plain textbook ones: a predicate that may fail at
run time (ANSI division, say) must not meet rows that it did not meet as the query was written, so it waits for every
relation that stood below it then. Waiting alone does not do: Spark moves a predicate down to the lowest join that has
all it reads. So an order may join what such an edge reads only together with what was below that join as written.

A semi or anti join is an edge too: it looks from some vertices into one that has nothing else to do with the graph.
That vertex can only be the lone right side of a join whose left side has all the others, so the edge needs no rule of
its own in the search: whatever set holds the looked-into vertex and more holds the whole edge.

Sets of vertices are ints, bit *i* for vertex *i*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import INNER, SEMI, LogicalPlan


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """One conjunct that reads at least two relations.

    Attributes:
        predicate: the conjunct.
        relations: the vertices that it reads.
        required: the vertices that must be joined before it may be applied; a superset of `relations`.
        keys: for an equality of one expression on each of two vertex sets: ((vertices, expression), (…)).
        implied: True if it follows from other edges (transitive equality): it selects nothing more.
        equality_class: number of the class of columns that it equates, -1 if none.
        join_type: `LeftSemi` or `LeftAnti` if the edge is such a join, with its whole condition as predicate.
        right: the vertex that such a join looks into, as a set.
        together: vertices without which no join result may have all of `relations`; 0 if it does not matter.
    """

    predicate: Expression
    relations: int
    required: int
    keys: tuple[tuple[int, Expression], tuple[int, Expression]] | None = None
    implied: bool = False
    equality_class: int = -1
    join_type: str = INNER
    right: int = 0
    together: int = 0


@dataclass(eq=False)
class JoinGraph:
    """What the search orders: vertices 0..n-1 and the edges between them.

    Attributes:
        relations: the plan of each vertex, its own filters included.
        names: a short unique name of each vertex, for people.
        edges: all join predicates, implied ones last.
        filters: per vertex the conjuncts that its plan applies on top of its source (already inside `relations`).
    """

    relations: tuple[LogicalPlan, ...]
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    filters: tuple[tuple[Expression, ...], ...]

    def __len__(self) -> int:
        return len(self.relations)

    @property
    def everything(self) -> int:
        """The set of all vertices."""
        return (1 << len(self.relations)) - 1

    @cached_property
    def adjacency(self) -> tuple[int, ...]:
        """Per vertex the vertices that share a two-vertex edge with it and may be joined on it at once."""
        near = [0] * len(self.relations)
        for edge in self.edges:
            if edge.required.bit_count() == 2:
                for vertex in vertices(edge.required):
                    near[vertex] |= edge.required & ~(1 << vertex)
        return tuple(near)

    @cached_property
    def wide_edges(self) -> tuple[Edge, ...]:
        """Edges that need three or more vertices."""
        return tuple(e for e in self.edges if e.required.bit_count() > 2)

    @cached_property
    def edges_of(self) -> tuple[tuple[Edge, ...], ...]:
        """Per vertex the edges that require it."""
        return tuple(tuple(e for e in self.edges if e.required >> v & 1) for v in range(len(self.relations)))

    @cached_property
    def looking(self) -> dict[int, Edge]:
        """Vertex (as a set) that a semi or anti join looks into -> that join."""
        return {edge.right: edge for edge in self.edges if edge.right}

    @cached_property
    def late(self) -> tuple[tuple[int, int], ...]:
        """(vertices, what no join result that has them all may lack), of the edges that may fail."""
        return tuple((e.relations, e.together) for e in self.edges if e.together & ~e.relations)

    def allows(self, relations: int) -> bool:
        """May an order have a join result of this set?"""
        return all(reads & ~relations or not together & ~relations for reads, together in self.late)

    @property
    def signs(self) -> dict[int, str]:
        """How to write the joins that are no inner ones, for `JoinTree.show`."""
        return {right: "⋉" if edge.join_type == SEMI else "▷" for right, edge in self.looking.items()}

    def neighbours(self, relations: int) -> int:
        """Vertices outside the set with a two-vertex edge into it."""
        near = 0
        for vertex in vertices(relations):
            near |= self.adjacency[vertex]
        return near & ~relations

    def applied_by(self, left: int, right: int) -> list[Edge]:
        """The edges, implied ones too, that the join of two disjoint sets applies for the first time."""
        both = left | right
        return [e for e in self.edges if not e.required & ~both and e.required & ~left and e.required & ~right]

    def connected(self, left: int, right: int) -> bool:
        """True if some edge is applied by this very join (it is no cross product)."""
        if self.neighbours(left) & right:
            return True
        both = left | right
        return any(not e.required & ~both and e.required & left and e.required & right for e in self.wide_edges)


def vertices(relations: int) -> Iterator[int]:
    """The members of a set, ascending.

    >>> list(vertices(0b1010))
    [1, 3]
    """
    while relations:
        low = relations & -relations
        yield low.bit_length() - 1
        relations ^= low


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names made unique: a second `orders` becomes `orders_2`.

    >>> unique_names(["o", "o", "c"])
    ('o', 'o_2', 'c')
    """
    taken: dict[str, int] = {}
    result = []
    for name in names:
        taken[name] = count = taken.get(name, 0) + 1
        result.append(name if count == 1 else f"{name}_{count}")
    return tuple(result)
