"""The join graph: relations as vertices, join predicates as (hyper)edges.

Each conjunct of the inner joins is an edge of its own. Two sets of vertices describe it:

* its **SES** (syntactic eligibility set): the vertices whose columns it reads. A conjunct over one vertex is a filter
  of that vertex; one over three or more is a hyperedge, which the first join that has all of them can apply;
* its **TES** (total eligibility set): the vertices that must be joined before it may be applied. It is larger than the
  SES where an outer, semi or anti join must come first, and where the predicate may throw at run time (a division in
  ANSI mode): such a predicate must not be evaluated on rows on which the written query did not evaluate it, so it waits
  for every relation that was below it.

An outer, semi or anti join is one edge with its whole condition, an **operator**. It has a TES for each of its sides
and a set that each side must not exceed (`eligibility`). The join that first has its whole TES must be that operator
(`allows_join`). The right side of a semi or anti join is a vertex that is connected with nothing else: it is always the
whole right side of that join.

Waiting is not enough for a predicate that may throw, because Spark moves a predicate down to the lowest join that has
all its columns. So there are **co-requirements** (S, N): a join result that contains all of S must contain all of N.

    SELECT * FROM a JOIN b ON a.x = b.x JOIN c ON a.y = c.y WHERE 10 / b.y > c.z

has the co-requirement ({b, c}, {a, b, c}): an order that joins b with c first would evaluate the division for rows of b
without a partner in a.

Sets of vertices are ints, bit *i* for vertex *i*.

Source: the names SES and TES are those of Moerkotte, Fender and Eich, "On the Correct and Complete Enumeration of the
Core Search Space", SIGMOD 2013, section 5.
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
#: Of an equality: for each side the vertices that it reads, and the expression.
Keys = tuple[tuple[int, Expression], tuple[int, Expression]]


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A conjunct of the inner joins that reads at least two relations, or that must wait for several.

    Attributes:
        predicate: the conjunct.
        ses: the vertices that it reads.
        tes: the vertices that must be joined before it may be applied; a superset of `ses`.
        keys: of an equality of one expression on each of two vertex sets.
        implied: True if it follows from other edges (transitive equality): it selects nothing more.
        equality_class: number of the class of columns that it equates, -1 if none.
        join_type: inner.
    """

    predicate: Expression
    ses: int
    tes: int
    keys: Keys | None = None
    implied: bool = False
    equality_class: int = -1
    join_type: str = INNER


@dataclass(frozen=True, slots=True, eq=False)
class OperatorEdge(Edge):
    """An outer, semi or anti join, with its whole condition as predicate.

    Attributes:
        join_type: left, full, semi or anti; a right join is a left join with its sides exchanged.
        left_tes, right_tes: what its left and its right side must contain.
        max_left, max_right: what they may contain at most; -1 for anything.
        semi_right: the right side of a semi or anti join, one vertex as a set; 0 for an outer join.
        subquery: of a semi or anti join that has to be built as an IN or EXISTS, wherever it is in the order: which.
    """

    left_tes: int = 0
    right_tes: int = 0
    max_left: int = -1
    max_right: int = -1
    semi_right: int = 0
    subquery: int | None = None

    def fits(self, left: int, right: int) -> bool:
        """Whether it may join these sets, as its left and its right side."""
        return not (
            self.left_tes & ~left or self.right_tes & ~right or left & ~self.max_left or right & ~self.max_right
        )


@dataclass(eq=False)
class JoinGraph:
    """What the search orders: vertices 0..n-1 and the edges between them.

    Attributes:
        relations: the plan of each vertex, its own filters included.
        names: a short unique name of each vertex, for people.
        edges: all join predicates, implied ones last.
        filters: per vertex the conjuncts that its plan applies on top of its source (already inside `relations`).
        co_required: pairs (S, N): a join result that contains all of S must contain all of N.
        only_as_written: True if the order decides to which relations Spark copies a filter that may throw.
    """

    relations: tuple[LogicalPlan, ...]
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    filters: tuple[tuple[Expression, ...], ...]
    co_required: tuple[tuple[int, int], ...] = ()
    only_as_written: bool = False

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
            if edge.tes.bit_count() == 2:
                one = edge.tes & -edge.tes
                other = edge.tes ^ one
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
        """Edges whose TES has three or more vertices."""
        return tuple(e for e in self.edges if e.tes.bit_count() > 2)

    @cached_property
    def edges_of(self) -> tuple[tuple[Edge, ...], ...]:
        """Per vertex the edges whose TES has it."""
        return tuple(tuple(e for e in self.edges if e.tes >> v & 1) for v in range(len(self.relations)))

    @cached_property
    def operators(self) -> tuple[OperatorEdge, ...]:
        """The outer, semi and anti joins."""
        return tuple(edge for edge in self.edges if isinstance(edge, OperatorEdge))

    @cached_property
    def semi_rights(self) -> dict[int, OperatorEdge]:
        """The right side of each semi and anti join, one vertex as a set -> that join."""
        return {edge.semi_right: edge for edge in self.operators if edge.semi_right}

    def allows(self, relations: int) -> bool:
        """Whether an order may have a join result of this set, as far as co-requirements are concerned."""
        return all(present & ~relations or not needed & ~relations for present, needed in self.co_required)

    @cached_property
    def _operators_at(self) -> list[int]:
        """Per vertex the operators whose TES has it, as a set of their numbers."""
        found = [0] * len(self.relations)
        for i, edge in enumerate(self.operators):
            for vertex in members(edge.tes):
                found[vertex] |= 1 << i
        return found

    @cached_property
    def _reached(self) -> dict[int, int]:
        return {}

    def _operators_reached(self, relations: int) -> int:
        """The operators whose TES has some of these vertices, as a set of their numbers."""
        found = self._reached.get(relations)
        if found is None:
            found, of = 0, self._operators_at
            for vertex in members(relations):
                found |= of[vertex]
            self._reached[relations] = found
        return found

    def _applied_operators(self, one: int, other: int) -> list[OperatorEdge]:
        """The operators whose TES the join of two disjoint sets is the first to complete."""
        candidates = [self.operators[i] for i in members(self._operators_reached(one) & self._operators_reached(other))]
        return [edge for edge in candidates if not edge.tes & ~(one | other)]

    def operator(self, one: int, other: int) -> OperatorEdge | None:
        """The operator that the join of two disjoint sets applies; the widest one where there are several."""
        if not self.operators:
            return None
        return max(self._applied_operators(one, other), key=lambda e: e.tes.bit_count(), default=None)

    def allows_join(self, one: int, other: int) -> bool:
        """Whether an order may join these two sets, one way round or the other, as far as operators are concerned."""
        if not self.operators or not self._operators_reached(one) & self._operators_reached(other):
            return True
        applied = self._applied_operators(one, other)
        return not applied or (len(applied) == 1 and (applied[0].fits(one, other) or applied[0].fits(other, one)))

    def legal_join(self, one: int, other: int) -> tuple[bool, OperatorEdge | None]:
        """`allows_join` and, if it does, `operator`: both are needed of each pair that a search compares."""
        reached = self._reached
        at_one, at_other = reached.get(one), reached.get(other)
        if at_one is None:
            at_one = self._operators_reached(one)
        if at_other is None:
            at_other = self._operators_reached(other)
        candidates = at_one & at_other
        both, found = one | other, None
        while candidates:
            low = candidates & -candidates
            candidates ^= low
            edge = self.operators[low.bit_length() - 1]
            if not edge.tes & ~both:
                if found is not None:
                    return False, None
                found = edge
        return found is None or found.fits(one, other) or found.fits(other, one), found

    def can_grow(self, relations: int) -> bool:
        """Whether this set can be part of a larger join result, as far as the sides of operators are concerned.

        A set with a part of one side of an operator ends up on that side, so it must not contain what that side may
        not contain. The condition is necessary only: two operators together may still leave no further step.
        """
        for i in members(self._operators_reached(relations)):
            edge = self.operators[i]
            if not edge.tes & ~relations:
                continue
            on_left, on_right = relations & edge.left_tes, relations & edge.right_tes
            if on_left and (on_right or relations & ~edge.max_left) or on_right and relations & ~edge.max_right:
                return False
        return True

    def allows_order(self, tree: JoinTree) -> bool:
        """Whether an order, with its sides in their places, gives the rows of the written one."""
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
        return [e for e in self.edges if not e.tes & ~both and e.tes & ~left and e.tes & ~right]

    def connected(self, left: int, right: int) -> bool:
        """True if some edge is applied by this very join (it is no cross product)."""
        if self.neighbours(left) & right:
            return True
        both = left | right
        return any(not e.tes & ~both and e.tes & left and e.tes & right for e in self.wide_edges)


def sign_of(edge: Edge) -> str:
    """How to write the kind of join that an edge is."""
    return _SIGNS.get(edge.join_type, "⋈")


def merge_parts(parts: Sequence[int], tes_of_edges: Iterable[int]) -> list[int]:
    """Disjoint sets, merged by edges, given by their TES, for as long as one of them is completed by two sets.

    >>> [bin(part) for part in merge_parts([0b1, 0b10, 0b100, 0b1000], [0b111, 0b11])]
    ['0b111', '0b1000']
    """
    part_of = {vertex: part for part in parts for vertex in members(part)}
    left, changed = list(tes_of_edges), True
    while changed:
        changed, still = False, []
        for tes in left:
            touched = {part_of[vertex] for vertex in members(tes)}
            if len(touched) > 2:
                still.append(tes)
            elif len(touched) == 2:
                changed = True
                merged = sum(touched)
                part_of.update(dict.fromkeys(members(merged), merged))
        left = still
    return list(dict.fromkeys(part_of[vertex] for part in parts for vertex in members(part)))
