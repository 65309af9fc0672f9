"""What a join group is recognised by when it comes again, in another session, written in another order.

The fingerprint is a hash over what each relation is (the identity of its files, its filters and projections) and over
the join predicates. Relations are numbered canonically by it, so that a set of them has the same name whatever the
order in which the query was written. Two groups of one fingerprint read the same files with the same predicates: what
was counted for one holds for the other. A file that changes changes the fingerprint.

Groups that read something which cannot be recognised (rows in memory, an RDD, a table behind JDBC, a subquery in a
predicate) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pyjoinopt.plan.expressions import SUBQUERY, Expression, conjuncts, walk
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.tree import post_order
from pyjoinopt.statistics.join_graph import Graph

#: Leaf -> a name of what it reads that holds for all sessions; None if there is none.
Identity = Callable[[LogicalPlan], str | None]

_TOLD = ("limit", "fraction", "all", "byName", "withReplacement", "seed")


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


def fingerprint(graph: Graph, identity: Identity) -> Fingerprint | None:
    """The fingerprint of a group; None if it cannot be recognised."""
    try:
        relations = [_plan(plan, identity) for plan in graph.relations]
        owner = {a.bit: v for v, plan in enumerate(graph.relations) for a in plan.output}
        edges = [e for e in graph.edges if not e.implied]
        meant = {bit: relations[v] for bit, v in owner.items()}
        seen = [_hash(e.join_type, _expression(e.predicate, meant)) for e in edges]
    except _Unrecognisable:
        return None
    near = [sorted(s for s, e in zip(seen, edges) if e.required >> v & 1) for v in range(len(relations))]
    order = tuple(sorted(range(len(relations)), key=lambda v: (relations[v], near[v], v)))
    number = {vertex: str(i) for i, vertex in enumerate(order)}
    names = {bit: number[v] for bit, v in owner.items()}
    sides = [",".join(sorted(number[v] for v in order if e.sides[0] >> v & 1)) for e in edges]  # which one is padded
    predicates = sorted(
        _hash(e.join_type, number.get(e.right.bit_length() - 1, ""), left, _expression(e.predicate, names))
        for e, left in zip(edges, sides)
    )
    return Fingerprint(_hash(*(relations[v] for v in order), *predicates), order)


class _Unrecognisable(Exception):
    """Something has no name that would hold in another session."""


def _plan(root: LogicalPlan, identity: Identity) -> str:
    done: dict[int, str] = {}
    for node in post_order(root):
        if not node.children or node.cached:
            read = identity(node)
            if read is None:
                raise _Unrecognisable
            done[id(node)] = _hash(node.kind, read)
            continue
        parts = [node.kind, *(done[id(child)] for child in node.children)]
        parts += [f"{key}={node.info[key]}" for key in _TOLD if key in node.info]
        if isinstance(node, Join):
            parts.append(node.join_type)
        if isinstance(node, (Filter, Join)):
            parts += sorted(_expression(e, {}) for e in conjuncts(node.condition))
        else:
            parts += [_expression(e, {}) for e in node.expressions]
        done[id(node)] = _hash(*parts)
    return done[id(root)]


def _expression(root: Expression, relation_of: dict[int, str]) -> str:
    if root.contains & SUBQUERY:
        raise _Unrecognisable
    done: list[str] = []
    for e in walk(root):
        n = len(e.children)
        below = done[len(done) - n :]
        del done[len(done) - n :]
        if e.kind == "AttributeReference" and e.attribute is not None:
            own = [relation_of.get(e.attribute.bit, ""), e.attribute.name]
        else:
            own = [e.kind, e.type, e.text, str(e.info.get("name", "")), str(e.info.get("values", ""))]
        done.append(_hash(*own, *below))
    return done[0]


def _hash(*parts: str) -> str:
    digest = blake2b(digest_size=12)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def leaves_of(plans: Sequence[LogicalPlan]) -> list[list[LogicalPlan]]:
    """The leaves, cached sub-plans among them, that each of some plans reads."""
    return [[node for node in post_order(plan) if not node.children or node.cached] for plan in plans]
