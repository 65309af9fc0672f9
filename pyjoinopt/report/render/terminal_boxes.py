"""Text for terminals: boxes of a given width, padded columns, and ASCII output."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable

_ASCII = str.maketrans({
    "⋈": "JOIN", "⟕": "LEFT", "⟖": "RIGHT", "⟗": "FULL", "⋉": "SEMI", "▷": "ANTI", "…": "~", "→": "->", "─": "-",
    "│": "|", "├": "+", "┤": "+", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "└": "`",
})  # fmt: skip
#: Minimum width of a box.
LEAST = 40


def plain(text: str) -> str:
    """The text in ASCII.

    >>> plain("a ⋈ b → ü")
    'a JOIN b -> ?'
    """
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def width_of(text: str) -> int:
    """Number of terminal columns of a text.

    >>> width_of("a⋈b"), width_of("表")
    (3, 2)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


def cut(text: str, width: int) -> str:
    """The text, shortened to a number of columns if it is longer.

    >>> cut("a long name", 7), cut("short", 7)
    ('a long…', 'short')
    """
    if width_of(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while width_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def pad(text: str, width: int) -> str:
    """A cell of exactly this width.

    >>> pad("ab", 4), pad("abcdef", 4)
    ('ab  ', 'abc…')
    """
    text = cut(text, width)
    return text + " " * (width - width_of(text))


class Box:
    """A box that grows line by line.

    >>> box = Box("a title", 44)
    >>> box.line("one")
    >>> box.rule("more")
    >>> box.line("two")
    >>> print(box.to_text())
    ╭─ a title ────────────────────────────────╮
    │ one                                      │
    ├─ more ───────────────────────────────────┤
    │ two                                      │
    ╰──────────────────────────────────────────╯

    Args:
        title: text in the upper edge; the rest of a long title is below it.
        width: width of the whole box in columns.
        ascii_only: use ASCII only.
    """

    def __init__(self, title: str, width: int, ascii_only: bool = False) -> None:
        self.width = max(width, LEAST)
        self.ascii_only = ascii_only
        self._lines: list[str] = []
        first, *rest = textwrap.wrap(title, self.width - 6) or [""]
        self._edge("╭", "╮", first)
        for text in rest:
            self.line(text)

    @property
    def inside(self) -> int:
        """Columns between the edges."""
        return self.width - 4

    def text(self, text: str) -> str:
        """The text as it will be written, to measure it."""
        return plain(text) if self.ascii_only else text

    def line(self, text: str) -> None:
        """Add one line; a long line is cut."""
        self._lines.append(f"│ {pad(self.text(text), self.inside)} │")

    def wrapped(self, text: str, indent: str = "", most: int = 8) -> None:
        """Add a text, wrapped over at most `most` lines."""
        lines = textwrap.wrap(
            self.text(text), self.inside, subsequent_indent=indent, max_lines=most, placeholder=" …",
            break_on_hyphens=False,
        )  # fmt: skip
        for line in lines:
            self.line(line)

    def lines(self, texts: Iterable[str]) -> None:
        """Add lines."""
        for text in texts:
            self.line(text)

    def rule(self, title: str = "") -> None:
        """Add a rule across the box, with a title."""
        self._edge("├", "┤", title)

    def to_text(self) -> str:
        """The text of the box."""
        self._edge("╰", "╯", "")
        text = "\n".join(self._lines)
        self._lines.pop()
        return plain(text) if self.ascii_only else text

    def _edge(self, left: str, right: str, title: str) -> None:
        title = cut(self.text(title), self.width - 6)
        named = f"─ {title} " if title else ""
        self._lines.append(f"{left}{named}{'─' * (self.width - 2 - width_of(named))}{right}")
