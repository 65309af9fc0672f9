"""`pyjoinopt.compare`: runs a query as written and optimised, in turns, and compares times and rows."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyjoinopt.api.compare_rows import compare_rows
from pyjoinopt.api.dataframe import run_to_compare
from pyjoinopt.bridge.rule_of_thread import OFF, WRITTEN, rule_of_thread
from pyjoinopt.bridge.shim import bridge_for, check_progress
from pyjoinopt.report.join_report import JoinReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Results with more rows are not recorded: a run that discards its rows is not compared with one that reads them.
_RECORDED = 10_000


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes:
        report: the report of the optimisation.
        before, after: seconds of each run, including Spark's planning; `after` also includes `optimize_joins()`.
        rows: number of rows of the result.
        same: whether both results have equal rows; None if they were not compared.
    """

    report: JoinReport
    before: tuple[float, ...]
    after: tuple[float, ...]
    rows: int
    same: bool | None

    @property
    def speed_up(self) -> float:
        """Median time as written divided by median time optimised.

        >>> Comparison(JoinReport(), (2.0, 3.0, 4.0), (1.0, 1.5, 2.0), 7, True).speed_up
        2.0
        """
        return statistics.median(self.before) / statistics.median(self.after)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of a time as written to a time optimised, over all pairs of runs.

        >>> Comparison(JoinReport(), (2.0, 3.0), (1.0, 2.0), 7, True).spread
        (1.0, 3.0)
        """
        return min(self.before) / max(self.after), max(self.before) / min(self.after)

    def to_text(self) -> str:
        """Times, speed-up and result as text."""
        low, high = self.spread
        if not self.report.changed:
            verdict = "nothing was changed, so the difference is noise"
        elif low > 1.0:
            verdict = "faster in every pairing of runs"
        elif high < 1.0:
            verdict = "slower in every pairing of runs"
        else:
            verdict = "within the noise"
        rows = {True: "the same rows", False: "OTHER ROWS: please report this", None: "rows were not compared"}
        return "\n".join((
            f"as written {_times(self.before)}",
            f"optimised  {_times(self.after)}",
            f"speed-up   {self.speed_up:.2f}x (between {low:.2f}x and {high:.2f}x): {verdict}",
            f"result     {self.rows:,} rows, {rows[self.same]}",
        ))  # fmt: skip

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text()}


def compare(
    df: DataFrame, repeat: int = 3, check_rows: int = 1_000_000, progress: bool | None = None, **options: Any
) -> Comparison:
    """Run a query as written and optimised, in turns, and compare times and rows.

    Each run is a new query that reads its result to the last row and discards it. Before the timed runs both plans run
    once, to warm caches and the JVM's compiler, and to compare their rows.

    In a session that optimises its queries both plans run as they are, too. If it also records runs (`feedback`), those
    as written are recorded, so that its guard can compare them with later runs of its own plan. In other sessions the
    option `feedback` records both, for the guard of later calls. Queries with more than 10,000 rows are not recorded,
    because these runs discard their rows.

    Args:
        df: a classic DataFrame.
        repeat: number of timed runs of each plan.
        check_rows: results with more rows than this are compared by their counts only.
        progress: whether to draw a progress bar; by default if stderr is a terminal and tqdm is installed.
        **options: as of `optimize_joins`.

    Raises:
        ValueError, TypeError: `repeat` or `check_rows` out of range, an unknown option, or a value that is not allowed.

    Example:
        >>> print(pyjoinopt.compare(df))    # doctest: +SKIP
    """
    for name, value, least in (("repeat", repeat, 1), ("check_rows", check_rows, 0)):
        if type(value) is not int:
            raise TypeError(f"{name} is {value!r} ({type(value).__name__}), but must be a whole number")
        if value < least:
            raise ValueError(f"{name} is {value!r}, but must be at least {least}")
    check_progress(progress)
    shim, session = bridge_for(df), df.sparkSession
    options = {"mode": "on", "guard": "off", **options}
    fast, report = run_to_compare(df, options)
    before: list[float] = []
    after: list[float] = []
    rows, same = compare_rows(df, fast, check_rows)
    is_recorded = rows <= _RECORDED
    turns = [turn for number in range(repeat) for turn in ((before, after), (after, before))[number % 2]]
    for turn in _with_progress(turns, progress):
        frame, planned = (df, None) if turn is before else run_to_compare(df, options)
        with rule_of_thread(session, WRITTEN if turn is before and is_recorded else OFF):
            done = json.loads(shim.run(frame._jdf))
        turn.append(done["seconds"] - done["ours"] + (0.0 if planned is None else planned.seconds))
        run = report._run and report._run.as_written() if planned is None else planned._run
        if run is not None and is_recorded:
            run.record(done, warm=True)
    report.complete()
    return Comparison(report, tuple(before), tuple(after), rows, same)


def _with_progress(turns: Sequence[list[float]], wanted: bool | None) -> Iterable[list[float]]:
    if wanted is None:
        wanted = sys.stderr.isatty() and find_spec("tqdm") is not None
    if not wanted:
        return turns
    from tqdm import tqdm  # type: ignore[import-untyped]

    return tqdm(turns, desc="compare", unit="run", leave=False)


def _times(seconds: Sequence[float]) -> str:
    listed = ", ".join(f"{second:.2f}" for second in seconds)
    return f"{statistics.median(seconds):8.2f} s  ({listed})"
