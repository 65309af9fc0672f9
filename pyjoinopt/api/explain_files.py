"""``python -m pyjoinopt explain``: what would be done to the joins of the queries in SQL files.

Queries are analysed and planned, and none is run. Of other statements only those that prepare the session are run: SET,
USE, and CREATE TEMPORARY VIEW. All files share one session, in the order in which they are given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pyjoinopt.api.dataframe import join_report
from pyjoinopt.bridge.trial_session import local_session
from pyjoinopt.errors import PyJoinOptError
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.util.sql_statements import statements

#: States of a statement.
_CHANGED, _SAME, _RUN, _LEFT, _FAILED = "changed", "as written", "run", "not run", "failed"
#: Statements that change the session only.
_PREPARES = re.compile(r"(?:SET|USE)\b|CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\b", re.IGNORECASE)
_COMMENTS = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
_COMMAND = "org.apache.spark.sql.catalyst.plans.logical.Command"
#: Operators of statements that are no queries, beside Spark's commands.
_NO_QUERY = re.compile(r"Command|Statement|Compound")


@dataclass(frozen=True)
class ExplainedStatement:
    """One statement of a file.

    Attributes:
        file: its path, as it was given.
        line: of the file, from 1.
        state: "changed", "as written", "run" (it prepares the session), "not run" (another command), or "failed".
        about: what would be done, or the reason.
        report: of a query.
    """

    file: str
    line: int
    state: str
    about: str
    report: JoinReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        report = None if self.report is None else self.report.to_dict()
        return {"file": self.file, "line": self.line, "state": self.state, "about": self.about, "report": report}


def explain(
    paths: Sequence[Path], out: TextIO, views: Path | None = None, conf: Sequence[str] = (),
    json_file: Path | None = None, reports: bool = False, fail_on: str = "error",
) -> int:  # fmt: skip
    """Print a line for each statement, and return the exit code.

    Args:
        paths: SQL files, and folders of files `*.sql`.
        out: where the lines are written.
        views: a folder of Parquet files or folders; each becomes a temporary view of its name.
        conf: settings of the session, as KEY=VALUE.
        json_file: where all reports are written as JSON.
        reports: whether to print the reports, too.
        fail_on: "changed" if a query that would be changed is a failure.

    Returns:
        0, or 1 if a statement failed.

    Raises:
        PyJoinOptError: there is no file, a setting has no value, or there is no Spark.
    """
    files, tables = list(_files(paths)), _views(views)
    settings = dict(_setting(each) for each in conf)
    session = local_session("pyjoinopt explain", settings, settings.get("spark.master", "local[*]"))
    found = []
    try:
        for path in tables:
            session.read.parquet(str(path)).createOrReplaceTempView(path.stem)
        for statement in explained(session, files):
            found.append(statement)
            print(f"{statement.file}:{statement.line}  {statement.state}: {statement.about}", file=out, flush=True)
            if reports and statement.report is not None:
                print(statement.report.to_text(), file=out, flush=True)
    finally:
        session.stop()
    counts = {state: sum(each.state == state for each in found) for state in (_CHANGED, _SAME, _FAILED)}
    print(", ".join(f"{number} {state}" for state, number in counts.items()), file=out)
    if json_file is not None:
        json_file.write_text(json.dumps([each.to_dict() for each in found], indent=2) + "\n", encoding="utf-8")
    return int(counts[_FAILED] > 0 or (fail_on == "changed" and counts[_CHANGED] > 0))


def explained(session: Any, files: Iterable[Path]) -> Iterator[ExplainedStatement]:
    """The statements of files, in a session.

    Args:
        session: classic.
        files: that are read as UTF-8.
    """
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            yield ExplainedStatement(str(file), 1, _FAILED, f"it cannot be read: {error}")
            continue
        for line, statement in statements(text):
            try:
                state, about, report = _explained(session, statement)
            except Exception as error:  # Spark's own errors, of which there are many classes
                state, about, report = _FAILED, _first_line(error), None
            yield ExplainedStatement(str(file), line, state, about, report)


def _explained(session: Any, text: str) -> tuple[str, str, JoinReport | None]:
    if not _is_query(session, text):
        if not _PREPARES.match(_COMMENTS.sub(" ", text).lstrip()):
            return _LEFT, "it is a command", None
        session.sql(text)
        return _RUN, "it prepares the session", None
    report = join_report(session.sql(text), mode="on", guard="off")
    if report.error is not None:
        return _FAILED, report.error, report
    return (_CHANGED if report.changed else _SAME), _summary(report), report


def _is_query(session: Any, text: str) -> bool:
    """Whether a statement is a query. It is parsed and analysed for that; Spark would run a command at once."""
    state, jvm = session._jsparkSession.sessionState(), session._jvm
    parsed = state.sqlParser().parsePlan(text)
    if _has_command(jvm, parsed):
        return False
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return not _has_command(jvm, state.executePlan(parsed, skip).analyzed())


def _has_command(jvm: Any, plan: Any) -> bool:
    command = jvm.java.lang.Class.forName(_COMMAND)
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if command.isInstance(node) or _NO_QUERY.search(node.getClass().getSimpleName()):
            return True
        children = node.children()
        waiting.extend(children.apply(i) for i in range(children.size()))
    return False


def _summary(report: JoinReport) -> str:
    """What a report has, in one line."""
    ordered = [group for group in report.groups if group.changed]
    parts = [f"{group.order_before} -> {group.order_after}" for group in ordered]
    avoided = len(report.eliminated_outer_joins) + len(report.spared_joins)
    added = len(report.eager_aggregations) + len(report.prefilters)
    for number, name in ((avoided, "avoided join"), (added, "early reduction"), (len(report.hints), "hint")):
        if number:
            parts.append(f"{number} {name}{'s' * (number > 1)}")
    if parts:
        cost = report.cost_before / report.cost_after if report.cost_after > 0 else 1.0
        return "; ".join(parts) + (f"; {cost:.1f} times cheaper by the estimates" if cost > 1.05 else "")
    if report.groups:
        return "no better order"
    return report.refusals[0].reason if report.refusals else "no joins to order"


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.sql"))
            if not inside:
                raise PyJoinOptError(f"the folder {path} has no files *.sql")
            yield from inside
        elif path.exists():
            yield path
        else:
            raise PyJoinOptError(f"{path} does not exist: give SQL files, or folders of files *.sql")


def _views(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise PyJoinOptError(f"{folder} is no folder: --views needs one of Parquet files, each of which becomes a view")
    inside = sorted(folder.iterdir())
    return [path for path in inside if path.suffix == ".parquet" or (path.is_dir() and not path.name.startswith("."))]


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise PyJoinOptError(f"--conf is {text!r}, but must be KEY=VALUE, such as spark.sql.ansi.enabled=false")
    return key.strip(), value


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
