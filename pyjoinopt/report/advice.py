"""Advice: how to remove the reason of each refusal, and how to get better estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyjoinopt.report.executed_run import MISESTIMATED, RunReport
from pyjoinopt.report.model import GroupReport

#: Sources that do not count rows.
GUESSES = frozenset({"size", "default"})

#: How a reason begins (one text or several) -> what removes it.
_ADVICE: tuple[tuple[str | tuple[str, ...], str], ...] = (
    ("the hint KEEP_JOIN_ORDER", "remove the hint to order these joins with the others"),
    (
        "the session is switched off",
        "add the hint /*+ OPTIMIZE_JOINS */ to the SELECT of these joins, or SET spark.pyjoinopt.enabled=true for all "
        "queries",
    ),
    (
        "spark.pyjoinopt.mode is off",
        "set spark.pyjoinopt.mode to on; if it is locked, only the application can",
    ),
    (
        (
            "the description of its job is",
            "it reads a table that is",
            "it is not in the share of queries that are changed",
        ),
        "change the key that is named, or call df.optimize_joins() in the driver, to which it does not apply; if the "
        "key is locked, only the application can change it",
    ),
    ("it carries a join hint", "remove the hint to order these joins with the others"),
    (
        "it calls a Python UDF",
        "use Spark's built-in functions instead; or compute the UDF as a column of one relation before the joins, and "
        "do not use it in join conditions or in filters between the joins",
    ),
    ("it reads columns of an outer query", "write the correlated subquery as a join"),
    (
        "it contains a subquery predicate",
        "write IN and EXISTS as a join of type left_semi, and NOT EXISTS as a join of type left_anti",
    ),
    (
        "it contains a nondeterministic expression",
        "compute the expression before the joins, or above all of them",
    ),
    ("it contains an aggregate or window function", "compute it in a separate subquery, below or above the joins"),
    ("it extracts a value from a VARIANT", "extract the value with try_variant_get"),
    (
        "two predicates of it may fail on the same rows",
        "write both in one WHERE or ON; or use expressions that cannot fail, such as TRY_CAST or try_divide",
    ),
    (
        "it tests a computed column that is costly",
        "compute that column in the relation that it reads, before the joins; or use an expression that cannot fail, "
        "such as TRY_CAST",
    ),
    ("a column that is computed below it", "compute the column above all joins, or in the relation that it reads"),
    ("both sides of it have the same columns", "select the columns of one side under other names"),
    (
        ("no three relations", "joins are not moved across it"),
        "move all of these joins below that operator, or above it, if the query's meaning allows it",
    ),
    ("its condition would grow", "compute the columns that it reads before the joins, and store them in a table"),
    ("the search for its order ran out of time", "increase the option search_seconds (spark.pyjoinopt.searchSeconds)"),
    (
        "the store has no baseline of this name",
        "pyjoinopt.baselines.show() lists the baselines of a store; each session uses that of spark.pyjoinopt.store",
    ),
    (
        (
            "it is for another query",
            "no join group of the query has its relations",
            "it cannot be proved that its order",
            "its options are not valid",
            "the store has a baseline of this name that cannot be read",
        ),
        "pin the plan of the query as it is now, with pyjoinopt.baselines.pin(df, name), or name another baseline",
    ),
    ("the strategy", "use strategy='auto', which orders joins of every type and does not need ANALYZE"),
    ("all of its joins are inside cached data", "optimise before cache(): df.optimize_joins().cache()"),
    ("it is a streaming query", "order its joins by hand, or optimise the batch DataFrames inside foreachBatch"),
    ("it is a command", "optimise the query that it runs: df.optimize_joins(), then write"),
    ("Spark has not resolved", "use a DataFrame that Spark has analysed"),
    ("its result is cached", "optimise before cache(): df.optimize_joins().cache()"),
    (
        "a predicate that may fail",
        "use strategy='auto', which applies such predicates after the joins that they require; or use try_divide and "
        "TRY_CAST",
    ),
)


def advice_on(reason: str) -> str:
    """How to remove the reason of a refusal; empty if there is no advice.

    >>> advice_on("it is a command, not a query")
    'optimise the query that it runs: df.optimize_joins(), then write'
    """
    return next((advice for start, advice in _ADVICE if reason.startswith(start)), "")


def better_estimates(groups: Sequence[GroupReport], runs: Sequence[RunReport]) -> list[str]:
    """Sentences on relations whose rows were not counted, and on the largest estimation error of each run."""
    found = []
    guessed = {r.name: r.source for g in groups for r in g.relations if r.source in GUESSES}
    files = [name for name, source in guessed.items() if source == "size"]
    others = [name for name in guessed if name not in files]
    if files:
        names = ", ".join(files)
        call = f"pyjoinopt.analyze(spark, {_listed(files)})"
        found.append(f"Rows of {names} are estimated from file sizes; run {call} to count them.")
    if others:
        found.append(
            f"Rows of {', '.join(others)} are a default, since Spark does not read them from files: cache() and "
            "count() the data first, or write it as Parquet."
        )
    for run in runs:
        misled = run.misled()
        if misled is None or misled[1] < MISESTIMATED:
            continue
        relations = misled[0].relations
        if len(relations) == 1:
            found.append(f"Run pyjoinopt.analyze(spark, {_listed(relations)}) for a better estimate of {relations[0]}.")
        else:
            found.append(
                f"Statistics of single tables cannot give the rows of the join of {' with '.join(relations)}: set "
                "spark.pyjoinopt.feedback=true, or call report.observe() after a run, to store the counted rows."
            )
    return list(dict.fromkeys(found))


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
