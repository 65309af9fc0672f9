"""`pyjoinopt.tune`: tries several plans of one query, and finds the fastest one.

Each plan runs once, stopped at `PATIENCE` times the best time so far. The row counts of each run are learned, so later
plans are made with better estimates. About a third of the runs is left to repeat the fastest ones in turns with the
default plan, and another plan than the default is called the best only if these runs agree (`_is_better`).
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyjoinopt.api import baselines
from pyjoinopt.api.candidate_plans import Candidate, CandidatePlans
from pyjoinopt.api.compare_rows import compare_rows
from pyjoinopt.bridge.rule_of_thread import OFF, rule_of_thread
from pyjoinopt.bridge.run_with_limit import run_with_limit
from pyjoinopt.bridge.shim import bridge_for, check_progress
from pyjoinopt.config import check_keywords
from pyjoinopt.errors import PyJoinOptError
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline import check_name
from pyjoinopt.feedback.listener import learn
from pyjoinopt.feedback.match_metrics import Observation
from pyjoinopt.feedback.query_shape import plain_table_name
from pyjoinopt.report.tuning import AS_WRITTEN, TriedPlan, Tuning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A run is stopped when it has taken so many times the best time so far, but not before `_LEAST` seconds.
PATIENCE, _LEAST = 1.3, 1.0
#: The share of the runs that are left to repeat the fastest plans, and how many plans these are beside the default.
_REPEATED, _FINALISTS = 1 / 3, 2
#: Another plan is better than the default one if its typical time is lower by this factor, and its best time is lower.
_BETTER = 1.05


def tune(
    df: DataFrame,
    runs: int = 15,
    seconds: float | None = None,
    *,
    pin: bool | str = False,
    check_rows: int = 1_000_000,
    progress: bool | None = None,
    **options: Any,
) -> Tuning:
    """Try several plans of a query, and find the fastest one. Runs the query many times.

    The plans are that of the query as written, the default plan, that by the row counts of earlier runs, those that
    would be the best if one of the least certain estimates was wrong, those of other estimates, cost models and hints,
    those without one of the rewrites, and orders that are near the best one. All of them are legal. A run that takes
    1.3 times as long as the fastest one is stopped. The rows of the best plan are compared with those as written. What
    was counted goes into the store of statistics, from which later plans of the same joins take it, in sessions, too.

    Args:
        df: a classic DataFrame as written.
        runs: how many runs are timed at most.
        seconds: when to stop trying, checked between the runs; None for no limit.
        pin: a name under which the best plan is pinned as a baseline; True for one by the names of the tables.
        check_rows: results with more rows than this are compared by their counts only.
        progress: whether to draw a progress bar; by default if stderr is a terminal and tqdm is installed.
        **options: options of `optimize_joins`, for all plans.

    Returns:
        The plans with their times. It has a picture in notebooks.

    Raises:
        ValueError, TypeError: an argument that is not allowed, or a DataFrame without a join group of three relations
            or more.
        PyJoinOptError: the DataFrame has no JVM, the query cannot be planned, or the baseline cannot be stored.
        KeyboardInterrupt: the running query is cancelled.

    Example:
        >>> pyjoinopt.tune(df, pin="daily")    # doctest: +SKIP
    """
    name = _checked(runs, seconds, pin, check_rows, options)
    check_progress(progress)
    bridge_for(df)
    store = baselines.store_of(df, options.get("store"))
    candidates = CandidatePlans(df, options)
    with rule_of_thread(df.sparkSession, OFF), _bar(runs, progress) as bar:
        first = candidates.default()
        if first.report.error is not None:
            raise PyJoinOptError(f"the query could not be planned: {first.report.error}")
        if not first.baseline.groups:
            raise ValueError("there is nothing to try: the query has no join group of three relations or more")
        trials = _Trials(runs, seconds, store, bar)
        run_with_limit(first.df, math.inf)  # warms caches and the compiler; meanwhile samples are read and keys proved
        default, written = candidates.default(), candidates.as_written()
        if default.report.error is not None:
            raise PyJoinOptError(f"the query could not be planned: {default.report.error}")
        ended = trials.explore(candidates, default, written)
        best = trials.best(default)
        same = compare_rows(df, best.df, check_rows)[1] if best.key != written.key else True
    pinned = ""
    if pin and same is not False:
        pinned = name or _name_of(best)
        baselines.put(replace(best.baseline, name=pinned), store)
    return trials.result(best, default, same, pinned, ended)


@dataclass
class _Trial:
    candidate: Candidate
    names: list[str]
    seconds: list[float] = field(default_factory=list)
    stopped: float | None = None
    runs: int = 0

    @property
    def typical(self) -> float:
        return statistics.median(self.seconds) if self.seconds else math.inf


class _Trials:
    """The plans that were tried, and what their runs have shown."""

    def __init__(self, runs: int, seconds: float | None, store: Store, bar: Any) -> None:
        self._most, self._store, self._bar = runs, store, bar
        self._until = math.inf if seconds is None else perf_counter() + seconds
        self._trials: dict[tuple[Any, ...], _Trial] = {}
        self._seen: dict[tuple[str, ...], Observation] = {}
        self.runs = 0

    def explore(self, candidates: CandidatePlans, default: Candidate, written: Candidate) -> str:
        """Try plans, then repeat the fastest ones; the reason why no more plans were tried."""
        repeated = min(max(2, round(self._most * _REPEATED)), self._most - 2)
        ended = "all plans that differ were tried"
        for candidate in self._planned(candidates, default, written):
            if self._exhausted(self._most - repeated):
                ended = "the time is over" if perf_counter() >= self._until else "the runs are used up"
                break
            self._try(candidate)
        # One finalist alone would have nothing to be compared with.
        while not self._exhausted(self._most) and len(finalists := self._finalists(default)) > 1:
            self._run(min(finalists, key=lambda trial: trial.runs))
        return ended

    def best(self, default: Candidate) -> Candidate:
        """The fastest plan; the default one if no other is better beyond the noise."""
        ours = self._trials[default.key]
        fastest = min(self._trials.values(), key=lambda trial: trial.typical)
        return fastest.candidate if _is_better(fastest, ours) else ours.candidate

    def result(self, best: Candidate, default: Candidate, same: bool | None, pinned: str, ended: str) -> Tuning:
        """What is returned to the user."""
        ordered = sorted(self._trials.values(), key=lambda trial: trial.typical)
        plans = {id(trial): _tried(trial) for trial in ordered}
        learned = sorted(self._seen.values(), key=lambda seen: -seen.q_error)
        chosen = plans[id(self._trials[best.key])]
        return Tuning(tuple(plans.values()), chosen, self.runs, tuple(learned), default.report, same, pinned, ended)

    def _planned(self, candidates: CandidatePlans, default: Candidate, written: Candidate) -> Iterator[Candidate]:
        """The candidates; each is planned when the runs before it have ended."""
        yield from (default, written)
        for candidate in candidates.learned():
            known = candidate.key in self._trials
            yield candidate
            if known:
                break
        yield from candidates.if_wrong(self._is_tried)
        yield from candidates.varied()
        yield from candidates.if_wrong(self._is_tried)
        tried = set()
        while (best := min(self._trials.values(), key=lambda trial: trial.typical).candidate).key not in tried:
            tried.add(best.key)
            yield from candidates.near(best)

    def _is_tried(self, candidate: Candidate) -> bool:
        return candidate.key in self._trials

    def _try(self, candidate: Candidate) -> None:
        known = self._trials.get(candidate.key)
        if known is not None:
            known.names.append(candidate.name)
            return
        self._trials[candidate.key] = trial = _Trial(candidate, [candidate.name])
        self._run(trial)

    def _run(self, trial: _Trial) -> None:
        fastest = min((second for each in self._trials.values() for second in each.seconds), default=math.inf)
        limit = max(PATIENCE * fastest, _LEAST)
        done = run_with_limit(trial.candidate.df, limit)
        self.runs += 1
        trial.runs += 1
        self._bar.update()
        if done.cancelled:
            trial.stopped = done.seconds
            return
        trial.seconds.append(done.seconds + trial.candidate.report.seconds)
        self._learn(trial.candidate, done.operators)

    def _learn(self, candidate: Candidate, operators: tuple[dict[str, Any], ...]) -> None:
        for watch in candidate.report._watches:
            for seen in learn(watch, operators, self._store):
                self._seen.setdefault(seen.relations, seen)

    def _finalists(self, default: Candidate) -> list[_Trial]:
        """The fastest plans that came to their end, and the default one."""
        ended = [trial for trial in self._trials.values() if trial.seconds and trial.stopped is None]
        fast = sorted(ended, key=lambda trial: trial.typical)[:_FINALISTS]
        ours = self._trials[default.key]
        return fast if ours in fast else [*fast, ours]

    def _exhausted(self, most: int) -> bool:
        return self.runs >= most or (perf_counter() >= self._until and self.runs > 0)


def _is_better(trial: _Trial, default: _Trial) -> bool:
    if not trial.seconds or trial is default:
        return False
    if not default.seconds:
        return True
    return trial.typical * _BETTER <= default.typical and min(trial.seconds) < min(default.seconds)


def _tried(trial: _Trial) -> TriedPlan:
    candidate = trial.candidate
    return TriedPlan(
        ", ".join(dict.fromkeys(trial.names)),
        candidate.order,
        tuple(trial.seconds),
        trial.stopped,
        candidate.report.cost_before if candidate.name == AS_WRITTEN else candidate.report.cost_after,
        candidate.baseline,
    )


def _checked(runs: Any, seconds: Any, pin: Any, check_rows: Any, options: dict[str, Any]) -> str:
    """The name for the baseline; empty if it has to be made."""
    for argument, value, least in (("runs", runs, 3), ("check_rows", check_rows, 0)):
        if type(value) is not int:
            raise TypeError(f"{argument} is {value!r} ({type(value).__name__}), but must be a whole number")
        if value < least:
            raise ValueError(f"{argument} is {value!r}, but must be at least {least}")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float))):
        raise TypeError(f"seconds is {seconds!r} ({type(seconds).__name__}), but must be a number or None")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds is {seconds!r}, but must be more than 0")
    check_keywords(options)
    if options.get("strategy", "auto") != "auto":
        raise ValueError(f"strategy is {options['strategy']!r}, but must be 'auto': the other ones make one plan only")
    return "" if isinstance(pin, bool) else check_name(pin)


def _name_of(best: Candidate) -> str:
    tables = dict.fromkeys(plain_table_name(t) for group in best.baseline.groups for t in group.tables)
    return "-".join(name.rpartition(".")[2] for name in tables if " " not in name)[:100].strip("-.") or "tuned"


def _bar(runs: int, wanted: bool | None) -> Any:
    if wanted is None:
        wanted = sys.stderr.isatty() and find_spec("tqdm") is not None
    if not wanted:
        return _NoBar()
    from tqdm import tqdm  # type: ignore[import-untyped]

    return tqdm(total=runs, desc="tune", unit="run", leave=False)


class _NoBar:
    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to remove."""

    def update(self) -> None:
        """Nothing to draw."""
