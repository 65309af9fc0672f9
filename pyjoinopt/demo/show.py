"""What a comparison prints: plain text, 112 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from pyjoinopt.demo.measure import MEANINGFUL_SECONDS, NOTICEABLE, Measurement, Query

WIDTH = 112


def paragraph(text: str) -> None:
    """Print a wrapped paragraph."""
    print(textwrap.fill(text, WIDTH), flush=True)


def method(rounds: int) -> None:
    """Print how the queries are timed."""
    times = "once" if rounds == 1 else f"{rounds} times"
    paragraph(
        "Each query runs once as written and once optimised, to warm up and to compare the rows. Then each runs "
        f"{times}, in turns that alternate which runs first; the times are medians. The time after includes planning."
    )


def announcement(number: int, query: Query) -> None:
    """Print what comes next."""
    print()
    print(textwrap.fill(f"{number:>2}. {query.name} ({query.form}): {query.about}", WIDTH, subsequent_indent="    "))
    print(end="", flush=True)


def result(one: Measurement) -> None:
    """Print what was changed, the times and the rows of one query."""
    report = one.report
    for group in report.groups:
        if group.changed:
            _field("written", group.order_before)
            _field("chosen", group.order_after)
    if not any(group.changed for group in report.groups):
        _field("order", "kept as written")
    for join in report.eliminated_outer_joins:
        _field("outer", join)
    for join in report.avoided_joins:
        _field("avoided", join)
    for hint in report.hints:
        _field("hint", f"{hint.strategy} {hint.side} of {hint.join}: {hint.reason}")
    if report.error:
        _field("error", report.error)
    planning = f"{one.planning * 1000:.0f} ms of it planning"
    _field("time", f"{one.before:.2f} s before, {one.after:.2f} s after, {planning}")
    _field("rows", f"{one.rows:,}, {rows_of(one)}")


def _field(name: str, text: str) -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=f"    {name:<8} ", subsequent_indent=" " * 13), flush=True)


def rows_of(one: Measurement) -> str:
    """Whether the rows are the same, in a word or two."""
    return "the same" if one.same else "DIFFERENT"


def factor_of(one: Measurement) -> str:
    """How many times faster, as text; "-" if the times are too small.

    >>> from pyjoinopt import JoinReport
    >>> query = Query("a", "SQL", "", lambda spark: spark)
    >>> [factor_of(Measurement(query, JoinReport(), 0.1, *times, 7, True)) for times in ((3.0, 0.4), (0.3, 0.1))]
    ['7.5x', '-']
    """
    return "-" if one.factor is None else f"{one.factor:.1f}x"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Rows of text in columns, with a line below the head.

    Args:
        left: number of columns that are aligned to the left; the others are aligned to the right.

    >>> print(table(("query", "s"), [("stars", "1.5"), ("a", "12")], 1))
    query    s
    ──────────
    stars  1.5
    a       12
    """
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = (cell.ljust(widths[at]) if at < left else cell.rjust(widths[at]) for at, cell in enumerate(row))
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


#: Column -> its text for one query.
_COLUMNS: dict[str, Callable[[Measurement], str]] = {
    "query": lambda one: one.query.name,
    "form": lambda one: one.query.form,
    "reordered": lambda one: f"{one.report.joins_reordered} joins" if one.report.joins_reordered else "-",
    "outer": lambda one: str(len(one.report.eliminated_outer_joins) or "-"),
    "avoided": lambda one: str(len(one.report.avoided_joins) or "-"),
    "hints": lambda one: str(len(one.report.hints) or "-"),
    "cost before": lambda one: _short(one.report.cost_before),
    "cost after": lambda one: _short(one.report.cost_after),
    "plan ms": lambda one: f"{one.planning * 1000:.0f}",
    "s before": lambda one: f"{one.before:.2f}",
    "s after": lambda one: f"{one.after:.2f}",
    "faster": factor_of,
    "rows": rows_of,
}
_SUMMARY = ("query", "form", "reordered", "outer", "avoided", "s before", "s after", "faster", "rows")


def summary(measured: Sequence[Measurement], columns: Sequence[str] = _SUMMARY) -> str:
    """The table of a query a line: what was changed, times, factor, rows."""
    return table(columns, [[_COLUMNS[name](one) for name in columns] for one in measured], 2)


def _short(number: float) -> str:
    """A number in few characters.

    >>> _short(0), _short(8123), _short(1_250_000), _short(31_000_000_000)
    ('0', '8.1 k', '1.2 M', '31.0 G')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


def conclusion(measured: Sequence[Measurement]) -> list[str]:
    """Sentences on the whole: totals, what became slower, what is too fast to compare, what was not changed."""
    changed = [one for one in measured if one.report.changed]
    compared = [one for one in changed if one.factor is not None]
    untouched = [one for one in measured if not one.report.changed]
    faster = [one for one in compared if one.ratio >= NOTICEABLE]
    slower = [one for one in compared if one.ratio <= 1 / NOTICEABLE]
    level = [one for one in compared if one not in faster and one not in slower]
    small = [one for one in measured if one.factor is None]
    wrong = [one for one in measured if not one.same]
    failed = [one for one in measured if one.report.error]
    total_before, total_after = sum(one.before for one in measured), sum(one.after for one in measured)
    said = [
        f"All together: {total_before:.1f} s before, {total_after:.1f} s after, planning included. "
        f"{len(faster)} of {len(changed)} changed queries ran faster."
    ]
    if level:
        said.append(f"Changed, but within 10 % of the time before: {_with_ratios(level)}.")
    if slower:
        said.append(
            f"Slower than before: {_with_ratios(slower)}. Their plans cost less by the model, but ran longer here."
        )
    if small:
        said.append(
            f"No factor: {_with_times(small)}. A query of less than {MEANINGFUL_SECONDS:g} s has none, because most of "
            "this time is Spark's fixed cost for each stage, not work on rows."
        )
    if compared_untouched := [one for one in untouched if one.factor is not None]:
        said.append(
            f"Unchanged: {_with_ratios(compared_untouched)}. The same plan ran before and after, so this difference is "
            "planning time and noise; treat differences of this size elsewhere as noise too."
        )
    if failed:
        said.append(f"OPTIMIZER FAILED: {_names(failed)}. This is a bug of pyjoinopt; please report it.")
    if wrong:
        said.append(f"WRONG RESULT: {_names(wrong)}. This is a bug of pyjoinopt; please report it.")
    return said


def _names(measured: Sequence[Measurement]) -> str:
    return ", ".join(one.query.name for one in measured)


def _with_ratios(measured: Sequence[Measurement]) -> str:
    return ", ".join(f"{one.query.name} ({one.ratio:.2f}x)" for one in measured)


def _with_times(measured: Sequence[Measurement]) -> str:
    return ", ".join(
        f"{one.query.name} ({one.before:.2f} s before, {one.after:.2f} s after{_unchanged(one)})" for one in measured
    )


def _unchanged(one: Measurement) -> str:
    return "" if one.report.changed else ", unchanged"
