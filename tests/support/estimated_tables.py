"""A few tables as file footers describe them: exact row counts, ranges of numbers and dates, no distinct counts."""

from __future__ import annotations

import datetime
from typing import Any

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, from_json
from pyjoinopt.plan.expressions import Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import LogicalPlan, relation

_NAMES: dict[str, dict[str, tuple[str, Any, Any]]] = {
    "orders": {
        "o_key": ("bigint", 1, 6_000_000),
        "o_cust": ("bigint", 1, 149_999),
        "o_date": ("date", 8035, 10440),
        "o_status": ("string", None, None),
        "o_total": ("decimal(12,2)", 800.0, 560_000.0),
    },
    "lines": {
        "l_order": ("bigint", 1, 6_000_000),
        "l_part": ("bigint", 1, 200_000),
        "l_supp": ("bigint", 1, 10_000),
        "l_ship": ("date", 8036, 10561),
    },
    "supplies": {"s_part": ("bigint", 1, 200_000), "s_supp": ("bigint", 1, 10_000), "s_qty": ("int", 1, 9999)},
    "customers": {"c_key": ("bigint", 1, 150_000), "c_nation": ("int", 0, 24), "c_name": ("string", None, None)},
    "nations": {"n_key": ("int", 0, 24), "n_name": ("string", None, None)},
}
ROWS = {"orders": 1_500_000, "lines": 6_001_215, "supplies": 800_000, "customers": 150_000, "nations": 25}

COLUMNS: dict[str, Attribute] = {}
TABLES: dict[str, LogicalPlan] = {}
KNOWN: dict[str, RelationStatistics] = {}
for _table, _columns in _NAMES.items():
    _attributes = []
    for _name, (_type, _low, _high) in _columns.items():
        COLUMNS[_name] = Attribute(len(COLUMNS), len(COLUMNS), _name, _type)
        _attributes.append(COLUMNS[_name])
    TABLES[_table] = relation(_table, _attributes)
    _stats = {
        str(COLUMNS[n].bit): {"min": low, "max": high, "nulls": 0}
        for n, (_, low, high) in _columns.items()
        if low is not None
    }
    KNOWN[_table] = from_json(
        {"rows": ROWS[_table], "bytes": ROWS[_table] * 30, "source": "footers", "exact": True, "columns": _stats},
        _attributes,
    )


def leaf(node: LogicalPlan) -> RelationStatistics:
    """Statistics of a table."""
    return KNOWN[node.info["rel"]["name"]]


def col(name: str) -> Expression:
    """A use of a column."""
    return reference(COLUMNS[name])


def lit(value: Any) -> Expression:
    """A constant, its type by its value."""
    types: dict[type, str] = {bool: "boolean", int: "int", float: "double", str: "string", datetime.date: "date"}
    return literal(value, types.get(type(value), "void"))


def eq(a: Expression | str, b: Expression | str) -> Expression:
    """An equality; texts are names of columns."""
    return call("EqualTo", *(col(e) if isinstance(e, str) else e for e in (a, b)))
