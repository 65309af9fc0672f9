"""Options: one table for keywords, `spark.pyjoinopt.*` keys, defaults, allowed values and help.

A keyword takes precedence over the session's key, and the key over the default. A value that is not allowed raises an
error with the allowed values.

Only the application may set some keys (`STATIC_KEYS`): those that start programs or open files. Any client of a server
can set keys of its session, so the extension uses the application's values of these keys. A call in the driver's own
Python may use any value, because such code has all rights of the driver.
"""

from __future__ import annotations

import math
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
        several: whether the value may list several of the allowed values, separated by commas.
        numbers: whether whole numbers from 1 are allowed, too.
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
            text = given.strip().lower()
            value = {"true": True, "false": False, **{word: word for word in self.allowed or ()}}.get(text, given)
        elif isinstance(given, str) and expected is int and named.startswith(PREFIX):
            value = int(given) if _is_whole(given) else given
        elif expected is float:
            return _share(given, named)
        if expected is bool:
            if type(value) is bool or value in (self.allowed or ()):
                return value
            words = "".join(f", or {word!r}" for word in self.allowed or ())
            raise TypeError(f"{named} is {given!r} ({type(given).__name__}), but must be true or false{words}")
        if type(value) is not expected:
            allowed = self._listed() or f"of type {expected.__name__}"
            raise TypeError(f"{named} is {given!r} ({type(given).__name__}), but must be {allowed}")
        for part in parts(value) if self.several else [value]:
            if self.allowed is not None and part not in self.allowed:
                close = get_close_matches(str(part), self.allowed, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                several = "empty, or several, separated by commas, " if self.several else ""
                raise ValueError(f"{named} is {given!r}, but must be {several}{self._listed()}{hint}")
        return _from_one(value, given, named) if expected is int else value

    def _listed(self) -> str:
        values = ", ".join(repr(value) for value in self.allowed or ())
        if self.numbers:
            return f"{values} or a whole number from 1"
        return f"one of {values}" if values else ""


def _is_whole(text: Any) -> bool:
    return isinstance(text, str) and text.strip().lstrip("-").isdigit()


def _share(given: Any, named: str) -> float:
    """A share of something; as a key it is text."""
    value = given
    if isinstance(given, str) and named.startswith(PREFIX):
        try:
            value = float(given)
        except ValueError:
            value = math.nan
    elif isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{named} is {given!r} ({type(given).__name__}), but must be a number from 0 to 1")
    if not 0 <= value <= 1:
        raise ValueError(f"{named} is {given!r}, but must be a number from 0 to 1")
    return float(value)


def _from_one(number: int, given: Any, named: str) -> int:
    if number < 1:
        raise ValueError(f"{named} is {given!r}, but must be at least 1")
    return number


def parts(text: str) -> list[str]:
    """The entries of a list that is separated by commas.

    >>> parts("a, b,")
    ['a', 'b']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


#: Sources of row counts that can be left out, the best first.
RUNGS = ("feedback", "analyze", "catalog", "database", "memory", "footers", "text", "samples", "keys", "bounds")
#: Names of the rewrites that can be left out: those of `pyjoinopt.rewrites.normalise.REWRITES`, one
#: that precedes them, and nine that follow.
REWRITES = (
    "fuse_scalar_subqueries",
    "existence_to_semi_joins", "set_operations_to_joins", "extract_common_factors", "simplify_outer_joins",
    "fuse_aggregates", "pivot_self_join", "filter_common_tables", "push_extra_predicate", "left_join_to_anti_join",
    "self_join_to_semi_join",
    "aggregate_to_window",
    "fuse_joined_aggregates",
    "inner_to_semi_joins",
    "top_k_through_joins",
    "distinct_build_sides",
    "eager_aggregation",
    "prefilter_aggregates",
    "prefilter_joins",
    "share_common_tables",
)  # fmt: skip

OPTIONS: tuple[Option, ...] = (
    Option(
        "strategy", PREFIX + "strategy", "auto", ("auto", "spark", "heuristic", "none"),
        "How joins are ordered: 'auto' uses our search and estimates; 'spark' is a reimplementation of Spark's "
        "CostBasedJoinReorder (needs ANALYZEd tables); 'heuristic' is a reimplementation of Spark's ReorderJoin; "
        "'none' changes nothing and only reports.",
    ),
    Option(
        "hints", PREFIX + "hints", True, None,
        "Add hints (BROADCAST, SHUFFLE_HASH, MERGE) where Spark's own choice would be worse by our row counts.",
    ),
    Option(
        "hint_slack", PREFIX + "hintSlack", "auto", ("auto",),
        "How far a hinted side's upper bound may exceed spark.sql.autoBroadcastJoinThreshold, as a factor. "
        "With 1, a side is broadcast only if its bound fits the threshold, however small its estimate is. 'auto' "
        "allows a broadcast a sixteenth of the driver's heap and an eighth of an executor's memory, limited to 8 to "
        "100 times the threshold, and a shuffled hash table 8 times the threshold.",
        numbers=True,
    ),
    Option(
        "cost", PREFIX + "cost", "spark", ("spark", "c_out", "weighted"),
        "The quantity to minimise: 'spark' estimates the work of Spark's operators, 'c_out' the rows of all join "
        "results, 'weighted' their rows and bytes as Spark's cost-based optimizer weighs them "
        "(spark.sql.cbo.joinReorder.card.weight). Or a model of your own (pyjoinopt.cost.CostModel).",
    ),
    Option(
        "cost_constants", PREFIX + "costConstants", "", None,
        "A file written by `python -m benchmarks.calibrate`, with the constants of the cost model 'spark' for your "
        "cluster. Only the application may set the key.",
    ),
    Option(
        "statistics", PREFIX + "statistics", "auto", ("auto", "catalog", "footers", "full", "none"),
        "The source of row counts: 'auto' uses the results of pyjoinopt.analyze, or else the catalog, data in memory, "
        "file footers, or file sizes, and evaluates filters over samples, for which it reads a few row groups; 'full' "
        "samples every filtered relation and waits for the samples; 'catalog' and 'footers' use only that source; "
        "'none' uses file sizes only.",
    ),
    Option(
        "statistics_without", PREFIX + "statisticsWithout", "", RUNGS,
        "Sources not to use, separated by commas: 'feedback' (rows counted in earlier runs), 'analyze' (results of "
        "pyjoinopt.analyze), 'catalog', 'database' (statistics of the PostgreSQL server of a JDBC relation), 'memory' "
        "(cached data), 'footers', 'text' (widths of lines), 'samples', 'keys' (proved by reading columns in the "
        "background), 'bounds' (upper bounds by random samples and sketches, for hints).",
        several=True,
    ),
    Option(
        "rewrites_without", PREFIX + "rewritesWithout", "", REWRITES,
        "Rewrites to switch off, separated by commas, for instance to find the cause of an unexpected plan. "
        "'simplify_outer_joins' covers all rewrites of outer joins to simpler joins.",
        several=True,
    ),
    Option(
        "statistics_ms", PREFIX + "statisticsMs", "auto", ("auto",),
        "How many milliseconds a query waits for the file footers of all its tables together. It waits a quarter of "
        "that for samples and a twentieth for proofs of keys. 'auto' is 2000, but the wait for samples grows with the "
        "size of the query's files, from 20 milliseconds (with several joins 500) to a second. Filters are evaluated "
        "over samples as long as it waits for these, but half a second at least and ten at most. Later results serve "
        "the next query. With statistics='full' it waits five times as long, for everything.",
        numbers=True,
    ),
    Option(
        "background_mb", PREFIX + "backgroundMb", 4096, None,
        "How many MiB of columns the driver may read in the background for one query, to prove keys. A table with more "
        "than 50 million rows, or 512 MiB of these columns, is not read at all.",
    ),
    Option(
        "session_background_mb", PREFIX + "sessionBackgroundMb", 32_768, None,
        "The same for all queries of a session together. Keys that are proved are stored, and need no further reading "
        "until the files change.",
    ),
    Option(
        "store", PREFIX + "store", "auto", None,
        "The file that stores statistics; 'auto' is a file in the user's cache folder (or PYJOINOPT_STORE), 'off' "
        "stores nothing. It contains samples, which are values of the tables' rows. Only the application may set the "
        "key, but a session may set it to 'off'.",
    ),
    Option(
        "feedback", PREFIX + "feedback", False, ("auto",),
        "Collect the true row counts of join groups from the queries of the session, and use them when these join "
        "groups are planned again. `report.observe()` does the same for one query. The times of queries are recorded, "
        "too (`pyjoinopt.queries()`); of calls, if an action runs the DataFrame itself (collect, toPandas). With "
        "'auto', a session records a query only if its recordings have taken less than 1 % of the time of its queries; "
        "in a call it is the same as true.",
    ),
    Option(
        "guard", PREFIX + "guard", "observe", ("observe", "explore", "off"),
        "What is done with the recorded times of recurring queries, if feedback is on. 'observe': a plan that took "
        "longer than the query as written is not used again; times of runs as written come from `pyjoinopt.compare`, "
        "and from runs with strategy='none' or mode='report'. 'explore': a session also runs a recurring query as "
        "written, at most four times, to know its time. 'off': nothing.",
    ),
    Option(
        "baseline", PREFIX + "baseline", "", None,
        "Names of baselines (`pyjoinopt.baselines`), separated by commas: a join group that one of them has gets its "
        "order and its hints, if these are proved to be legal and safe now.",
    ),
    Option(
        "mode", PREFIX + "mode", "on", ("on", "report", "off"),
        "'report' plans every query, whatever the canary is, and changes none: the reports have the orders that 'on' "
        "would choose, as with strategy='none'. 'off' plans nothing, whatever hints and calls request.",
    ),
    Option(
        "canary", PREFIX + "canary", 1.0, None,
        "The share of a session's queries that are changed, from 0 to 1. A hash of the query without its constants "
        "decides, so the same query always falls on the same side. It does not apply to calls of `optimize_joins`, "
        "except on Spark Connect, where the server plans the query.",
    ),
    Option(
        "allow_tables", PREFIX + "allowTables", "", None,
        "Patterns of names or paths, separated by commas, such as 'sales.*, /data/sales/*': a session's query is "
        "changed only if all tables that it reads fit one of them. A name may leave out the catalog and the schema. "
        "Empty: all tables.",
    ),
    Option(
        "deny_tables", PREFIX + "denyTables", "", None,
        "The same for tables whose queries are left as written.",
    ),
    Option(
        "allow_descriptions", PREFIX + "allowDescriptions", "", None,
        "Patterns, separated by commas, of descriptions of jobs (SparkContext.setJobDescription): only queries with "
        "such a description are changed in sessions. Empty: all queries.",
    ),
    Option(
        "deny_descriptions", PREFIX + "denyDescriptions", "", None,
        "The same for queries that are left as written.",
    ),
    Option(
        "strict", PREFIX + "strict", False, None,
        "Raise an error, instead of returning the input, after an internal error or for a DataFrame that cannot be "
        "optimised (streaming, a command). For tests.",
    ),
    Option(
        "pair_budget", PREFIX + "pairBudget", 25_000, None,
        "How many pairs of sub-plans the exact search may compare; larger groups use approximate searches.",
    ),
    Option(
        "search_seconds", PREFIX + "searchSeconds", 10, None,
        "The time limit in seconds of the search for the order of one join group; it then ends with the best order "
        "found.",
    ),
)  # fmt: skip

#: The options of a call that a baseline has: those by which rewrites and hints are chosen. How large a hinted side may
#: be (`hint_slack`) is none of them: that is a matter of the cluster at hand.
PLAN_OPTIONS = ("hints", "cost", "statistics", "statistics_without", "rewrites_without")

#: Keys of whole sessions, which the JVM reads; they are not options of a call. Key, default, help.
SESSION_KEYS: tuple[tuple[str, str, str], ...] = (
    (PREFIX + "enabled", "true", "Whether the queries of the session are optimised. Without the extension: false."),
    (PREFIX + "python", "PySpark's", "The Python that runs the workers; it needs this package's dependencies."),
    (PREFIX + "pythonpath", "the jar's", "Where the workers find this package, if it is not installed in that Python."),
    (
        PREFIX + "timeout", "auto",
        "How long a query waits for its order before it is planned as written; 'auto': two seconds, plus one second "
        "for every GiB that it reads, at most a minute.",
    ),
    (PREFIX + "startTimeout", "60s", "How long a worker may take to start in the background before it is ended."),
    (
        PREFIX + "prestart", "10min",
        "How long the first worker, which starts together with the session, is kept if no query needs it. 'off': it "
        "starts with the first query. Read when the extension is loaded.",
    ),
    (PREFIX + "workers", "2", "The maximum number of worker processes. The second starts when the first is busy."),
    (
        PREFIX + "storeFunctions", "auto",
        "Whether `joinopt_queries()` and `joinopt_baselines()` may be called in SQL. They show names of tables, orders "
        "and times of all queries that use the store. 'auto': true in sessions that the driver's Python has enabled or "
        "configured, else false.",
    ),
    (
        PREFIX + "locked", "",
        "Keys that sessions cannot change, separated by commas, such as 'mode, canary'; '*' is all of them. Sessions "
        "get the application's value, or the default.",
    ),
)  # fmt: skip

#: Keys that only the application may set; `ApplicationSettings.scala` has the same list.
STATIC_KEYS: tuple[str, ...] = tuple(
    PREFIX + name
    for name in (
        "python", "pythonpath", "workers", "startTimeout", "prestart", "store", "costConstants", "storeFunctions",
        "locked",
    )
)  # fmt: skip
#: Keywords of `enable` and `configure` for those of these keys that are not options of a call.
_OF_WORKERS = {
    "python": PREFIX + "python", "pythonpath": PREFIX + "pythonpath", "workers": PREFIX + "workers",
    "start_timeout": PREFIX + "startTimeout", "prestart": PREFIX + "prestart",
}  # fmt: skip
#: Prefix of an application key that a session has set, in the JVM's export.
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
    statistics_ms: int | str = "auto"
    background_mb: int = 4096
    session_background_mb: int = 32_768
    store: str = "auto"
    feedback: bool | str = False
    guard: str = "observe"
    baseline: str = ""
    mode: str = "on"
    canary: float = 1.0
    allow_tables: str = ""
    deny_tables: str = ""
    allow_descriptions: str = ""
    deny_descriptions: str = ""
    strict: bool = False
    pair_budget: int = 25_000
    search_seconds: int = 10
    #: Whether the store's folder may be created; false for a path that a session has set.
    store_folder: bool = field(default=True, repr=False)
    #: Baselines (`feedback.baseline.Baseline`) beside those that are named.
    pinned: tuple[Any, ...] = field(default=(), repr=False)
    #: Whether a baseline's hints are given instead of those that pay; false to use its orders alone.
    pinned_hints: bool = field(default=True, repr=False)

    @property
    def without(self) -> frozenset[str]:
        """The sources that are left out."""
        return frozenset(parts(self.statistics_without))

    @property
    def without_rewrites(self) -> frozenset[str]:
        """The rewrites that are switched off."""
        return frozenset(parts(self.rewrites_without))

    @property
    def baseline_names(self) -> tuple[str, ...]:
        """The names of the baselines, the first one first."""
        return tuple(dict.fromkeys(parts(self.baseline)))


def check_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Check the keywords of a call, and return them as values of their options.

    Raises:
        ValueError: an unknown option or a value that is not allowed.
        TypeError: a value of the wrong type.

    >>> check_keywords({"strategy": "auto", "statistics_without": "samples, keys"})
    {'strategy': 'auto', 'statistics_without': 'samples, keys'}
    >>> check_keywords({"stratgy": "auto"})
    Traceback (most recent call last):
    ValueError: unknown option 'stratgy'; did you mean 'strategy'? Options are strategy, hints, hint_slack, cost, \
cost_constants, statistics, statistics_without, rewrites_without, statistics_ms, background_mb, session_background_mb, \
store, feedback, guard, baseline, mode, canary, allow_tables, deny_tables, allow_descriptions, deny_descriptions, \
strict, pair_budget, search_seconds
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
    """Split keywords into settings of workers, as session keys, and all others.

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
    """The options by keywords, session keys and defaults, in this order of precedence.

    >>> resolve({"hints": False}, {"spark.pyjoinopt.cost": "c_out"})
    Options(strategy='auto', hints=False, hint_slack='auto', cost='c_out', cost_constants='', statistics='auto', \
statistics_without='', rewrites_without='', statistics_ms='auto', background_mb=4096, session_background_mb=32768, \
store='auto', feedback=False, guard='observe', baseline='', mode='on', canary=1.0, allow_tables='', deny_tables='', \
allow_descriptions='', deny_descriptions='', strict=False, pair_budget=25000, search_seconds=10)
    """
    chosen = {}
    for key, text in conf.items():
        if key in _BY_KEY:
            chosen[_BY_KEY[key].name] = _BY_KEY[key].parse(text, key)
    options = Options(**{**chosen, **check_keywords(keywords)})
    return options if options.mode == "on" else replace(options, strategy="none")


def resolve_call(keywords: Mapping[str, Any], conf: Mapping[str, str]) -> Options:
    """The options of a call in the driver's own Python, which also uses application keys of its session.

    >>> conf = {"spark.pyjoinopt.store": "/a", "pyjoinopt.session.spark.pyjoinopt.store": "/b"}
    >>> resolve({}, conf).store, resolve_call({}, conf).store, resolve_call({"store": "/c"}, conf).store
    ('/a', '/b', '/c')
    """
    locked = locked_keys(conf)
    set_here = {
        key.removeprefix(OF_SESSION): text
        for key, text in conf.items()
        if key.startswith(OF_SESSION) and key.removeprefix(OF_SESSION) not in locked
    }
    options = resolve(keywords, {**conf, **set_here})
    return replace(options, store_folder="store" in keywords or PREFIX + "store" not in set_here)


def refused_keys(conf: Mapping[str, str]) -> dict[str, str]:
    """The keys that a session has set without effect, each with the reason.

    >>> list(refused_keys({"pyjoinopt.session.spark.pyjoinopt.python": "/x", "spark.pyjoinopt.cost": "c_out"}))
    ['spark.pyjoinopt.python']
    """
    unused = "so the value of this session is not used"
    known = {
        **dict.fromkeys(STATIC_KEYS, f"it belongs to the application, {unused}"),
        **dict.fromkeys(sorted(locked_keys(conf) - set(STATIC_KEYS)), f"the application has locked it, {unused}"),
    }
    return {key: reason for key, reason in known.items() if OF_SESSION + key in conf}


def locked_keys(conf: Mapping[str, str]) -> frozenset[str]:
    """The keys that the application has locked.

    >>> sorted(locked_keys({"spark.pyjoinopt.locked": "mode, spark.pyjoinopt.canary"}))
    ['spark.pyjoinopt.canary', 'spark.pyjoinopt.mode']
    """
    named = [name.removeprefix(PREFIX) for name in parts(conf.get(PREFIX + "locked", ""))]
    if "*" in named:
        return frozenset((*_BY_KEY, *(key for key, _, _ in SESSION_KEYS)))
    return frozenset(PREFIX + name for name in named)
