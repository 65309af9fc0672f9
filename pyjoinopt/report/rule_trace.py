"""The steps of `pyjoinopt.rules.trace`: the plan before and after each rule, as text and HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import LogicalPlan

_STYLE = (
    "font-family:monospace;white-space:pre;line-height:1.4;border-collapse:collapse;text-align:left;"
    "margin:.3em 0 1em 0"
)
_BEFORE, _AFTER = "background:rgba(200,60,60,.18)", "background:rgba(40,150,70,.18)"

#: A line of a comparison: mark (" ", "-" or "+") and text.
Line = tuple[str, str]


@dataclass(frozen=True)
class RuleStep:
    """One rule that changed the plan.

    Attributes:
        batch: name of its batch.
        rule: its name in Catalyst.
        before, after: the plan before and after it, as mirror nodes.
        seconds: duration of the rule.
    """

    batch: str
    rule: str
    before: LogicalPlan
    after: LogicalPlan
    seconds: float

    def lines(self) -> list[Line]:
        """The plan after the rule, with removed lines marked `-` and added lines marked `+`."""
        old, new = show(self.before).splitlines(), show(self.after).splitlines()
        lines: list[Line] = []
        for what, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if what == "equal":
                lines += [(" ", text) for text in old[i:j]]
            else:
                lines += [("-", text) for text in old[i:j]]
                lines += [("+", text) for text in new[k:m]]
        return lines


@dataclass(frozen=True, repr=False)
class RuleTrace:
    """All steps of a query, in order. In a notebook it is displayed as HTML.

    Attributes:
        start: the plan before the first rule.
        steps: the rules that changed the plan.
        runs: number of rule runs, including those that changed nothing.
    """

    start: LogicalPlan
    steps: tuple[RuleStep, ...] = field(default_factory=tuple)
    runs: int = 0

    @property
    def end(self) -> LogicalPlan:
        """The plan after the last rule."""
        return self.steps[-1].after if self.steps else self.start

    def to_text(self) -> str:
        """The steps as text, changed lines marked `-` (before) and `+` (after)."""
        parts = [f"== as written\n{show(self.start)}"]
        for number, step in enumerate(self.steps, 1):
            body = "\n".join(f"{mark} {text}" for mark, text in step.lines())
            parts.append(f"== {number}. {step.rule} ({step.batch}, {1000 * step.seconds:.1f} ms)\n{body}")
        parts.append(f"{len(self.steps)} of {self.runs} rule runs changed the plan.")
        return "\n\n".join(parts)

    def to_html(self) -> str:
        """The steps as HTML without scripts: before and after side by side, changed lines coloured and marked."""
        parts = ["<div>", _details("as written", f"<div style='{_STYLE}'>{html.escape(show(self.start))}</div>", True)]
        for number, step in enumerate(self.steps, 1):
            where = f"({html.escape(step.batch)}, {1000 * step.seconds:.1f} ms)"
            title = f"{number}. <b>{html.escape(step.rule)}</b> {where}"
            parts.append(_details(title, _side_by_side(step.lines()), number <= _OPEN))
        parts.append(f"<p>{len(self.steps)} of {self.runs} rule runs changed the plan.</p></div>")
        return "".join(parts)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return self.to_text()


_OPEN = 30


def _details(title: str, body: str, opened: bool) -> str:
    return f"<details{' open' if opened else ''}><summary>{title}</summary>{body}</details>"


def _side_by_side(lines: list[Line]) -> str:
    """A table with two columns, in which removed and added lines are next to each other."""
    rows: list[tuple[Line, Line]] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        for i in range(max(len(removed), len(added))):
            left = ("-", removed[i]) if i < len(removed) else (" ", "")
            right = ("+", added[i]) if i < len(added) else (" ", "")
            rows.append((left, right))
        removed.clear()
        added.clear()

    for mark, text in lines:
        if mark == " ":
            flush()
            rows.append(((" ", text), (" ", text)))
        else:
            (removed if mark == "-" else added).append(text)
    flush()
    head = "".join(f"<th scope='col' style='text-align:left'>{when}</th>" for when in ("before", "after"))
    before = _column([left for left, _ in rows], _BEFORE)
    after = _column([right for _, right in rows], _AFTER)
    return f"<table style='{_STYLE}'><thead><tr>{head}</tr></thead><tbody><tr>{before}{after}</tr></tbody></table>"


def _column(lines: list[Line], colour: str) -> str:
    texts = []
    for mark, text in lines:
        shown = f"{mark} {html.escape(text)}"
        texts.append(shown if mark == " " else f"<span style='{colour}'>{shown}</span>")
    return f"<td style='text-align:left;vertical-align:top'>{chr(10).join(texts)}</td>"
