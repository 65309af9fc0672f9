"""What recurring queries did: `pyjoinopt.queries()`, and `pyjoinopt.query_history()` of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.shim import session_setting
from pyjoinopt.config import PREFIX, resolve
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.query_rows import LETTERS, OF_PLANS, OF_RUNS, plan_name, rows_of_plans, rows_of_runs, state
from pyjoinopt.feedback.query_store import QueryStore, StoredQuery
from pyjoinopt.report.query_history import HistoryRun, QueryHistory

if TYPE_CHECKING:
    import pandas


def queries(store: str | None = None, *, runs: bool = False) -> pandas.DataFrame:
    """What the recurring queries of sessions did, as recorded while `feedback` was on.

    A query is recorded without its constants, so that `day = '2026-01-01'` and `day = '2026-01-02'` are one query.
    Sessions record queries with joins to order; calls of `optimize_joins` record none.

    Args:
        store: the path of the store, as in the option `store`; None for that of the active session, or the user's own.
        runs: True for one row a run, instead of one a query and plan.

    Returns:
        A row for each query and plan, the query that ran last at the end: its number (`query`), the tables that it
        reads, `plan` ("as written", or a number) and what that plan changed, the number of runs, their seconds
        (geometric mean, fastest and slowest), the seconds of planning in them, the seconds of all tasks together, the
        skew (by how many seconds the longest task of a stage exceeds the mean of the others), rows read and bytes
        spilled (all of the last run), the runs that ran out of memory, when the first and the last kept run ended, and
        `state`: "in use", "revoked" with the reason if the query as written takes less time, or empty for a plan of
        earlier runs. Up to 16 runs of each plan are kept.

    Raises:
        TypeError: `store` is no text.

    Example:
        >>> pyjoinopt.queries()                    # doctest: +SKIP
    """
    import pandas

    known = _known(store)
    if runs:
        return _typed(pandas.DataFrame(rows_of_runs(known), columns=list(OF_RUNS)), "ended")
    table = _typed(pandas.DataFrame(rows_of_plans(known), columns=list(OF_PLANS)), "first", "last")
    return table.astype(dict.fromkeys(("seconds", "fastest", "slowest"), "float64"))


def query_history(query: str, store: str | None = None) -> QueryHistory:
    """The runs of one recurring query in chronological order, with a picture that marks changes of its plan.

    Args:
        query: its number, as in the column `query` of `queries()`, or the first letters of it.
        store: see `queries`.

    Raises:
        TypeError: an argument is no text.
        KeyError: there is no query of this number, or several begin with these letters.

    Example:
        >>> for number in pyjoinopt.queries()["query"].unique():    # doctest: +SKIP
        ...     print(pyjoinopt.query_history(number))
    """
    if not isinstance(query, str):
        raise TypeError(f"query is {query!r} ({type(query).__name__}), but must be a number as in pyjoinopt.queries()")
    known = _known(store)
    found = [each for each in known if query and each.shape.startswith(query)]
    shapes = dict.fromkeys(each.shape[:LETTERS] for each in found or known)
    if len({each.shape for each in found}) != 1:
        which = "several queries begin with" if found else "there is no query"
        raise KeyError(f"{which} {query!r}; there are {', '.join(shapes) or 'none'}")
    runs = sorted((run for each in found for run in each.runs), key=lambda run: run.ended)
    return QueryHistory(
        found[0].shape[:LETTERS],
        tuple(sorted({table for each in found for table in each.tables})),
        tuple(HistoryRun(run.ended, run.seconds, plan_name(run.plan), run.changes, run.failed) for run in runs),
        {plan_name(run.plan): state(each, run.plan) for each in found for run in each.runs},
    )


def _known(store: str | None) -> tuple[StoredQuery, ...]:
    given: dict[str, Any] = {} if store is None else {"store": store}
    opened = open_store(resolve(given, session_setting(PREFIX + "store")).store)
    return QueryStore(opened).queries() if opened is not None and opened.path.exists() else ()


def _typed(table: pandas.DataFrame, *moments: str) -> pandas.DataFrame:
    import pandas

    for name in moments:
        table[name] = pandas.to_datetime(table[name].astype("float64"), unit="s", utc=True)
    return table
