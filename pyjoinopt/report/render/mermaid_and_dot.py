"""The chosen orders of a report as Mermaid and as Graphviz DOT."""

from __future__ import annotations

from collections.abc import Iterator

from pyjoinopt.report.model import GroupReport
from pyjoinopt.report.render.number_format import quantity
from pyjoinopt.report.render.spine_layout import same_joins
from pyjoinopt.report.render.text import operator_of
from pyjoinopt.report.report_data import ReportData


def render_mermaid(report: ReportData) -> str:
    """A Mermaid flowchart.

    >>> print(render_mermaid(ReportData()))
    flowchart TB
    """
    lines = ["flowchart TB"]
    for number, group in enumerate(report.all_groups, 1):
        lines.append(f'  subgraph g{number}["{_mermaid(_title(number, group))}"]')
        for node, label, leaf in _nodes(group):
            shape = ("([", "])") if leaf else ("[", "]")
            lines.append(f'    g{number}n{node}{shape[0]}"{_mermaid(label)}"{shape[1]}')
        lines += [f"    g{number}n{child} --> g{number}n{parent}" for child, parent in _edges(group)]
        lines.append("  end")
    return "\n".join(lines)


def render_dot(report: ReportData) -> str:
    """A Graphviz digraph.

    >>> print(render_dot(ReportData()))
    digraph joins {
      rankdir=BT; node [fontname="monospace", fontsize=10];
    }
    """
    lines = ["digraph joins {", '  rankdir=BT; node [fontname="monospace", fontsize=10];']
    for number, group in enumerate(report.all_groups, 1):
        lines.append(f'  subgraph cluster_{number} {{ label="{_dot(_title(number, group))}";')
        for node, label, leaf in _nodes(group):
            lines.append(f'    g{number}n{node} [label="{_dot(label)}", shape={"ellipse" if leaf else "box"}];')
        lines += [f"    g{number}n{child} -> g{number}n{parent};" for child, parent in _edges(group)]
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _title(number: int, group: GroupReport) -> str:
    return f"group {number}: cost {quantity(group.cost_before)} to {quantity(group.cost_after)}"


def _nodes(group: GroupReport) -> Iterator[tuple[int, str, bool]]:
    for node, relation in enumerate(group.relations):
        yield node, f"{relation.name}\n~{quantity(relation.rows)} rows", True
    old = same_joins(group.estimated_rows, group.joins_before)
    for node, join in enumerate(group.estimated_rows, len(group.relations)):
        star = "★ " if group.changed and not old[node - len(group.relations)] else ""
        text = f"{star}{join.sign} {' AND '.join(join.predicates)}\n~{quantity(join.rows)} rows"
        yield node, "\n".join(filter(None, [text, operator_of(join, group), join.hint and f"hint {join.hint}"])), False


def _edges(group: GroupReport) -> Iterator[tuple[int, int]]:
    for node, join in enumerate(group.estimated_rows, len(group.relations)):
        yield join.left, node
        yield join.right, node


def _mermaid(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;").replace(
        "\n", "<br/>"
    )


def _dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
