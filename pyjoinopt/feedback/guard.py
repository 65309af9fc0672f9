"""The guard: a plan of ours that turns out slower than the query as written is not used again.

    run 1, 2   as written                     3.1 s, 3.0 s
    run 3, 4   ((a ⋈ b) ⋈ c)                  7.9 s, 8.2 s     2.6 times as long: revoked
    run 5      as written, with the reason in the report and in the log

Only like runs are compared: under the same settings on the same cluster, over tables of about the same size, both the
first ones of their processes or both later ones, with the same constants where there are enough of them, and none
older than `OLDEST`. So a plan that was revoked is tried again when its tables have grown, when the settings have
changed, when the statistics give another plan, and after a month. A plan that ran out of memory where the written one
did not is revoked at once.

`observe` compares what has run anyway: earlier runs with `strategy = none`, or with another plan. `explore` runs a
query as written from time to time, after 2, 4, 8 and 16 runs of our plan, at most `MOST_EXPLORED` times, and not once
it is known which one is slower. So what it can lose for a query is bounded: four times the difference between the
written plan and ours.

Sources: SQL Server's automatic plan correction (FORCE_LAST_GOOD_PLAN); the optimistic doubling of explorations is the
phased elimination of two-armed bandits (Lattimore and Szepesvári, Bandit Algorithms, chapter 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyjoinopt.feedback.compare_runs import LEAST, geometric_mean, is_slower, times_as_long
from pyjoinopt.feedback.query_store import AS_WRITTEN, Outlook, Run

#: The values of the option `guard`.
OBSERVE, EXPLORE, OFF = "observe", "explore", "off"
#: Runs as written that exploring makes at most, after so many runs of our plan.
MOST_EXPLORED = 4
EXPLORE_AFTER = (2, 4, 8, 16)
#: Runs whose input differs by more than this factor are not compared.
SAME_SIZE = 1.5
#: Runs that are older, in seconds, count no more.
OLDEST = 30 * 86400.0
#: What `Run.failed` says of one that ran out of memory.
MEMORY = "memory"


def outlook_after(runs: Sequence[Run]) -> Outlook:
    """What is to be done with a query, by its runs.

    Args:
        runs: of one shape under the same conditions, the oldest first, at least one.
    """
    latest = runs[-1]
    like = [run for run in runs if _comparable(run, latest)]
    plans = list(dict.fromkeys(run.plan for run in like))
    slower: dict[str, dict[str, str]] = {}
    for plan in plans:
        for other in plans:
            reason = why_slower(like, plan, other) if plan not in (other, AS_WRITTEN) else None
            if reason is not None:
                slower.setdefault(plan, {})[other] = reason
    last = next((run.plan for run in reversed(runs) if run.plan != AS_WRITTEN), AS_WRITTEN)
    return Outlook(slower, _is_worth_exploring(like, last, slower), last, bytes=latest.bytes)


def why_slower(runs: Sequence[Run], plan: str, other: str) -> str | None:
    """The reason not to use a plan if another one is there; None if it is not known to be slower.

    Args:
        runs: comparable ones of one query.
        plan: to be judged.
        other: to compare it with.
    """
    of = {one: [run for run in runs if run.plan == one] for one in (plan, other)}
    name = "as written" if other == AS_WRITTEN else "with another plan"
    ended = [run for run in of[other] if not run.failed]
    if ended and any(run.failed == MEMORY for run in of[plan]) and not any(run.failed for run in of[other]):
        return f"this plan ran out of memory, and {name} the query did not"
    for mine, theirs in _like_pairs(of[plan], ended):
        if is_slower(mine, theirs):
            both = f"{_counted(mine)}, {_counted(theirs)} {name}"
            return f"this plan took {times_as_long(mine, theirs):.2f} times as long ({both})"
        if min(len(mine), len(theirs)) >= LEAST:
            return None  # the more alike runs decide
    return None


def fits(outlook: Outlook, size: float, incomplete: bool = False) -> bool:
    """Whether what was decided holds for a query that reads so many bytes.

    Args:
        outlook: what was decided.
        size: bytes that the query reads.
        incomplete: whether these are the bytes of a part of it only, which say nothing.
    """
    return incomplete or _same_size(outlook.bytes, size)


def _like_pairs(plan: Sequence[Run], other: Sequence[Run]) -> Iterable[tuple[list[float], list[float]]]:
    """Seconds of runs of both plans that are alike, the most alike first."""
    both: tuple[Callable[[Run], object], ...] = (lambda r: (r.warm, r.instance), lambda r: r.warm)
    for kind in both:
        kinds = sorted({kind(run) for run in plan} & {kind(run) for run in other}, key=str, reverse=True)
        found = [([r.seconds for r in one if kind(r) == k and not r.failed] for one in (plan, other)) for k in kinds]
        yield from sorted(((a, b) for a, b in found), key=lambda pair: -min(len(pair[0]), len(pair[1])))


def _comparable(run: Run, latest: Run) -> bool:
    young = latest.ended - run.ended <= OLDEST
    return young and _same_size(run.bytes, latest.bytes) and _same_size(run.cores, latest.cores)


def _same_size(one: float, other: float) -> bool:
    """True for sizes of which one is unknown, too."""
    low, high = sorted((one, other))
    return low <= 0 or high <= SAME_SIZE * low


def _is_worth_exploring(runs: Sequence[Run], last: str, slower: dict[str, dict[str, str]]) -> bool:
    """Whether the next run should be one as written: it is still unknown which plan is slower."""
    if last == AS_WRITTEN or slower.get(last):
        return False
    ours = [run.seconds for run in runs if run.plan == last and not run.failed]
    written = [run.seconds for run in runs if run.plan == AS_WRITTEN and not run.failed]
    if len(written) >= MOST_EXPLORED or is_slower(written, ours):
        return False
    return len(ours) >= EXPLORE_AFTER[len(written)]


def _counted(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} runs of {geometric_mean(seconds):.3g} s"
