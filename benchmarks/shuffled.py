"""Rewrites a query with its FROM lists in another order."""

from __future__ import annotations

import random
import re

_WORD = re.compile(r"[A-Za-z_]+|'[^']*'|`[^`]*`|\"[^\"]*\"|--[^\n]*|.", re.DOTALL)
_ENDS = frozenset("WHERE GROUP ORDER HAVING LIMIT UNION INTERSECT EXCEPT WINDOW QUALIFY".split())


def shuffled(text: str, rng: random.Random) -> str:
    """The query with every comma-separated FROM list in a random order.

    Lists under `SELECT *` stay, since there the order of relations is that of the columns.

    >>> shuffled("SELECT a FROM t, (SELECT b FROM u, v WHERE x IN (1, 2)) s WHERE c", random.Random(3))
    'SELECT a FROM (SELECT b FROM v, u WHERE x IN (1, 2)) s, t WHERE c'
    >>> shuffled("SELECT * FROM t, u", random.Random(3))
    'SELECT * FROM t, u'
    """
    tokens = _WORD.findall(text)
    result, end = _query(tokens, 0, rng)
    assert end == len(tokens), "unbalanced parentheses"
    return "".join(result)


def _query(tokens: list[str], start: int, rng: random.Random) -> tuple[list[str], int]:
    """Tokens up to the parenthesis that closes this level, with lists shuffled, and the position after them."""
    done: list[str] = []
    i = start
    while i < len(tokens) and tokens[i] != ")":
        token = tokens[i]
        if token == "(":
            inner, i = _query(tokens, i + 1, rng)
            done += ["(", *inner, ")"]
        elif token.upper() == "FROM":
            done.append(token)
            items, i = _from_list(tokens, i + 1, rng)
            if not _selects_all(done):
                items = _in_random_order(items, rng)
            done += ",".join(items)
            continue
        else:
            done.append(token)
        i += 1
    return done, i


def _from_list(tokens: list[str], start: int, rng: random.Random) -> tuple[list[str], int]:
    items, item, i = [], "", start
    while i < len(tokens) and tokens[i] != ")" and tokens[i].upper() not in _ENDS:
        if tokens[i] == "(":
            inner, i = _query(tokens, i + 1, rng)
            item += f"({''.join(inner)})"
        elif tokens[i] == ",":
            items.append(item)
            item = ""
        else:
            item += tokens[i]
        i += 1
    return [*items, item], i


def _selects_all(before: list[str]) -> bool:
    words = [token for token in before[:-1] if not token.isspace()]
    return words[-1:] == ["*"] and words[-2:-1] != [] and words[-2].upper() == "SELECT"


def _in_random_order(items: list[str], rng: random.Random) -> list[str]:
    """The items permuted; blanks stay in place, so that the query stays readable."""
    if len(items) < 2:
        return items
    frames = [re.fullmatch(r"(\s*)(.*?)(\s*)", item, re.DOTALL) for item in items]
    cores = [frame[2] for frame in frames if frame]
    rng.shuffle(cores)
    return [f"{frame[1]}{core}{frame[3]}" for frame, core in zip(frames, cores) if frame]
