"""Sizes, colours and the SVG document that all pictures share.

Every shape has its light colours as attributes, for viewers that drop style sheets. Where a style sheet is kept, it
takes precedence and follows the reader's dark scheme. Its rules name a class of the picture, because a style sheet
inside a page applies to the whole page.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape

LINE, STEP, MARGIN, GAP = 24, 18, 16, 32
#: Width of one character, in a monospaced font of 11 px.
CHARACTER = 6.7
#: Characters of a label at most.
LABEL = 44

_LIGHT = {
    "ink": "#1f2430", "dim": "#5a6376", "page": "#ffffff", "line": "#8a93a6", "main": "#1f6feb", "mark": "#b35900",
}  # fmt: skip
_DARK = {
    "ink": "#e6e9ef", "dim": "#a3acbd", "page": "#15181e", "line": "#7d8698", "main": "#58a6ff", "mark": "#f0a35e",
}  # fmt: skip

#: Class -> (attribute, colour), ...
_COLOURS = {
    "ink": (("fill", "ink"),), "dim": (("fill", "dim"),), "mark": (("fill", "mark"),), "page": (("fill", "page"),),
    "dot": (("fill", "main"),), "leaf": (("fill", "page"), ("stroke", "main")), "line": (("stroke", "line"),),
    "edge": (("stroke", "main"),), "ring": (("stroke", "mark"),), "bar": (("fill", "main"),),
    "badge": (("fill", "page"), ("stroke", "line")),
}  # fmt: skip
_WORDS = str.maketrans({"⟕": "LEFT", "⟖": "RIGHT", "⟗": "FULL", "⋉": "SEMI", "▷": "ANTI"})
_SVG = "http://www.w3.org/2000/svg"
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def look(name: str) -> str:
    """Class and colours of a shape, as attributes.

    >>> look("leaf")
    'class="leaf" fill="#ffffff" stroke="#1f6feb"'
    """
    colours = " ".join(f'{attribute}="{_LIGHT[colour]}"' for attribute, colour in _COLOURS[name])
    return f'class="{name}" {colours}'


def _rules(palette: dict[str, str]) -> str:
    return "".join(
        f".pjo .{name}{{{';'.join(f'{attribute}:{palette[colour]}' for attribute, colour in colours)}}}"
        for name, colours in _COLOURS.items()
    )


_STYLE = f"{_rules(_LIGHT)}@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"


def document(width: float, height: float, title: str, words: str, parts: list[str]) -> str:
    """A complete SVG document with a background, and with its content as text for screen readers."""
    return (
        f'<svg xmlns="{_SVG}" class="pjo" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="{_FONT}" font-size="11">'
        f"<title>{escape(title)}</title><desc>{escape(worded(words))}</desc><style>{_STYLE}</style>"
        f'<rect {look("page")} width="{width:.0f}" height="{height:.0f}" rx="6"/>{"".join(parts)}</svg>'
    )


def as_image(svg: str) -> str:
    """An SVG document as an `img` element, with its text as the alternative text.

    Viewers that do not trust a notebook remove SVG elements from HTML and keep only their texts, but keep images.
    """
    from xml.etree.ElementTree import fromstring  # workers import this module, and have no use for XML

    root = fromstring(svg)
    words = escape(". ".join(root.findtext(f"{{{_SVG}}}{name}") or "" for name in ("title", "desc")))
    size = f'width="{root.get("width")}" height="{root.get("height")}"'
    kept = 'style="height:auto"'  # keeps the aspect ratio where a page makes it narrower
    return f'<img {size} {kept} alt="{words}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"/>'


def text(x: float, y: float, content: str, name: str = "ink", more: str = "") -> str:
    """One line of text; `content` is escaped."""
    return f'<text {look(name)} x="{x:.1f}" y="{y:.1f}"{more}>{escape(content)}</text>'


def worded(content: str) -> str:
    """Replaces the signs of outer, semi and anti joins by words, since common fonts do not have the signs.

    >>> worded("a ⟕ b ⋈ c")
    'a LEFT b ⋈ c'
    """
    return content.translate(_WORDS)


def cut(content: str, most: int = LABEL) -> str:
    """A label of at most this many characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return content if len(content) <= most else content[: most - 1] + "…"
