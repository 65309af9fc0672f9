"""Keys that users declare, because no count can prove a key.

    pyjoinopt.statistics.declare("orders", key="id")
    pyjoinopt.statistics.declare("lines", foreign_keys={"order_id": "orders.id"})

A declared key has as many different values as the relation has rows. A foreign key declares that the columns it refers
to are such a key, and that it has no other values. Constraints of a catalog's table (Spark 4.1 and later: PRIMARY KEY
and UNIQUE) are used the same way. None of this is checked, so estimates, bounds and the hints that these allow may rest
on it, and no rewriting of the plan does: a wrong declaration may cost time, never rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.util.warn_once import forget_causes, log_once

#: Between a table's name and the database that it is in.
AT = " at "
_keys: dict[str, set[tuple[str, ...]]] = {}
#: Columns of each relation that refer to keys.
_references: dict[str, set[str]] = {}
_log = logging.getLogger("pyjoinopt")
#: Names that some query had, which a query without them is not to blame for.
_found: set[str] = set()


def declare(
    table: str, *, key: str | Sequence[str] | None = None, foreign_keys: Mapping[str, str] | None = None
) -> None:
    """Declare keys of a relation, for this process. (Workers of the session extension are processes of their own.)

    Args:
        table: its name as reports show it: of a table, or the last part of a path. A table's name goes with or
            without the names of its catalog and schema, that of a table over JDBC with or without its database
            (`"orders at postgresql://db1/shop"`, `"public.orders"`, `"orders"`).
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
    if not isinstance(key, (str, Sequence, type(None))):
        raise TypeError(f"key is {key!r}, but must be the name of a column, or a list of names")
    if not isinstance(foreign_keys, (Mapping, type(None))):
        raise TypeError(f"foreign_keys is {foreign_keys!r}, but must be a mapping such as {{'column': 'table.column'}}")
    listed = [key] if isinstance(key, str) else list(key or ())
    references = dict(foreign_keys or {})
    for name in (table, *listed, *references, *references.values()):
        if not isinstance(name, str) or not name:
            raise TypeError(f"tables and columns are named by strings that are not empty, not by {name!r}")
    if not listed and not references:
        raise ValueError("nothing is declared: name a key, or foreign_keys")
    for column, target in references.items():
        parent, _, referred = target.rpartition(".")
        if not parent or not referred:
            raise ValueError(f"the foreign key {column} refers to {target!r}, but must refer to 'table.column'")
        _keys.setdefault(_bare(parent), set()).add((referred.lower(),))
        _references.setdefault(_bare(table), set()).add(column.lower())
    if listed:
        _keys.setdefault(_bare(table), set()).add(tuple(name.lower() for name in listed))


def declared_keys(name: str) -> list[tuple[str, ...]]:
    """The keys that were declared of a relation.

    >>> declare("lines at postgresql://db1/shop", key="id")
    >>> [declared_keys(f"public.lines at postgresql://{server}/shop") for server in ("db1", "db2")]
    [[('id',)], []]
    >>> forget_declared()
    """
    return sorted(set().union(*(_keys.get(one, set()) for one in {_bare(name), _bare(_parts(name)[0])})))


def declared_references(name: str) -> list[str]:
    """The columns of a relation that were declared to refer to a key.

    >>> declare("lines", foreign_keys={"Order_Id": "orders.id"})
    >>> declared_references("default.lines")
    ['order_id']
    >>> forget_declared()
    """
    return sorted(set().union(*(_references.get(one, set()) for one in {_bare(name), _bare(_parts(name)[0])})))


def forget_declared(table: str | None = None) -> None:
    """Take back what was declared of a relation, or of all."""
    if not isinstance(table, (str, type(None))):
        raise TypeError(f"a table is named by a string, not by {table!r}; without one, all declarations are taken back")
    if table is None:
        _keys.clear()
        _references.clear()
        _found.clear()
        forget_causes("declared keys")
    else:
        _keys.pop(_bare(table), None)
        _references.pop(_bare(table), None)


def without_effect(relations: Mapping[str, Iterable[str]]) -> list[str]:
    """What was declared and changes nothing for a query: a sentence for each.

    A table that an earlier query of this process read is simply not part of this one, so it is left out. What is
    probably a slip, since a similar name is there, is also logged once.

    Args:
        relations: the relations of the query, as reports name them, with the names of their columns.

    >>> declare("nosuch", key="id")
    >>> without_effect({"default.orders": ["id"], "nosuch2": []})[0].partition(";")[2]
    " did you mean 'nosuch2'? Its relations are nosuch2, orders"
    >>> forget_declared()
    """
    columns: dict[str, list[str]] = {}
    for name, listed in relations.items():  # of the same name in several schemas, any may be meant
        columns.setdefault(_bare(name), []).extend(column.lower() for column in listed)
    _found.update(columns)
    notes = []
    for table, keys in sorted(_keys.items()):
        if table not in columns:
            close = get_close_matches(table, columns, 1)
            start = f"declared keys of {table!r} match nothing: no relation of this query has that name"
            if table not in _found or close:
                notes.append(_note(start, close, "relations", columns))
            continue
        for key in sorted(keys):
            for name in (name for name in key if name not in columns[table]):
                start = f"the declared key ({', '.join(key)}) of {table!r} matches nothing: it has no column {name!r}"
                close = get_close_matches(name, columns[table], 1)
                notes.append(_note(start, close or [""], "columns", columns[table]))
    return notes


def _note(start: str, close: Sequence[str], kind: str, there: Iterable[str]) -> str:
    hint = f"; did you mean {close[0]!r}?" if close and close[0] else "."
    note = f"{start}{hint} Its {kind} are {', '.join(sorted(set(there))) or 'none'}"
    if close:
        log_once(_log, "declared keys", note)
    return note


def with_keys(
    known: RelationStatistics, output: Sequence[Attribute], keys: Iterable[Sequence[str]]
) -> RelationStatistics:
    """Statistics in which no two rows share the values of a key; one of a single column has as many values as rows.

    >>> n, m = Attribute(0, 1, "n", "int"), Attribute(1, 2, "m", "int")
    >>> keyed = with_keys(RelationStatistics(10.0, 80.0), [n, m], [("N",), ("n", "m"), ("m", "gone")])
    >>> keyed.column(0).ndv, sorted(keyed.keys)
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
    """Without catalog and schema, but with the database if there is one."""
    table, database = _parts(name)
    if not table.startswith("("):  # a query is no name
        table = table.replace("`", "").rpartition(".")[2]
    return table.lower() + database


def _parts(name: str) -> tuple[str, str]:
    """Table and database; the address of a database has a colon and no blanks.

    >>> _parts("(select 1 at t) at postgresql://db1/shop"), _parts("noon at night")
    (('(select 1 at t)', ' at postgresql://db1/shop'), ('noon at night', ''))
    """
    table, at, database = name.rpartition(AT)
    return (table, at + database) if ":" in database and " " not in database else (name, "")
