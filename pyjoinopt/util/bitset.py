"""Sets of small numbers as the bits of an int: a union is `|`, and a hash is a hash of an int."""

from __future__ import annotations

from collections.abc import Iterator


def members(mask: int) -> Iterator[int]:
    """The numbers in a set, ascending.

    >>> list(members(0b10110))
    [1, 2, 4]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def singletons(mask: int) -> Iterator[int]:
    """The sets of one member each that make up a set, by ascending members.

    >>> list(singletons(0b10110))
    [2, 4, 16]
    """
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
