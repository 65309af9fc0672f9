"""What ``make demo`` prints: plain text, 112 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from demo.measure import Measurement
from demo.queries import Query
from pyjoinopt._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A smaller difference between two medians of a few runs is noise.
_NOTICEABLE = 1.1
_HEAD = (
    *("query", "form", "reordered", "outer", "hints", "cost before", "cost after"),
    *("plan ms", "s before", "s after", "faster", "rows"),
)


def introduction(spark: SparkSession, scale: float, counts: dict[str, int], rounds: int, threshold: float) -> None:
    tables = ", ".join(f"{table} {count:,}" for table, count in counts.items())
    print(f"\npyjoinopt {__version__} on Spark {spark.version}, {spark.sparkContext.defaultParallelism} threads")
    _paragraph(f"TPC-H at scale {scale:g}. Rows: {tables}.")
    _paragraph("No ANALYZE was run; adaptive execution is on, as by default.")
    if scale < 1:
        _paragraph(
            "By default Spark broadcasts tables below 10 MB, which would be nearly all tables at this scale. Both runs "
            f"use a threshold that is scaled with the data, {threshold:g} MB."
        )
    times = "once" if rounds == 1 else f"{rounds} times"
    _paragraph(
        "Each query runs once as written and once optimised, to warm up and to compare the rows. Then each runs "
        f"{times}, in turns; the times are medians. The time after includes the planning."
    )


def announcement(number: int, query: Query) -> None:
    print(f"\n{number:>2}. {query.name} ({query.form}): {query.about}", flush=True)


def result(one: Measurement) -> None:
    report = one.report
    for group in report.groups:
        if group.changed:
            _field("written", group.order_before)
            _field("chosen", group.order_after)
    if not any(group.changed for group in report.groups):
        _field("order", "kept as written")
    for join in report.eliminated_outer_joins:
        _field("outer", join)
    for hint in report.hints:
        _field("hint", f"{hint.strategy} {hint.side} of {hint.join}: {hint.reason}")
    planning = f"{one.planning * 1000:.0f} ms of it planning"
    _field("time", f"{one.before:.2f} s before, {one.after:.2f} s after, {planning}")
    _field("rows", f"{one.rows:,}, {'the same' if one.same else 'DIFFERENT'}")


def _field(name: str, text: str) -> None:
    print(textwrap.fill(text, 112, initial_indent=f"    {name:<8} ", subsequent_indent=" " * 13), flush=True)


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, 112))


def table(measured: Sequence[Measurement]) -> None:
    rows = [_HEAD]
    for one in measured:
        rows.append(
            (
                one.query.name,
                one.query.form,
                f"{one.report.joins_reordered} joins" if one.report.joins_reordered else "-",
                str(len(one.report.eliminated_outer_joins) or "-"),
                str(len(one.report.hints) or "-"),
                _short(one.report.cost_before),
                _short(one.report.cost_after),
                f"{one.planning * 1000:.0f}",
                f"{one.before:.2f}",
                f"{one.after:.2f}",
                f"{one.speed_up:.1f}x",
                "same" if one.same else "DIFFERENT",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print()
    for number, row in enumerate(rows):
        cells = (cell.ljust(widths[at]) if at < 2 else cell.rjust(widths[at]) for at, cell in enumerate(row))
        print("  ".join(cells).rstrip())
        if number == 0:
            print("─" * (sum(widths) + 2 * (len(widths) - 1)))


def _short(number: float) -> str:
    """A number in few characters.

    >>> _short(0), _short(8123), _short(1_250_000), _short(31_000_000_000)
    ('0', '8.1 k', '1.2 M', '31.0 G')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


def conclusion(measured: Sequence[Measurement]) -> None:
    changed = [one for one in measured if one.report.changed]
    untouched = [one for one in measured if not one.report.changed]
    faster = [one for one in changed if one.speed_up >= _NOTICEABLE]
    slower = [one for one in changed if one.speed_up <= 1 / _NOTICEABLE]
    level = [one for one in changed if one not in faster and one not in slower]
    wrong = [one for one in measured if not one.same]
    total_before, total_after = sum(one.before for one in measured), sum(one.after for one in measured)
    print()
    _paragraph(
        f"All together: {total_before:.1f} s before, {total_after:.1f} s after, planning included. "
        f"{len(faster)} of {len(changed)} changed queries ran faster."
    )
    if level:
        _paragraph(f"Changed, but within 10 % of the time before: {_names(level)}.")
    if slower:
        _paragraph(
            f"Slower than before: {_names(slower)}. Their plans cost less by the model, but ran longer here."
        )
    if untouched:
        _paragraph(
            f"Unchanged: {_names(untouched)}. The same plan ran before and after, so this difference is planning time "
            "and noise; treat differences of this size elsewhere as noise too."
        )
    if wrong:
        _paragraph(f"WRONG RESULT: {_names(wrong)}. This is a bug of pyjoinopt; please report it.")


def _names(measured: Sequence[Measurement]) -> str:
    return ", ".join(f"{one.query.name} ({one.speed_up:.2f}x)" for one in measured)
