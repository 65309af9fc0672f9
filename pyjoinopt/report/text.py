"""A report as text, for terminals and notebooks.

    Joins: 1 group of 3 relations reordered, 1 outer join eliminated, planned in 12 ms

    Group 1: 3 relations, cost 12.4M -> 1.1M (11.3x cheaper), exact search, 4 pairs
      before  ((lineitem ⋈ orders) ⋈ customer)
      after   ((orders ⋈ customer) ⋈ lineitem)
      ...
"""

from __future__ import annotations

from pyjoinopt.report.quantity import quantity
from pyjoinopt.report.record import GroupReport, JoinReport
from pyjoinopt.report.run import compared

_WIDEST = 110


def render(report: JoinReport) -> str:
    """The whole report."""
    lines = [headline(report)]
    for i, group in enumerate(report.groups, 1):
        lines += ["", *_group(i, group)]
    lines += _section("Outer joins eliminated", report.eliminated_outer_joins)
    lines += _section("Hints", [f"{h.strategy} {h.side} of {h.join}: {h.reason}" for h in report.hints])
    lines += _section("Left as written", [f"{r.where}: {r.reason}" for r in report.refusals])
    for run in report.runs:
        lines += ["", run.to_text(_WIDEST)]
    if len(report.runs) == 2:
        lines += ["", compared(report.runs)]
    if report.error:
        lines += ["", f"The optimizer failed and the original plan is used: {report.error}"]
    return "\n".join(lines)


def headline(report: JoinReport) -> str:
    """One line: what happened, and how long it took."""
    done = []
    reordered = [g for g in report.groups if g.changed]
    if reordered:
        relations = ", ".join(str(len(g.relations)) for g in reordered)
        done.append(f"{_count(len(reordered), 'group')} of {relations} relations reordered")
    if report.eliminated_outer_joins:
        done.append(f"{_count(len(report.eliminated_outer_joins), 'outer join')} eliminated")
    if report.hints:
        done.append(f"{_count(len(report.hints), 'hint')} given")
    if not done:
        done.append("nothing changed")
    return f"Joins: {', '.join(done)}, planned in {report.seconds * 1000:.0f} ms"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _group(number: int, group: GroupReport) -> list[str]:
    title = f"Group {number}: {len(group.relations)} relations, cost {quantity(group.cost_before)}"
    if group.changed:
        title += f" -> {quantity(group.cost_after)}"
        if group.cost_after > 0:
            title += f" ({group.cost_before / group.cost_after:.1f}x cheaper)"
    else:
        title += ", kept as written: no cheaper order"
    title += f", {group.strategy} search, {_count(group.pairs, 'pair')}"
    lines = [title, f"  before  {group.order_before}"]
    if group.changed:
        lines.append(f"  after   {group.order_after}")
    lines.append(f"  {'relation':<20}{'rows':>8}{'at most':>10}  source")
    lines += [f"    {r.name[:18]:<18}{_rows(r.rows):>8}{_bound(r.bound):>10}  {r.source}" for r in group.relations]
    lines.append(f"  {'join':<48}{'rows':>8}{'at most':>10}  on")
    for join in group.estimated_rows:
        name = " ⋈ ".join(join.relations)
        name = name if len(name) <= 44 else name[:43] + "…"
        predicates = " AND ".join(join.predicates) or "(cross product)"
        predicates = predicates if len(predicates) <= _WIDEST - 70 else predicates[: _WIDEST - 71] + "…"
        lines.append(f"    {name:<46}{_rows(join.rows):>8}{_bound(join.bound):>10}  {predicates}")
    return lines


def _rows(rows: float) -> str:
    return "~" + quantity(rows)


def _bound(rows: float | None) -> str:
    return "" if rows is None else quantity(rows)


def _section(title: str, rows: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {row}" for row in rows)] if rows else []
