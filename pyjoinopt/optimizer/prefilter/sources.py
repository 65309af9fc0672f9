"""Plans whose keys filter something else: filtered relations of files, and joins with some.

A source is read twice: once where it stands in the query, once for its keys. So it has to give the same rows when it is
read again, cannot fail, and reads nothing but files. The second reading has columns of its own:

    orders o JOIN customer c ON o_custkey = c_custkey WHERE c_mktsegment = 'BUILDING'

    SELECT o_orderkey' FROM (SELECT o_orderkey', o_custkey' FROM orders) JOIN
        (SELECT c_custkey' FROM customer WHERE c_mktsegment' = 'BUILDING') ON o_custkey' = c_custkey'
"""

from __future__ import annotations

from dataclasses import dataclass

from pyjoinopt.optimizer.prefilter.safety import is_safe
from pyjoinopt.plan.constructors import ColumnFactory, project
from pyjoinopt.plan.expressions import Attribute, Expression, conjunction, conjuncts, reference, substitute
from pyjoinopt.plan.fallible.fallibility import is_movable
from pyjoinopt.plan.nodes import INNER_LIKE, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases

#: A join of more relations is not worth reading twice for its keys alone.
_MOST_RELATIONS = 5


@dataclass(frozen=True)
class _Relation:
    """A relation of files, and the filters on it."""

    leaf: LogicalPlan
    predicates: tuple[Expression, ...]

    @property
    def selective(self) -> bool:
        return any(p.kind != "IsNotNull" for p in self.predicates)


@dataclass(frozen=True)
class Source:
    """A plan that can be read twice, and has fewer keys than the columns that they refer to.

    Attributes:
        plan: as it stands in the query.
        leaves: the relations of files that it reads.
        joins: the joins in it.
    """

    plan: LogicalPlan
    leaves: tuple[LogicalPlan, ...]
    joins: tuple[Join, ...] = ()

    @property
    def name(self) -> str:
        """The names of its relations."""
        return " with ".join(_name(leaf) for leaf in self.leaves)

    def keys(self, key: Attribute, fresh: ColumnFactory) -> tuple[LogicalPlan, Attribute]:
        """The plan once more with a single column, and that column.

        Args:
            key: a column of the plan.
            fresh: gives out columns.
        """
        copies: dict[int, Expression] = {}
        plan = _copied(self.plan, key.mask, fresh, copies)
        column = copies[key.bit].attribute
        assert column is not None
        return project([column], plan), column


def relation_source(plan: LogicalPlan) -> Source | None:
    """A filtered relation of files; None for any other plan, and for one without a filter."""
    relation = _relation(plan)
    return Source(plan, (relation.leaf,)) if relation is not None and relation.selective else None


def joined_source(plan: LogicalPlan) -> Source | None:
    """Inner and semi joins of a few relations of files, at least one of them filtered; None for any other plan."""
    leaves: list[LogicalPlan] = []
    joins: list[Join] = []
    selective = False
    stack = [plan]
    while stack:
        node = _bare(stack.pop())
        if isinstance(node, Join):
            if node.cached or not _is_plain(node):
                return None
            joins.append(node)
            if len(joins) >= _MOST_RELATIONS:
                return None
            stack += reversed(node.children)
            continue
        relation = _relation(node)
        if relation is None or len(leaves) == _MOST_RELATIONS:
            return None
        selective = selective or relation.selective
        leaves.append(relation.leaf)
    return Source(plan, tuple(leaves), tuple(joins)) if joins and selective else None


def _is_plain(join: Join) -> bool:
    predicates = conjuncts(join.condition)
    fits = (join.join_type in INNER_LIKE or join.join_type == SEMI) and join.subquery is None and bool(predicates)
    return fits and is_safe(predicates) and all(map(is_movable, predicates))


def _bare(plan: LogicalPlan) -> LogicalPlan:
    """The plan without names and projections that only pick columns."""
    node = without_aliases(plan)
    while isinstance(node, Project) and not node.cached and _only_picks(node):
        node = without_aliases(node.children[0])
    return node


def _only_picks(node: Project) -> bool:
    return all(e.kind == "AttributeReference" for e in node.projections)


def _relation(plan: LogicalPlan) -> _Relation | None:
    predicates: list[Expression] = []
    node = without_aliases(plan)
    while isinstance(node, (Filter, Project)) and not node.cached:
        if isinstance(node, Filter):
            predicates += conjuncts(node.condition)
        elif not _only_picks(node):
            return None
        node = without_aliases(node.children[0])
    is_files = node.kind == "LogicalRelation" and (node.info.get("rel") or {}).get("kind") == "file"
    fits = is_files and not node.cached and node.number is not None and is_safe(predicates)
    return _Relation(node, tuple(predicates)) if fits and all(map(is_movable, predicates)) else None


def _copied(plan: LogicalPlan, needed: int, fresh: ColumnFactory, copies: dict[int, Expression]) -> LogicalPlan:
    """The plan with columns of its own; `copies` gets a use of each by the bit of the old one."""
    node = _bare(plan)
    if isinstance(node, Join):
        needed |= node.references
        left, right = (_copied(child, needed, fresh, copies) for child in node.children)
        condition = None if node.condition is None else substitute(node.condition, copies)
        return Join(left, right, node.join_type, condition, node.hint)
    relation = _relation(node)
    assert relation is not None
    leaf = relation.leaf
    new = tuple(fresh.attribute(a.name, a.type, a.nullable) for a in leaf.output)
    copies.update((old.bit, reference(copy)) for old, copy in zip(leaf.output, new, strict=True))
    again: LogicalPlan = LogicalPlan(
        leaf.kind, (), new, (), None, leaf.number, {**leaf.info, "again": True, "narrowed": True}
    )
    predicate = conjunction(substitute(p, copies) for p in relation.predicates)
    if predicate is not None:
        again = Filter(predicate, again)
    return project([copy for old, copy in zip(leaf.output, new, strict=True) if old.mask & needed], again)


def _name(leaf: LogicalPlan) -> str:
    return str((leaf.info.get("rel") or {}).get("name") or leaf.info.get("name") or "files")
