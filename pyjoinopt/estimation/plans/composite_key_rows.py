"""How many values a composite key has."""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS


def key_rows(relations: Iterable[tuple[float, Iterable[float]]], sure: Iterable[bool] = ()) -> float:
    """How many values a composite key has by which relations are joined: the rows of the relation whose key it is.

    If it is a key of several, the smaller ones refer to the largest: each order returned was sold.

    If it is not known of any, that is the smallest, unless one of the columns is nearly unique there: such a relation
    would need no other column for its key. It rather refers to another's, as goods returned (1.5 rows an order) refer
    to goods sold (12).

    Args:
        relations: of each its rows, before filters, and the distinct counts of its columns of the key.
        sure: of each whether these columns are known to be a key of it.

    >>> supplies, lines = (8e5, [2e5, 1e4]), (6e6, [2e5, 1e4])
    >>> returned, sold = (2.9e5, [2e5, 1e4]), (2.9e6, [2.4e5, 1e4])
    >>> key_rows([lines, supplies]), key_rows([returned, sold])
    (800000.0, 2900000.0)
    >>> key_rows([(2.9e5, [2.9e5, 1e4]), (9e5, [2e5, 1e4])], [True, False])
    290000.0
    >>> key_rows([(2.9e5, [2.9e5, 1e4]), (9e5, [2e5, 1e4])], [True, True])
    900000.0
    """
    listed = [(rows, list(counts)) for rows, counts in relations]
    known = [rows for (rows, _), is_key in zip(listed, sure) if is_key]
    if known:
        return max(known)
    least = ASSUMPTIONS.rows_per_composite_value
    keys = [rows for rows, counts in listed if all(rows >= least * count for count in counts)]
    return min(keys or [rows for rows, _ in listed])
