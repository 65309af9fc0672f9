"""By which columns rows of a table are sampled; no JVM."""

from __future__ import annotations

import datetime

import pytest

from pyjoinopt.estimation.sources.key_samples import key_columns
from pyjoinopt.estimation.sources.registry import Column, Relation

TYPES = {
    "comment": "string", "day": "date", "id": "bigint", "few": "int", "price": "decimal(12,2)", "code": "string",
    "flag": "boolean", "at": "timestamp",
}  # fmt: skip
KNOWN = {
    "comment": Column(avg_len=80), "code": Column(avg_len=12), "id": Column(min=1, max=900_000), "few": Column(ndv=9),
    "day": Column(min=datetime.date(2020, 1, 1), max=datetime.date(2021, 1, 1)),
}  # fmt: skip
TABLE = Relation("t", "file", "parquet", TYPES)


@pytest.mark.parametrize(
    "rows, known, declared, chosen",
    [
        # Days, few numbers and long texts are no keys; neither are types whose equality is not that of their bytes.
        (1e6, KNOWN, [], ["id", "code"]),
        # Nothing is known: numbers first.
        (1e6, {}, [], ["id", "few", "comment", "day"]),
        # What is declared comes first, whatever is known, but for types that are never hashed.
        (1e6, KNOWN, ["few", "day", "price"], ["day", "few", "id", "code"]),
        # Distinct counts: more than a tenth of the rows, or more than relations have that are read whole.
        (1e6, {**KNOWN, "few": Column(ndv=100_001), "id": Column(ndv=100_000)}, [], ["few", "code"]),
        (1e8, {**KNOWN, "few": Column(ndv=131_073), "id": Column(ndv=131_072)}, [], ["few", "code"]),
        # The relation is read whole, or it is not known whether it is.
        (131_072, KNOWN, ["id"], []), (None, KNOWN, ["id"], []),
    ],
)  # fmt: skip
def test_key_columns(rows: float | None, known: dict[str, Column], declared: list[str], chosen: list[str]) -> None:
    assert key_columns(TABLE, TYPES, rows, known, declared) == chosen


def test_only_analysed_columns() -> None:
    assert key_columns(TABLE, ["code", "few"], 1e6, KNOWN, []) == ["code"]
