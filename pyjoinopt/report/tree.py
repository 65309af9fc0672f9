"""The orders before and after as trees side by side, in a terminal.

    before                                  rows  after                                   rows
    ⋈ o_custkey = c_custkey                ~1.20k  * ⋈ l_orderkey = o_orderkey            ~1.20k
    ...

A join that only one of the two orders makes is marked with a star.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from pyjoinopt.report.outline import outline
from pyjoinopt.report.quantity import quantity
from pyjoinopt.report.record import GroupReport, JoinEstimate, JoinReport
from pyjoinopt.report.text import headline

#: Narrower than this, two trees stand one above the other.
_SIDE_BY_SIDE = 100
_LEAST = 40
_ASCII = {"⋈": "JOIN", "⟕": "LEFT", "⟖": "RIGHT", "⟗": "FULL", "⋉": "SEMI", "▷": "ANTI"}


def render_tree(report: JoinReport, width: int = 110, ascii_only: bool = False) -> str:
    """All groups of a report.

    Args:
        report: of any run.
        width: columns of the terminal.
        ascii_only: no character beyond ASCII.
    """
    parts = [headline(report)]
    for number, group in enumerate(report.groups, 1):
        parts.append("\n".join(_group(number, group, max(width, _LEAST), ascii_only)))
    parts += [run.to_text(width, ascii_only) for run in report.runs]
    text = "\n\n".join(parts)
    return text.replace("…", "~").encode("ascii", "replace").decode("ascii") if ascii_only else text


def _group(number: int, group: GroupReport, width: int, ascii_only: bool) -> list[str]:
    title = f"Group {number}: {len(group.relations)} relations, cost {quantity(group.cost_before)}"
    if not group.changed:
        return [f"{title}, kept as written", *_tree(group, group.estimated_rows, (), width, ascii_only)]
    title += f" -> {quantity(group.cost_after)}"
    beside = width >= _SIDE_BY_SIDE
    each = (width - 3) // 2 if beside else width
    before = ["before", *_tree(group, group.joins_before, group.estimated_rows, each, ascii_only)]
    after = ["after", *_tree(group, group.estimated_rows, group.joins_before, each, ascii_only)]
    if not beside:
        return [title, *before, "", *after]
    return [title, *(f"{a:<{each}}   {b}".rstrip() for a, b in zip_longest(before, after, fillvalue=""))]


def _tree(
    group: GroupReport, joins: Sequence[JoinEstimate], others: Sequence[JoinEstimate], width: int, ascii_only: bool
) -> list[str]:
    """One order; what `others` does not make is marked."""
    made = {frozenset(join.relations) for join in others}
    n = len(group.relations)
    lines = []
    for line in outline(n, [(join.left, join.right) for join in joins]):
        if line.node < n:
            name, rows, star = group.relations[line.node].name, group.relations[line.node].rows, False
        else:
            join = joins[line.node - n]
            rows, star = join.rows, bool(made) and frozenset(join.relations) not in made
            sign = _ASCII.get(join.sign, "JOIN") if ascii_only else join.sign
            name = f"{sign} {' AND '.join(join.predicates)}".rstrip()
        text = f"{'*' if star else ' '} {line.prefix(ascii_only)}{' ' if line.prefix() and line.node < n else ''}{name}"
        figure = f"~{quantity(rows)}"
        room = width - len(figure) - 1
        lines.append(f"{text if len(text) <= room else text[: room - 1] + '…':<{room}} {figure}")
    return lines
