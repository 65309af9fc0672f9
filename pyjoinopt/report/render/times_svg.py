"""Running times as one picture: a row for each plan, a dot for each run, an arrow for a run that was stopped."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape

from pyjoinopt.report.render.svg_style import CHARACTER, LINE, MARGIN, cut, document, look, text

#: Name, description, seconds of its runs, seconds after which one was stopped, whether it is the best one.
Row = tuple[str, str, Sequence[float], float | None, bool]
_AXIS, _NUMBER = 260.0, 60.0
_LABEL = 34


def times_svg(title: str, rows: Sequence[Row]) -> str:
    """A complete SVG document; the best plan has a star, and each row a tooltip with its description."""
    longest = max((second for _, _, seconds, stopped, _ in rows for second in (*seconds, stopped or 0.0)), default=1.0)
    scale = _AXIS / max(longest, 1e-9)
    names = max((len(cut(name, _LABEL)) for name, *_ in rows), default=1) + 2
    left = MARGIN + names * CHARACTER
    parts = [text(MARGIN, MARGIN + 8, title, "dim")]
    words = []
    for number, (name, about, seconds, stopped, best) in enumerate(rows, 1):
        y = MARGIN + number * LINE
        label = f"{'★ ' if best else ''}{cut(name, _LABEL)}"
        figure = f"{statistics.median(seconds):.2f} s" if seconds else f"> {stopped or 0.0:.2f} s"
        row = [
            text(MARGIN, y + 4, label, "ink"),
            f'<line {look("line")} x1="{left:.1f}" y1="{y}" x2="{left + _AXIS:.1f}" y2="{y}" stroke-opacity="0.4"/>',
            *(f'<circle {look("dot")} cx="{left + second * scale:.1f}" cy="{y}" r="4"/>' for second in seconds),
        ]
        if stopped is not None:
            row.append(text(left + stopped * scale, y + 4, "▸", "mark"))
        row.append(text(left + _AXIS + 10, y + 4, figure, "dim"))
        described = f"{name}: {figure}, {about}"
        parts.append(f"<g><title>{escape(described)}</title>{''.join(row)}</g>")
        words.append(f"{'best: ' if best else ''}{described}")
    width = left + _AXIS + _NUMBER + 10 + MARGIN
    return document(width, (len(rows) + 1) * LINE + 2 * MARGIN, title, "; ".join(words), parts)

