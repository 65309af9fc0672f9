"""The record of one run: what was found, what was changed, what was refused and why. Plain data, no Spark in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.errors import NotRunError
from pyjoinopt.report.advice import advice_on, better_estimates
from pyjoinopt.report.executed_run import OperatorReport, RunReport
from pyjoinopt.report.model import (
    EdgeReport,
    GroupReport,
    HintReport,
    JoinEstimate,
    RefusalReport,
    RelationReport,
    made,
    plain,
)  # fmt: skip

if TYPE_CHECKING:
    import pandas


@dataclass
class JoinReport:
    """What `optimize_joins` did, or would do, to one DataFrame.

    Attributes:
        changed: whether the plan was changed at all.
        groups: the join groups with three relations or more.
        eliminated_outer_joins: one sentence for each outer join that became a simpler one or went away.
        spared_joins: one sentence for each join that what it joins made needless, or a simpler one.
        hints: hints that were given.
        refusals: what was left as written, with reasons.
        notes: what of the given statistics could not be used, such as declared keys of columns that do not exist.
        strategy: the option as asked for.
        seconds: the whole planning time, with the way to the JVM and back.
        runs: what the query did when `explain_joins(analyze=True)` ran it.
        error: the internal error that made the optimizer return its input, if there was one.
    """

    changed: bool = False
    groups: list[GroupReport] = field(default_factory=list)
    eliminated_outer_joins: list[str] = field(default_factory=list)
    spared_joins: list[str] = field(default_factory=list)
    hints: list[HintReport] = field(default_factory=list)
    refusals: list[RefusalReport] = field(default_factory=list)
    strategy: str = "auto"
    seconds: float = 0.0
    runs: list[RunReport] = field(default_factory=list)
    error: str | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # No fields, because they are no data: how to read true rows, and of which join groups.
        self._observer: Callable[[], list[Any]] | None = None
        self._watches: tuple[Any, ...] = ()
        self._chapters: list[Callable[[], object]] = []
        self._told_groups = 0
        self.changes: list[str] = []

    def observe(self) -> list[Any]:
        """The true row counts of the query that this report is of, after it ran; they are remembered.

        The next time that the same joins over the same files are planned, in this session or another, they count.

        Returns:
            A list of `pyjoinopt.statistics.Observation`: one for each relation and join of a reordered or kept group
            whose rows Spark has counted. Operators below a limit, or thinned out by a filter that Spark made at run
            time, are left out.

        Raises:
            NotRunError: the DataFrame's own query did not run. `collect()`, `toPandas()` and `foreach()` run it;
                `count()`, `show()` and `write` run another one made of it: for these switch on the option `feedback`.

        Example:
            >>> fast = slow.optimize_joins()                      # doctest: +SKIP
            >>> rows = fast.collect()                             # doctest: +SKIP
            >>> fast.join_report().observe()                      # doctest: +SKIP
        """
        if self._observer is None:
            raise NotRunError(
                "this report is of no DataFrame that can run here: keep the one that optimize_joins() returns, run it, "
                "and take its report: fast = df.optimize_joins(); fast.collect(); fast.join_report().observe(). For "
                "the queries of a session, and on Spark Connect, SET spark.pyjoinopt.feedback=true instead"
            )
        return self._observer()

    @property
    def cost_before(self) -> float:
        """Sum over the groups, as written."""
        return sum(g.cost_before for g in self.groups)

    @property
    def cost_after(self) -> float:
        """Sum over the groups, as planned."""
        return sum(g.cost_after for g in self.groups)

    @property
    def joins_reordered(self) -> int:
        """Joins in groups whose order changed."""
        return sum(len(g.relations) - 1 for g in self.groups if g.changed)

    def refuse(self, where: str, reason: str) -> None:
        """Add a refusal once, with what would change it."""
        refusal = RefusalReport(where, reason, advice_on(reason))
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    @property
    def has_groups(self) -> bool:
        """Whether a join group was found, be it not written yet."""
        return self._told_groups > 0

    def expect_groups(self, changes: Sequence[str | None]) -> None:
        """Note join groups that are described later.

        Args:
            changes: the old and the new order of each in one line; None if it stays.
        """
        self._told_groups += len(changes)
        self.changes += [change for change in changes if change is not None]

    def later(self, chapter: Callable[[], object]) -> None:
        """Put off what only readers of the report need: the query need not wait for it."""
        self._chapters.append(chapter)

    def complete(self) -> None:
        """Write what was put off, in its order."""
        chapters, self._chapters = self._chapters, []
        for chapter in chapters:
            chapter()

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> JoinReport:
        """The report that `to_dict` told of."""
        names = ("changed", "eliminated_outer_joins", "spared_joins", "strategy", "seconds", "error")
        report = cls(**{name: told[name] for name in names})
        report.notes = list(told.get("notes", ()))
        report.hints = [made(HintReport, hint) for hint in told["hints"]]
        report.refusals = [made(RefusalReport, refusal) for refusal in told["refusals"]]
        for group in told["groups"]:
            kinds: dict[str, type[Any]] = {
                "relations": RelationReport, "estimated_rows": JoinEstimate, "joins_before": JoinEstimate,
                "edges": EdgeReport,
            }  # fmt: skip
            lists = {name: tuple(made(kind, part) for part in group.get(name, ())) for name, kind in kinds.items()}
            report.groups.append(made(GroupReport, group, **lists))
        for run in told.get("runs", ()):
            operators = tuple(made(OperatorReport, operator) for operator in run["operators"])
            report.runs.append(made(RunReport, run, operators=operators))
        return report

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts and lists."""
        return {**plain(self), "cost_before": self.cost_before, "cost_after": self.cost_after}

    def to_json(self, indent: int | None = None) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def advice(self) -> list[str]:
        """What would make the estimates better that the orders rest on."""
        return better_estimates(self)

    def to_text(self, width: int = 110, ascii_only: bool = False) -> str:
        """For people; what `explain_joins` prints: boxes of `width` columns."""
        from pyjoinopt.report.render.text import render

        return render(self, width, ascii_only)

    def to_tree(self, width: int = 110, ascii_only: bool = False) -> str:
        """The orders before and after as trees, side by side if `width` columns suffice."""
        from pyjoinopt.report.render.side_by_side_trees import render_tree

        return render_tree(self, width, ascii_only)

    def to_html(self) -> str:
        """The pictures and all figures as HTML, without scripts."""
        from pyjoinopt.report.render.html import render_html

        return render_html(self)

    def to_svg(self, group: int = 1) -> str:
        """The orders of one group, before and after, as an SVG picture.

        Raises:
            ValueError: there is no such group; groups count from 1.
        """
        from pyjoinopt.report.render.orders_svg import group_svg

        return group_svg(self._group(group), group)

    def _group(self, number: int) -> GroupReport:
        if type(number) is not int:
            raise TypeError(f"group is {number!r}, but must be a whole number, counted from 1")
        if not 1 <= number <= len(self.groups):
            raise ValueError(f"there is no group {number}: this report has {len(self.groups)}, counted from 1")
        return self.groups[number - 1]

    def to_graph_svg(self, group: int = 1) -> str:
        """The join graph of one group as an SVG picture: its relations, and every predicate that ties them.

        Raises:
            ValueError: there is no such group; groups count from 1.
        """
        from pyjoinopt.report.render.join_graph_svg import graph_svg

        return graph_svg(self._group(group), group)

    def to_mermaid(self) -> str:
        """The chosen orders as a Mermaid flowchart."""
        from pyjoinopt.report.render.mermaid_and_dot import render_mermaid

        return render_mermaid(self)

    def to_dot(self) -> str:
        """The chosen orders in Graphviz's language."""
        from pyjoinopt.report.render.mermaid_and_dot import render_dot

        return render_dot(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame, a row a join of the chosen orders."""
        import pandas

        rows = [
            {"group": i, **plain(join), "share": g.share(join)}
            for i, g in enumerate(self.groups, 1)
            for join in g.estimated_rows
        ]
        columns = ["group", *(f.name for f in fields(JoinEstimate)), "share"]
        return pandas.DataFrame(rows, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Write the report into a file; its ending says how: .txt .html .svg (the first group) .json .mmd .dot

        Raises:
            ValueError: another ending.
        """
        from pyjoinopt.report.render.html import render_page

        path = Path(path)
        ways = {
            ".txt": self.to_text, ".html": lambda: render_page(self), ".svg": self.to_svg, ".json": self.to_json,
            ".mmd": self.to_mermaid, ".dot": self.to_dot,
        }  # fmt: skip
        if path.suffix.lower() not in ways:
            raise ValueError(f"{path.name!r} ends in {path.suffix!r}; what can be written ends in {', '.join(ways)}")
        path.write_text(ways[path.suffix.lower()](), encoding="utf-8")
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from pyjoinopt.report.render.html import render_html

        return {"text/plain": self.to_text(), "text/html": render_html(self, images=True)}

    def __str__(self) -> str:
        return self.to_text()
