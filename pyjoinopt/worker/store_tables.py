"""Answers requests for what the store has: the rows of the SQL functions `joinopt_queries()` and `joinopt_baselines()`.

The JVM has no SQLite, so a worker reads the file.
"""

from __future__ import annotations

import json
from typing import Any

from pyjoinopt.config import PREFIX, resolve
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.baseline_rows import baseline_rows
from pyjoinopt.feedback.baseline_store import BaselineStore
from pyjoinopt.feedback.query_rows import rows_of_plans
from pyjoinopt.feedback.query_store import QueryStore

#: The operations, as named in requests.
QUERIES, BASELINES = "queries", "baselines"


def store_table(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request: its rows as objects, or the problem. Never raises."""
    try:
        return {"rows": _rows(request["op"], request.get("store")), "problem": None}
    except Exception as error:
        return {"rows": [], "problem": f"{type(error).__name__}: {error}"}


def _rows(operation: str, path: str | None) -> list[dict[str, Any]]:
    opened = open_store(resolve({}, {} if path is None else {PREFIX + "store": path}).store)
    if opened is None or not opened.path.exists():
        return []
    if operation == QUERIES:
        return rows_of_plans(QueryStore(opened).queries())
    return [{**row, "options": json.dumps(row["options"])} for row in baseline_rows(BaselineStore(opened))]
