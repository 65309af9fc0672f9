"""What is decided about a query by its earlier runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.feedback.guard import EXPLORE_AFTER, MOST_EXPLORED, OLDEST, LikeRuns
from pyjoinopt.feedback.query_store import AS_WRITTEN, Run

OURS, OTHER = "ours", "other"
NOW = 1000.0


def run(plan: str, seconds: float, **fields: object) -> Run:
    """A later run of a driver, of 100 bytes on two cores."""
    made = Run("i", plan, "", "d", True, 2.0, 100.0, NOW, seconds)
    return replace(made, **fields)  # type: ignore[arg-type]


def runs(plan: str, *seconds: float, **fields: object) -> list[Run]:
    return [run(plan, each, **fields) for each in seconds]


def like(history: list[Run], size: float = 100.0, cores: float = 2.0, now: float = NOW) -> LikeRuns:
    return LikeRuns(history, size, cores, now)


SLOWER = [*runs(AS_WRITTEN, 1.0, 1.1), *runs(OURS, 3.0, 3.2)]


def test_a_plan_that_takes_three_times_as_long_is_revoked() -> None:
    reason = like(SLOWER).why_slower(OURS)
    assert reason == "this plan took 2.95 times as long (2 runs of 3.1 s, 2 runs of 1.05 s as written)"
    assert like(SLOWER).why_slower(AS_WRITTEN) is None


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
        [*runs(AS_WRITTEN, 1.0, 1.1, ended=NOW - OLDEST - 1), *runs(OURS, 3.0, 3.2)],
    ],
    ids=["alike", "one as written", "one of ours", "none as written", "grown", "other cores", "cold and warm", "old"],
)
def test_it_is_not(history: list[Run]) -> None:
    assert like(history).why_slower(OURS) is None


def test_now_decides() -> None:
    """The plan is tried again when its tables have grown, on another cluster, and after a month."""
    assert like(SLOWER).why_slower(OURS) is not None and like(SLOWER, size=0.0).why_slower(OURS) is not None
    for now in (like(SLOWER, size=400.0), like(SLOWER, cores=64.0), like(SLOWER, now=NOW + OLDEST + 1)):
        assert now.why_slower(OURS) is None
    grown = [*SLOWER, run(OURS, 30.0, bytes=1000.0)]
    assert like(grown).why_slower(OURS) is not None and like(grown, size=1000.0).why_slower(OURS) is None


def test_sizes_that_are_not_known_are_compared() -> None:
    history = [*runs(AS_WRITTEN, 1.0, 1.1, bytes=0.0), *runs(OURS, 3.0, 3.2)]
    assert like(history).why_slower(OURS) is not None


def test_without_sizes_as_many_rows_must_be_read() -> None:
    grown = [*runs(AS_WRITTEN, 1.0, 1.1, bytes=0.0, rows=100.0), *runs(OURS, 3.0, 3.2, bytes=0.0, rows=300.0)]
    assert like(grown, size=0.0).why_slower(OURS) is None
    same = [replace(each, rows=100.0) for each in grown]
    assert like(same, size=0.0).why_slower(OURS) is not None
    failed = [*same[:2], run(OURS, 0.0, bytes=0.0, failed="memory")]
    assert like(failed, size=0.0).why_slower(OURS) is not None


def test_runs_with_the_same_constants_decide() -> None:
    """With one constant both plans take long; with the other one, which ours never had, there are few rows."""
    history = [
        *runs(AS_WRITTEN, 0.1, 0.1, 0.1, 0.1, 0.1, instance="few"), *runs(AS_WRITTEN, 3.0, 3.1),
        *runs(OURS, 3.0, 3.2, 3.1, 3.0),
    ]  # fmt: skip
    assert like(history).why_slower(OURS) is None


def test_of_other_constants_there_must_be_more_runs() -> None:
    history = [replace(each, instance=f"{number}") for number, each in enumerate(SLOWER)]
    assert like(history).why_slower(OURS) is None
    more = [replace(each, instance=f"{number}") for number, each in enumerate(2 * SLOWER)]
    assert like(more).why_slower(OURS) is not None


@pytest.mark.parametrize("cold", [1.0, 10.0])
def test_warm_runs_decide_if_there_are_enough(cold: float) -> None:
    """Whatever the first runs of two drivers took."""
    first = [*runs(AS_WRITTEN, 1.0, 1.0, warm=False), *runs(OURS, cold, cold, warm=False)]
    slow = [*first, *runs(AS_WRITTEN, *[1.0] * 7), *runs(OURS, *[10.0] * 15)]
    fast = [*first, *runs(AS_WRITTEN, *[1.0] * 7), *runs(OURS, *[0.9] * 15)]
    assert like(slow).why_slower(OURS) is not None and like(fast).why_slower(OURS) is None


def test_later_runs_that_take_longer_than_first_ones_are_slower() -> None:
    first = [*runs(AS_WRITTEN, 1.6, warm=False), *runs(AS_WRITTEN, 1.0)]
    reason = like([*first, *runs(OURS, 4.0, 4.2)]).why_slower(OURS)
    assert reason == "this plan took 3.24 times as long (2 runs of 4.1 s, 2 runs of 1.26 s as written)"
    assert like([*first, *runs(OURS, 1.3, 1.4)]).why_slower(OURS) is None, "first runs take longer"
    more = runs(AS_WRITTEN, *[1.0] * 4, instance="j"), runs(OURS, *[2.0] * 4, instance="j")
    slow = [*runs(AS_WRITTEN, 9.0, 9.0, warm=False), *runs(OURS, 2.0, 2.0), *more[0], *more[1]]
    assert like(slow).why_slower(OURS) is not None, "that they are not slower than first runs decides nothing"


def test_of_several_constants_the_most_frequent_decides() -> None:
    often = [*runs(AS_WRITTEN, *[1.0] * 6, instance="b"), *runs(OURS, *[0.9] * 6, instance="b")]
    rare = [*runs(AS_WRITTEN, *[1.0] * 2, instance="a"), *runs(OURS, *[9.0] * 2, instance="a")]
    assert like([*often, *rare]).why_slower(OURS) is None
    assert like(rare).why_slower(OURS) is not None


def test_a_plan_that_ran_out_of_memory_is_revoked_at_once() -> None:
    history = [*runs(AS_WRITTEN, 1.0), run(OURS, 0.0, failed="memory")]
    assert like(history).why_slower(OURS) == "this plan ran out of memory, and as written the query did not"
    both = [run(AS_WRITTEN, 0.0, failed="memory"), *history]
    assert like(both).why_slower(OURS) is None
    assert like(history[1:]).why_slower(OURS) is None


def test_plans_of_ours_are_compared_with_each_other() -> None:
    """Row counts that were learnt gave another plan, and it is slower."""
    history = [*runs(OTHER, 1.0, 1.1), *runs(OURS, 3.0, 3.2)]
    assert like(history).why_slower(OURS) is None and like(history).is_slower_than_any(OURS)
    assert "with another plan" in (like(history).why_slower(OURS, OTHER) or "")
    assert not like(history).is_slower_than_any(OTHER) and like(history).last == OURS


def explored(ours: float, written: float | None, count: int = 60) -> list[int]:
    """The numbers of the runs as written; None if these fail."""
    history: list[Run] = []
    numbers: list[int] = []
    for number in range(count):
        now = like(history)
        if now.is_worth_exploring(len(numbers)) or now.why_slower(OURS) is not None:
            numbers.append(number)
            history += runs(AS_WRITTEN, written) if written is not None else []
        else:
            history.append(run(OURS, ours))
    return numbers


def test_exploring_ends() -> None:
    """Runs as written come after 2, 4, 8 and 16 runs of ours, and no more."""
    assert explored(1.0, 1.0) == [after + number for number, after in enumerate(EXPLORE_AFTER)]


def test_runs_that_are_not_recorded_count() -> None:
    """As written the query is cancelled each time, or fails."""
    assert len(explored(1.0, None)) == MOST_EXPLORED


def test_a_query_that_fails_as_written_is_not_explored_again() -> None:
    history = [*runs(OURS, 1.0, 1.0, 1.0, 1.0, 1.0), run(AS_WRITTEN, 0.0, failed="memory")]
    assert not like(history).is_worth_exploring(1) and like(history[:-1]).is_worth_exploring(0)


def test_exploring_ends_as_soon_as_it_is_known() -> None:
    """A fast plan costs two explorations; a slow one is revoked, and the query runs as written for ever."""
    assert len(explored(1.0, 5.0, 40)) == 2
    assert len(explored(5.0, 1.0, 40)) == 40 - 4
