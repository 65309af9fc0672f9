"""By what a whole query is recognised when it comes again, with other constants and over tables that have grown.

    SELECT ... FROM orders JOIN customers ON ... WHERE day = DATE '2026-01-01'
    SELECT ... FROM orders JOIN customers ON ... WHERE day = DATE '2026-01-02'      the same shape, another instance

A *shape* is a hash over the operators and expressions of a plan, with `?` for every constant, and for all constants of
an IN together. A table counts by its name, its path and its columns, not by its files. An *instance* is a hash that
has the constants, too.

`feedback.fingerprint` recognises a join group by what it computes, because the row counts that were learnt of it must
hold. A shape only decides which running times may be compared: two queries that it cannot distinguish (two samples with
different seeds) share a history, and that costs time at most.

The query store of SQL Server and the statement fingerprints of CockroachDB are of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyjoinopt.plan.digest import digest
from pyjoinopt.plan.expressions import Attribute, Expression, walk
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.relation_names import source_names
from pyjoinopt.plan.traversal import post_order

#: Parameters of operators that the export has beside their expressions, without those that hold constants.
_PARAMETERS = ("hint", "all", "byName", "allowMissing", "cached", "global", "outer")
#: ... that hold constants.
_CONSTANTS = ("limit", "fraction", "rows")


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


def query_shape(root: LogicalPlan) -> QueryShape:
    """The shape of a plan. Plans of subqueries, which Spark plans separately, are left out."""
    tokens = _Tokens()
    for node in post_order(root):
        tokens.add_node(node)
    leaves = [node for node in post_order(root) if not node.children or node.cached]
    known = sum(float((leaf.info.get("rel") or {}).get("bytes") or 0.0) for leaf in leaves)
    return QueryShape(digest(*tokens.shape), digest(*tokens.shape, *tokens.constants), source_names(root), known)


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
            self._add_leaf(node)
        for e in node.expressions:
            self._add_expression(e)

    def _add_leaf(self, leaf: LogicalPlan) -> None:
        relation: dict[str, Any] = leaf.info.get("rel") or {}
        self.shape += (str(relation.get(key)) for key in ("kind", "format", "name", "path"))
        for column in leaf.output:
            self.shape += (self._number(column), column.name, column.type)

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
                operands = sum(id(child) not in listed for child in e.children)
                self.shape += (e.kind, e.type, str(operands), str(e.info.get("fn", "")))
                self.constants += (e.text, str(e.info.get("values", "")))
                if e.attribute is not None:
                    self.shape.append(self._number(e.attribute))

    def _number(self, column: Attribute) -> str:
        """A column by when it occurs first: the numbers of an export depend on the plans of subqueries."""
        return self._numbers.setdefault(column.bit, f"#{len(self._numbers)}")


def _is_constant(e: Expression) -> bool:
    return e.kind == "Literal"
