"""Options: one table for keywords, `spark.pyjoinopt.*` keys, defaults, allowed values and help.

A keyword wins over the session's key, the key over the default. What is not allowed raises at once and says what is.

Some keys belong to the application (`STATIC_KEYS`): which program the driver starts and which files it opens. Any
client of a server can set a key of its session, so what the extension does rests on the application's value of these. A
call in the driver's own Python is different: whoever runs the driver may do all of that anyway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

PREFIX = "spark.pyjoinopt."


@dataclass(frozen=True)
class Option:
    """One row of the table.

    Attributes:
        several: of the allowed values several may be told in one text, with commas between.
        numbers: whole numbers from 1 are allowed, too.
    """

    name: str
    key: str
    default: Any
    allowed: tuple[str, ...] | None
    help: str
    several: bool = False
    numbers: bool = False

    def parse(self, given: Any, named: str) -> Any:
        """The value of a keyword, or of a key's text.

        Raises:
            TypeError: the value is of another type than the option.
            ValueError: it is not among the allowed ones.
        """
        if self.name == "cost" and callable(getattr(given, "join", None)) and hasattr(given, "name"):
            return given  # a model of the user's own
        if self.numbers and (type(given) is int or _is_whole(given)):
            return _from_one(int(given), given, named)
        expected = type(self.default)
        value = given
        if isinstance(given, str) and expected is bool and named.startswith(PREFIX):
            value = {"true": True, "false": False}.get(given.strip().lower(), given)
        elif isinstance(given, str) and expected is int and named.startswith(PREFIX):
            value = int(given) if _is_whole(given) else given
        if type(value) is not expected:
            allowed = "true or false" if expected is bool else self._listed() or f"of type {expected.__name__}"
            raise TypeError(f"{named} is {given!r} ({type(given).__name__}), but must be {allowed}")
        for part in _parts(value) if self.several else [value]:
            if self.allowed is not None and part not in self.allowed:
                close = get_close_matches(str(part), self.allowed, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                several = "empty, or some, with commas between them, " if self.several else ""
                raise ValueError(f"{named} is {given!r}, but must be {several}{self._listed()}{hint}")
        return _from_one(value, given, named) if expected is int else value

    def _listed(self) -> str:
        values = ", ".join(repr(value) for value in self.allowed or ())
        if self.numbers:
            return f"{values} or a whole number from 1"
        return f"one of {values}" if values else ""


def _is_whole(text: Any) -> bool:
    return isinstance(text, str) and text.strip().lstrip("-").isdigit()


def _from_one(number: int, given: Any, named: str) -> int:
    if number < 1:
        raise ValueError(f"{named} is {given!r}, but must be at least 1")
    return number


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


#: What row counts may rest on and can do without, the best first.
RUNGS = ("feedback", "analyze", "catalog", "memory", "footers", "text", "samples", "keys")
#: What can be left out of `pyjoinopt.rewrites.normalise.REWRITES`.
REWRITES = (
    "existence_to_semi_joins", "set_operations_to_joins", "extract_common_factors", "simplify_outer_joins",
    "fuse_aggregates", "pivot_self_join", "push_extra_predicate", "left_join_to_anti_join", "self_join_to_semi_join",
)  # fmt: skip

OPTIONS: tuple[Option, ...] = (
    Option(
        "strategy", PREFIX + "strategy", "auto", ("auto", "spark", "heuristic", "none"),
        "How joins are ordered: 'auto' searches all orders with our own estimates; 'spark' is a twin of Spark's "
        "CostBasedJoinReorder (needs ANALYZEd tables); 'heuristic' is a twin of Spark's ReorderJoin; "
        "'none' changes nothing and only reports.",
    ),
    Option(
        "hints", PREFIX + "hints", True, None,
        "Give hints (BROADCAST, SHUFFLE_HASH, MERGE) where row counts say that Spark would do worse by itself.",
    ),
    Option(
        "hint_slack", PREFIX + "hintSlack", "auto", ("auto",),
        "How many times spark.sql.autoBroadcastJoinThreshold a side may have at most, as far as is proved, to be built "
        "by a hint. With 1, a side is broadcast only if it is proved to fit the threshold, however little is expected; "
        "'auto' lets a broadcast have a sixteenth of the driver's heap and an eighth of an executor's memory, but from "
        "8 to 100 times the threshold, and a table of hashed rows 8 times.",
        numbers=True,
    ),
    Option(
        "cost", PREFIX + "cost", "spark", ("spark", "c_out", "weighted"),
        "What is minimised: 'spark' counts what Spark pays, 'c_out' the rows of all join results, 'weighted' their "
        "rows and bytes as Spark's cost-based optimizer weighs them (spark.sql.cbo.joinReorder.card.weight). Or a "
        "model of your own (pyjoinopt.cost.CostModel).",
    ),
    Option(
        "cost_constants", PREFIX + "costConstants", "", None,
        "A file that `python -m benchmarks.calibrate` wrote: the constants of the cost model 'spark' for your cluster. "
        "The key belongs to the application.",
    ),
    Option(
        "statistics", PREFIX + "statistics", "auto", ("auto", "catalog", "footers", "full", "none"),
        "Where row counts come from: 'auto' takes what pyjoinopt.analyze gathered, else the catalog's, else what is in "
        "memory, else file footers, else file sizes, and counts filters over samples, for which it reads a few row "
        "groups; 'full' samples every filtered relation and waits for it; 'catalog' and 'footers' use that source and "
        "nothing else; 'none' uses sizes only.",
    ),
    Option(
        "statistics_without", PREFIX + "statisticsWithout", "", RUNGS,
        "What is left out of that, with commas between: 'feedback' (rows that were counted when the query ran before), "
        "'analyze' (what pyjoinopt.analyze gathered), 'catalog', 'memory' (cached data), 'footers', 'text' (widths of "
        "lines), 'samples', 'keys' (proved by reading columns in the background).",
        several=True,
    ),
    Option(
        "rewrites_without", PREFIX + "rewritesWithout", "", REWRITES,
        "Rewrites that are switched off, with commas between: to find out which one an unexpected plan is due to. "
        "'simplify_outer_joins' is all that makes outer joins simpler ones.",
        several=True,
    ),
    Option(
        "statistics_ms", PREFIX + "statisticsMs", 2000, None,
        "How many milliseconds a query waits for file footers and, a quarter of that, for samples, a twentieth, for "
        "proofs of keys, of all its tables together. What comes later is there for the next query. With "
        "statistics='full' five times as long, and for everything.",
    ),
    Option(
        "store", PREFIX + "store", "auto", None,
        "The file in which statistics are remembered; 'auto' is one in the user's cache folder (or where "
        "PYJOINOPT_STORE says), 'off' remembers nothing. It holds samples, thus values of the tables' rows. The key "
        "belongs to the application; a session may set it to 'off'.",
    ),
    Option(
        "feedback", PREFIX + "feedback", False, None,
        "Listen to the queries of the session, and remember the true row counts of join groups for when they come "
        "again. `report.observe()` does it for one query without this.",
    ),
    Option(
        "strict", PREFIX + "strict", False, None,
        "Raise instead of returning the input untouched after an internal error, or for a DataFrame that cannot be "
        "optimised at all (streaming, a command). Meant for tests.",
    ),
    Option(
        "pair_budget", PREFIX + "pairBudget", 25_000, None,
        "How many pairs of sub-plans the exact search may look at before cheaper searches take over.",
    ),
    Option(
        "search_seconds", PREFIX + "searchSeconds", 10, None,
        "How many seconds the search for the order of one join group may take before it ends with what it has.",
    ),
)  # fmt: skip

#: Keys of whole sessions, which are no options of a call: the JVM reads them. Key, default, help.
SESSION_KEYS: tuple[tuple[str, str, str], ...] = (
    (PREFIX + "enabled", "true", "Whether the queries of the session are optimised. Without the extension: false."),
    (PREFIX + "python", "PySpark's", "The Python that runs the workers; it needs to have this package's dependencies."),
    (PREFIX + "pythonpath", "the jar's", "Where the workers find this package, if that Python does not have it."),
    (
        PREFIX + "timeout", "auto",
        "How long a query waits for its order before it is planned as written; 'auto': two seconds, and one more for "
        "every GiB that it reads, at most a minute.",
    ),
    (PREFIX + "startTimeout", "60s", "How long a worker may take to start, behind the queries, before it is ended."),
    (
        PREFIX + "prestart", "10min",
        "The first worker starts together with the session; how long it is kept if no query needs it. 'off': it starts "
        "with the first query. Read when the extension is loaded.",
    ),
    (PREFIX + "workers", "2", "How many worker processes there may be. The second starts when the first is busy."),
)  # fmt: skip

#: Keys that the application sets and no session: `ApplicationSettings.scala` has the same list.
STATIC_KEYS: tuple[str, ...] = tuple(
    PREFIX + name for name in ("python", "pythonpath", "workers", "startTimeout", "prestart", "store", "costConstants")
)
#: Of these, the keywords of `enable` and `configure` that are no options of a call.
_OF_WORKERS = {
    "python": PREFIX + "python", "pythonpath": PREFIX + "pythonpath", "workers": PREFIX + "workers",
    "start_timeout": PREFIX + "startTimeout", "prestart": PREFIX + "prestart",
}  # fmt: skip
#: Before a key that a session has set and that does not count for it, as the JVM exports it.
OF_SESSION = "pyjoinopt.session."

_TIME = re.compile(r"0*[1-9]\d*\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_BY_NAME = {option.name: option for option in OPTIONS}
_BY_KEY = {option.key: option for option in OPTIONS}


@dataclass(frozen=True)
class Options:
    """The options of one call; see `OPTIONS` for what each means."""

    strategy: str = "auto"
    hints: bool = True
    hint_slack: int | str = "auto"
    cost: Any = "spark"
    cost_constants: str = ""
    statistics: str = "auto"
    statistics_without: str = ""
    rewrites_without: str = ""
    statistics_ms: int = 2000
    store: str = "auto"
    feedback: bool = False
    strict: bool = False
    pair_budget: int = 25_000
    search_seconds: int = 10
    #: Whether the store's folder may be created: not for the sake of a path that a session has set.
    store_folder: bool = field(default=True, repr=False)

    @property
    def without(self) -> frozenset[str]:
        """The rungs that are left out."""
        return frozenset(_parts(self.statistics_without))

    @property
    def without_rewrites(self) -> frozenset[str]:
        """The rewrites that are switched off."""
        return frozenset(_parts(self.rewrites_without))


def check_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords, checked.

    Raises:
        ValueError: an unknown option or a value that is not allowed.
        TypeError: a value of the wrong type.

    >>> check_keywords({"strategy": "auto", "statistics_without": "samples, keys"})
    {'strategy': 'auto', 'statistics_without': 'samples, keys'}
    >>> check_keywords({"stratgy": "auto"})
    Traceback (most recent call last):
    ValueError: unknown option 'stratgy'; did you mean 'strategy'? Options are strategy, hints, hint_slack, cost, \
cost_constants, statistics, statistics_without, rewrites_without, statistics_ms, store, feedback, strict, pair_budget, \
search_seconds
    """
    checked = {}
    for name, value in keywords.items():
        option = _BY_NAME.get(name)
        if option is None:
            close = get_close_matches(name, _BY_NAME, 1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"unknown option {name!r}{hint} Options are {', '.join(_BY_NAME)}")
        checked[name] = option.parse(value, f"option {name!r}")
    return checked


def worker_settings(keywords: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """What the keywords say of workers, as keys, and the other keywords.

    Raises:
        ValueError, TypeError: a value that is not allowed.

    >>> worker_settings({"start_timeout": "30s", "workers": 1, "hints": False})
    ({'spark.pyjoinopt.startTimeout': '30s', 'spark.pyjoinopt.workers': '1'}, {'hints': False})
    """
    keys = {}
    for name, value in keywords.items():
        if name not in _OF_WORKERS:
            continue
        expected: Any = int if name == "workers" else str
        if type(value) is not expected:
            allowed = "a whole number from 1" if expected is int else "of type str"
            raise TypeError(f"{name} is {value!r} ({type(value).__name__}), but must be {allowed}")
        if name == "workers":
            _from_one(value, value, name)
        off = name == "prestart" and value.strip().lower() == "off"
        if name in ("start_timeout", "prestart") and not (off or _TIME.fullmatch(value.strip())):
            word = "'off' or " if name == "prestart" else ""
            raise ValueError(f"{name} is {value!r}, but must be {word}a time such as '20s' or '500ms'")
        keys[_OF_WORKERS[name]] = str(value)
    return keys, {name: value for name, value in keywords.items() if name not in _OF_WORKERS}


def resolve(keywords: Mapping[str, Any], conf: Mapping[str, str]) -> Options:
    """Keywords over session keys over defaults.

    >>> resolve({"hints": False}, {"spark.pyjoinopt.cost": "c_out"})
    Options(strategy='auto', hints=False, hint_slack='auto', cost='c_out', cost_constants='', statistics='auto', \
statistics_without='', rewrites_without='', statistics_ms=2000, store='auto', feedback=False, strict=False, \
pair_budget=25000, search_seconds=10)
    """
    chosen = {}
    for key, text in conf.items():
        if key in _BY_KEY:
            chosen[_BY_KEY[key].name] = _BY_KEY[key].parse(text, key)
    return Options(**{**chosen, **check_keywords(keywords)})


def resolve_call(keywords: Mapping[str, Any], conf: Mapping[str, str]) -> Options:
    """The same for a call in the driver's own Python, for which the keys of its session count, whatever they are.

    >>> conf = {"spark.pyjoinopt.store": "/a", "pyjoinopt.session.spark.pyjoinopt.store": "/b"}
    >>> resolve({}, conf).store, resolve_call({}, conf).store, resolve_call({"store": "/c"}, conf).store
    ('/a', '/b', '/c')
    """
    set_here = {key.removeprefix(OF_SESSION): text for key, text in conf.items() if key.startswith(OF_SESSION)}
    options = resolve(keywords, {**conf, **set_here})
    return replace(options, store_folder="store" in keywords or PREFIX + "store" not in set_here)


def refused_keys(conf: Mapping[str, str]) -> list[str]:
    """The keys of the application that a session has set, and that are not used.

    >>> refused_keys({"pyjoinopt.session.spark.pyjoinopt.python": "/x", "spark.pyjoinopt.cost": "c_out"})
    ['spark.pyjoinopt.python']
    """
    return [key for key in STATIC_KEYS if OF_SESSION + key in conf]
