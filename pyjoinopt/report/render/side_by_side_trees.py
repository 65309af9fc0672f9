"""The orders before and after as trees side by side, in a terminal.

    before                                  rows  after                                   rows
    ⋈ o_custkey = c_custkey                ~1.20k  * ⋈ l_orderkey = o_orderkey            ~1.20k
    ...

A star marks a join that is in only one of the two orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from pyjoinopt.report.model import GroupReport, JoinEstimate
from pyjoinopt.report.render.number_format import percent, quantity
from pyjoinopt.report.render.spine_layout import outline, same_joins
from pyjoinopt.report.render.terminal_boxes import LEAST, Box, cut, pad, plain
from pyjoinopt.report.render.text import headline, operator_of, sections, title_of
from pyjoinopt.report.report_data import ReportData

#: In narrower terminals the second tree is below the first.
_SIDE_BY_SIDE = 100


def render_tree(report: ReportData, width: int = 110, ascii_only: bool = False) -> str:
    """All groups of a report.

    Args:
        report: to render.
        width: columns of the terminal.
        ascii_only: write ASCII characters only.
    """
    width = max(width, LEAST)
    parts = [headline(report)]
    parts += [_group(number, group, width, ascii_only) for number, group in enumerate(report.all_groups, 1)]
    parts += sections(report, width)
    parts += [run.to_text(width, ascii_only) for run in report.runs]
    text = "\n\n".join(parts)
    return plain(text) if ascii_only else text


def _group(number: int, group: GroupReport, width: int, ascii_only: bool) -> str:
    box = Box(title_of(number, group), width, ascii_only)
    beside = group.changed and width >= _SIDE_BY_SIDE
    each = (box.inside - 3) // 2 if beside else box.inside
    after = _tree(group, group.estimated_rows, group.joins_before, each, ascii_only)
    if not group.changed:
        box.lines(after)
        return box.to_text()
    before = ["before", *_tree(group, group.joins_before, group.estimated_rows, each, ascii_only)]
    after = ["after", *after]
    if beside:
        box.lines(f"{pad(a, each)}   {b}" for a, b in zip_longest(before, after, fillvalue=""))
    else:
        box.lines(before)
        box.rule()
        box.lines(after)
    box.rule()
    box.line("* this join is in only one of the two orders")
    return box.to_text()


def _tree(
    group: GroupReport, joins: Sequence[JoinEstimate], others: Sequence[JoinEstimate], width: int, ascii_only: bool
) -> list[str]:
    """The lines of one order; a star marks joins that are not among `others`."""
    old = same_joins(joins, others)
    n = len(group.relations)
    lines = []
    for line in outline(n, [(join.left, join.right) for join in joins]):
        star, below, prefix = False, "", line.prefix(ascii_only)
        if line.node < n:
            name, rows = group.relations[line.node].name, group.relations[line.node].rows
        else:
            join = joins[line.node - n]
            rows, star = join.rows, bool(others) and not old[line.node - n]
            name = f"{join.sign} {' AND '.join(join.predicates)}".rstrip()
            share = group.share(join)
            details = [operator_of(join, group), f"{percent(share)} of cost" if share is not None else "", join.hint]
            below = ", ".join(filter(None, details))
        name = plain(name) if ascii_only else name
        text = f"{'*' if star else ' '} {prefix}{' ' if prefix and line.node < n else ''}{name}"
        figure = f"~{quantity(rows)}"
        lines.append(f"{pad(text, width - len(figure) - 1)} {figure}")
        if below:
            bar = ("| " if ascii_only else "│ ") * (line.depth + 1)
            lines.append(cut(f"  {bar}  {below}", width))
    return lines
