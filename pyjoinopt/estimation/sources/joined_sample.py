"""The sampled rows of a relation, each with its partners in the relation's dimensions; see `star_joins`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

from pyjoinopt.estimation.sources.sampled_values import hashes
from pyjoinopt.estimation.sources.star_joins import Star
from pyjoinopt.plan.expressions import Expression


@dataclass(frozen=True, slots=True)
class Partners:
    """Which sampled rows have a partner in a dimension, as bits.

    Attributes:
        of: number of the leaf that refers to the dimension.
        columns: each pair of a referring column and a column of the key, as bits of attributes.
        filled: the rows in which no referring column is NULL; None if these are another dimension's columns.
        matched: the rows that have a partner.
        hits: key of a conjunct -> the rows whose partner fulfils it; None if that is unknown.
        hashed: column of the dimension -> the hash of each row's partner's value; see `sampled_values`.
    """

    of: int
    columns: frozenset[tuple[int, int]]
    filled: int | None
    matched: int
    hits: Mapping[Any, int | None]
    hashed: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinedSample:
    """The sampled rows of a relation with their partners.

    Attributes:
        rows: how many were sampled.
        complete: whether these are all.
        starts: the first row of each place in the files; empty if rows are from all places.
        dimensions: number of a leaf -> the partners there.
        hits: key of a conjunct of the relation -> the rows that fulfil it; None if that is unknown.
        by_key: whether each place has all rows with one value of the referring column.
        hashed: column of the relation -> the hash of each row's value.
    """

    rows: int
    complete: bool
    starts: tuple[int, ...]
    dimensions: Mapping[int, Partners]
    hits: Mapping[Any, int | None]
    by_key: bool = False
    hashed: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def kept(self, conjuncts: Iterable[Expression]) -> int:
        """Which rows fulfil all conjuncts that were evaluated, as bits.

        `IS NOT NULL` does not count: Spark adds it to a plan that it has begun to optimise.
        """
        known = (self.hits.get(e.key) for e in conjuncts if e.kind != "IsNotNull")
        return reduce(and_, (bits for bits in known if bits is not None), (1 << self.rows) - 1)


def joined_sample(
    star: Star, conjuncts: Mapping[int, Sequence[Expression]], answer: Mapping[str, Any], by_key: bool = False
) -> JoinedSample | None:
    """What the JVM found of a star; None if it has no sample of the centre.

    Args:
        star: as requested.
        conjuncts: number of a leaf -> those that were requested.
        answer: the JVM's, for the centre.
        by_key: as of `JoinedSample`.
    """
    if "dimensions" not in answer:
        return None
    numbers = [star.center.number, *(d.leaf.number for d in star.dimensions)]
    found: dict[int, Partners] = {}
    for dimension, one in zip(star.dimensions, answer["dimensions"]):
        number, of = dimension.leaf.number, numbers[dimension.of + 1]
        if one is not None and number is not None and of is not None:
            hits = {e.key: from_hex(bits) for e, bits in zip(conjuncts.get(number, ()), one["hits"])}
            matched = from_hex(one["matched"]) or 0
            columns = frozenset((a.bit, b.bit) for a, b in zip(dimension.columns, dimension.key))
            filled = from_hex(one.get("filled"))
            found[number] = Partners(of, columns, filled, matched, hits, read_hashes(one))
    own = {e.key: from_hex(bits) for e, bits in zip(conjuncts.get(numbers[0] or 0, ()), answer["hits"])}
    return JoinedSample(
        answer["rows"], bool(answer["complete"]), tuple(answer.get("starts", ())), found, own, by_key
    )


def read_hashes(answer: Mapping[str, Any]) -> dict[int, Sequence[int]]:
    """Attribute number of each column whose values were hashed -> the hashes."""
    return {int(bit): hashes(text) for bit, text in (answer.get("hashed") or {}).items()}


def from_hex(bits: str | None) -> int | None:
    """Bits of sampled rows as an int, the first row lowest.

    >>> from_hex("0180"), from_hex(None)
    (32769, None)
    """
    return None if bits is None else int.from_bytes(bytes.fromhex(bits), "little")
