"""A report as HTML: the pictures, and everything that they leave out as tables. No scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pyjoinopt.report.quantity import quantity
from pyjoinopt.report.record import GroupReport, JoinReport
from pyjoinopt.report.svg import group_svg
from pyjoinopt.report.text import headline

_TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
_CELL = "padding:.15em .8em .15em 0;text-align:left"
#: More groups than this are folded.
_OPEN = 6


def render_html(report: JoinReport) -> str:
    """The whole report as one element, to be put into any page."""
    parts = [f"<div class='pyjoinopt'><p><b>{escape(headline(report))}</b></p>"]
    for number, group in enumerate(report.groups, 1):
        parts.append(_group(number, group))
    for run in report.runs:
        parts.append(f"<pre style='overflow-x:auto'>{escape(run.to_text())}</pre>")
    parts.append(_list("Outer joins eliminated", report.eliminated_outer_joins))
    parts.append(_list("Hints", [f"{h.strategy} {h.side} of {h.join}: {h.reason}" for h in report.hints]))
    parts.append(_list("Left as written", [f"{r.where}: {r.reason}" for r in report.refusals]))
    if report.error:
        parts.append(f"<p>The optimizer failed and the original plan is used: {escape(report.error)}</p>")
    return "".join([*parts, "</div>"])


def _group(number: int, group: GroupReport) -> str:
    title = f"Group {number}: {len(group.relations)} relations, cost {quantity(group.cost_before)}"
    title += f" → {quantity(group.cost_after)}" if group.changed else ", kept as written: no cheaper order"
    relations = _table(
        ("relation", "rows", "at most", "source"),
        ((r.name, f"~{quantity(r.rows)}", _bound(r.bound), r.source) for r in group.relations),
    )
    joins = _table(
        ("join of", "rows", "at most", "cost", "on", "rests on"),
        (
            (
                ", ".join(j.relations), f"~{quantity(j.rows)}", _bound(j.bound), _share(j.cost, group.cost_after),
                " AND ".join(j.predicates) or "(cross product)", j.source,
            )
            for j in group.estimated_rows
        ),
    )  # fmt: skip
    opened = " open" if number <= _OPEN else ""
    picture = f"<div style='overflow-x:auto'>{group_svg(group, number)}</div>"
    return f"<details{opened}><summary>{escape(title)}</summary>{picture}{relations}{joins}</details>"


def _bound(rows: float | None) -> str:
    return "" if rows is None else quantity(rows)


def _share(cost: float | None, total: float) -> str:
    return "" if cost is None or total <= 0 else f"{100 * cost / total:.0f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th scope='col' style='{_CELL}'>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL}'>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table style='{_TABLE}'><tr>{top}</tr>{body}</table>"


def _list(title: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return f"<p>{escape(title)}</p><ul>" + "".join(f"<li>{escape(row)}</li>" for row in rows) + "</ul>"
