"""What a join group is recognised by when it comes again, in another session, written in another order.

The fingerprint is a hash over what each relation is (the identity of its files, its filters and projections) and over
the join predicates. Relations are numbered canonically by it, so that a set of them has the same name whatever the
order in which the query was written. Two groups of one fingerprint read the same files with the same predicates: what
was counted for one holds for the other. A file that changes changes the fingerprint.

A common table expression is what its definition reads, a subquery in a predicate what its plan reads. Groups that read
something which cannot be recognised (rows in memory, an RDD, a table behind JDBC) have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge
from pyjoinopt.plan.digest import Identity, Names, Unrecognisable, digest
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The name of a join group.

    Attributes:
        key: a hash.
        order: the group's vertices in canonical order.
    """

    key: str
    order: tuple[int, ...]

    def canonical(self, relations: int) -> int:
        """A set of the group's vertices as a set of canonical numbers.

        >>> Fingerprint("", (2, 0, 1)).canonical(0b101)
        3
        """
        return sum(1 << i for i, vertex in enumerate(self.order) if relations >> vertex & 1)

    def vertices(self, canonical: int) -> int:
        """The same the other way."""
        return sum(1 << vertex for i, vertex in enumerate(self.order) if canonical >> i & 1)


def fingerprint(
    graph: JoinGraph,
    identity: Identity,
    definitions: Mapping[object, LogicalPlan] | None = None,
    above: Sequence[Expression] = (),
) -> Fingerprint | None:
    """The fingerprint of a group; None if it cannot be recognised.

    Args:
        graph: the group.
        identity: of leaves.
        definitions: of common table expressions, by what references to them call them.
        above: conjuncts over the group's result, such as those with subqueries: Spark pushes them into the group when
            it runs, so that what it counts there is what they have left.
    """
    names_of = Names(identity, definitions or {})
    try:
        relations = [names_of.plan(plan) for plan in graph.relations]
        owner = {a.bit: v for v, plan in enumerate(graph.relations) for a in plan.output}
        edges = [e for e in graph.edges if not e.implied]
        meant = {bit: relations[v] for bit, v in owner.items()}
        seen = [digest(e.join_type, names_of.expression(e.predicate, meant)) for e in edges]
        waiting = sorted(names_of.expression(e, meant) for e in above)
    except Unrecognisable:
        return None
    near = [sorted(s for s, e in zip(seen, edges) if e.tes >> v & 1) for v in range(len(relations))]
    order = tuple(sorted(range(len(relations)), key=lambda v: (relations[v], near[v], v)))
    number = {vertex: str(i) for i, vertex in enumerate(order)}
    names = {bit: number[v] for bit, v in owner.items()}
    predicates = []
    for e in edges:
        # Which side is padded, and which one filters.
        left, right = (e.left_tes, e.semi_right) if isinstance(e, OperatorEdge) else (0, 0)
        on_left = ",".join(sorted(number[v] for v in order if left >> v & 1))
        named = names_of.expression(e.predicate, names)
        predicates.append(digest(e.join_type, number.get(right.bit_length() - 1, ""), on_left, named))
    predicates.sort()
    return Fingerprint(digest(*(relations[v] for v in order), *predicates, *waiting), order)
