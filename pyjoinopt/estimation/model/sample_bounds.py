"""How large the share of all rows that fulfil a condition may be at most, from the hits in a sample, at a confidence.

**Every place was read.** k of n rows are hits, drawn without looking at their values. The bound is Clopper and
Pearson's (1934): the share at which k hits or fewer are as rare as `failure`. Rows of several places have several
shares, and are drawn without replacement; both make few hits rarer (Hoeffding 1956; a hypergeometric count is a sum of
independent trials), so the bound holds.

**Some places were read.** Rows of a sorted file are alike within a row group, and all hits may be in row groups that
were not read. So the place is the unit. Of m draws, each picks a place by a chance in proportion to its rows, and some
rows of it. The m shares of hits are independent numbers within [0, 1], and the expectation of their mean is the table's
share p. A mean of q or less has a chance of at most exp(-m KL(q, p)) (Hoeffding 1963, theorem 1), whatever the data:
with hits in one place only, or with hits everywhere. Draws of one place share its rows, which makes their mean vary
less than independent draws would.

**The most frequent value.** To have the most frequent value of a column, among the rows that a filter keeps, is a
condition, too, and does not depend on the sample. It has no more hits than the value that is the most frequent one in
the sample. So the bound of that count is a bound of the rows that share any value. For n rows drawn out of N that all
have different values it is 16.7 N / n at one in a million. Samples say no more: a value of 5 N / n rows comes at most
once in one of 25 samples. Few duplicates among n rows mean few pairs of duplicates among all rows (the birthday
paradox), but only in expectation, and one frequent value that was missed has most of the pairs. So a sample neither
proves a key, nor bounds how many partners a row has on average; a sketch of all rows does (`frequency_sketch`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

#: Bisections: the bounds are exact to twelve digits.
_STEPS = 50
#: Terms of a sum that are smaller than its first by this make no difference.
_NEGLIGIBLE = 1e-17


def share_bound(hits: int, rows: int, draws: int, stretch: float, failure: float) -> float:
    """A share that is not exceeded, but for a chance of `failure`.

    Args:
        hits: sampled rows that fulfil the condition.
        rows: sampled rows.
        draws: how many times a place was drawn; 0 if every place was read.
        stretch: the most that a place weighs in the table, over what it weighs in the sample; at least 1.
        failure: the chance that the share is larger, within (0, 1).

    Returns:
        A number within [0, 1]; 1 bounds nothing.

    >>> round(share_bound(20, 4096, 0, 1.0, 1e-6), 4), round(share_bound(20, 4096, 128, 1.0, 1e-6), 3)
    (0.0122, 0.121)
    >>> share_bound(0, 4096, 8, 1.0, 1e-6) > 0.8
    True
    """
    if rows <= 0:
        return 1.0
    if draws:
        return chernoff(min(1.0, stretch * hits / rows), draws, failure)
    return min(1.0, stretch * clopper_pearson(hits, rows, failure))


def clopper_pearson(hits: int, rows: int, failure: float) -> float:
    """The share at which so few hits are as rare as `failure`; 1 if more than half of the rows are hits.

    >>> round(clopper_pearson(0, 1000, 0.05), 6) == round(1 - 0.05 ** 0.001, 6)
    True
    """
    if rows <= 0 or 2 * hits > rows:
        return 1.0
    return _bisect(hits / rows, lambda share: _at_most(hits, rows, share) > failure)


def chernoff(mean: float, draws: int, failure: float) -> float:
    """The expectation at which so small a mean of so many numbers within [0, 1] is as rare as `failure`, at least.

    >>> round(chernoff(0.0, 100, 1e-6), 4) == round(1 - 1e-6 ** 0.01, 4)
    True
    """
    if mean >= 1.0:
        return 1.0
    return _bisect(mean, lambda share: draws * _divergence(mean, share) < -math.log(failure))


def _bisect(low: float, plausible: Callable[[float], bool]) -> float:
    """The largest plausible share from `low` on, rounded up."""
    high = 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if plausible(middle):
            low = middle
        else:
            high = middle
    return high


def _at_most(hits: int, rows: int, share: float) -> float:
    """The chance of so many hits or fewer among independent rows, for `hits` not above what is expected."""
    if share >= 1.0:
        return float(hits >= rows)
    term = total = math.exp(
        math.lgamma(rows + 1) - math.lgamma(hits + 1) - math.lgamma(rows - hits + 1)
        + hits * math.log(share) + (rows - hits) * math.log1p(-share)
    )  # fmt: skip
    for count in range(hits, 0, -1):
        term *= count * (1.0 - share) / ((rows - count + 1) * share)
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return total


def _divergence(mean: float, share: float) -> float:
    """Kullback and Leibler's divergence of two coins."""
    if share >= 1.0:
        return math.inf
    found = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - share))
    return found + mean * math.log(mean / share) if mean > 0.0 else found
