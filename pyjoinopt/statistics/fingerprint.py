"""What a join group is recognised by when it comes again, in another session, written in another order.

The fingerprint is a hash over what each relation is (the identity of its files, its filters and projections) and over
the join predicates. Relations are numbered canonically by it, so that a set of them has the same name whatever the
order in which the query was written. Two groups of one fingerprint read the same files with the same predicates: what
was counted for one holds for the other. A file that changes changes the fingerprint.

A common table expression is what its definition reads, a subquery in a predicate what its plan reads. Groups that read
something which cannot be recognised (rows in memory, an RDD, a table behind JDBC) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pyjoinopt.plan.expressions import CURRENT, SUBQUERY, Expression, conjuncts, walk
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


def fingerprint(
    graph: Graph,
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
        seen = [_hash(e.join_type, names_of.expression(e.predicate, meant)) for e in edges]
        waiting = sorted(names_of.expression(e, meant) for e in above)
    except Unrecognisable:
        return None
    near = [sorted(s for s, e in zip(seen, edges) if e.required >> v & 1) for v in range(len(relations))]
    order = tuple(sorted(range(len(relations)), key=lambda v: (relations[v], near[v], v)))
    number = {vertex: str(i) for i, vertex in enumerate(order)}
    names = {bit: number[v] for bit, v in owner.items()}
    sides = [",".join(sorted(number[v] for v in order if e.sides[0] >> v & 1)) for e in edges]  # which one is padded
    predicates = sorted(
        _hash(e.join_type, number.get(e.right.bit_length() - 1, ""), left, names_of.expression(e.predicate, names))
        for e, left in zip(edges, sides)
    )
    return Fingerprint(_hash(*(relations[v] for v in order), *predicates, *waiting), order)


class Unrecognisable(Exception):
    """Something has no name that would hold in another session."""


class Names:
    """Hashes of plans and expressions. What a plan is made of is named before the plan, so nothing here recurses.

    Args:
        identity: of leaves.
        definitions: of common table expressions; None to call references by their columns alone.
    """

    def __init__(self, identity: Identity, definitions: Mapping[object, LogicalPlan] | None) -> None:
        self._identity = identity
        self._definitions = definitions
        self._done: dict[int, str] = {}

    def plan(self, root: LogicalPlan) -> str:
        stack: list[tuple[LogicalPlan, bool]] = [(root, False)]
        open_: set[int] = set()
        while stack:
            node, expanded = stack.pop()
            if id(node) in self._done:
                continue
            if expanded:
                self._done[id(node)] = self._node(node)
            elif id(node) in open_:
                raise Unrecognisable  # a definition that reads itself
            else:
                open_.add(id(node))
                stack.append((node, True))
                stack.extend((inner, False) for inner in self._inside(node))
        return self._done[id(root)]

    def _inside(self, node: LogicalPlan) -> list[LogicalPlan]:
        if node.cached:
            return []
        known = self._definitions or {}
        definition = known.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        plans = [e.plan for root in node.expressions if root.contains & SUBQUERY for e in walk(root)]
        return [*node.children, *filter(None, plans), *([definition] if definition is not None else [])]

    def _node(self, node: LogicalPlan) -> str:
        if node.kind == "CTERelationRef" and not node.cached and self._definitions is not None:
            definition = self._definitions.get(node.info.get("cte"))
            if definition is None:
                raise Unrecognisable
            return _hash(node.kind, self._done[id(definition)], *(a.name for a in node.output))
        if not node.children or node.cached:
            read = self._identity(node)
            if read is None:
                raise Unrecognisable
            return _hash(node.kind, read)
        parts = [node.kind, *(self._done[id(child)] for child in node.children)]
        parts += [f"{key}={node.info[key]}" for key in _TOLD if key in node.info]
        if isinstance(node, Join):
            parts.append(node.join_type)
        if isinstance(node, (Filter, Join)):
            parts += sorted(self.expression(e, {}) for e in conjuncts(node.condition))
        else:
            parts += [self.expression(e, {}) for e in node.expressions]
        return _hash(*parts)

    def expression(self, root: Expression, relation_of: Mapping[int, str]) -> str:
        done: list[str] = []
        for e in walk(root):
            n = len(e.children)
            below = done[len(done) - n :]
            del done[len(done) - n :]
            if e.kind == "AttributeReference" and e.attribute is not None:
                own = [relation_of.get(e.attribute.bit, ""), e.attribute.name]
            elif e.plan is not None:
                own = [e.kind, e.type, self.plan(e.plan) if id(e.plan) not in self._done else self._done[id(e.plan)]]
            else:
                own = [e.kind, e.type, e.text, str(e.info.get("name", "")), str(e.info.get("values", ""))]
                if e.flags & CURRENT:  # what was counted for one day does not hold for the next
                    own.append(str(e.value))
            done.append(_hash(*own, *below))
        return done[0]


def _hash(*parts: str) -> str:
    digest = blake2b(digest_size=12)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def leaves_of(
    plans: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan] | None = None
) -> list[list[LogicalPlan]]:
    """The leaves, cached sub-plans among them, that each of some plans reads, also by common table expressions."""
    found = []
    for plan in plans:
        leaves: list[LogicalPlan] = []
        waiting, seen = [plan], set()
        while waiting:
            for node in post_order(waiting.pop()):
                if not node.children or node.cached:
                    leaves.append(node)
                cte = node.info.get("cte") if node.kind == "CTERelationRef" else None
                if cte is not None and definitions and cte in definitions and cte not in seen:
                    seen.add(cte)
                    waiting.append(definitions[cte])
        found.append(leaves)
    return found
