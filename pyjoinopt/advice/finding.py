"""What all findings share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class Finding:
    """One thing that could be better about a query.

    Attributes:
        where: the join, sub-plan or stage, in names of tables.
        text: what is the matter and what to do, in one or two sentences.
        hours: task hours (of all executors' cores) that could be won in this run; 0 if that cannot be estimated.
        seconds: seconds of the run that could be won where no task would do less; else 0.
        certainty: how sure the figures are, from 0 to 1.
        surer: what would make them surer.
    """

    kind: ClassVar[str] = ""
    #: Whether several findings of this kind in one run are about different work, so that their hours add up.
    adds_up: ClassVar[bool] = False
    #: Whether findings of this kind come after others with as much to win.
    comes_last: ClassVar[bool] = False
    where: str
    text: str
    hours: float = 0.0
    seconds: float = 0.0
    certainty: float = 1.0
    surer: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data."""
        return {"kind": self.kind, **asdict(self)}


def rank(finding: Finding) -> tuple[float, float, bool, str, str]:
    """The place of a finding: the one with most to win first."""
    return -finding.hours, -finding.seconds, finding.comes_last, finding.kind, finding.where


def hours(milliseconds: float) -> float:
    """Hours of a number of milliseconds, not below 0."""
    return max(0.0, milliseconds) / _MS_PER_HOUR
