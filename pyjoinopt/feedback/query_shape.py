"""By what a whole query is recognised when it comes again, with other constants and over tables that have grown.

    SELECT ... FROM orders JOIN customers ON ... WHERE day = DATE '2026-01-01'
    SELECT ... FROM orders JOIN customers ON ... WHERE day = DATE '2026-01-02'      the same shape, another instance

A *shape* is a hash over the operators and expressions of a plan, with `?` for every constant, and for all constants of
an IN together. A table counts by its name or its path, and by its columns, not by its files. An *instance* is a hash
that has the constants, too.

`feedback.fingerprint` recognises a join group by what it computes, because the row counts that were learnt of it must
hold. A shape only decides which running times may be compared: two queries that it cannot distinguish (two samples with
different seeds) share a history, and that costs time at most.

The plans of subqueries are planned separately, and may be ours or not. So of these only the tables and the constants
count, which do not depend on that.

The query store of SQL Server and the statement fingerprints of CockroachDB are of the same kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyjoinopt.plan.digest import digest
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression, walk
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: Parameters of operators that the export has beside their expressions, without those that hold constants.
_PARAMETERS = ("hint", "all", "byName", "allowMissing", "cached", "global", "outer")
#: ... that hold constants.
_CONSTANTS = ("limit", "fraction", "rows")
#: Parameters of expressions, and those that hold constants.
_OF_EXPRESSIONS = ("fn", "name", "asc", "distinct", "ordinal")
_CONSTANTS_OF_EXPRESSIONS = ("parameters", "values", "hset")
#: Names of tables; whatever else names a relation (a query for another database, a path) may hold constants.
_PLAIN = re.compile(r"[\w.$-]+")
#: A folder of a partition.
_PARTITION = re.compile(r"[^/]+=[^/]*")
#: IN with few values and with many.
_LISTS = frozenset({"In", "InSet"})


@dataclass(frozen=True)
class QueryShape:
    """What a query is recognised by.

    Attributes:
        shape: a hash without constants.
        instance: a hash with constants.
        tables: the names of what it reads, sorted; a table that is read twice comes twice.
        bytes: the size of the files that it reads, as far as it is known.
    """

    shape: str
    instance: str
    tables: tuple[str, ...]
    bytes: float


def query_shape(root: LogicalPlan, writer: str = "") -> QueryShape:
    """The shape of a plan.

    Args:
        root: the plan.
        writer: the operator that writes its rows, which is not part of the plan; empty if there is none.
    """
    tokens = _Tokens()
    tokens.shape.append(writer)
    for node in post_order(root):
        tokens.add_node(node)
    for plan in subquery_plans(root):
        tokens.add_subquery(plan)
    leaves = list(_leaves(root))
    known = sum(float((leaf.info.get("rel") or {}).get("bytes") or 0.0) for leaf in leaves)
    return QueryShape(digest(*tokens.shape), digest(*tokens.shape, *tokens.constants), tables_of(root), known)


def tables_of(plan: LogicalPlan) -> tuple[str, ...]:
    """The names of what a plan reads, sorted; a table that is read twice comes twice. They hold no constant."""
    return tuple(sorted(table_name(leaf) for leaf in _leaves(plan)))


def table_name(leaf: LogicalPlan) -> str:
    """The name of a relation that is read, or of its folder, without constants of the query."""
    return plain_table_name(_name(leaf))


def plain_table_name(name: str) -> str:
    """A relation's name if it can hold no constant of a query.

    >>> plain_table_name("sales.orders"), plain_table_name("(SELECT 1) t"), plain_table_name("day=2026-01-01")
    ('sales.orders', 'a relation', 'a relation')
    """
    return name if _PLAIN.fullmatch(name) else "a relation"


def _leaves(root: LogicalPlan) -> Iterator[LogicalPlan]:
    return (node for node in post_order(root) if not node.children or node.cached)


def subquery_plans(root: LogicalPlan) -> Iterator[LogicalPlan]:
    """The plans inside expressions, and inside the expressions of these."""
    waiting, seen = [root], set()
    while waiting:
        for node in post_order(waiting.pop()):
            for e in node.expressions:
                for part in walk(e) if e.contains & SUBQUERY else ():
                    if part.plan is not None and id(part.plan) not in seen:
                        seen.add(id(part.plan))
                        waiting.append(part.plan)
                        yield part.plan


def _path(leaf: LogicalPlan) -> str:
    """The folder of a table that has no name, without those of its partitions."""
    parts = str((leaf.info.get("rel") or {}).get("path") or "").split("/")
    return "/".join(part for part in parts if not _PARTITION.fullmatch(part))


def _name(leaf: LogicalPlan) -> str:
    path = _path(leaf)
    return path.rpartition("/")[2] if path else str((leaf.info.get("rel") or {}).get("name") or leaf.kind)


class _Tokens:
    """The texts whose hash is a shape, and the constants in the same order."""

    def __init__(self) -> None:
        self.shape: list[str] = []
        self.constants: list[str] = []
        self._numbers: dict[int, str] = {}

    def add_node(self, node: LogicalPlan) -> None:
        shape = self.shape
        shape += (node.kind, str(len(node.children)))
        if isinstance(node, Join):
            shape += (node.join_type, str(node.hint))
        shape += (f"{key}={node.info[key]}" for key in _PARAMETERS if key in node.info)
        self.constants += (str(node.info[key]) for key in _CONSTANTS if key in node.info)
        if not node.children or node.cached:
            shape += _identity(node)
            for column in node.output:
                shape += (self._number(column), column.name, column.type)
        for e in node.expressions:
            self._add_expression(e)

    def add_subquery(self, plan: LogicalPlan) -> None:
        """What does not depend on how the plan of a subquery was changed."""
        self.shape += sorted({" ".join(_identity(leaf)) for leaf in _leaves(plan)})
        parts = (part for node in post_order(plan) for e in node.expressions for part in walk(e))
        self.constants += sorted({part.text for part in parts if _is_constant(part)})

    def _add_expression(self, root: Expression) -> None:
        listed = {id(option) for e in walk(root) if e.kind == "In" for option in e.children[1:] if _is_constant(option)}
        for e in walk(root):
            if id(e) in listed:
                self.constants.append(e.text)
            elif _is_constant(e):
                self.shape += ("?", e.type)
                self.constants.append(e.text)
            elif e.kind == "AttributeReference" and e.attribute is not None:
                self.shape.append(self._number(e.attribute))
            else:
                kind = "In" if e.kind in _LISTS else e.kind
                self.shape += (kind, e.type, str(sum(id(child) not in listed for child in e.children)))
                self.shape += (f"{key}={e.info[key]}" for key in _OF_EXPRESSIONS if key in e.info)
                self.constants += (e.text, *(str(e.info.get(key, "")) for key in _CONSTANTS_OF_EXPRESSIONS))
                if e.attribute is not None:
                    self.shape.append(self._number(e.attribute))

    def _number(self, column: Attribute) -> str:
        """A column by when it occurs first: the numbers of an export depend on the plans of subqueries."""
        return self._numbers.setdefault(column.bit, f"#{len(self._numbers)}")


def _identity(leaf: LogicalPlan) -> tuple[str, ...]:
    relation: dict[str, Any] = leaf.info.get("rel") or {}
    return (leaf.kind, str(relation.get("kind")), str(relation.get("format")), _name(leaf), _path(leaf))


def _is_constant(e: Expression) -> bool:
    return e.kind == "Literal"
