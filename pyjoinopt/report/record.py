"""The record of one run: what was found, what was changed, what was refused and why. Plain data, no Spark in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.errors import NotRunError
from pyjoinopt.report.run import RunReport

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class RelationReport:
    """One relation of a group, its own filters applied.

    Attributes:
        name: as the query calls it.
        rows: estimate.
        source: where the count comes from.
        bytes: estimate, in memory.
        bound: rows that are proved not to be exceeded; None if nothing is proved.
    """

    name: str
    rows: float
    source: str
    bytes: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class JoinEstimate:
    """One join of the chosen order.

    Attributes:
        relations: the names of those below it.
        predicates: what it applies, as text.
        rows: estimate.
        bytes: estimate, in memory.
        bound: rows that are proved not to be exceeded; None if nothing is proved.
        source: the weakest source that the estimate rests on.
        cost: of this join alone, under the cost model.
        sign: what kind of join it is: ⋈ ⟕ ⟗ ⋉ ▷.
        left, right: its sides, as numbers: relations first, then joins in this order.
    """

    relations: tuple[str, ...]
    predicates: tuple[str, ...]
    rows: float
    bytes: float | None = None
    bound: float | None = None
    source: str = ""
    cost: float | None = None
    sign: str = "⋈"
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class GroupReport:
    """One join group.

    Attributes:
        relations: what was ordered.
        predicates: the join predicates, as text.
        order_before, order_after: such as `((a ⋈ b) ⋈ c)`; equal if nothing changed.
        estimated_rows: one entry a join of `order_after`, innermost first.
        joins_before: the same of `order_before`.
        cost_before, cost_after: both orders under the same cost model.
        strategy: the search that found the order ("exact", "linearized", "greedy", "spark", "heuristic").
        pairs: pairs of sub-plans looked at.
        seconds: time to order this group.
        changed: whether the new order is used.
    """

    relations: tuple[RelationReport, ...]
    predicates: tuple[str, ...]
    order_before: str
    order_after: str
    estimated_rows: tuple[JoinEstimate, ...]
    cost_before: float
    cost_after: float
    strategy: str
    pairs: int
    seconds: float
    changed: bool
    joins_before: tuple[JoinEstimate, ...] = ()


@dataclass(frozen=True)
class HintReport:
    """A hint that was given: the join, the side, and the reason."""

    join: str
    strategy: str
    side: str
    reason: str


@dataclass(frozen=True)
class RefusalReport:
    """Something left as written, and why."""

    where: str
    reason: str


@dataclass
class JoinReport:
    """What `optimize_joins` did, or would do, to one DataFrame.

    Attributes:
        changed: whether the plan was changed at all.
        groups: the join groups with three relations or more.
        eliminated_outer_joins: one sentence for each outer join that became a simpler one or went away.
        hints: hints that were given.
        refusals: what was left as written, with reasons.
        strategy: the option as asked for.
        seconds: the whole planning time, with the way to the JVM and back.
        runs: what the query did when `explain_joins(analyze=True)` ran it.
        error: the internal error that made the optimizer return its input, if there was one.
    """

    changed: bool = False
    groups: list[GroupReport] = field(default_factory=list)
    eliminated_outer_joins: list[str] = field(default_factory=list)
    hints: list[HintReport] = field(default_factory=list)
    refusals: list[RefusalReport] = field(default_factory=list)
    strategy: str = "auto"
    seconds: float = 0.0
    runs: list[RunReport] = field(default_factory=list)
    error: str | None = None

    def __post_init__(self) -> None:
        # No fields, because they are no data: how to read true rows, and of which join groups.
        self._observer: Callable[[], list[Any]] | None = None
        self._watches: tuple[Any, ...] = ()

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
            >>> fast._pyjoinopt_report.observe()                  # doctest: +SKIP
        """
        if self._observer is None:
            raise NotRunError(
                "this report is of no DataFrame that can run: take the one that optimize_joins() gives, "
                "df.optimize_joins()._pyjoinopt_report"
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
        """Add a refusal once."""
        refusal = RefusalReport(where, reason)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> JoinReport:
        """The report that `to_dict` told of."""
        plain = {name: told[name] for name in ("changed", "eliminated_outer_joins", "strategy", "seconds", "error")}
        report = cls(**plain)
        report.hints = [HintReport(**hint) for hint in told["hints"]]
        report.refusals = [RefusalReport(**refusal) for refusal in told["refusals"]]
        for group in told["groups"]:
            relations = tuple(RelationReport(**relation) for relation in group["relations"])
            lists: dict[str, Any] = {"relations": relations, "predicates": tuple(group["predicates"])}
            for name in ("estimated_rows", "joins_before"):
                lists[name] = tuple(
                    JoinEstimate(**{**j, "relations": tuple(j["relations"]), "predicates": tuple(j["predicates"])})
                    for j in group[name]
                )
            report.groups.append(GroupReport(**{**group, **lists}))
        return report

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts and lists."""
        return {**asdict(self), "cost_before": self.cost_before, "cost_after": self.cost_after}

    def to_json(self, indent: int | None = None) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_text(self) -> str:
        """For people; what `explain_joins` prints."""
        from pyjoinopt.report.text import render

        return render(self)

    def to_tree(self, width: int = 110, ascii_only: bool = False) -> str:
        """The orders before and after as trees, side by side if `width` columns suffice."""
        from pyjoinopt.report.tree import render_tree

        return render_tree(self, width, ascii_only)

    def to_html(self) -> str:
        """The pictures and all figures as HTML, without scripts."""
        from pyjoinopt.report.page import render_html

        return render_html(self)

    def to_svg(self, group: int = 1) -> str:
        """The orders of one group, before and after, as an SVG picture.

        Raises:
            ValueError: there is no such group; groups count from 1.
        """
        from pyjoinopt.report.svg import group_svg

        if not 1 <= group <= len(self.groups):
            raise ValueError(f"there is no group {group}: this report has {len(self.groups)}, counted from 1")
        return group_svg(self.groups[group - 1], group)

    def to_mermaid(self) -> str:
        """The chosen orders as a Mermaid flowchart."""
        from pyjoinopt.report.graphs import render_mermaid

        return render_mermaid(self)

    def to_dot(self) -> str:
        """The chosen orders in Graphviz's language."""
        from pyjoinopt.report.graphs import render_dot

        return render_dot(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame, a row a join of the chosen orders."""
        import pandas

        rows = [{"group": i, **asdict(join)} for i, g in enumerate(self.groups, 1) for join in g.estimated_rows]
        columns = ["group", *(f.name for f in fields(JoinEstimate))]
        return pandas.DataFrame(rows, columns=columns)

    def save(self, path: str | Path) -> Path:
        """Write the report into a file; its ending says how: .txt .html .svg (the first group) .json .mmd .dot

        Raises:
            ValueError: another ending.
        """
        path = Path(path)
        ways = {
            ".txt": self.to_text, ".html": self.to_html, ".svg": self.to_svg, ".json": self.to_json,
            ".mmd": self.to_mermaid, ".dot": self.to_dot,
        }  # fmt: skip
        if path.suffix.lower() not in ways:
            raise ValueError(f"{path.name!r} ends in {path.suffix!r}; what can be written ends in {', '.join(ways)}")
        path.write_text(ways[path.suffix.lower()](), encoding="utf-8")
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def __str__(self) -> str:
        return self.to_text()
