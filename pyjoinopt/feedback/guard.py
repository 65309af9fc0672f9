"""The guard: a plan of ours that turns out slower than the query as written is not used again.

    run 1, 2   as written                     3.1 s, 3.0 s
    run 3, 4   ((a ⋈ b) ⋈ c)                  7.9 s, 8.2 s     2.6 times as long: revoked
    run 5      as written, with the reason in the report and in the log

Only like runs are compared: under the same settings on the same cluster, over tables of about the same size, both the
first ones of their drivers or both later ones (a later run that is slower than first runs counts, too), with the same
constants where there are enough of them, and none older than `OLDEST`. So a plan that was revoked is tried again when
its tables have grown, when the settings have changed, when the statistics give another plan, and after a month. A plan
that ran out of memory where the written one did not is revoked at once.

`observe` compares what has run anyway: earlier runs with `strategy = none`, or with another plan. `explore` runs a
query as written from time to time, after 2, 4, 8 and 16 runs of our plan, at most `MOST_EXPLORED` times, and not once
it is known which one is slower. So what it can lose for a query is bounded: four times the difference between the
written plan and ours.

Sources: SQL Server's automatic plan correction (FORCE_LAST_GOOD_PLAN); explorations at doubling intervals are those of
explore-then-commit with the doubling trick (Lattimore and Szepesvári, Bandit Algorithms, chapter 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyjoinopt.feedback.compare_runs import LEAST, geometric_mean, is_slower, times_as_long
from pyjoinopt.feedback.query_store import AS_WRITTEN, Run

#: The values of the option `guard`.
OBSERVE, EXPLORE, OFF = "observe", "explore", "off"
#: Runs as written that exploring makes at most, after so many runs of our plan.
MOST_EXPLORED = 4
EXPLORE_AFTER = (2, 4, 8, 16)
#: Runs of each plan, if their constants differ: one constant may give many rows, another one few.
LEAST_MIXED = 4
#: Runs whose input differs by more than this factor are not compared.
SAME_SIZE = 1.5
#: Runs that are older, in seconds, count no more.
OLDEST = 30 * 86400.0
#: What `Run.failed` says of one that ran out of memory.
MEMORY = "memory"


class LikeRuns:
    """The runs of a query that are like the one that is planned now.

    Args:
        runs: of one shape under the same conditions, the oldest first.
        size: bytes that the query reads now; 0 if unknown.
        cores: that Spark has now; 0 if unknown.
        now: seconds since the epoch.
    """

    def __init__(self, runs: Iterable[Run], size: float, cores: float, now: float) -> None:
        recent = [run for run in runs if now - run.ended <= OLDEST and _same_size(run.cores, cores)]
        if size > 0:
            self._runs = [run for run in recent if _same_size(run.bytes, size)]
        else:  # then tables have grown if more rows are read; a plan that reads far fewer is compared with none
            rows = next((run.rows for run in reversed(recent) if not run.failed), 0.0)
            self._runs = [run for run in recent if _same_size(run.rows, rows)]

    @property
    def last(self) -> str:
        """The plan of the latest run that was not one as written; `AS_WRITTEN` if there is none."""
        return next((run.plan for run in reversed(self._runs) if run.plan != AS_WRITTEN), AS_WRITTEN)

    def why_slower(self, plan: str, other: str = AS_WRITTEN) -> str | None:
        """The reason not to use a plan if another one is there; None if it is not known to be slower."""
        if plan in (other, AS_WRITTEN):
            return None
        mine, theirs = self._of(plan), self._of(other)
        name = "as written" if other == AS_WRITTEN else "with another plan"
        if theirs and any(run.failed == MEMORY for run in mine) and not any(run.failed for run in theirs):
            return f"this plan ran out of memory, and {name} the query did not"
        for ours, others, least, decides in _like_pairs(_ended(mine), _ended(theirs)):
            if min(len(ours), len(others)) >= least:  # the most alike runs decide
                if is_slower(ours, others):
                    both = f"{_counted(ours)}, {_counted(others)} {name}"
                    return f"this plan took {times_as_long(ours, others):.2f} times as long ({both})"
                if decides:
                    return None
        return None

    def is_slower_than_any(self, plan: str) -> bool:
        """Whether some other plan takes less time."""
        return any(self.why_slower(plan, other) is not None for other in {run.plan for run in self._runs})

    def is_worth_exploring(self, explored: int) -> bool:
        """Whether the query should run as written now: it is still unknown which plan is slower.

        Args:
            explored: how often it was done, whatever came of it.
        """
        ours = [run.seconds for run in _ended(self._of(self.last))]
        written = [run.seconds for run in _ended(self._of(AS_WRITTEN))]
        done = max(explored, len(self._of(AS_WRITTEN)))
        if self.last == AS_WRITTEN or done >= MOST_EXPLORED or len(ours) < EXPLORE_AFTER[done]:
            return False
        failed = any(run.failed for run in self._of(AS_WRITTEN))
        return not failed and not is_slower(written, ours) and self.why_slower(self.last) is None

    def _of(self, plan: str) -> list[Run]:
        return [run for run in self._runs if run.plan == plan]


def _ended(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if not run.failed]


def _like_pairs(plan: Sequence[Run], other: Sequence[Run]) -> Iterator[tuple[list[float], list[float], int, bool]]:
    """Seconds of like runs of both plans, the most alike first; how many of each there must be; whether these decide.

    Later runs of a plan are also compared with all runs of the other one: its first runs take longer, so a plan that is
    slower than these is slower, but a plan that is not may still be.
    """
    for warm in (True, False):  # first runs vary more
        yield from ((*pair, LEAST, True) for pair in _same_constants(_of_kind(plan, warm), _of_kind(other, warm)))
    yield from ((*pair, LEAST, False) for pair in _same_constants(_of_kind(plan, True), other))
    for warm in (True, False):
        yield _seconds(_of_kind(plan, warm)), _seconds(_of_kind(other, warm)), LEAST_MIXED, True


def _same_constants(plan: Sequence[Run], other: Sequence[Run]) -> list[tuple[list[float], list[float]]]:
    """Seconds of runs with the same constants, those with the most runs first."""
    instances = sorted({run.instance for run in plan} & {run.instance for run in other})
    pairs = [(_seconds(plan, each), _seconds(other, each)) for each in instances]
    return sorted(pairs, key=lambda pair: -min(map(len, pair)))


def _of_kind(runs: Sequence[Run], warm: bool) -> list[Run]:
    """The first ones of their drivers, or the later ones."""
    return [run for run in runs if run.warm == warm]


def _seconds(runs: Sequence[Run], instance: str | None = None) -> list[float]:
    return [run.seconds for run in runs if instance in (None, run.instance)]


def _same_size(one: float, other: float) -> bool:
    """True for sizes of which one is unknown, too."""
    low, high = sorted((one, other))
    return low <= 0 or high <= SAME_SIZE * low


def _counted(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} runs of {geometric_mean(seconds):.3g} s"
