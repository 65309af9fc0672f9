"""Decodes the JSON of an export into the mirror of the plan.

The export lists attributes, expressions and nodes in post-order, so one pass over each list builds children before
parents, without recursion. The numbers of the export become `number` and `origin` of nodes and expressions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pyjoinopt.errors import BridgeError
from pyjoinopt.plan import nodes as n
from pyjoinopt.plan.expressions import CONSTANT, Attribute, Expression

PROTOCOL = 1
_EPOCH = date(1970, 1, 1)


class Unread:
    """The value of a literal that was not exported (long strings, arrays, intervals, …)."""

    def __repr__(self) -> str:
        return "…"


UNREAD = Unread()


@dataclass(eq=False)
class Export:
    """A decoded plan.

    Attributes:
        handle: identifies the plan in the JVM until it is released.
        root: the analysed plan.
        nodes: every node by its number, including those of subquery plans.
        attributes: every attribute by its bit.
        conf: the Spark and `spark.pyjoinopt.*` settings that the optimizer reads, as strings.
        filters_null: numbers of predicates that Catalyst evaluated to NULL or false over NULLs.
        spark: the version of Spark.
        streaming, command, resolved: what kind of plan it is.
    """

    handle: int
    root: n.LogicalPlan
    nodes: list[n.LogicalPlan]
    attributes: list[Attribute]
    conf: dict[str, str]
    filters_null: frozenset[int] = frozenset()
    spark: str = ""
    streaming: bool = False
    command: bool = False
    resolved: bool = True
    expressions: list[Expression] = field(default_factory=list)

    @property
    def version(self) -> tuple[int, int]:
        """(major, minor) version of Spark; (4, 3) if the export does not have it."""
        parts = self.spark.split(".")
        known = len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit()
        return (int(parts[0]), int(parts[1])) if known else (4, 3)


def decode(text: str) -> Export:
    """Decode the text of an export.

    Raises:
        BridgeError: another version of the shim wrote it.
    """
    return decoded(json.loads(text))


def decoded(data: dict[str, Any]) -> Export:
    """Decode a parsed export."""
    if data.get("protocol") != PROTOCOL:
        raise BridgeError(
            f"the shim has protocol {data.get('protocol')}, this pyjoinopt {PROTOCOL}: "
            "another version of the jar is loaded in this JVM; restart the driver"
        )
    types: list[str] = data["types"]
    attributes = [
        Attribute(bit, row[0], row[2], types[row[3]] if row[3] >= 0 else "", bool(row[4]))
        for bit, row in enumerate(data["attributes"])
    ]
    decoder = _Decoder(types, attributes, data)
    decoder.run(data["expressions"], data["nodes"])
    return Export(
        handle=data["handle"],
        root=decoder.nodes[data["root"]],
        nodes=decoder.nodes,
        attributes=attributes,
        conf=data.get("conf", {}),
        filters_null=frozenset(data.get("filtersNull", ())),
        spark=data.get("spark", ""),
        streaming=bool(data.get("streaming")),
        command=bool(data.get("command")),
        resolved=bool(data.get("resolved", True)),
        expressions=decoder.expressions,
    )


class _Decoder:
    """Decodes both lists together, since expressions refer to the plans of subqueries, and nodes to expressions."""

    def __init__(self, types: list[str], attributes: list[Attribute], data: dict[str, Any]) -> None:
        self.types = types
        self.attributes = attributes
        self.expressions: list[Expression] = []
        self.nodes: list[n.LogicalPlan] = []
        self._rows: list[list[Any]] = data["expressions"]

    def run(self, rows: list[list[Any]], entries: list[dict[str, Any]]) -> None:
        for number, entry in enumerate(entries):
            highest = max(entry.get("x", ()), default=-1)
            self._expressions_up_to(highest)
            self.nodes.append(self._node(number, entry))
        self._expressions_up_to(len(rows) - 1)

    def _expressions_up_to(self, last: int) -> None:
        while len(self.expressions) <= last:
            number = len(self.expressions)
            self.expressions.append(self._expression(number, self._rows[number]))

    def _expression(self, number: int, row: list[Any]) -> Expression:
        kind, type_index, flags, sem, children, extra = row
        type_name = self.types[type_index] if type_index >= 0 else ""
        below = tuple([self.expressions[c] for c in children])
        if extra is None:
            unread = UNREAD if flags & CONSTANT else None
            return Expression(kind, below, type_name, flags, value=unread, number=number, origin=number, sem=sem)
        attribute = self.attributes[extra["a"]] if "a" in extra else None
        plan = self.nodes[extra["plan"]] if "plan" in extra else None
        if "outer" in extra:
            mask = 0
            for outer in extra["outer"]:
                mask |= self.expressions[outer].references
            extra["outer_references"] = mask
        value, text = None, ""
        if kind == "Literal" or flags & CONSTANT:
            value, text = _value(extra), str(extra.get("s", ""))
        return Expression(
            kind, below, type_name, flags, attribute, value, text, plan, extra, number, number, sem
        )  # fmt: skip

    def _node(self, number: int, entry: dict[str, Any]) -> n.LogicalPlan:
        kind = entry["c"]
        children = tuple([self.nodes[c] for c in entry["k"]])
        make = _MAKERS.get(kind)
        if make is not None:
            return make(self, number, entry, children)
        expressions = tuple([self.expressions[e] for e in entry["x"]])
        output = tuple([self.attributes[a] for a in entry["o"]])
        if "projections" in entry:
            entry["lists"] = [tuple([self.expressions[e] for e in listed]) for listed in entry["projections"]]
        if "reads" in entry:
            entry["reads_set"] = sum(1 << a for a in entry["reads"])
        return n.LogicalPlan(kind, children, output, expressions, number, number, entry)

    def _join(self, number: int, entry: dict[str, Any], children: tuple[n.LogicalPlan, ...]) -> n.LogicalPlan:
        condition = self.expressions[entry["cond"]] if entry.get("cond") is not None else None
        hint = entry.get("hint") or n.NO_HINT
        if entry.get("early"):
            entry["early"] = number
            entry["early_reads"] = 0 if condition is None else condition.references
        exists = self.attributes[entry["exists"]] if "exists" in entry else None
        return n.Join(
            children[0], children[1], entry["t"], condition, (hint[0], hint[1]), number, number, entry, exists
        )  # fmt: skip

    def _filter(self, number: int, entry: dict[str, Any], children: tuple[n.LogicalPlan, ...]) -> n.LogicalPlan:
        return n.Filter(self.expressions[entry["cond"]], children[0], number, number, entry)

    def _project(self, number: int, entry: dict[str, Any], children: tuple[n.LogicalPlan, ...]) -> n.LogicalPlan:
        projections = tuple([self.expressions[e] for e in entry["list"]])
        output = tuple([self.attributes[a] for a in entry["o"]])
        return n.Project(projections, children[0], number, number, entry, output)

    def _aggregate(self, number: int, entry: dict[str, Any], children: tuple[n.LogicalPlan, ...]) -> n.LogicalPlan:
        grouping = tuple([self.expressions[e] for e in entry["group"]])
        aggregates = tuple([self.expressions[e] for e in entry["agg"]])
        output = tuple([self.attributes[a] for a in entry["o"]])
        return n.Aggregate(grouping, aggregates, children[0], output, number, number, entry)

    def _alias(self, number: int, entry: dict[str, Any], children: tuple[n.LogicalPlan, ...]) -> n.LogicalPlan:
        return n.SubqueryAlias(entry["name"], children[0], number, number, entry)


_Maker = Callable[[_Decoder, int, dict[str, Any], "tuple[n.LogicalPlan, ...]"], n.LogicalPlan]
_MAKERS: dict[str, _Maker] = {
    "Join": _Decoder._join,
    "Filter": _Decoder._filter,
    "Project": _Decoder._project,
    "Aggregate": _Decoder._aggregate,
    "SubqueryAlias": _Decoder._alias,
}


def _value(extra: dict[str, Any]) -> Any:
    """The value of a literal as a hashable Python object."""
    if "v" not in extra:
        return UNREAD
    value = extra["v"]
    if isinstance(value, dict):
        if "d" in value:
            return Decimal(value["d"])
        if "date" in value:
            try:
                return _EPOCH + timedelta(days=value["date"])
            except OverflowError:
                return UNREAD
        if "ts" in value:
            return int(value["ts"])
        return UNREAD
    return UNREAD if isinstance(value, list) else value
