"""The permitted imports between the package's folders ("rooms"). The table in `docs/architecture.md` is generated."""

from __future__ import annotations

#: Room -> rooms that it may import. A module at the top level is a room of its own.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "_needed": set(),
    "config": set(),
    "cost": set(),
    "util": set(),
    "plan": {"util"},
    "estimation": {"util", "plan"},
    "catalyst": {"util", "plan", "estimation"},
    "rewrites": {"util", "plan", "catalyst"},
    "joins": {"util", "plan", "estimation", "cost"},
    "report": {"util", "plan", "errors"},
    "hints": {"util", "plan", "catalyst", "estimation", "cost", "joins", "report", "feedback"},
    "bridge": {"util", "plan", "errors"},
    "feedback": {"util", "plan", "estimation", "joins", "report", "bridge", "errors"},
    "eventlog": {"util", "errors"},
    "advice": {"util", "plan", "estimation", "cost", "joins", "eventlog", "report", "errors"},
    "optimizer": {
        "util", "plan", "catalyst", "rewrites", "estimation", "cost", "joins", "hints", "feedback", "report", "bridge",
        "config", "_version",
    },
    "worker": {"optimizer", "plan", "feedback", "estimation", "report", "bridge", "config", "errors", "_version"},
    "api": {
        "util", "advice", "optimizer", "feedback", "catalyst", "estimation", "cost", "plan", "report",
        "bridge", "config", "errors", "_version", "",
    },
    "demo": {"bridge", "report", "util", "errors", "_version", ""},
    "rules": {"api"},  # this and the next three are for users
    "testing": {"api"},
    "statistics": {"api", "estimation", "feedback"},
    "baselines": {"api", "feedback"},
    "__main__": {"api", "bridge", "demo", "config", "errors", "_version", ""},
    "__init__": {
        "advice", "api", "baselines", "errors", "report", "rules", "statistics", "testing", "_version", "_needed",
    },
}  # fmt: skip
