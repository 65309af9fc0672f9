"""The orders before and after as one picture: SVG without scripts, fonts or a layout program.

Each order is a column of lines laid out along its spine (`outline`). Next to a join is a bar whose length is the
logarithm of its rows, so that large results stand out; below it are the forecast operator and the join's share of the
cost. A join that is in only one of the orders has a ring and a star; one that multiplies rows (`EXPLODES`) has an arrow
next to them. No information is in colour alone. `<title>` and
`<desc>` have the same content as text, and each join has a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyjoinopt.report.model import GroupReport, JoinEstimate
from pyjoinopt.report.render.number_format import percent, quantity
from pyjoinopt.report.render.spine_layout import BRANCH, ROOT, Line, outline, same_joins
from pyjoinopt.report.render.svg_style import CHARACTER, GAP, LINE, MARGIN, STEP, cut, document, look, text, worded
from pyjoinopt.report.render.text import operator_of

_BELOW = 13  # height of the second line of a join
_BAR, _FIGURE = 90, 62
_DOT = 5
BEFORE, AFTER = "before", "after"
#: A join with more than so many times the rows of its larger input has an arrow. Fewer are common with foreign keys.
EXPLODES = 10
ARROW = "▲"


@dataclass(frozen=True)
class _Column:
    """One order, laid out as a column."""

    title: str
    lines: Sequence[Line]
    labels: Sequence[str]
    below: Sequence[str]
    tooltips: Sequence[str]
    rows: Sequence[float]
    stars: Sequence[bool]
    arrows: Sequence[bool]

    @property
    def tree_width(self) -> float:
        widths = (
            line.depth * STEP + 2 * _DOT + 6 + max(len(text) + 2 * star, len(below)) * CHARACTER
            for line, text, below, star in zip(self.lines, self.labels, self.below, self.stars)
        )
        return max(*widths, len(self.title) * CHARACTER)

    @property
    def width(self) -> float:
        return self.tree_width + _BAR + _FIGURE + 2 * STEP

    @property
    def height(self) -> float:
        return (len(self.lines) + 1) * LINE + _BELOW * sum(map(bool, self.below))


def group_svg(group: GroupReport, number: int = 1, orders: Sequence[str] = (BEFORE, AFTER)) -> str:
    """One join group as a complete SVG document.

    Args:
        group: the group to draw.
        number: number of the group, for the title.
        orders: the orders to draw; a group that was not changed has only one.
    """
    columns = [_column(group, which) for which in orders if which == AFTER or group.changed]
    rows = [part.rows for part in (*group.joins_before, *group.estimated_rows)] + [r.rows for r in group.relations]
    most = max(rows, default=1.0)
    width = sum(column.width for column in columns) + GAP * (len(columns) - 1) + 2 * MARGIN
    height = max(column.height for column in columns) + 2 * MARGIN
    parts: list[str] = []
    x = float(MARGIN)
    for column in columns:
        parts += _drawn(column, x, float(MARGIN), most)
        x += column.width + GAP
    title = f"Join group {number}: {len(group.relations)} relations, {' and '.join(c.title for c in columns)}"
    return document(width, height, title, describe_group(group), parts)


def describe_group(group: GroupReport) -> str:
    """The content of the picture as text, for screen readers."""
    change = f"Written as {group.order_before}, cost {quantity(group.cost_before)}"
    if group.changed:
        change += f"; now {group.order_after}, cost {quantity(group.cost_after)}"
    change += " row units"
    rows = "; ".join(f"{' and '.join(j.relations)}: about {quantity(j.rows)} rows" for j in group.estimated_rows)
    return f"{change}. Joins from the innermost: {rows}."


def exploding_joins(group: GroupReport, joins: Sequence[JoinEstimate]) -> list[bool]:
    """Which joins of an order have more than `EXPLODES` times the rows of their larger input."""
    rows = [relation.rows for relation in group.relations]
    found = []
    for join in joins:
        found.append(join.rows > EXPLODES * max(1.0, rows[join.left], rows[join.right]))
        rows.append(join.rows)
    return found


def tooltip_of(join: JoinEstimate, group: GroupReport) -> str:
    """All figures of a join, one per line."""
    bound = "" if join.bound is None else f", at most {quantity(join.bound)}"
    lines = [
        f"{join.sign} of {', '.join(join.relations)}",
        f"on {' AND '.join(join.predicates) or 'nothing: a cross product'}",
        f"about {quantity(join.rows)} rows{bound}" + (f", by {join.source}" if join.source else ""),
        operator_of(join, group),
        f"hint {join.hint}" if join.hint else "",
    ]
    return "\n".join(filter(None, lines))


def _column(group: GroupReport, which: str) -> _Column:
    joins, others = group.estimated_rows, group.joins_before
    if which == BEFORE:
        joins, others = others, joins
    old = same_joins(joins, others)
    n = len(group.relations)
    lines = outline(n, [(join.left, join.right) for join in joins])
    column = _Column(
        _title(group, which), lines, labels := [], below := [], tooltips := [], rows := [], stars := [], arrows := []
    )
    exploding = exploding_joins(group, joins)
    for line in lines:
        if line.node < n:
            relation = group.relations[line.node]
            labels.append(cut(relation.name))
            below.append("")
            bound = "" if relation.bound is None else f", at most {quantity(relation.bound)}"
            tooltips.append(f"{relation.name}: about {quantity(relation.rows)} rows{bound}, by {relation.source}")
            rows.append(relation.rows)
            stars.append(False)
            arrows.append(False)
        else:
            join = joins[line.node - n]
            share = group.share(join)
            labels.append(cut(f"{worded(join.sign)} {' AND '.join(join.predicates) or '(cross product)'}"))
            parts = [operator_of(join, group), f"{percent(share)} of cost" if share is not None else ""]
            below.append(cut(" · ".join(filter(None, [*parts, "hinted" if join.hint else ""])), 60))
            tooltips.append(worded(tooltip_of(join, group)))
            rows.append(join.rows)
            stars.append(group.changed and not old[line.node - n])
            arrows.append(exploding[line.node - n])
    return column


def _title(group: GroupReport, which: str) -> str:
    cost = group.cost_before if which == BEFORE else group.cost_after
    return f"{which if group.changed else 'as written'}: cost {quantity(cost)} row units"


def _drawn(column: _Column, x: float, y: float, most: float) -> list[str]:
    parts = [text(x, y + 12, column.title, "ink", ' font-weight="bold"')]
    above: dict[int, float] = {}  # depth -> last position of the spine at that depth
    at = y + LINE
    for i, line in enumerate(column.lines):
        cx, cy = x + line.depth * STEP + _DOT, at + LINE / 2
        if line.role == BRANCH:
            parts.append(f'<path {look("line")} fill="none" d="M{cx - STEP:.1f} {cy:.1f}H{cx - _DOT:.1f}"/>')
        elif line.role != ROOT:
            upper = above[line.depth] + _DOT
            parts.append(f'<path {look("line")} fill="none" d="M{cx:.1f} {upper:.1f}V{cy - _DOT:.1f}"/>')
        above[line.depth] = cy
        parts += _node(column, i, line, cx, cy)
        bar = _BAR * math.log1p(max(0.0, column.rows[i])) / max(math.log1p(most), 1e-9)
        right = x + column.tree_width + STEP
        parts.append(
            f'<rect {look("bar")} opacity=".55" x="{right:.1f}" y="{cy - 5:.1f}" width="{bar:.1f}" height="10" rx="2"/>'
        )
        figure = f"~{quantity(column.rows[i])}"
        if column.arrows[i]:
            arrow = f'<tspan {look("mark")} font-weight="bold"> {ARROW}</tspan>'
            parts.append(f'<text {look("ink")} x="{right + _BAR + 6:.1f}" y="{cy + 4:.1f}">{figure}{arrow}</text>')
        else:
            parts.append(text(right + _BAR + 6, cy + 4, figure))
        at += LINE + (_BELOW if column.below[i] else 0)
    return parts


def _node(column: _Column, i: int, line: Line, cx: float, cy: float) -> list[str]:
    leaf = line.node < (len(column.lines) + 1) // 2
    parts = [f"<g><title>{escape(column.tooltips[i])}</title>"]
    parts.append(f'<circle {look("leaf" if leaf else "dot")} cx="{cx:.1f}" cy="{cy:.1f}" r="{_DOT - 1}"/>')
    label = escape(column.labels[i])
    if column.stars[i]:
        ring = f'{look("ring")} stroke-width="1.6" fill="none"'
        parts.append(f'<circle {ring} cx="{cx:.1f}" cy="{cy:.1f}" r="{_DOT + 2}"/>')
        label = f'<tspan {look("mark")}>★ </tspan>{label}'
    parts.append(f'<text {look("ink")} x="{cx + _DOT + 6:.1f}" y="{cy + 4:.1f}">{label}</text>')
    if column.below[i]:
        parts.append(text(cx + _DOT + 6, cy + 4 + _BELOW, column.below[i], "dim"))
    return [*parts, "</g>"]
