"""The runs of one query as a picture: seconds from left to right, with a line where its plan changed.

Runs stand side by side in equal distances, whatever time has passed between them, so that a query that runs every hour
and one that runs once a month look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pyjoinopt.report.render.svg_style import CHARACTER, LINE, MARGIN, cut, document, look, text

#: Plan ("as written" or a number), what it changed, seconds, when it ended, whether it failed.
Row = tuple[str, str, float, str, bool]
_HEIGHT, _LEAST, _MOST = 150.0, 14.0, 40.0
_WIDTH = 560.0
_TICKS = 3


def history_svg(title: str, rows: Sequence[Row], written: str) -> str:
    """A complete SVG document: a dot for each run, hollow for one as written, and a cross for one that failed.

    Args:
        title: above the picture.
        rows: the runs, the oldest first.
        written: the name of the plan of a query as written.
    """
    top = max((seconds for _, _, seconds, _, failed in rows if not failed), default=1.0) or 1.0
    step = min(_MOST, max(_LEAST, _WIDTH / max(1, len(rows))))
    left, above = MARGIN + 8 * CHARACTER, MARGIN + 2 * LINE
    base = above + _HEIGHT
    width = left + max(len(rows) * step, 30 * CHARACTER) + MARGIN
    parts = [text(MARGIN, MARGIN + 8, title, "dim")]
    for tick in range(_TICKS):
        share = tick / (_TICKS - 1)
        y = base - share * _HEIGHT
        parts.append(text(MARGIN, y + 4, f"{share * top:.3g} s", "dim"))
        parts.append(f'<line {look("line")} x1="{left:.1f}" y1="{y:.1f}" x2="{width - MARGIN:.1f}" y2="{y:.1f}" '
                     'stroke-opacity="0.4"/>')  # fmt: skip
    words, before = [], None
    for number, (plan, changes, seconds, ended, failed) in enumerate(rows):
        x = left + (number + 0.5) * step
        y = base if failed else base - seconds / top * _HEIGHT
        if plan != before:
            edge = x - step / 2
            parts.append(f'<line {look("ring")} x1="{edge:.1f}" y1="{above - LINE / 2:.1f}" x2="{edge:.1f}" '
                         f'y2="{base:.1f}" stroke-dasharray="3 3"/>')  # fmt: skip
            if number == 0 or _room(rows, number, step) >= len(plan) * CHARACTER:
                parts.append(text(edge + 3, above - LINE / 2, cut(plan, 12), "mark"))
        shape = (
            text(x - 4, y + 4, "✕", "mark")
            if failed
            else f'<circle {look("leaf" if plan == written else "dot")} cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        )
        described = f"{ended}: {'failed' if failed else f'{seconds:.2f} s'}, {plan}{f', {changes}' if changes else ''}"
        parts.append(f"<g><title>{escape(described)}</title>{shape}</g>")
        words.append(described)
        before = plan
    return document(width, base + MARGIN, title, "; ".join(words), parts)


def _room(rows: Sequence[Row], number: int, step: float) -> float:
    """The width of the runs of one plan from this one on."""
    last = number
    while last < len(rows) and rows[last][0] == rows[number][0]:
        last += 1
    return (last - number) * step
