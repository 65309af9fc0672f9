"""A join graph whose selectivities come from a run, in the form that the search reads.

Each join of the run gives the selectivity of its predicates: its rows, divided by the product of its inputs' rows. If
it applied several predicates, each gets the same share (the root). A join whose rows are unknown gets the usual
assumption, that the smaller side's keys are found in the larger side: 1 / rows of the larger side.

The sets that the run has joined get exactly the rows of the run (`GraphEstimates` takes them as true rows). All other
sets follow from the selectivities, as if predicates were independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyjoinopt.advice.join_groups import ObservedGroup
from pyjoinopt.advice.relation_names import unique_names
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import relation

#: [rows] What an empty result counts as, so that a selectivity is not 0.
_EMPTY = 0.5


@dataclass(frozen=True, eq=False)
class TrueEstimates:
    """A group with what its run has shown.

    Attributes:
        group: the group.
        threshold: bytes up to which Spark broadcasts a side.
    """

    group: ObservedGroup
    threshold: float

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each relation."""
        return unique_names([each.node for each in self.group.relations])

    @cached_property
    def graph(self) -> JoinGraph:
        """The join graph: an edge for each set that predicates connect."""
        relations = tuple(relation(name, ()) for name in self.names)
        edges = tuple(Edge(Expression("ObservedPredicate"), tes, tes) for tes in self.selectivities)
        return JoinGraph(relations, self.names, edges, tuple(() for _ in relations))

    @cached_property
    def selectivities(self) -> dict[int, float]:
        """The set that predicates connect -> their selectivity."""
        found: dict[int, float] = {}
        rows = self.joined_rows
        for each in self.group.joins:
            left, right = rows.get(each.left), rows.get(each.right)
            if each.rows is None or left is None or right is None:
                largest = max(self._rows(i) for i in range(len(self.group.relations)) if _applies(each.edges, i))
                shares = dict.fromkeys(each.edges, 1.0 / largest)
            else:
                whole = max(each.rows, _EMPTY) / (max(left, _EMPTY) * max(right, _EMPTY))
                shares = dict.fromkeys(each.edges, min(1.0, whole) ** (1.0 / len(each.edges)))
            for tes, share in shares.items():
                found[tes] = found.get(tes, 1.0) * share
        return found

    @cached_property
    def joined_rows(self) -> dict[int, float]:
        """Set of relations -> its rows in the run, of all sets whose rows were counted."""
        found = {1 << i: self._rows(i) for i in range(len(self.group.relations))}
        for each in self.group.joins:
            if each.rows is not None:
                found[each.left | each.right] = each.rows
        return found

    @property
    def certainty(self) -> float:
        """Share of the selectivities that the run has shown; those with relations thinned at run time count half."""
        weights = []
        for each in self.group.joins:
            both = each.left | each.right
            touched = [r for i, r in enumerate(self.group.relations) if both >> i & 1 and _applies(each.edges, i)]
            weight = 0.0 if each.rows is None else 0.5 if any(r.thinned for r in touched) else 1.0
            weights.append(weight)
        return sum(weights) / len(weights)

    @cached_property
    def estimates(self) -> GraphEstimates:
        """Rows and bytes of every set of relations."""
        known = [
            RelationStatistics(self._rows(i), self._rows(i) * each.width, "feedback", True)
            for i, each in enumerate(self.group.relations)
        ]
        true: dict[int, float] = {}
        for tes, share in sorted(self.selectivities.items(), key=lambda item: item[0].bit_count()):
            if tes.bit_count() == 2:
                product = 1.0
                for i in range(len(known)):
                    product *= self._rows(i) if tes >> i & 1 else 1.0
                true[tes] = max(product * share, 1e-3)
        true.update({joined: max(rows, _EMPTY) for joined, rows in self.joined_rows.items()})
        limit = self.threshold

        def buildable(relations: int, bytes: float, estimates: GraphEstimates) -> int:
            return BROADCAST_HASH if bytes <= limit else NO_BUILD

        return GraphEstimates(self.graph, known, true_rows=true, buildable=buildable)

    def _rows(self, vertex: int) -> float:
        return max(self.group.relations[vertex].rows or 0.0, _EMPTY)


def _applies(edges: tuple[int, ...], vertex: int) -> bool:
    return any(tes >> vertex & 1 for tes in edges)
