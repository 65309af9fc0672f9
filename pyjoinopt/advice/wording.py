"""Figures and names of logs as text: durations, plurals, and nothing that a terminal would obey."""

from __future__ import annotations

from pyjoinopt.advice.finding import Finding
from pyjoinopt.report.render.number_format import percent


def duration(hours: float) -> str:
    """A duration in the unit that suits it.

    >>> duration(0.0), duration(0.001), duration(0.2), duration(3.25), duration(250.0)
    ('', '3.6 s', '12.0 min', '3.25 h', '250 h')
    """
    if hours <= 0:
        return ""
    if hours < 1 / 60:
        return f"{hours * 3600:.1f} s"
    if hours < 1:
        return f"{hours * 60:.1f} min"
    return f"{hours:.2f} h" if hours < 100 else f"{hours:,.0f} h"


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> count(1, "query", "queries"), count(1200, "query", "queries")
    ('1 query', '1,200 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """The text without control characters, which a log may contain.

    >>> printable("a" + chr(27) + "[31mb" + chr(10))
    'a [31mb '
    """
    return "".join(character if character.isprintable() else " " for character in text)


def worth(finding: Finding) -> str:
    """What a finding could win.

    >>> worth(Finding("", "", hours=2.0)), worth(Finding("", "", seconds=90)), worth(Finding("", ""))
    ('2.00 h of task time', '1.5 min of waiting', 'not estimated')
    """
    if finding.hours > 0:
        return f"{duration(finding.hours)} of task time"
    if finding.seconds > 0:
        return f"{duration(finding.seconds / 3600)} of waiting"
    return "not estimated"


def sure(finding: Finding) -> str:
    """How sure a finding is, and what would make it surer."""
    if finding.certainty >= 1.0:
        return f"certainty {percent(1.0)}"
    surer = f"; surer with {finding.surer}" if finding.surer else ""
    return f"certainty {percent(finding.certainty)}{surer}"
