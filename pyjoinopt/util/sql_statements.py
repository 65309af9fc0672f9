"""Splits a text into SQL statements, at semicolons outside of quotes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: What may hide a semicolon: comments, and strings and names in quotes, which may contain an escaped or doubled quote.
_PIECE = re.compile(
    r"""
    (?P<hidden> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` )
    | (?P<comment> --[^\n]* )
    | (?P<block> /\* )
    | (?P<end> ; )
    """,
    re.VERBOSE | re.DOTALL,
)
_OF_BLOCK = re.compile(r"/\*|\*/")


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements of a text with the numbers of their first lines; those that are empty are left out.

    >>> list(statements("SELECT ';' -- one; two\\n;;\\n\\nSELECT /* a /* ; */ */ 2"))
    [(1, "SELECT ';' -- one; two"), (4, 'SELECT /* a /* ; */ */ 2')]
    """
    start = position = 0
    is_empty = True
    while (found := _PIECE.search(text, position)) is not None:
        is_empty = is_empty and not text[position : found.start()].strip() and found["hidden"] is None
        position = found.end()
        if found["block"] is not None:
            position = _end_of_comment(text, position)
        if found["end"] is not None:
            if not is_empty:
                yield _statement(text, start, found.start())
            start, is_empty = position, True
    if not is_empty or text[position:].strip():
        yield _statement(text, start, len(text))


def _end_of_comment(text: str, position: int) -> int:
    """The end of a comment that has begun before; comments may be nested."""
    depth = 1
    while depth:
        found = _OF_BLOCK.search(text, position)
        if found is None:
            return len(text)
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position


def _statement(text: str, start: int, end: int) -> tuple[int, str]:
    first = end - len(text[start:end].lstrip())
    return text.count("\n", 0, first) + 1, text[first:end].rstrip()
