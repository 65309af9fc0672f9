"""Which types a join can sort by, and which it can hash, read from the text of a type (`catalogString`).

Sorting needs an order: maps, variants, calendar intervals and shapes have none, nor has anything that holds one.
Hashing needs equal values to be equal byte by byte. Text under a collation such as UTF8_LCASE is not: 'a' equals 'A'.
Spark looks for such text inside arrays, structs and maps too (`UnsafeRowUtils.isBinaryStable`, from Spark 4.0 on).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_UNORDERED = frozenset({"map", "variant", "geometry", "geography", "interval"})


@lru_cache(maxsize=1024)
def is_orderable(type: str) -> bool:
    """True if values of the type have an order (Catalyst's `OrderUtils.isOrderable`).

    >>> is_orderable("array<struct<a:int,map:date>>"), is_orderable("struct<a:array<map<int,int>>>")
    (True, False)
    >>> is_orderable("interval"), is_orderable("interval day to second")
    (False, True)
    """
    return not any(name in _UNORDERED for name in _type_names(type))


@lru_cache(maxsize=1024)
def is_binary_stable(type: str) -> bool:
    """True if equal values of the type are the same bytes (Catalyst's `UnsafeRowUtils.isBinaryStable`).

    >>> is_binary_stable("string"), is_binary_stable("map<string collate UNICODE_CI,int>")
    (True, False)
    """
    return not any(" collate " in name and not name.endswith(" collate UTF8_BINARY") for name in _type_names(type))


def _type_names(type: str) -> Iterator[str]:
    """The names of the type and of all that it holds; fields of structs without their names."""
    stack = [type.strip()]
    while stack:
        text = stack.pop()
        head, bracket, rest = text.partition("<")
        if bracket and head in ("array", "map", "struct"):
            yield head
            parts = _split(rest[: rest.rfind(">")], ",")
            stack.extend(_split(part, ":")[-1] if head == "struct" else part for part in parts)
        else:
            yield text if "collate" in text or text.startswith("interval ") else text.partition("(")[0]


def _split(text: str, separator: str) -> list[str]:
    """Split outside angle brackets, parentheses and backticks; at the first place only if at a colon."""
    parts: list[str] = []
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(text):
        if c == "`":
            quoted = not quoted
        elif not quoted:
            depth += (c in "<(") - (c in ">)")
            if c == separator and depth == 0 and not (c == ":" and parts):
                parts.append(text[start:i].strip())
                start = i + 1
    return [*parts, text[start:].strip()]
