"""Which joins of a group have the least certain row counts: those whose estimates rest on the most assumptions.

    SELECT * FROM a JOIN b ON a.x = b.x AND a.y = b.y JOIN c ON b.k = c.id JOIN d ON c.z < d.z

a ⋈ b rests on two counts of distinct values, and on their independence; b ⋈ c on none, if `c.id` is a proven key; c ⋈ d
on a default selectivity, which counts twice. Each further join adds one assumption, that its predicate is independent
of those before it: errors grow with the number of joins. What was counted when the query ran needs no assumption, nor
do joins that a sample shows. a ⋈ b ⋈ c has more assumptions than a ⋈ b, but an error of it is often an error of a ⋈ b.
So sets of the same size are compared with each other, and small sets come first.

Source: ours, after Ioannidis and Christodoulakis, "On the Propagation of Errors in the Size of Join Results", SIGMOD
1991: errors grow with the number of joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from operator import or_

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.cardinality.join_synopses import Synopsis
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, OperatorEdge
from pyjoinopt.util.bitset import members

#: Assumptions behind the rows of a relation, by their source.
_OF_SOURCE = {"size": 1, "default": 2}
#: Sets of one size that are extended by a further relation, and relations of the largest group that is looked at.
_EXTENDED, _LARGEST = 20, 64


def weakest_sets(
    graph: JoinGraph,
    estimates: GraphEstimates,
    synopses: Sequence[Synopsis] = (),
    is_excluded: Callable[[int], bool] = lambda relations: False,
    most: int = 32,
) -> Iterator[tuple[int, int]]:
    """The sets of relations with the least certain estimates, each with the assumptions on which these rest.

    Small sets come first, and of each size there are a few.

    Args:
        graph: the group.
        estimates: of its sets.
        synopses: the samples of joins that these rest on.
        is_excluded: which sets are left out; read again for each set.
        most: how many sets there may be.
    """
    if not 3 <= len(graph) <= _LARGEST:
        return
    assumptions = Assumptions(graph, estimates.relations, estimates.counted, synopses)
    of_one_size = max(4, most // (len(graph) - 2))
    found = 0
    for sets in _connected_sets(graph, assumptions, estimates, is_excluded):
        uncertain = (relations for relations in sets if assumptions(relations) and not is_excluded(relations))
        for relations in islice(uncertain, min(of_one_size, most - found)):
            found += 1
            yield relations, assumptions(relations)


@dataclass(frozen=True)
class Assumptions:
    """Callable: set of relations -> on how many assumptions its estimated rows rest.

    Attributes:
        graph: the group.
        relations: what is known of each.
        counted: sets of two relations and more whose rows were counted.
        synopses: samples of joins.
    """

    graph: JoinGraph
    relations: Sequence[RelationStatistics]
    counted: frozenset[int] = frozenset()
    synopses: Sequence[Synopsis] = ()

    def __call__(self, relations: int) -> int:
        if relations in self.counted:
            return 0
        counted = [known for known in self.counted if not known & ~relations]
        sampled = [synopsis.touched & relations for synopsis in self.synopses if synopsis.center & relations]
        certain = _largest([*counted, *(known for known in sampled if known & (known - 1))])
        if certain == [relations]:
            return 0
        inside = _not_implied([edge for edge in self.graph.edges if not edge.tes & ~relations])
        guessed = [edge for edge in inside if all(edge.tes & ~known for known in certain)]
        uncounted = (v for v in members(relations) if not any(known >> v & 1 for known in counted))
        rows = sum(_OF_SOURCE.get(self.relations[v].source, 0) for v in uncounted)
        independent = max(0, len(guessed) + len(certain) - 1)
        return rows + sum(self._of_edges[id(edge)] for edge in guessed) + independent

    @cached_property
    def _of_edges(self) -> dict[int, int]:
        """Id of a predicate -> the assumptions behind its selectivity."""
        return {id(edge): self._of_edge(edge) for edge in self.graph.edges}

    @cached_property
    def _compared(self) -> dict[tuple[int, int], int]:
        """Pair of relations, and one of them -> its columns that are compared."""
        found: dict[tuple[int, int], int] = {}
        for edge in self.graph.edges:
            for side, e in edge.keys or ():
                if e.attribute is not None:
                    found[edge.ses, side] = found.get((edge.ses, side), 0) | e.attribute.mask
        return found

    def _of_edge(self, edge: Edge) -> int:
        if edge.keys is None:
            return 1 if isinstance(edge, OperatorEdge) else 2
        counted = True
        for side, e in edge.keys:
            if e.attribute is None or side.bit_count() != 1:
                return 2
            known = self.relations[side.bit_length() - 1]
            if known.is_unique(self._compared[edge.ses, side]):
                return 0
            column = known.column(e.attribute.bit)
            counted &= column.ndv is not None and (not column.guessed or column.key_values is not None)
        return 1 if counted else 2


def _connected_sets(
    graph: JoinGraph, assumptions: Assumptions, estimates: GraphEstimates, is_excluded: Callable[[int], bool]
) -> Iterator[list[int]]:
    """Sets that predicates connect and that an order may join, size by size, the weakest first.

    Of two that rest on as many assumptions the one of fewer rows comes first: its plans cost least.
    """
    before = [1 << vertex for vertex in range(len(graph))]
    for size in range(2, len(graph)):
        sets = {known | 1 << vertex for known in before for vertex in members(graph.neighbours(known))}
        sets |= {edge.tes for edge in graph.wide_edges if edge.tes.bit_count() == size}
        weakest = sorted(
            (relations for relations in sets if graph.allows(relations) and graph.can_grow(relations)),
            key=lambda s: (-assumptions(s), estimates.size(s).rows, sorted(graph.names_of(s))),
        )
        yield weakest
        before = [relations for relations in weakest if not is_excluded(relations)][:_EXTENDED]


def _largest(sets: Sequence[int]) -> list[int]:
    """The sets that are part of no other one."""
    distinct = set(sets)
    return [one for one in distinct if not any(one != other and not one & ~other for other in distinct)]


def _not_implied(edges: Sequence[Edge]) -> list[Edge]:
    """The edges without those that follow from others of them: a.k = c.k from a.k = b.k and b.k = c.k."""
    found: list[Edge] = []
    parts: dict[int, list[int]] = {}
    for edge in edges:
        if edge.equality_class >= 0:
            linked = parts.get(edge.equality_class, [])
            if any(not edge.ses & ~part for part in linked):
                continue
            touched = [part for part in linked if part & edge.ses]
            rest = [part for part in linked if not part & edge.ses]
            parts[edge.equality_class] = [*rest, reduce(or_, touched, edge.ses)]
        found.append(edge)
    return found
