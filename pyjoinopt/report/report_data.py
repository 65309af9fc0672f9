"""The data of a report: what was found, changed and refused. It needs neither Spark nor the renderers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyjoinopt.report.advice import advice_on, better_estimates
from pyjoinopt.report.executed_run import OperatorReport, RunReport
from pyjoinopt.report.model import (
    EdgeReport,
    GroupReport,
    HintReport,
    JoinEstimate,
    RefusalReport,
    RelationReport,
    from_dict,
    to_dict,
)  # fmt: skip

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass
class ReportData:
    """What `optimize_joins` did, or would do, to one DataFrame.

    Attributes:
        changed: whether the plan was changed.
        groups: the join groups with three relations or more.
        pairs: the join groups with two relations, which have one order. Spark's own strategies have none.
        eliminated_outer_joins: one sentence for each outer join that became a simpler join or was removed.
        spared_joins: one sentence for each join that was avoided, or became a simpler join.
        eager_aggregations: one sentence for each aggregate that is computed in part below joins, or that makes the
            right side of a semi join distinct.
        prefilters: one sentence for each semi join that filters what is grouped or shuffled.
        hints: hints that were given.
        refusals: what was left as written, with reasons.
        notes: statistics of the user that were not used, such as declared keys of columns that do not exist; keys that
            are not proved because their columns have too many bytes.
        strategy: the option of the call.
        seconds: planning time, including the calls to the JVM.
        runs: the runs of `explain_joins(analyze=True)`.
        background_bytes: bytes that the driver had read in the background to prove keys, for the queries of the session
            until this one was planned.
        error: the internal error after which the optimizer returned its input; None if there was none.
    """

    changed: bool = False
    groups: list[GroupReport] = field(default_factory=list)
    eliminated_outer_joins: list[str] = field(default_factory=list)
    spared_joins: list[str] = field(default_factory=list)
    prefilters: list[str] = field(default_factory=list)
    hints: list[HintReport] = field(default_factory=list)
    refusals: list[RefusalReport] = field(default_factory=list)
    strategy: str = "auto"
    seconds: float = 0.0
    runs: list[RunReport] = field(default_factory=list)
    error: str | None = None
    notes: list[str] = field(default_factory=list)
    pairs: list[GroupReport] = field(default_factory=list)
    background_bytes: int = 0
    eager_aggregations: list[str] = field(default_factory=list)

    @property
    def all_groups(self) -> list[GroupReport]:
        """The groups with three relations or more, then those with two, as they are numbered in texts and pictures."""
        return [*self.groups, *self.pairs]

    @property
    def avoided_joins(self) -> list[str]:
        """The same list as `spared_joins`."""
        return self.spared_joins

    @property
    def cost_before(self) -> float:
        """Cost of the written orders of all groups, in row units."""
        return sum(g.cost_before for g in self.groups)

    @property
    def cost_after(self) -> float:
        """Cost of the chosen orders of all groups, in row units."""
        return sum(g.cost_after for g in self.groups)

    @property
    def joins_reordered(self) -> int:
        """Number of joins in groups whose order changed."""
        return sum(len(g.relations) - 1 for g in self.groups if g.changed)

    def refuse(self, where: str, reason: str) -> None:
        """Add a refusal, with advice, unless the report has it already.

        Args:
            where: the operator or part of the query that is left as written.
            reason: why, as the end of a sentence about it.
        """
        refusal = RefusalReport(where, reason, advice_on(reason))
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def advice(self) -> list[str]:
        """Sentences on how to improve the estimates that the orders are based on."""
        return better_estimates(self.all_groups, self.runs)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The report that `to_dict` wrote; keys that this version does not have are ignored."""
        names = ("changed", "eliminated_outer_joins", "spared_joins", "strategy", "seconds", "error")
        report = cls(**{name: data[name] for name in names})
        report.eager_aggregations = list(data.get("eager_aggregations", ()))
        report.prefilters = list(data.get("prefilters", ()))
        report.notes = list(data.get("notes", ()))
        report.background_bytes = int(data.get("background_bytes", 0))
        report.hints = [from_dict(HintReport, hint) for hint in data["hints"]]
        report.refusals = [from_dict(RefusalReport, refusal) for refusal in data["refusals"]]
        report.groups = [_group_from(group) for group in data["groups"]]
        report.pairs = [_group_from(group) for group in data.get("pairs", ())]
        for run in data.get("runs", ()):
            operators = tuple(from_dict(OperatorReport, operator) for operator in run["operators"])
            report.runs.append(from_dict(RunReport, run, operators=operators))
        return report

    def to_dict(self) -> dict[str, Any]:
        """All fields as dicts and lists, with `cost_before` and `cost_after`."""
        return {**to_dict(self), "cost_before": self.cost_before, "cost_after": self.cost_after}


def _group_from(data: dict[str, Any]) -> GroupReport:
    kinds: dict[str, type[Any]] = {
        "relations": RelationReport, "estimated_rows": JoinEstimate, "joins_before": JoinEstimate, "edges": EdgeReport,
    }  # fmt: skip
    lists = {name: tuple(from_dict(kind, part) for part in data.get(name, ())) for name, kind in kinds.items()}
    return from_dict(GroupReport, data, **lists)
