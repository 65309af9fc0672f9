"""A report as HTML: pictures, and tables with all other figures. It has no scripts and loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from pyjoinopt.report.executed_run import RunReport, compared
from pyjoinopt.report.model import GroupReport, JoinEstimate, side_name
from pyjoinopt.report.render.join_graph_svg import graph_svg
from pyjoinopt.report.render.number_format import memory, percent, quantity
from pyjoinopt.report.render.orders_svg import AFTER, ARROW, BEFORE, EXPLODES, exploding_joins, group_svg
from pyjoinopt.report.render.spine_layout import outline_of, same_joins
from pyjoinopt.report.render.svg_style import as_image, cut, worded
from pyjoinopt.report.render.text import headline, operator_of, title_of
from pyjoinopt.report.report_data import ReportData

_TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
_CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:top"
#: Characters of an operator at most; a tooltip has the full text.
_OPERATOR = 90
#: Texts of at most this many characters are not wrapped.
_SHORT = 34
#: A block that scrolls if it is too wide. It gets a tabindex, so that the keyboard can scroll it, too.
_WIDE = "overflow-x:auto;max-width:100%"
#: Groups beyond this number are folded.
_OPEN = 6


def render_html(report: ReportData, images: bool = False, heading: bool = False) -> str:
    """The whole report as one HTML element, for any page.

    Args:
        report: to render.
        images: embed pictures as `<img>`, which pages keep that strip inline SVG; otherwise as inline SVG.
        heading: make the first line the heading of the page, for a page that has no other.
    """
    draw = as_image if images else str
    first = f"<p><b>{escape(headline(report))}</b></p>"
    if heading:
        first = f"<h1 style='font-size:inherit'>{escape(headline(report))}</h1>"
    parts = [f"<div class='pyjoinopt'>{first}"]
    for number, group in enumerate(report.all_groups, 1):
        parts.append(_group(number, group, draw))
    for run in report.runs:
        parts.append(_run(run))
    if len(report.runs) == 2:
        parts.append(f"<p>{escape(compared(report.runs))}</p>")
    parts.append(_list("Outer joins eliminated", report.eliminated_outer_joins))
    parts.append(_list("Joins avoided", report.spared_joins))
    parts.append(_list("Rows grouped before they are joined", report.eager_aggregations))
    parts.append(_list("Rows filtered before they are grouped or shuffled", report.prefilters))
    parts.append(_list("Hints", [f"{h.strategy} {h.side} of {h.join}: {h.reason}" for h in report.hints]))
    refusals = [(r.where, r.reason, r.advice) for r in report.refusals]
    if refusals:
        parts.append(_table(("where", "why", "what would change it"), refusals, "Left as written"))
    parts.append(_list("Notes", report.notes))
    parts.append(_list("How to improve the estimates", report.advice()))
    if report.error:
        parts.append(f"<p>The optimizer failed and the original plan is used: {escape(report.error)}</p>")
    return "".join([*parts, "</div>"])


def render_page(report: ReportData) -> str:
    """The report as an HTML document, which follows the reader's light or dark colour scheme."""
    style = (
        "body{font:14px system-ui,sans-serif;margin:1.5em;color:#1f2430;background:#fff}"
        "@media (prefers-color-scheme:dark){body{color:#e6e9ef;background:#0e1116}}"
    )
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width'/><meta name='color-scheme' content='light dark'/>"
        f"<title>{escape(headline(report))}</title><style>{style}</style></head>"
        f"<body><main>{render_html(report, heading=True)}</main></body></html>"
    )


def _group(number: int, group: GroupReport, draw: Callable[[str], str]) -> str:
    relations = _table(
        ("relation", "rows", "at most", "bytes", "source"),
        ((r.name, f"~{quantity(r.rows)}", _bound(r.bound), memory(r.bytes), r.source) for r in group.relations),
        "Relations",
    )
    orders = (BEFORE, AFTER) if group.changed else (AFTER,)
    drawn = (draw(group_svg(group, number, (which,))) for which in orders)
    pictures = "".join(f"<div tabindex='0' style='{_WIDE}'>{picture}</div>" for picture in drawn)
    title = "Joins in the chosen order" if group.strategy else "The join"
    joins = _joins(group, group.estimated_rows, title)
    if group.changed:
        joins = _joins(group, group.joins_before, "Joins in the written order") + joins
    graph = ""
    if group.edges:
        picture = f"<div tabindex='0' style='{_WIDE};margin-top:.4em'>{draw(graph_svg(group, number))}</div>"
        graph = f"<details><summary>Join graph, {len(group.edges)} edges</summary>{picture}</details>"
    opened = " open" if number <= _OPEN else ""
    notes = ["★ this join is in only one of the two orders"] if group.changed else []
    if any(exploding_joins(group, group.estimated_rows) + exploding_joins(group, group.joins_before)):
        notes.append(f"{ARROW} this join has more than {EXPLODES} times the rows of its larger input")
    note = f"<p>{'<br/>'.join(notes)}</p>" if notes else ""
    return (
        f"<details{opened}><summary>{escape(title_of(number, group))}</summary>"
        f"<div style='display:flex;flex-wrap:wrap;gap:8px'>{pictures}</div>{note}"
        f"{joins}{relations}{graph}</details>"
    )


def _run(run: RunReport) -> str:
    """The operators of a run as a table, indented as a tree."""
    kept, number = f"{_CELL};white-space:pre", f"{_CELL};text-align:right"
    head = "".join(
        f"<th scope='col' style='{_CELL if i == 0 else number}'>{title}</th>"
        for i, title in enumerate(("operator", "rows", "estimate", "error factor", "ms"))
    )
    rows = []
    for line in outline_of([operator.children for operator in run.operators]):
        operator = run.operators[line.node]
        weight, flag = (";font-weight:bold", "!") if operator.misestimated else ("", " ")
        text = escape(cut(f"{flag} {line.prefix()}{operator.label}", _OPERATOR))
        figures = "".join(f"<td style='{number}'>{figure}</td>" for figure in operator.figures())
        label = f"<td style='{kept};font-family:monospace' title='{escape(operator.label)}'>{text}</td>"
        rows.append(f"<tr style='line-height:1.1{weight}'>{label}{figures}</tr>")
    caption = f"<caption style='text-align:left;font-weight:bold'>{escape(run.title)}</caption>"
    return f"{_framed(caption, head, rows)}<p>{escape(run.verdict())}</p>"


def _joins(group: GroupReport, joins: Sequence[JoinEstimate], title: str) -> str:
    n = len(group.relations)
    other = group.joins_before if joins is group.estimated_rows else group.estimated_rows
    old = same_joins(joins, other)
    rows = []
    for i, j in enumerate(joins):
        share = group.share(j)
        sides = f" {worded(j.sign)} ".join(side_name(side, n, group.relations) for side in (j.left, j.right))
        rows.append((
            ("★ " if group.changed and not old[i] else "") + f"#{i + 1} {sides}", f"~{quantity(j.rows)}",
            _bound(j.bound), memory(j.bytes), "" if share is None else percent(share),
            " AND ".join(j.predicates) or "(cross product)", j.source, operator_of(j, group), j.hint,
        ))  # fmt: skip
    head = ("join", "rows", "at most", "bytes", "cost", "on", "source", "Spark will choose", "hint")
    return _table(head, rows, title)


def _bound(rows: float | None) -> str:
    return "" if rows is None else quantity(rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str) -> str:
    """A table without its empty columns."""
    rows = list(rows)
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]

    def cell(content: str) -> str:
        kept = ";white-space:nowrap" if len(content) <= _SHORT else ""
        return f"<td style='{_CELL}{kept}'>{escape(content)}</td>"

    top = "".join(f"<th scope='col' style='{_CELL};white-space:nowrap'>{escape(head[i])}</th>" for i in used)
    body = [f"<tr>{''.join(cell(row[i]) for i in used)}</tr>" for row in rows]
    caption = f"<caption style='text-align:left;font-weight:bold'>{escape(title)}</caption>"
    return _framed(caption, top, body)


def _framed(caption: str, head: str, rows: Iterable[str]) -> str:
    """A table that scrolls horizontally if the page is too narrow for it."""
    table = f"<table style='{_TABLE}'>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<div tabindex='0' style='{_WIDE}'>{table}</div>"


def _list(title: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return f"<p>{escape(title)}</p><ul>" + "".join(f"<li>{escape(row)}</li>" for row in rows) + "</ul>"
