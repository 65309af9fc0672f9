"""Advice as text for terminals: the ranking as a table, then each query with its findings."""

from __future__ import annotations

import textwrap

from pyjoinopt.advice.wording import count, duration, printable, sure, worth
from pyjoinopt.advice.workload import AdviceData, QueryAdvice
from pyjoinopt.report.render.terminal_boxes import pad

_LEAST = 60
#: Notes beyond this number are counted only.
_NOTES = 10


def headline(advice: AdviceData) -> str:
    """One line: what was read, and what could be won."""
    read = (
        f"{count(advice.executions, 'run')} of SQL queries in {count(advice.applications, 'application')}, "
        f"{duration(advice.task_hours) or '0 s'} of task time"
    )
    if not advice.queries:
        return f"{read}: no finding"
    won = f", {duration(advice.hours)} of which could be won" if advice.hours > 0 else ""
    shown = f", {len(advice.queries):,} shown" if advice.found > len(advice.queries) else ""
    return f"{read}{won}: findings for {count(advice.found, 'query', 'queries')}{shown}"


def render_text(advice: AdviceData, width: int = 110) -> str:
    """All advice, no line longer than `width`."""
    width = max(width, _LEAST)
    parts = ["\n".join(textwrap.wrap(headline(advice), width))]
    if advice.queries:
        parts.append(_table(advice, width))
        parts += [_query(number, query, width) for number, query in enumerate(advice.queries, 1)]
    notes = list(advice.notes)
    if advice.unfinished:
        notes.insert(0, f"{count(advice.unfinished, 'run')} failed or not ended, which were not examined")
    if len(notes) > _NOTES:
        notes[_NOTES:] = [f"and {len(notes) - _NOTES} more"]
    if notes:
        parts.append("\n".join(["Notes:", *(line for note in notes for line in _folded(note, width, "  "))]))
    return printable_lines("\n\n".join(parts))


def printable_lines(text: str) -> str:
    """The text without control characters but line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _table(advice: AdviceData, width: int) -> str:
    room = width - 4 - 10 - 10 - 6 - 2
    name = room // 2
    lines = [f"{'':>3} {'to win':>9} {'task time':>10} {'runs':>5}  {pad('query', name)}finding"]
    for number, query in enumerate(advice.queries, 1):
        first = query.findings[0]
        won, whole = duration(query.hours), duration(query.task_hours)
        cells = f"{number:>3} {won or '-':>9} {whole:>10} {query.runs:>5}  {pad(query.description, name - 1)} "
        lines.append((cells + pad(f"{first.kind}: {first.where}", room - name)).rstrip())
    return "\n".join(lines)


def _query(number: int, query: QueryAdvice, width: int) -> str:
    title = f"{number}. {query.description}: {count(query.runs, 'run')}, {duration(query.task_hours)} of task time"
    lines = textwrap.wrap(title, width, subsequent_indent="   ")
    lines.append(f"   application {query.application}, execution {query.execution}, shape {query.shape}")
    for finding in query.findings:
        lines += _folded(f"{finding.kind}, {finding.where}: {worth(finding)}", width, "   * ")
        lines += _folded(finding.text, width, "     ")
        lines += _folded(sure(finding), width, "     ")
    return "\n".join(lines)


def _folded(text: str, width: int, indent: str) -> list[str]:
    rest = " " * len(indent)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=rest, break_on_hyphens=False) or [""]
