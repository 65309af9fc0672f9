"""The public `JoinReport`: the data of a report, how to render it, and how to read true rows after a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.errors import NotRunError
from pyjoinopt.report.model import GroupReport, JoinEstimate, to_dict
from pyjoinopt.report.render.html import render_html, render_page
from pyjoinopt.report.render.join_graph_svg import graph_svg
from pyjoinopt.report.render.mermaid_and_dot import render_dot, render_mermaid
from pyjoinopt.report.render.orders_svg import group_svg
from pyjoinopt.report.render.side_by_side_trees import render_tree
from pyjoinopt.report.render.text import render
from pyjoinopt.report.report_data import ReportData

if TYPE_CHECKING:
    import pandas


@dataclass
class JoinReport(ReportData):
    """What `optimize_joins` did, or would do, to one DataFrame: the data, its renderings, and true rows after a run.

    Attributes: those of `ReportData`.
    """

    def __post_init__(self) -> None:
        # Not dataclass fields, so that they are not part of the data: how to read true rows, the groups to match them
        # with, the sections that are not written yet, the plan as a baseline, the run for the query store, the orders
        # that would be the best if an estimate was wrong, and the costs of the orders before the sections about them
        # are written.
        self._observer: Callable[[], list[Any]] | None = None
        self._watches: tuple[Any, ...] = ()
        self._planned: Callable[..., Any] | None = None
        self._run: Any = None
        self._orders_if_wrong: Callable[[], Sequence[Any]] | None = None
        self._deferred: list[Callable[[], object]] = []
        self._groups_added = 0
        self.changes: list[str] = []
        self.costs: tuple[float, float] | None = None

    def observe(self) -> list[Any]:
        """Read the true row counts of this report's query after it ran, and store them.

        Later plans use them for the same joins over the same files, in this session or another.

        Returns:
            A list of `pyjoinopt.statistics.Observation`: one for each relation and join of a group whose rows Spark
            has counted. Operators below a limit, or below a run-time filter of Spark, are left out.

        Raises:
            NotRunError: the DataFrame's own query did not run. `collect()`, `toPandas()` and `foreach()` run it;
                `count()`, `show()` and `write` run a query derived from it: use the option `feedback` for these.

        Example:
            >>> fast = slow.optimize_joins()                      # doctest: +SKIP
            >>> rows = fast.collect()                             # doctest: +SKIP
            >>> fast.join_report().observe()                      # doctest: +SKIP
        """
        if self._observer is None:
            raise NotRunError(
                "this report does not belong to a DataFrame that has run: run the DataFrame that optimize_joins() "
                "returns, and use its report: fast = df.optimize_joins(); fast.collect(); "
                "fast.join_report().observe(). For the queries of a session, and on Spark Connect, SET "
                "spark.pyjoinopt.feedback=true instead"
            )
        return self._observer()

    @property
    def has_groups(self) -> bool:
        """Whether a group of three relations or more was added, even if its section is still deferred."""
        return self._groups_added > 0

    def expect_groups(self, changes: Sequence[str | None], cost_before: float = 0.0, cost_after: float = 0.0) -> None:
        """Add join groups whose sections are deferred.

        Args:
            changes: the written and the chosen order of each in one line; None if the order is kept.
            cost_before, cost_after: of the written and the chosen orders of all of them.
        """
        self._groups_added += len(changes)
        if changes:
            before, after = self.costs or (0.0, 0.0)
            self.costs = before + cost_before, after + cost_after
        self.changes += [change for change in changes if change is not None]

    def defer(self, section: Callable[[], object]) -> None:
        """Defer work that only readers of the report need, so that the query does not wait for it."""
        self._deferred.append(section)

    def complete(self) -> None:
        """Write the deferred sections, in the order in which they were added."""
        sections, self._deferred = self._deferred, []
        for section in sections:
            section()

    def to_json(self, indent: int | None = None) -> str:
        """All fields as JSON text; the keys are those of `to_dict`."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_text(self, width: int = 110, ascii_only: bool = False) -> str:
        """The text that `explain_joins` prints, in boxes of `width` columns."""
        return render(self, width, ascii_only)

    def to_tree(self, width: int = 110, ascii_only: bool = False) -> str:
        """The orders before and after as trees, side by side if `width` columns are enough."""
        return render_tree(self, width, ascii_only)

    def to_html(self) -> str:
        """Pictures and all figures as HTML, without scripts."""
        return render_html(self)

    def to_svg(self, group: int = 1) -> str:
        """The orders of one group, before and after, as an SVG picture.

        Raises:
            ValueError: there is no such group; groups count from 1.
        """
        return group_svg(self._group(group), group)

    def _group(self, number: int) -> GroupReport:
        if type(number) is not int:
            raise TypeError(f"group is {number!r}, but must be a whole number, counted from 1")
        groups = self.all_groups
        if not 1 <= number <= len(groups):
            raise ValueError(f"there is no group {number}: this report has {len(groups)}, counted from 1")
        return groups[number - 1]

    def to_graph_svg(self, group: int = 1) -> str:
        """The join graph of one group as an SVG picture: its relations, and the predicates that connect them.

        Raises:
            ValueError: there is no such group; groups count from 1.
        """
        return graph_svg(self._group(group), group)

    def to_mermaid(self) -> str:
        """The chosen orders as a Mermaid flowchart."""
        return render_mermaid(self)

    def to_dot(self) -> str:
        """The chosen orders as a Graphviz digraph (DOT)."""
        return render_dot(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame with one row for each join of the chosen orders.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        rows = [
            {"group": i, **to_dict(join), "share": g.share(join)}
            for i, g in enumerate(self.all_groups, 1)
            for join in g.estimated_rows
        ]
        columns = ["group", *(f.name for f in fields(JoinEstimate)), "share"]
        return pandas.DataFrame(rows, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file in the format of its suffix: .txt .html .svg (the first group) .json .mmd .dot

        Returns:
            The path of the file.

        Raises:
            ValueError: another suffix.
        """
        path = Path(path)
        writers = {
            ".txt": self.to_text, ".html": lambda: render_page(self), ".svg": self.to_svg, ".json": self.to_json,
            ".mmd": self.to_mermaid, ".dot": self.to_dot,
        }  # fmt: skip
        if path.suffix.lower() not in writers:
            raise ValueError(f"{path.name!r} has the suffix {path.suffix!r}, but must have one of {', '.join(writers)}")
        path.write_text(writers[path.suffix.lower()](), encoding="utf-8")
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": render_html(self, images=True)}

    def __str__(self) -> str:
        return self.to_text()
