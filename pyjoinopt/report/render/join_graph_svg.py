"""The join graph as a picture: relations are rows, predicates are vertical lines between them.

A node-link diagram is unreadable beyond a dozen relations and cannot show an edge over three of them. Here every
relation is a row, and every edge a vertical line with a mark at each relation that it requires and the number of its
entry in the list below. Lines without a common row share a lane. No line crosses a label, at any size.

    marks   filled: the predicate reads it      hollow: it must be joined first
            L, R: left and right side of an outer, semi or anti join
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from pyjoinopt.report.model import EdgeReport, GroupReport
from pyjoinopt.report.render.number_format import quantity
from pyjoinopt.report.render.svg_style import CHARACTER, LINE, MARGIN, cut, document, look, text, worded
from pyjoinopt.report.render.text import described

_LANE = 26
_NAME = 28
_LISTED = 110
_ROW = 18
_KEY = "● read by the predicate, ○ must be joined first, L and R: sides of an outer, semi or anti join"


@dataclass(frozen=True)
class _Drawn:
    """An edge in its lane, from its first row to its last."""

    edge: EdgeReport
    number: int
    lane: int
    rows: tuple[int, ...]


def graph_svg(group: GroupReport, number: int = 1) -> str:
    """The join graph of a group as a complete SVG document."""
    row = {relation.name: i for i, relation in enumerate(group.relations)}
    edges = _lanes(group.edges, row)
    lanes = 1 + max((e.lane for e in edges), default=-1)
    named = max((len(_named(r.name, r.rows)) for r in group.relations), default=0) * CHARACTER
    left = MARGIN + named + 14
    listed = [_listed(e) for e in edges]
    title = f"Join graph of group {number}: {len(group.relations)} relations, {len(edges)} edges"
    longest = max(map(len, (title, _KEY, *listed)))
    width = max(left + lanes * _LANE, MARGIN + longest * CHARACTER) + MARGIN
    top = float(MARGIN + LINE)
    below = top + len(group.relations) * LINE + 14
    height = below + (len(listed) + 1) * _ROW + MARGIN
    parts = [text(MARGIN, MARGIN + 12, title, "ink", ' font-weight="bold"')]
    for relation in group.relations:
        y = top + row[relation.name] * LINE + LINE / 2
        parts.append(text(MARGIN, y + 4, _named(relation.name, relation.rows)))
        end = left + lanes * _LANE
        parts.append(f'<path {look("line")} fill="none" opacity=".35" d="M{left:.1f} {y:.1f}H{end:.1f}"/>')
    for e in edges:
        parts += _edge(e, left + e.lane * _LANE + _LANE / 2, top, [r.name for r in group.relations])
    parts.append(text(MARGIN, below + 12, _KEY, "dim"))
    for i, line in enumerate(listed, 1):
        parts.append(text(MARGIN, below + 12 + i * _ROW, line))
    return document(width, height, title, " ".join(f"{described(edge)}." for edge in group.edges), parts)


def _named(name: str, rows: float) -> str:
    return f"{cut(name, _NAME)} ~{quantity(rows)}"


def _listed(e: _Drawn) -> str:
    kind = "implied by others: " if e.edge.implied else ""
    return cut(f"{e.number} {kind}{worded(described(e.edge))}", _LISTED)


def _needed(edge: EdgeReport) -> set[str]:
    return {*edge.relations, *edge.required}


def _lanes(edges: tuple[EdgeReport, ...], row: dict[str, int]) -> list[_Drawn]:
    """A lane for every edge that touches two relations or more; short ones first, so that they are near the names."""
    placed: list[_Drawn] = []
    free: list[list[tuple[int, int]]] = []  # per lane the stretches that are taken
    spans = []
    for number, edge in enumerate(edges, 1):
        rows = tuple(sorted(row[name] for name in _needed(edge) if name in row))
        spans.append((rows[-1] - rows[0] if rows else 0, number, edge, rows))
    for _, number, edge, rows in sorted(spans, key=lambda span: span[:2]):
        if len(rows) < 2:
            continue
        lane = next(
            (i for i, taken in enumerate(free) if all(rows[-1] < a or b < rows[0] for a, b in taken)), len(free)
        )
        if lane == len(free):
            free.append([])
        free[lane].append((rows[0], rows[-1]))
        placed.append(_Drawn(edge, number, lane, rows))
    return sorted(placed, key=lambda e: e.number)


def _edge(e: _Drawn, x: float, top: float, names: list[str]) -> list[str]:
    def y(row: int) -> float:
        return top + row * LINE + LINE / 2

    first, last = y(e.rows[0]), y(e.rows[-1])
    dashes = ' stroke-dasharray="3 3"' if e.edge.implied else ""
    parts = [
        f"<g><title>{escape(worded(described(e.edge)))}</title>",
        f'<path {look("edge")} stroke-width="1.6" fill="none"{dashes} d="M{x:.1f} {first:.1f}V{last:.1f}"/>',
    ]
    for row in e.rows:
        sides = [letter for letter, side in zip("LR", e.edge.sides) if names[row] in side]
        if sides:
            parts.append(f'<circle {look("badge")} cx="{x:.1f}" cy="{y(row):.1f}" r="7"/>')
            parts.append(_centred(x, y(row), sides[0]))
        else:
            kind = "dot" if names[row] in e.edge.relations else "leaf"
            parts.append(f'<circle {look(kind)} stroke-width="1.6" cx="{x:.1f}" cy="{y(row):.1f}" r="4"/>')
    middle = first + LINE / 2  # between two rows: no other mark is there
    wide = len(str(e.number)) * CHARACTER + 6
    parts.append(
        f'<rect {look("badge")} x="{x - wide / 2:.1f}" y="{middle - 5:.1f}" width="{wide:.1f}" height="10" rx="5"/>'
    )
    parts.append(_centred(x, middle, str(e.number), 9))
    return [*parts, "</g>"]


def _centred(x: float, y: float, content: str, size: int = 10) -> str:
    return text(x, y + 0.35 * size, content, "ink", f' text-anchor="middle" font-size="{size}"')
