"""Short, stable keys of the reasons of refusals, for counters and logs.

A reason is a sentence with names of tables and figures in it, so it can be no name of a metric. Each has one of a few
keys, by how it begins. The keys are part of the interface: dashboards and alerts have them, so an old one keeps its
meaning. `PlanMetrics.scala` has a counter for each of them, and `docs/rollout.md` a row; tests compare all three.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

#: The key of a reason that has none of its own, such as one that another release has written.
OTHER = "other"

#: Key -> how its reasons begin, as regular expressions.
_BEGINNINGS: dict[str, tuple[str, ...]] = {
    "aggregate": ("it contains an aggregate or window function",),
    "baseline": (
        "the store has (no|a) baseline of this name",
        "it is for another query",
        "no join group of the query has its relations",
        "its options are not valid",
        "it cannot be proved that its order",
        "the join has no keys to",
        "broadcasting is switched off",
        r"the \w+ side (may have|of this type of join)",
    ),
    "cached": ("its result is cached", "all of its joins are inside cached data"),
    "canary": ("it is not in the share of queries that are changed",),
    "command": ("it is a command",),
    "correlated": ("it reads columns of an outer query",),
    "description": ("the description of its job is",),
    "equalKeys": ("a predicate distinguishes values of its join keys",),
    "explored": ("it runs as written this time",),
    "joinHint": ("it carries a join hint",),
    "keepJoinOrder": ("the hint KEEP_JOIN_ORDER",),
    "longCondition": ("its condition would grow",),
    "mayFail": (
        "two predicates of it may fail on the same rows",
        "it tests a computed column that is costly",
        "its order decides to which relations Spark copies a filter on a join key that may fail",
        "a predicate that may fail",
    ),
    "nondeterministic": ("it contains a nondeterministic expression",),
    "notProved": ("it cannot be proved that another order",),
    "notRequested": ("the session is switched off",),
    "oneOrder": (
        "it has no join",
        "it joins two relations",
        r"its \d+ joins are in different subqueries",
        r"no other order of its \d+ joins is allowed",
    ),
    "paddedColumn": ("a column that is computed below it is NULL",),
    "pythonUdf": ("it calls a Python UDF",),
    "sameColumns": ("both sides of it have the same columns",),
    "searchTime": ("the search for its order ran out of time",),
    "separated": ("no three relations of it are joined", "joins are not moved across it"),
    "setting": ("it belongs to the application", "the application has locked it"),
    "slower": (r"this plan took [\d.]+ times as long", "this plan ran out of memory"),
    "strategy": ("the strategy",),
    "streaming": ("it is a streaming query",),
    "subquery": ("it contains a subquery predicate",),
    "table": ("it reads a table that is",),
    "unresolved": ("Spark has not resolved",),
    "variant": ("it extracts a value from a VARIANT",),
}

#: All keys, sorted.
KEYS: tuple[str, ...] = tuple(sorted((*_BEGINNINGS, OTHER)))


@lru_cache(maxsize=256)
def key_of(reason: str) -> str:
    """The key of a reason.

    >>> key_of("it reads a table that is in spark.pyjoinopt.denyTables (hr.*): hr.salaries"), key_of("it is Monday")
    ('table', 'other')
    """
    found = (key for key, beginnings in _BEGINNINGS.items() if any(re.match(begin, reason) for begin in beginnings))
    return next(found, OTHER)


def keys_of(reasons: Iterable[str]) -> list[str]:
    """The keys of some reasons, each once, sorted."""
    return sorted({key_of(reason) for reason in reasons})
