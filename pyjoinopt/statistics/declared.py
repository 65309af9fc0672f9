"""Keys that somebody declares, because no count can prove what everybody knows.

    pyjoinopt.statistics.declare("orders", key="id")
    pyjoinopt.statistics.declare("lines", foreign_keys={"order_id": "orders.id"})

A declared key has as many different values as the relation has rows. A foreign key says that of what it refers to, and
that it has no values beside those. Constraints that a catalog's table declares (Spark 4.1 and later: PRIMARY KEY and
UNIQUE) are taken the same way. Nobody checks any of this, so it is the ground of estimates, of bounds and of the hints
that these allow, and never of a rewriting of the plan: a wrong declaration may cost time, never rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.statistics.relation import ColumnStatistics, RelationStatistics

_keys: dict[str, set[tuple[str, ...]]] = {}


def declare(
    table: str, *, key: str | Sequence[str] | None = None, foreign_keys: Mapping[str, str] | None = None
) -> None:
    """Declare keys of a relation, for this process. (Workers of the session extension are processes of their own.)

    Args:
        table: its name as reports show it: of a table, or the last part of a path. A table's name goes with or
            without the names of its catalog and schema.
        key: a column, or several, in which no two rows agree.
        foreign_keys: column -> "table.column" that it refers to; the latter is a key.

    Raises:
        TypeError: a name that is no str.
        ValueError: nothing is declared, or a foreign key refers to no "table.column".

    >>> declare("orders", key="id")
    >>> declared_keys("spark_catalog.default.orders")
    [('id',)]
    >>> forget_declared()
    """
    listed = [key] if isinstance(key, str) else list(key or ())
    references = dict(foreign_keys or {})
    names = [table, *listed, *references, *references.values()]
    if not all(isinstance(name, str) and name for name in names):
        raise TypeError("tables and columns are named by strings")
    if not listed and not references:
        raise ValueError("nothing is declared: name a key, or foreign_keys")
    for column, target in references.items():
        parent, _, referred = target.rpartition(".")
        if not parent or not referred:
            raise ValueError(f"the foreign key {column} refers to {target!r}, but must refer to 'table.column'")
        _keys.setdefault(_bare(parent), set()).add((referred.lower(),))
    if listed:
        _keys.setdefault(_bare(table), set()).add(tuple(name.lower() for name in listed))


def declared_keys(name: str) -> list[tuple[str, ...]]:
    """The keys that were declared of a relation."""
    return sorted(_keys.get(_bare(name), ()))


def forget_declared(table: str | None = None) -> None:
    """Take back what was declared of a relation, or of all."""
    if table is None:
        _keys.clear()
    else:
        _keys.pop(_bare(table), None)


def with_keys(
    known: RelationStatistics, output: Sequence[Attribute], keys: Iterable[Sequence[str]]
) -> RelationStatistics:
    """Statistics in which no two rows share the values of a key; one of a single column has as many values as rows.

    >>> n, m = Attribute(0, 1, "n", "int"), Attribute(1, 2, "m", "int")
    >>> told = with_keys(RelationStatistics(10.0, 80.0), [n, m], [("N",), ("n", "m"), ("m", "gone")])
    >>> told.column(0).ndv, sorted(told.keys)
    (10.0, [1, 3])
    """
    listed = [{name.lower() for name in key} for key in keys]
    if not listed:
        return known
    single = {name for key in listed if len(key) == 1 for name in key}
    bits = {attribute.name.lower(): attribute.mask for attribute in output}
    found = frozenset(sum(bits[name] for name in key) for key in listed if key and key <= bits.keys())
    columns = dict(known.columns)
    for attribute in output:
        if attribute.name.lower() in single:
            column = columns.get(attribute.bit, ColumnStatistics())
            filled = max(1.0, known.base_rows * (1.0 - (column.nulls or 0.0)))
            columns[attribute.bit] = replace(column, ndv=filled, guessed=False, key_values=filled)
    return replace(known, columns=columns, keys=known.keys | found) if found else known


def _bare(name: str) -> str:
    return name.replace("`", "").rpartition(".")[2].lower()
