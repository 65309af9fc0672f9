"""The record of one run: what was found, what was changed, what was refused and why. Plain data, no Spark in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pyjoinopt.errors import NotRunError


@dataclass(frozen=True)
class RelationReport:
    """One relation of a group: its name, estimated rows after its own filters, and where the count came from."""

    name: str
    rows: float
    source: str


@dataclass(frozen=True)
class JoinEstimate:
    """One join of the chosen order: the relations below it, the predicates it applies, its estimated rows."""

    relations: tuple[str, ...]
    predicates: tuple[str, ...]
    rows: float


@dataclass(frozen=True)
class GroupReport:
    """One join group.

    Attributes:
        relations: what was ordered.
        predicates: the join predicates, as text.
        order_before, order_after: such as `((a ⋈ b) ⋈ c)`; equal if nothing changed.
        estimated_rows: one entry a join of `order_after`, innermost first.
        cost_before, cost_after: both orders under the same cost model.
        strategy: the search that found the order ("exact", "greedy", "spark", "heuristic").
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
        error: the internal error that made the optimizer return its input, if there was one.
    """

    changed: bool = False
    groups: list[GroupReport] = field(default_factory=list)
    eliminated_outer_joins: list[str] = field(default_factory=list)
    hints: list[HintReport] = field(default_factory=list)
    refusals: list[RefusalReport] = field(default_factory=list)
    strategy: str = "auto"
    seconds: float = 0.0
    error: str | None = None

    def __post_init__(self) -> None:
        self._observer: Callable[[], list[Any]] | None = None  # no field: it is no data

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
            joins = [
                JoinEstimate(tuple(j["relations"]), tuple(j["predicates"]), j["rows"]) for j in group["estimated_rows"]
            ]
            relations = tuple(RelationReport(**relation) for relation in group["relations"])
            lists = {"relations": relations, "predicates": tuple(group["predicates"]), "estimated_rows": tuple(joins)}
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

    def __str__(self) -> str:
        return self.to_text()
