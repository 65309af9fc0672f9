"""What is decided about a query by its earlier runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.feedback.guard import EXPLORE_AFTER, MOST_EXPLORED, OLDEST, fits, outlook_after, why_slower
from pyjoinopt.feedback.query_store import AS_WRITTEN, Outlook, Run

OURS, OTHER = "ours", "other"


def run(plan: str, seconds: float, **fields: object) -> Run:
    """A later run of a process, of 100 bytes on two cores."""
    made = Run("i", plan, "", True, 2.0, 100.0, 1000.0, seconds)
    return replace(made, **fields)  # type: ignore[arg-type]


def runs(plan: str, *seconds: float, **fields: object) -> list[Run]:
    return [run(plan, each, **fields) for each in seconds]


SLOWER = [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 3.0, 3.2)]


def test_a_plan_that_takes_three_times_as_long_is_revoked() -> None:
    reason = outlook_after(SLOWER).reason(OURS)
    assert reason == "this plan took 2.95 times as long (2 runs of 3.1 s, 2 runs of 1.05 s as written)"
    assert outlook_after(SLOWER).reason(AS_WRITTEN) is None


@pytest.mark.parametrize(
    "history",
    [
        [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 1.05, 1.1)],
        [*runs(AS_WRITTEN, 1.0), *runs(OURS, 3.0, 3.2)],
        [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 3.0)],
        runs(OURS, 3.0, 3.2),
        [*runs(AS_WRITTEN, 1.0, 1.1, bytes=10.0), *runs(OURS, 3.0, 3.2)],
        [*runs(AS_WRITTEN, 1.0, 1.1, cores=64.0), *runs(OURS, 3.0, 3.2)],
        [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 3.0, 3.2, warm=False)],
        [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 3.0, 3.2, ended=2000.0 + OLDEST)],
    ],
    ids=["alike", "one as written", "one of ours", "none as written", "grown", "other cores", "cold and warm", "old"],
)
def test_it_is_not(history: list[Run]) -> None:
    assert outlook_after(history).reason(OURS) is None


def test_sizes_that_are_not_known_are_compared() -> None:
    history = [*runs(AS_WRITTEN, 1.0, 1.1, bytes=0.0), *runs(OURS, 3.0, 3.2)]
    assert outlook_after(history).reason(OURS) is not None


def test_runs_with_the_same_constants_decide_if_there_are_enough() -> None:
    """With one constant ours takes longer; the other runs are of a constant that gives few rows."""
    history = [
        *runs(AS_WRITTEN, 0.1, 0.1, 0.1, instance="few"), *runs(AS_WRITTEN, 3.0, 3.1), *runs(OURS, 3.0, 3.2),
    ]  # fmt: skip
    assert outlook_after(history).reason(OURS) is None
    others = [replace(each, instance=f"{number}") for number, each in enumerate(SLOWER)]
    assert outlook_after(others).reason(OURS) is not None  # nothing more alike is known


def test_a_plan_that_ran_out_of_memory_is_revoked_at_once() -> None:
    history = [*runs(AS_WRITTEN, 1.0), run(OURS, 0.0, failed="memory")]
    assert outlook_after(history).reason(OURS) == "this plan ran out of memory, and as written the query did not"
    both = [run(AS_WRITTEN, 0.0, failed="memory"), *history]
    assert outlook_after(both).reason(OURS) is None
    assert outlook_after(history[1:]).reason(OURS) is None


def test_plans_of_ours_are_compared_with_each_other() -> None:
    """Row counts that were learnt gave another plan, and it is slower: the report is of that plan."""
    history = [*runs(OTHER, 1.0, 1.1), *runs(OURS, 3.0, 3.2)]
    assert set(outlook_after(history).slower[OURS]) == {OTHER}
    assert "with another plan" in (why_slower(history, OURS, OTHER) or "")
    assert OTHER not in outlook_after(history).slower


def test_exploring_ends() -> None:
    """Runs as written come after 2, 4, 8 and 16 runs of ours, and no more."""
    history: list[Run] = []
    explored = []
    for number in range(60):
        if history and outlook_after(history).explore:
            explored.append(number)
            history.append(run(AS_WRITTEN, 1.0))
        else:
            history.append(run(OURS, 1.0))
    assert len(explored) == MOST_EXPLORED
    assert explored == [after + number for number, after in enumerate(EXPLORE_AFTER)]


@pytest.mark.parametrize(("ours", "written"), [(1.0, 5.0), (5.0, 1.0)])
def test_exploring_ends_as_soon_as_it_is_known(ours: float, written: float) -> None:
    """A fast plan costs two explorations; a slow one is revoked, and the query runs as written for ever."""
    history: list[Run] = []
    for _ in range(40):
        outlook = outlook_after(history) if history else Outlook()
        as_written = outlook.explore or outlook.reason(OURS) is not None
        history.append(run(AS_WRITTEN, written) if as_written else run(OURS, ours))
    count = sum(each.plan == AS_WRITTEN for each in history)
    assert count == 2 if ours < written else count == 40 - 4


def test_a_decision_holds_for_tables_of_its_size() -> None:
    outlook = outlook_after(SLOWER)
    assert fits(outlook, 100.0) and fits(outlook, 0.0) and not fits(outlook, 400.0)
    assert fits(outlook, 400.0, incomplete=True)
