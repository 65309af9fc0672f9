"""Numbers as short text."""

from __future__ import annotations


def quantity(value: float) -> str:
    """A number in three digits.

    >>> quantity(1234567), quantity(42), quantity(9e12), quantity(0.5)
    ('1.23M', '42', '9.00T', '0.5')
    """
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    for size, unit in ((1e15, "e15"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            scaled = value / size
            digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
            return f"{scaled:.{digits}f}{unit}" if scaled < 1e3 else f"{value:.1e}"
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


def memory(size: float | None) -> str:
    """Bytes in three digits; "" for None.

    >>> memory(1234567), memory(42), memory(None), memory(2e16)
    ('1.23 MB', '42 B', '', '2e+16 B')
    """
    if size is None:
        return ""
    if not abs(size) < 1e15:
        return f"{size:.3g} B"
    number = quantity(size)
    return f"{number[:-1]} {number[-1]}B" if number[-1].isalpha() else f"{number} B"


def percent(share: float) -> str:
    """A share in whole percent.

    >>> percent(0.126), percent(0.001), percent(0.0)
    ('13 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def times(factor: float) -> str:
    """A factor.

    >>> times(3.14), times(52331565.2)
    ('3.1x', '52.3Mx')
    """
    return f"{factor:.1f}x" if factor < 1000 else f"{quantity(factor)}x"
