"""Where a rule differs from Catalyst's on purpose, by name; docs/rules.md gives the reasons to users."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Differences:
    """Pieces of text, by rule, by which a meant difference is known."""

    known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def covers(self, rule: str, text: str) -> bool:
        """True if a difference is one of those that are meant."""
        return any(piece in text for piece in self.known.get(rule, ()))


DIFFERENCES = Differences()
