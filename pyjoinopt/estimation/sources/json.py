"""Between the shim's JSON, which has columns by number, and sources and the store, which have them by name."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyjoinopt.estimation.sources.registry import Bound, Column, Files, Known, Relation
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.nodes import LogicalPlan

_COLUMN = ("ndv", "min", "max", "nulls", "avgLen")
_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_TIME = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)


def known_from(entry: Mapping[str, Any], output: Sequence[Attribute]) -> Known:
    """The shim's answer about a leaf."""
    names = {attribute.bit: attribute.name for attribute in output}
    columns = {
        names[int(bit)]: column_from(facts)
        for bit, facts in (entry.get("columns") or {}).items()
        if int(bit) in names
    }
    return Known(
        entry.get("rows"), entry.get("bytes"), columns, bool(entry.get("exact")), str(entry.get("source") or ""),
        None, str(entry.get("note") or ""), tuple(tuple(map(str, key)) for key in entry.get("keys") or ()),
    )  # fmt: skip


def column_from(facts: Mapping[str, Any]) -> Column:
    """The shim's, or the store's, answer about a column."""
    details = {key: value for key, value in facts.items() if key not in _COLUMN}
    ndv, low, high, nulls, length = (facts.get(key) for key in _COLUMN)
    return Column(ndv, low, high, nulls, length, details)


def facts_of(column: Column) -> dict[str, Any]:
    """The same the other way; what is not known is left out.

    >>> facts_of(Column(ndv=3, max=datetime.date(1970, 1, 2)))
    {'ndv': 3, 'max': 1}
    """
    values = (column.ndv, number(column.min), number(column.max), column.nulls, column.avg_len)
    return {**{key: value for key, value in zip(_COLUMN, values) if value is not None}, **column.details}


def entry_of(
    known: Known, output: Sequence[Attribute], needed: Collection[str] | None = None
) -> dict[str, Any]:
    """The same in the shim's form, which `from_json` reads.

    Args:
        known: the statistics of a source.
        output: the relation's columns.
        needed: names of those that something is computed with; of the others only their length matters. None for all.
    """
    exactly = {attribute.name: attribute for attribute in output}
    by_name = {name.lower(): attribute for name, attribute in exactly.items()}
    columns: dict[str, dict[str, Any]] = {}
    for name, column in known.columns.items():
        attribute = exactly.get(name) or by_name.get(name.lower())
        if attribute is None:
            continue
        if needed is None or attribute.name in needed:
            columns[str(attribute.bit)] = facts_of(column)
        elif column.avg_len is not None:
            columns[str(attribute.bit)] = {"avgLen": column.avg_len}
    return {
        "rows": known.rows, "bytes": known.bytes, "source": known.source, "exact": known.exact, "columns": columns,
        "note": known.note,
    }  # fmt: skip


def number(bound: Bound | None) -> int | float | bool | None:
    """A bound in the unit of column statistics: days for dates, microseconds for timestamps; None for anything else.

    >>> number(datetime.date(1970, 2, 1)), number(datetime.datetime(1970, 1, 1, 0, 0, 1)), number(Decimal("1.5"))
    (31, 1000000, 1.5)
    """
    if isinstance(bound, datetime.datetime):
        moment = bound if bound.tzinfo else bound.replace(tzinfo=datetime.timezone.utc)
        return (moment - _EPOCH_TIME) // _MICROSECOND
    if isinstance(bound, datetime.date):
        return (bound - _EPOCH).days
    if isinstance(bound, Decimal):
        return float(bound)
    return bound if isinstance(bound, (int, float)) else None


def files_of(entry: Mapping[str, Any]) -> Files:
    """Which files they are, as the shim reports it."""
    return Files(entry["id"], entry["schema"], int(entry["count"]), int(entry["bytes"]), entry["newest"] / 1000)


def relation_of(
    leaf: LogicalPlan,
    needed: int,
    files: Mapping[str, Any] | None,
    partitions: tuple[Expression, ...] = (),
    counted: int = 0,
) -> Relation:
    """A leaf as sources see it.

    Args:
        leaf: a node without children, or a cached one.
        needed: the set of attributes that the plan computes with.
        files: the shim's answer about its files.
        partitions: the filters that this answer takes into account.
        counted: the set of attributes whose different values matter.
    """
    exported = leaf.info.get("rel") or {}
    identity = files_of(files) if files is not None else None
    return Relation(
        str(exported.get("name") or leaf.kind),
        str(exported.get("kind") or leaf.kind),
        str(exported.get("format") or ""),
        {attribute.name: attribute.type for attribute in leaf.output},
        frozenset(attribute.name for attribute in leaf.output if needed >> attribute.bit & 1),
        float(identity.bytes) if partitions and identity is not None else exported.get("bytes"),
        identity,
        leaf,
        partitions,
        frozenset(attribute.name for attribute in leaf.output if counted >> attribute.bit & 1),
    )
