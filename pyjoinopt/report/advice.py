"""What would change it: advice on everything that was left as written, and on estimates that rest on little."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyjoinopt.report.executed_run import MISESTIMATED

if TYPE_CHECKING:
    from pyjoinopt.report.join_report import JoinReport

#: Sources of a row count that are no counts.
GUESSES = frozenset({"size", "default"})

#: How a reason begins, or one of several, -> what to do about it.
_ADVICE: tuple[tuple[str | tuple[str, ...], str], ...] = (
    ("the hint KEEP_JOIN_ORDER", "take the hint away, and these joins are ordered with the rest"),
    (
        "the session is switched off",
        "put /*+ OPTIMIZE_JOINS */ over these joins, too, or SET spark.pyjoinopt.enabled=true for all queries",
    ),
    ("it carries a join hint", "take the hint away, and these joins are ordered with the rest"),
    (
        "a Python UDF is not moved",
        "say it with Spark's own functions; or compute it as a column of one relation before the joins and keep it out "
        "of conditions and of filters between them",
    ),
    ("it refers to an outer query", "write the correlated subquery as a join, and it is ordered like one"),
    (
        "a subquery predicate stays",
        "write IN and EXISTS as a join of type left_semi, NOT EXISTS as left_anti, and they are ordered like any other",
    ),
    (
        "a nondeterministic expression",
        "its value would depend on the order of the rows: compute it before the joins, or above all of them",
    ),
    ("an aggregate or window function", "compute it in a projection or a HAVING of its own, below or above the joins"),
    ("Spark may compute early", "take the value out of the VARIANT with try_variant_get"),
    (
        "it tests a computed column that is costly",
        "compute that column before the joins, in the relation that it reads, or so that it cannot fail (TRY_CAST)",
    ),
    ("a column that is computed below it", "compute the column above all joins, or in the relation that it reads"),
    ("both sides of it have the same columns", "give one side columns of its own: select them under other names"),
    (
        ("no three relations", "no join is moved through it"),
        "join all that belongs together below it, or above it, where the query's meaning allows that",
    ),
    ("its condition would grow", "compute the columns that it reads before the joins, and keep them in a table"),
    ("the search for its order ran out of time", "raise the option search_seconds, or spark.pyjoinopt.searchSeconds"),
    ("the strategy", "take strategy='auto', which orders joins of every type and needs no ANALYZE"),
    ("all of its joins are inside cached data", "optimise before cache(): df.optimize_joins().cache()"),
    ("it is a streaming query", "order its joins by hand, or optimise inside foreachBatch: its frames are no streams"),
    ("it is a command", "optimise the query that it runs: df.optimize_joins(), then write"),
    ("it has unresolved parts", "use a DataFrame that Spark has analysed"),
    ("its result is cached", "optimise before cache(): df.optimize_joins().cache()"),
    ("a predicate that may fail", "use strategy='auto', which lets such predicates wait; or try_divide and TRY_CAST"),
)


def advice_on(reason: str) -> str:
    """What would change a refusal; empty if nothing is known to.

    >>> advice_on("it is a command, not a query")
    'optimise the query that it runs: df.optimize_joins(), then write'
    """
    return next((advice for start, advice in _ADVICE if reason.startswith(start)), "")


def better_estimates(report: JoinReport) -> list[str]:
    """A sentence for all relations whose rows were guessed, and one for what a run has shown to be wrong."""
    found = []
    guessed = {r.name: r.source for g in report.groups for r in g.relations if r.source in GUESSES}
    files = [name for name, source in guessed.items() if source == "size"]
    others = [name for name in guessed if name not in files]
    if files:
        names = ", ".join(files)
        found.append(f"Rows of {names} were guessed; run pyjoinopt.analyze(spark, {_listed(files)}) to count them.")
    if others:
        found.append(
            f"Rows of {', '.join(others)} were guessed, which Spark does not read from files: cache() and count() it "
            "before, or write it as Parquet, and its rows are known."
        )
    for run in report.runs:
        misled = run.misled()
        if misled is None or misled[1] < MISESTIMATED:
            continue
        relations = misled[0].relations
        if len(relations) == 1:
            found.append(f"Run pyjoinopt.analyze(spark, {_listed(relations)}) for a better estimate of {relations[0]}.")
        else:
            found.append(
                f"No statistics of single tables tell how many rows join {' with '.join(relations)}: set "
                "spark.pyjoinopt.feedback, or call report.observe() after a run, and the true count is remembered."
            )
    return list(dict.fromkeys(found))


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
