"""The contract of the house: which room may import which. `docs/architecture.md` has its table, which is generated."""

from __future__ import annotations

#: Room -> rooms that it may import. A module at the top level is a room of its own.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "_needed": set(),
    "config": set(),
    "cost": set(),
    "plan": set(),
    "estimation": {"plan"},
    "catalyst": {"plan", "estimation"},
    "rewrites": {"plan", "catalyst"},
    "joins": {"plan", "estimation", "cost"},
    "report": {"plan", "errors"},
    "hints": {"plan", "catalyst", "estimation", "cost", "joins", "report"},
    "bridge": {"plan", "errors"},
    "feedback": {"plan", "estimation", "joins", "report", "bridge", "errors"},
    "optimizer": {
        "plan", "catalyst", "rewrites", "estimation", "cost", "joins", "hints", "feedback", "report", "bridge",
        "config",
    },
    "worker": {"optimizer", "feedback", "estimation", "report", "bridge", "config", "errors", "_version"},
    "api": {
        "optimizer", "feedback", "catalyst", "estimation", "cost", "plan", "report", "bridge", "config", "errors",
        "_version", "",
    },
    "rules": {"api"},  # `pyjoinopt.rules` and `pyjoinopt.statistics`, for users
    "statistics": {"api", "estimation", "feedback"},
    "__main__": {"api", "bridge", "config", "errors", "_version", ""},
    "__init__": {"api", "errors", "report", "rules", "statistics", "_version", "_needed"},
}  # fmt: skip
