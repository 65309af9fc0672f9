"""Advice as HTML: one document without scripts, that loads nothing. All texts of logs are escaped."""

from __future__ import annotations

from html import escape

from pyjoinopt.advice.finding import Finding
from pyjoinopt.advice.render_text import headline
from pyjoinopt.advice.wording import count, duration, printable, sure, worth
from pyjoinopt.advice.workload import AdviceData, QueryAdvice

_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:1.5em;color:#1f2430;background:#fff}"
    "@media (prefers-color-scheme:dark){body{color:#e6e9ef;background:#0e1116}}"
)
_CELL = "padding:.2em .8em .2em 0;text-align:left;vertical-align:top"
_NUMBER = "padding:.2em .8em .2em 0;text-align:right;vertical-align:top;white-space:nowrap"
_TABLE = "border-collapse:collapse;margin:.6em 0;font-variant-numeric:tabular-nums"
_WIDE = "overflow-x:auto;max-width:100%"
#: Queries beyond this number are folded.
_OPEN = 5


def render_page(advice: AdviceData) -> str:
    """The advice as an HTML document, which follows the reader's light or dark colour scheme."""
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width'/><meta name='color-scheme' content='light dark'/>"
        f"<title>Advice from what already ran</title><style>{_STYLE}</style></head>"
        f"<body><main><h1 style='font-size:1.3em'>Advice from what already ran</h1>{render_element(advice)}</main>"
        "</body></html>"
    )


def render_element(advice: AdviceData) -> str:
    """The advice as one HTML element, for any page."""
    parts = [f"<div class='pyjoinopt'><p><b>{_text(headline(advice))}</b></p>"]
    if advice.queries:
        rows = "".join(_row(number, query) for number, query in enumerate(advice.queries, 1))
        head = "".join(
            f"<th scope='col' style='{_NUMBER if numeric else _CELL}'>{title}</th>"
            for title, numeric in (
                ("rank", True), ("to win", True), ("task time", True), ("runs", True), ("query", False),
                ("finding", False),
            )
        )  # fmt: skip
        parts.append(
            f"<div tabindex='0' style='{_WIDE}'><table style='{_TABLE}'><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )
        parts += [_query(number, query) for number, query in enumerate(advice.queries, 1)]
    notes = list(advice.notes)
    if advice.unfinished:
        notes.insert(0, f"{count(advice.unfinished, 'run')} failed or not ended, which were not examined")
    if notes:
        parts.append(f"<p>Notes</p><ul>{''.join(f'<li>{_text(note)}</li>' for note in notes)}</ul>")
    return "".join([*parts, "</div>"])


def _row(number: int, query: QueryAdvice) -> str:
    first = query.findings[0]
    figures = (str(number), duration(query.hours) or "-", duration(query.task_hours), f"{query.runs:,}")
    cells = "".join(f"<td style='{_NUMBER}'>{_text(figure)}</td>" for figure in figures)
    texts = (query.description, f"{first.kind}: {first.where}")
    return f"<tr>{cells}{''.join(f'<td style={chr(39)}{_CELL}{chr(39)}>{_text(text)}</td>' for text in texts)}</tr>"


def _query(number: int, query: QueryAdvice) -> str:
    title = f"{number}. {query.description}: {count(query.runs, 'run')}, {duration(query.task_hours)} of task time"
    place = f"application {query.application}, execution {query.execution}, shape {query.shape}"
    opened = " open" if number <= _OPEN else ""
    findings = "".join(map(_finding, query.findings))
    return f"<details{opened}><summary>{_text(title)}</summary><p>{_text(place)}</p><ul>{findings}</ul></details>"


def _finding(finding: Finding) -> str:
    return (
        f"<li><b>{_text(finding.kind)}</b>, {_text(finding.where)}: {_text(worth(finding))}<br/>"
        f"{_text(finding.text)}<br/><i>{_text(sure(finding))}</i></li>"
    )


def _text(text: str) -> str:
    return escape(printable(text))
