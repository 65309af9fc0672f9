"""The result of `pyjoinopt.advise`, as data, text, HTML and table."""

from __future__ import annotations

import json
from typing import Any

from pyjoinopt.advice.render_html import render_element, render_page
from pyjoinopt.advice.render_text import render_text
from pyjoinopt.advice.workload import AdviceData


class Advice(AdviceData):
    """What the event logs of applications show.

    Attributes:
        queries: those with findings, by the task hours that could be won.
        logs: number of logs that were read.
        applications: number of applications with SQL executions.
        executions: SQL executions that ended without an error, and were examined.
        unfinished: those that failed, or whose end is not in a log.
        task_hours: hours of all tasks of the examined executions.
        hours: task hours that could be won, of all queries with findings.
        found: number of queries with findings; `queries` has fewer if `top` was given.
        notes: what could not be read.
    """

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each finding, in the order of the ranking.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        columns = (
            "rank", "kind", "where", "text", "hours", "seconds", "certainty", "surer", "runs", "task_hours", "shape",
            "description", "application", "execution",
        )  # fmt: skip
        rows = [
            (
                rank, f.kind, f.where, f.text, f.hours, f.seconds, f.certainty, f.surer, query.runs, query.task_hours,
                query.shape, query.description, query.application, query.execution,
            )
            for rank, query in enumerate(self.queries, 1)
            for f in query.findings
        ]  # fmt: skip
        return pandas.DataFrame(rows, columns=list(columns))

    def to_text(self, width: int = 110) -> str:
        """The ranking as a table, and the findings of each query.

        Args:
            width: of a line in characters, at least 60.
        """
        return render_text(self, width)

    def to_html(self) -> str:
        """The same as one HTML document, without scripts, that loads nothing and has a light and a dark form."""
        return render_page(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return render_element(self)
