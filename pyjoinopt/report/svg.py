"""The orders before and after as one picture: SVG without scripts, fonts or a layout program.

Each order is a column of lines laid out along its spine (`outline`). Beside a join stands a bar as long as the
logarithm of its rows, so that the place where an order explodes is seen before it is read. A join that only one of the
orders makes has a ring and a star: no meaning hangs on colour alone. Colours follow the reader's light or dark scheme,
on a background of the picture's own. The same is told in words in `<title>` and `<desc>`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyjoinopt.report.outline import BRANCH, ROOT, Line, outline
from pyjoinopt.report.quantity import quantity
from pyjoinopt.report.record import GroupReport, JoinEstimate

_LINE, _STEP, _MARGIN, _GAP = 24, 18, 16, 32
_CHARACTER = 6.7  # width of one, in a monospaced font of 11 px
_LABEL = 44  # characters of a label at most
_BAR, _FIGURE = 90, 62
_DOT = 5

_STYLE = """
text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1f2430}
.page{fill:#fff}.line{stroke:#8a93a6;stroke-width:1.2;fill:none}.dot{fill:#1f6feb}.leaf{fill:#fff;stroke:#1f6feb}
.ring{fill:none;stroke:#b35900;stroke-width:1.6}.bar{fill:#1f6feb;opacity:.55}.star{fill:#b35900}.head{font-weight:bold}
@media (prefers-color-scheme:dark){text{fill:#e6e9ef}.page{fill:#15181e}.leaf{fill:#15181e}.line{stroke:#7d8698}
.dot{fill:#58a6ff}.leaf{stroke:#58a6ff}.bar{fill:#58a6ff}.ring{stroke:#f0a35e}.star{fill:#f0a35e}}
"""


@dataclass(frozen=True)
class _Column:
    """One order in its place."""

    title: str
    lines: Sequence[Line]
    labels: Sequence[str]
    rows: Sequence[float]
    stars: Sequence[bool]

    @property
    def tree_width(self) -> float:
        widths = (
            line.depth * _STEP + 2 * _DOT + 6 + (len(text) + 2 * star) * _CHARACTER
            for line, text, star in zip(self.lines, self.labels, self.stars)
        )
        return max(*widths, len(self.title) * _CHARACTER)

    @property
    def width(self) -> float:
        return self.tree_width + _BAR + _FIGURE + 2 * _STEP

    @property
    def height(self) -> float:
        return (len(self.lines) + 1) * _LINE


def group_svg(group: GroupReport, number: int = 1) -> str:
    """One join group as a complete SVG document."""
    after = _column(group, "after" if group.changed else "as written", group.estimated_rows, group.joins_before)
    columns = [after]
    if group.changed:
        columns.insert(0, _column(group, "before", group.joins_before, group.estimated_rows))
    most = max((rows for column in columns for rows in column.rows), default=1.0)
    width = sum(column.width for column in columns) + _GAP * (len(columns) - 1) + 2 * _MARGIN
    height = max(column.height for column in columns) + 2 * _MARGIN
    title = f"Join group {number}: {len(group.relations)} relations"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        f"<title>{escape(title)}</title><desc>{escape(describe_group(group))}</desc><style>{_STYLE}</style>",
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
    ]
    x = float(_MARGIN)
    for column in columns:
        parts += _drawn(column, x, float(_MARGIN), most)
        x += column.width + _GAP
    return "".join(parts) + "</svg>"


def describe_group(group: GroupReport) -> str:
    """The picture in words, for those who do not see it."""
    change = f"Written as {group.order_before}, cost {quantity(group.cost_before)}"
    if group.changed:
        change += f"; now {group.order_after}, cost {quantity(group.cost_after)}"
    rows = "; ".join(f"{' and '.join(j.relations)}: about {quantity(j.rows)} rows" for j in group.estimated_rows)
    return f"{change}. Joins from the innermost: {rows}."


def _column(group: GroupReport, title: str, joins: Sequence[JoinEstimate], others: Sequence[JoinEstimate]) -> _Column:
    made = {frozenset(join.relations) for join in others}
    n = len(group.relations)
    lines = outline(n, [(join.left, join.right) for join in joins])
    labels, rows, stars = [], [], []
    for line in lines:
        if line.node < n:
            labels.append(_cut(group.relations[line.node].name))
            rows.append(group.relations[line.node].rows)
            stars.append(False)
        else:
            join = joins[line.node - n]
            labels.append(_cut(f"{join.sign} {' AND '.join(join.predicates) or '(cross product)'}"))
            rows.append(join.rows)
            stars.append(bool(made) and frozenset(join.relations) not in made)
    cost = group.cost_before if title != "after" else group.cost_after
    return _Column(f"{title}: cost {quantity(cost)}", lines, labels, rows, stars)


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _drawn(column: _Column, x: float, y: float, most: float) -> list[str]:
    parts = [f'<text class="head" x="{x:.0f}" y="{y + 12:.0f}">{escape(column.title)}</text>']
    above: dict[int, float] = {}  # depth -> where the spine at that depth was last
    for i, line in enumerate(column.lines):
        cx, cy = x + line.depth * _STEP + _DOT, y + (i + 1) * _LINE + _LINE / 2
        if line.role == BRANCH:
            parts.append(f'<path class="line" d="M{cx - _STEP:.1f} {cy:.1f}H{cx - _DOT:.1f}"/>')
        elif line.role != ROOT:
            parts.append(f'<path class="line" d="M{cx:.1f} {above[line.depth] + _DOT:.1f}V{cy - _DOT:.1f}"/>')
        above[line.depth] = cy
        parts += _node(column, i, line, cx, cy)
        bar = _BAR * math.log1p(max(0.0, column.rows[i])) / max(math.log1p(most), 1e-9)
        at = x + column.tree_width + _STEP
        parts.append(f'<rect class="bar" x="{at:.1f}" y="{cy - 5:.1f}" width="{bar:.1f}" height="10" rx="2"/>')
        figure = f"~{quantity(column.rows[i])}"
        parts.append(f'<text x="{at + _BAR + 6:.1f}" y="{cy + 4:.1f}">{figure}</text>')
    return parts


def _node(column: _Column, i: int, line: Line, cx: float, cy: float) -> list[str]:
    leaf = line.node < (len(column.lines) + 1) // 2
    parts = [f'<circle class="{"leaf" if leaf else "dot"}" cx="{cx:.1f}" cy="{cy:.1f}" r="{_DOT - 1}"/>']
    label = escape(column.labels[i])
    if column.stars[i]:
        parts.append(f'<circle class="ring" cx="{cx:.1f}" cy="{cy:.1f}" r="{_DOT + 2}"/>')
        label = f'<tspan class="star">★ </tspan>{label}'
    parts.append(f'<text x="{cx + _DOT + 6:.1f}" y="{cy + 4:.1f}">{label}</text>')
    return parts

