"""Sortable and hashable types, compared with Spark's own classification."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.planner.key_types import is_binary_stable, is_orderable


@pytest.mark.parametrize(
    ("type", "orderable", "stable"),
    [
        ("bigint", True, True), ("map<int,int>", False, True), ("struct<a:int,b:array<variant>>", False, True),
        ("struct<map:int,interval:string>", True, True), ("interval", False, True),
        ("interval day to second", True, True), ("geometry(4326)", False, True), ("geography(any)", False, True),
        ("string collate UTF8_LCASE", True, False), ("string collate UTF8_BINARY", True, True),
        ("array<struct<a:decimal(10,2),b:map<string collate UNICODE,int>>>", False, False),
        ("struct<`a:b`:map<int,int>>", False, True), ("struct<`a:map<int,int>`:int>", True, True),
    ],
)  # fmt: skip
def test_types(type: str, orderable: bool, stable: bool) -> None:
    assert (is_orderable(type), is_binary_stable(type)) == (orderable, stable)
