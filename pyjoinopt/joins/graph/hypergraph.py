"""The join graph: relations as vertices, join predicates as (hyper)edges.

Each conjunct of the inner joins is an edge of its own, over the set of vertices that it reads. A predicate over one
vertex is a filter of that vertex. A predicate over three or more makes a hyperedge: it can be applied by the first
join that has all of them. `required` is where an edge differs from plain textbook ones: a predicate that may fail at
run time (ANSI division, say) must not meet rows that it did not meet as the query was written, so it waits for every
relation that stood below it then. Waiting alone does not do: Spark moves a predicate down to the lowest join that has
all it reads. So an order may join what such an edge reads only together with what was below that join as written; semi
and anti joins that may fail are no different, nor are filters that stay above the group (`guarded`). And Spark computes
both sides of an equality for all rows of its join's sides: one that may fail keeps its side together.

An outer, semi or anti join is one edge with its whole condition, an *operator*. It says for each of its sides what it
must hold and what it may hold at most (`eligibility` works that out), and the join that first has all it needs must
be that operator: `allows_join` asks so of two sets. What a semi or anti join looks into is a vertex that has nothing
else to do with the graph: the lone right side of that join.

Sets of vertices are ints, bit *i* for vertex *i*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, LogicalPlan
from pyjoinopt.util.bitset import members

_SIGNS = {LEFT: "⟕", FULL: "⟗", SEMI: "⋉", ANTI: "▷"}


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
        join_type: left, full, semi or anti if the edge is such a join, with its whole condition as predicate.
        right: the vertex that a semi or anti join looks into, as a set.
        sides: what the left and the right side of such a join must hold.
        room: what they may hold at most.
        together: vertices without which no join result may have all of `relations`; 0 if it does not matter.
        apart: more such pairs: (vertices that no join result may have all of, vertices without which it may not).
        subquery: of a semi or anti join that has to be built as an IN or EXISTS, wherever it is in the order: which.
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
    apart: tuple[tuple[int, int], ...] = ()
    sides: tuple[int, int] = (0, 0)
    room: tuple[int, int] = (-1, -1)
    subquery: int | None = None

    def fits(self, left: int, right: int) -> bool:
        """May an operator join these sets, in these places?"""
        (l_needs, r_needs), (l_room, r_room) = self.sides, self.room
        return not (l_needs & ~left or r_needs & ~right or left & ~l_room or right & ~r_room)


@dataclass(eq=False)
class JoinGraph:
    """What the search orders: vertices 0..n-1 and the edges between them.

    Attributes:
        relations: the plan of each vertex, its own filters included.
        names: a short unique name of each vertex, for people.
        edges: all join predicates, implied ones last.
        filters: per vertex the conjuncts that its plan applies on top of its source (already inside `relations`).
        guarded: (vertices, what no join result that has them all may lack), of predicates that stand above the group.
    """

    relations: tuple[LogicalPlan, ...]
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    filters: tuple[tuple[Expression, ...], ...]
    guarded: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.relations)

    @property
    def everything(self) -> int:
        """The set of all vertices."""
        return (1 << len(self.relations)) - 1

    def names_of(self, relations: int) -> tuple[str, ...]:
        """The names of a set of vertices."""
        return tuple(self.names[v] for v in members(relations))

    @cached_property
    def is_fallible(self) -> bool:
        """True if some join predicate may fail at run time."""
        return any(may_throw(edge.predicate) for edge in self.edges)

    @cached_property
    def adjacency(self) -> tuple[int, ...]:
        """Per vertex the vertices that share a two-vertex edge with it and may be joined on it at once."""
        near = [0] * len(self.relations)
        for edge in self.edges:
            if edge.required.bit_count() == 2:
                one = edge.required & -edge.required
                other = edge.required ^ one
                near[one.bit_length() - 1] |= other
                near[other.bit_length() - 1] |= one
        return tuple(near)

    @cached_property
    def class_of(self) -> dict[int, int]:
        """Column -> its equality class, of all columns that are in one."""
        found: dict[int, int] = {}
        for edge in self.edges:
            if edge.equality_class >= 0 and edge.keys is not None:
                for _, e in edge.keys:
                    if e.attribute is not None:
                        found[e.attribute.bit] = edge.equality_class
        return found

    @cached_property
    def unclassed(self) -> tuple[Edge, ...]:
        """The edges of inner joins that belong to no equality class."""
        return tuple(edge for edge in self.edges if edge.equality_class < 0 and edge.join_type == INNER)

    @cached_property
    def wide_edges(self) -> tuple[Edge, ...]:
        """Edges that need three or more vertices."""
        return tuple(e for e in self.edges if e.required.bit_count() > 2)

    @cached_property
    def edges_of(self) -> tuple[tuple[Edge, ...], ...]:
        """Per vertex the edges that require it."""
        return tuple(tuple(e for e in self.edges if e.required >> v & 1) for v in range(len(self.relations)))

    @cached_property
    def operators(self) -> tuple[Edge, ...]:
        """The outer, semi and anti joins."""
        return tuple(edge for edge in self.edges if edge.join_type != INNER)

    @cached_property
    def looking(self) -> dict[int, Edge]:
        """Vertex (as a set) that a semi or anti join looks into -> that join."""
        return {edge.right: edge for edge in self.edges if edge.right}

    @cached_property
    def late(self) -> tuple[tuple[int, int], ...]:
        """(vertices, what no join result that has them all may lack), of the edges that may fail."""
        pairs = [(e.relations, e.together) for e in self.edges if e.together]
        pairs += [pair for e in self.edges for pair in e.apart]
        pairs += self.guarded
        return tuple((reads, together) for reads, together in pairs if together & ~reads)

    def allows(self, relations: int) -> bool:
        """May an order have a join result of this set?"""
        return all(reads & ~relations or not together & ~relations for reads, together in self.late)

    @cached_property
    def _operators_of(self) -> list[int]:
        """Per vertex the operators that require it, as a set of their numbers."""
        found = [0] * len(self.relations)
        for i, edge in enumerate(self.operators):
            for vertex in members(edge.required):
                found[vertex] |= 1 << i
        return found

    @cached_property
    def _touching(self) -> dict[int, int]:
        return {}

    def _touch(self, relations: int) -> int:
        """The operators that require some of these vertices."""
        found = self._touching.get(relations)
        if found is None:
            found, of = 0, self._operators_of
            for vertex in members(relations):
                found |= of[vertex]
            self._touching[relations] = found
        return found

    def _applied_operators(self, one: int, other: int) -> list[Edge]:
        """The operators that the join of two disjoint sets is the first to have all they require."""
        candidates = [self.operators[i] for i in members(self._touch(one) & self._touch(other))]
        return [edge for edge in candidates if not edge.required & ~(one | other)]

    def operator(self, one: int, other: int) -> Edge | None:
        """The operator that the join of two disjoint sets applies; the widest one where there are several."""
        return max(self._applied_operators(one, other), key=lambda e: e.required.bit_count(), default=None)

    def allows_join(self, one: int, other: int) -> bool:
        """May an order join these two sets, one way round or the other, as far as its operators are concerned?"""
        if not self._touch(one) & self._touch(other):
            return True
        applied = self._applied_operators(one, other)
        return not applied or (len(applied) == 1 and (applied[0].fits(one, other) or applied[0].fits(other, one)))

    def leads_on(self, relations: int) -> bool:
        """May a larger set be made of this one, for all that its operators say of their sides?

        What has a part of one side of an operator ends up on that side, so it must not hold what has no place there.
        It is necessary only: two operators together may still leave no way on.
        """
        for i in members(self._touch(relations)):
            edge = self.operators[i]
            if not edge.required & ~relations:
                continue
            on_left, on_right = relations & edge.sides[0], relations & edge.sides[1]
            if on_left and (on_right or relations & ~edge.room[0]) or on_right and relations & ~edge.room[1]:
                return False
        return True

    def allows_order(self, tree: JoinTree) -> bool:
        """Does an order, with its sides in their places, give the rows of the written one?"""
        for node in tree.post_order():
            if node.left is None or node.right is None:
                continue
            left, right = node.left.relations, node.right.relations
            if not self.allows(node.relations) or not self.allows_join(left, right):
                return False
            edge = self.operator(left, right)
            if edge is not None and not edge.fits(left, right):
                return False
        return True

    def sign(self, left: int, right: int) -> str:
        """How to write the join of two sets, for `JoinTree.show`."""
        edge = self.operator(left, right)
        return sign_of(edge) if edge is not None else "⋈"

    def neighbours(self, relations: int) -> int:
        """Vertices outside the set with a two-vertex edge into it."""
        near = 0
        for vertex in members(relations):
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


def sign_of(edge: Edge) -> str:
    """How to write the kind of join that an edge is."""
    return _SIGNS.get(edge.join_type, "⋈")


def merge_parts(parts: Sequence[int], waiting: Iterable[int]) -> list[int]:
    """Disjoint sets joined by edges, given as the sets that they require, for as long as one completes two of them.

    >>> [bin(part) for part in merge_parts([0b1, 0b10, 0b100, 0b1000], [0b111, 0b11])]
    ['0b111', '0b1000']
    """
    part_of = {vertex: part for part in parts for vertex in members(part)}
    left, changed = list(waiting), True
    while changed:
        changed, still = False, []
        for required in left:
            touched = {part_of[vertex] for vertex in members(required)}
            if len(touched) > 2:
                still.append(required)
            elif len(touched) == 2:
                changed = True
                merged = sum(touched)
                part_of.update(dict.fromkeys(members(merged), merged))
        left = still
    return list(dict.fromkeys(part_of[vertex] for part in parts for vertex in members(part)))
