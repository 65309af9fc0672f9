"""Is one plan slower than another one? A test over few running times that knows how much they vary.

    ours     4.1 s   4.4 s
    written  3.0 s   3.3 s      ours takes 1.35 times as long, and the noise explains a factor of 1.1: slower

Running times vary by factors, so their logarithms are compared. Two runs of a plan say nothing about how much it
varies. So the spread is estimated from both samples together with a prior: it counts like `PRIOR_RUNS` runs whose
logarithms have the standard deviation `PRIOR_SPREAD`, what is usual on a busy machine. A plan is slower if its mean is
higher by `TOLERATED` and by `CERTAINTY` standard errors of the difference. The test is repeated after every run; the
constants keep the chance that a plan which takes a tenth less time is ever called slower, over fifty runs, below one in
a hundred. A plan that takes twice as long is found after two runs of each in three cases of four
(tests/unit/feedback/test_compare_runs.py simulates both).

Source: the posterior of a normal distribution with a conjugate prior of its variance (Gelman et al., Bayesian Data
Analysis, section 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Runs that each plan needs.
LEAST = 2
#: The usual standard deviation of the logarithm of a running time, and the number of runs that it counts for.
PRIOR_SPREAD = 0.2
PRIOR_RUNS = 8.0
#: A plan that takes at most so many times as long is not slower.
TOLERATED = 1.1
#: In standard errors of the difference.
CERTAINTY = 3.0


def times_as_long(plan: Sequence[float], other: Sequence[float]) -> float:
    """How many times as long a plan takes as another one, by the geometric means of seconds.

    >>> round(times_as_long([2.0, 8.0], [1.0, 1.0]), 6)
    4.0
    """
    return geometric_mean(plan) / geometric_mean(other)


def is_slower(plan: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a plan takes longer than another one, beyond noise. False while one of them has less than two runs.

    Args:
        plan: seconds of its runs.
        other: seconds of the runs of the other one.

    >>> is_slower([4.1, 4.4], [1.9, 2.0]), is_slower([4.1, 2.0], [1.9, 2.0]), is_slower([4.1], [1.9, 2.0])
    (True, False, False)
    """
    if min(len(plan), len(other)) < LEAST:
        return False
    difference = _mean(plan) - _mean(other)
    squares = sum((math.log(_seconds(x)) - _mean(one)) ** 2 for one in (plan, other) for x in one)
    variance = (PRIOR_RUNS * PRIOR_SPREAD**2 + squares) / (PRIOR_RUNS + len(plan) + len(other) - 2)
    error = math.sqrt(variance * (1 / len(plan) + 1 / len(other)))
    return difference > max(math.log(TOLERATED), CERTAINTY * error)


def geometric_mean(seconds: Sequence[float]) -> float:
    """The mean by which plans are compared.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return math.exp(_mean(seconds))


def _mean(seconds: Sequence[float]) -> float:
    return sum(math.log(_seconds(x)) for x in seconds) / len(seconds)


def _seconds(x: float) -> float:
    """Not below a millisecond: the clock may jump."""
    return max(x, 0.001)
