"""Digests of plans and expressions that are the same in every session.

Columns are known by the names of relations and their own, never by numbers of one session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

from pyjoinopt.plan.expressions import CURRENT, SUBQUERY, Expression, conjuncts, walk
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan

#: Leaf -> a name of what it reads that holds for all sessions; None if there is none.
Identity = Callable[[LogicalPlan], str | None]

#: Parameters of operators that the export has beside their expressions.
_PARAMETERS = ("limit", "fraction", "all", "byName", "allowMissing")
#: Operators that their children, expressions and these parameters describe completely. Of others the export lacks
#: something that decides about their rows: the seed of a sample, the keys of a deduplication, the lists of an Expand.
_COMPLETE = frozenset(
    "Filter Join Project Aggregate SubqueryAlias View Sort GlobalLimit LocalLimit Limit Union Distinct Intersect "
    "Except Window ResolvedHint UnresolvedHint HintScope WithCTE CTERelationDef WithWindowDefinition Repartition "
    "RepartitionByExpression RebalancePartitions".split()
)


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
            return digest(node.kind, self._done[id(definition)], *(a.name for a in node.output))
        if not node.children or node.cached:
            read = self._identity(node)
            if read is None:
                raise Unrecognisable
            return digest(node.kind, read)
        if self._definitions is not None and node.kind not in _COMPLETE:
            raise Unrecognisable
        parts = [node.kind, *(self._done[id(child)] for child in node.children)]
        parts += [f"{key}={node.info[key]}" for key in _PARAMETERS if key in node.info]
        if isinstance(node, Join):
            parts.append(node.join_type)
        if isinstance(node, (Filter, Join)):
            parts += sorted(self.expression(e, {}) for e in conjuncts(node.condition))
        else:
            parts += [self.expression(e, {}) for e in node.expressions]
        return digest(*parts)

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
            done.append(digest(*own, *below))
        return done[0]


def digest(*parts: str) -> str:
    """A hash of some texts, as hexadecimal digits."""
    state = blake2b(digest_size=12)
    for part in parts:
        state.update(part.encode("utf-8", "surrogatepass"))
        state.update(b"\0")
    return state.hexdigest()
