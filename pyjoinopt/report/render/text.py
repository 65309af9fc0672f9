"""A report as text, for terminals and notebooks: a headline, then a box for every join group.

    Joins: 1 group of 3 relations reordered, 1 outer join eliminated, planned in 12 ms

    ╭─ Group 1: 3 relations, cost 12.4M -> 1.1M (11.3x cheaper), exact search, 4 pairs ─╮
    │ before  ((lineitem ⋈ orders) ⋈ customer)                                          │
    │ after   ((orders ⋈ customer) ⋈ lineitem)                                          │
      ...

A join that is a side of another join is named by its number, `#2`. A star marks a join that is not in the written
order.
"""

from __future__ import annotations

import textwrap

from pyjoinopt.report.executed_run import compared
from pyjoinopt.report.model import EdgeReport, GroupReport, JoinEstimate, side_name
from pyjoinopt.report.render.number_format import memory, percent, quantity, times
from pyjoinopt.report.render.spine_layout import same_joins
from pyjoinopt.report.render.terminal_boxes import LEAST, Box, pad, plain
from pyjoinopt.report.report_data import ReportData

_FIGURES = 8 + 9 + 6  # rows, at most, cost
_BYTES = 9
#: Boxes of at least this width show bytes, and a join's operator in its line.
_BESIDE = 76


def render(report: ReportData, width: int = 110, ascii_only: bool = False) -> str:
    """The whole report, no line longer than `width`."""
    parts = ["\n".join(_folded(headline(report), width))]
    parts += [_group(i, group, width, ascii_only) for i, group in enumerate(report.all_groups, 1)]
    parts += sections(report, width)
    parts += [run.to_text(width, ascii_only) for run in report.runs]
    if len(report.runs) == 2:
        parts.append(compared(report.runs))
    advice = report.advice()
    if advice:
        parts.append(_section("How to improve the estimates", advice, width))
    if report.error:
        parts.append("\n".join(_folded(f"The optimizer failed and the original plan is used: {report.error}", width)))
    text = "\n\n".join(parts)
    return plain(text) if ascii_only else text


def sections(report: ReportData, width: int) -> list[str]:
    """The sections below the groups: other rewrites, hints, refusals and notes."""
    refusals = [
        f"{r.where}: {r.reason}" + (f". What would change it: {r.advice}" if r.advice else "") for r in report.refusals
    ]
    listed = (
        ("Outer joins eliminated", report.eliminated_outer_joins),
        ("Joins avoided", report.spared_joins),
        ("Rows grouped before they are joined", report.eager_aggregations),
        ("Rows filtered before they are grouped or shuffled", report.prefilters),
        ("Hints", [f"{h.strategy} {h.side} of {h.join}: {h.reason}" for h in report.hints]),
        ("Left as written", refusals),
        ("Notes", report.notes),
    )
    return [_section(title, rows, width) for title, rows in listed if rows]


def headline(report: ReportData) -> str:
    """One line: what happened, and how long it took."""
    done = []
    reordered = [g for g in report.groups if g.changed]
    if reordered:
        relations = ", ".join(str(len(g.relations)) for g in reordered)
        done.append(f"{_count(len(reordered), 'group')} of {relations} relations reordered")
    if report.eliminated_outer_joins:
        done.append(f"{_count(len(report.eliminated_outer_joins), 'outer join')} eliminated")
    if report.spared_joins:
        done.append(f"{_count(len(report.spared_joins), 'join')} avoided")
    if report.eager_aggregations:
        done.append(f"{_count(len(report.eager_aggregations), 'input')} grouped early")
    if report.prefilters:
        done.append(f"{_count(len(report.prefilters), 'input')} filtered")
    if report.hints:
        done.append(f"{_count(len(report.hints), 'hint')} given")
    only = " would be" if report.strategy == "none" and done else ""
    if not done:
        done.append("nothing changed")
    return f"Joins{only}: {', '.join(done)}, planned in {report.seconds * 1000:.0f} ms"


def title_of(number: int, group: GroupReport) -> str:
    """One line on a group."""
    title = f"Group {number}: {len(group.relations)} relations, cost {quantity(group.cost_before)}"
    if not group.strategy:
        return f"{title}, one order"
    if group.strategy == "baseline":
        changed = f" -> {quantity(group.cost_after)}" if group.changed else ""
        return f"{title}{changed}, the order of a baseline"
    if group.changed:
        title += f" -> {quantity(group.cost_after)}{_gain(group)}"
    else:
        title += ", kept as written: no better order"
    return f"{title}, {group.strategy} search, {_count(group.pairs, 'pair')}"


def _gain(group: GroupReport) -> str:
    """How the costs compare, in brackets; empty if there is nothing to compare.

    The chosen order does not depend on how the query is written, so it may cost as much as the written order, or more.
    If the rows of every relation are a default, all costs follow from that default and are not compared.
    """
    guessed = all(relation.source == "default" for relation in group.relations)
    if guessed or not group.cost_after > 0 or group.order_before == group.order_after:
        return ""
    factor = group.cost_before / group.cost_after
    if factor >= 1.001:
        return f" ({times(factor)} cheaper)" if factor >= 1.05 else f" ({percent(1 - 1 / factor)} cheaper)"
    if factor > 0.999:
        return " (equal cost; the order does not depend on how the query is written)"
    why = "cross products only of tiny relations" if group.strategy == "exact" else "not all orders were compared"
    return f" (costlier: {why}; the order does not depend on how the query is written)"


def described(edge: EdgeReport) -> str:
    """One edge of the join graph in words.

    >>> described(EdgeReport("(a = b)", ("r", "s", "t"), ("r", "s", "t"), "⟕", (("r", "s"), ("t",))))
    'r, s ⟕ t: (a = b); requires r, s on its left and t on its right'
    """
    if edge.sides:
        left, right = (", ".join(side) for side in edge.sides)
        return f"{left} {edge.sign} {right}: {edge.predicate}; requires {left} on its left and {right} on its right"
    text = f"{', '.join(edge.relations) or 'no column'}: {edge.predicate or 'a cross product that an outer join needs'}"
    others = [name for name in edge.required if name not in edge.relations]
    return f"{text}; requires {', '.join(others)}" if others else text


def operator_of(join: JoinEstimate, group: GroupReport) -> str:
    """The forecast of the operator that Spark will run a join with, and of the side that it builds; may be empty."""
    built = join.built(len(group.relations), group.relations)
    return f"{join.operator}, builds {built}" if built else join.operator


def _group(number: int, group: GroupReport, width: int, ascii_only: bool) -> str:
    box = Box(title_of(number, group), width, ascii_only)
    box.wrapped(f"{'before' if group.strategy else 'order '}  {group.order_before}", " " * 8)
    if group.changed:
        box.wrapped(f"after   {group.order_after}", " " * 8)
    beside = box.inside >= _BESIDE
    room = _BYTES if beside else 0
    name = max(18, min(40, box.inside - 45 - room))
    box.rule("relations")
    box.line(f"{'relation':<{name}}{'rows':>8}{'at most':>9}{_size('bytes', room)}   source")
    for r in group.relations:
        size = _size(memory(r.bytes), room)
        box.line(f"{_cell(r.name, name)}{_rows(r.rows):>8}{_bound(r.bound):>9}{size}   {r.source}")
    box.rule("joins in the chosen order, * not in the written order" if group.changed else "joins in the written order")
    name = max(17, min(46, box.inside - _FIGURES - room - (37 if beside else 0)))
    head = f"{'rows':>8}{'at most':>9}{_size('bytes', room)}{'cost':>6}"
    box.line(f"{'join':<{name}}{head}{'   Spark will choose' if beside else ''}")
    old = same_joins(group.estimated_rows, group.joins_before)
    for i, join in enumerate(group.estimated_rows):
        star = "*" if group.changed and not old[i] else " "
        sides = (side_name(side, len(group.relations), group.relations) for side in (join.left, join.right))
        text = box.text(f"{star} #{i + 1} {f' {join.sign} '.join(sides)}")
        share = group.share(join)
        rows = f"{_rows(join.rows):>8}{_bound(join.bound):>9}{_size(memory(join.bytes), room)}"
        figures = f"{rows}{'' if share is None else percent(share):>6}"
        operator = operator_of(join, group)
        box.line(f"{_cell(text, name)}{figures}   {operator if beside else ''}".rstrip())
        if operator and not beside:
            box.line(f"     as {operator}")
        source = f"  [{join.source}]" if join.source else ""
        box.line(f"     on {' AND '.join(join.predicates) or '(cross product)'}{source}")
        if join.hint:
            box.line(f"     hint {join.hint}")
    if any(edge.sides or set(edge.required) - set(edge.relations) for edge in group.edges):
        box.rule("join graph: relations that each predicate connects and requires")
        for edge in group.edges:
            if not edge.implied:
                box.wrapped(described(edge), "  ", 3)
    return box.to_text()


def _cell(text: str, width: int) -> str:
    return pad(text, width - 1) + " "


def _rows(rows: float) -> str:
    return "~" + quantity(rows)


def _size(text: str, room: int) -> str:
    return f"{text:>{room}}" if room else ""


def _bound(rows: float | None) -> str:
    return "" if rows is None else quantity(rows)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _section(title: str, rows: list[str], width: int) -> str:
    return "\n".join([f"{title}:", *(line for row in rows for line in _folded(f"  {row}", width, "    "))])


def _folded(text: str, width: int, indent: str = "") -> list[str]:
    indented = len(text) - len(text.lstrip())
    return textwrap.wrap(
        text.strip(), max(width, LEAST), initial_indent=" " * indented, subsequent_indent=indent or "  ",
        break_on_hyphens=False,
    ) or [""]  # fmt: skip
