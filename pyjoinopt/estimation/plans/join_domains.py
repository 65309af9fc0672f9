"""How many values two or more columns share, where they are compared with `=`.

Usually one of them is a key and the others refer to it. Exact distinct counts are rare; what file footers give is a
range, and a range only bounds the count. So the columns that may be keys (no two rows are known to share a value)
are found first, and one of them is taken for *the* key: the smallest of those whose values were counted, or else of
those that fill their range, as numbered keys do (192,080 rows from 1 to 192,080), or else of all. Every column of which
only a bound is known has at most as many values. An order line's key column spans as many numbers as there are lines,
yet it has only as many values as there are orders.

**After filters** two things are assumed of what is left.

* Of a column that is no key, no more values are left than rows. They are taken for a subset of the values of the
  others: what survives a filter is rather what much is known of than what little is.
* Of a key, r of d values are left, and of the rows that refer to it a share of r/d, if all values are referred to
  alike. Two deviations are visible. If the references lie in a part of the key's range and fill it (a calendar has
  centuries, the facts fill five years), then the filter is taken to mean that part. And if some values are referred
  to much more often than others, then a filter that *names* what it wants (a keyword, a country) is taken to want
  some of these. With the chance s that two random references are equal, a value named by a random reference has s of
  them, instead of 1/d, and r of them have (r/d) ** (ln s / ln(1/d)). Half of that way is gone, as in `selectivity`.
  And if the references have only e of the d
  values (5 of 113 kinds of facts), a filter that names what it wants rather names one of these: half-way again, its
  value is taken to be among sqrt(d * e). A filter that keeps r values, such as all customers of an age, is the nearer
  to the average the more these are: the deviation of a mean of r shrinks with sqrt(r), and so does the way.

**Where neither is a key**, values that are frequent on both sides make most of the pairs; see `heavy`.

**Where `analyze` has sketched both of two columns**, it is known how often their values meet, which takes the place of
the frequent values (`model.frequency_sketch`). Keys that only one side has make a larger number of values, and values
that are frequent on both sides a smaller one; filters on other columns are taken to leave the ratio as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.frequency_sketch import FrequencySketch, pair_domain
from pyjoinopt.estimation.model.histogram import Bin, repeat_share
from pyjoinopt.estimation.model.most_common_values import Heavy, effective_ndv


@dataclass(frozen=True, slots=True)
class Member:
    """One column of a class of equal columns.

    Attributes:
        ndv, guessed, key_values: those of `ColumnStatistics`.
        rows: of its relation, before filters.
        kept: rows after them.
        min, max, bins, heavy, frequencies: those of `ColumnStatistics`.
        filtered_by_text: that of its relation.
        drawn: that of `ColumnStatistics`, or 0.
    """

    ndv: float | None
    guessed: bool
    key_values: float | None
    rows: float
    kept: float = math.inf
    min: float | None = None
    max: float | None = None
    bins: tuple[Bin, ...] = ()
    filtered_by_text: bool = False
    heavy: Heavy = ()
    frequencies: FrequencySketch | None = None
    drawn: float = 0.0

    @property
    def fills_range(self) -> bool:
        """Of a key: whether it has (nearly) every whole number of its range."""
        if self.key_values is None or self.min is None or self.max is None:
            return False
        return self.max - self.min + 1.0 <= ASSUMPTIONS.numbered_key_width * self.key_values


def shared_domains(members: Sequence[Member]) -> list[float]:
    """Distinct values of each member, at least 1.

    >>> orders, lines = Member(1500.0, True, 1500.0, 1500.0), Member(6000.0, True, 6000.0, 6000.0)
    >>> shared_domains([orders, lines])
    [1500.0, 1500.0]
    >>> shared_domains([Member(None, True, None, 1e6), Member(25.0, False, 25.0, 25.0)])
    [25.0, 25.0]
    >>> kinds = Member(1920.0, True, 1920.0, 1920.0, min=1, max=1920)
    >>> shared_domains([kinds, Member(96.0, True, 96.0, 96.0, min=7, max=1900)])
    [1920.0, 96.0]
    """
    sure = [m.key_values for m in members if m.key_values is not None and not m.guessed and not m.drawn]
    numbered = [m.key_values for m in members if m.key_values is not None and m.fills_range]
    maybe = [m.key_values for m in members if m.key_values is not None] + [m.rows for m in members if m.ndv is None]
    largest = min(sure or numbered or maybe, default=float("inf"))
    domains = []
    for m in members:
        ndv = max(m.drawn, m.rows if m.ndv is None else m.ndv)
        domains.append(max(1.0, min(ndv, largest) if m.guessed or m.ndv is None else ndv))
    return domains


def met_domains(members: Sequence[Member]) -> list[float]:
    """Among how many values the rows of each member that are left find their partners, at least 1.

    >>> from dataclasses import replace
    >>> kinds, things = Member(100.0, False, 100.0, 100.0, 1.0, 1, 100), Member(100.0, False, None, 1e6, 1e6, 1, 100)
    >>> met_domains([kinds, things])
    [100.0, 100.0]
    >>> met_domains([kinds, replace(things, kept=10.0)])
    [100.0, 10.0]
    >>> skewed = (Bin(1, 1, 1), Bin(1, 1, 1), Bin(2, 50, 49), Bin(51, 100, 50))  # half of all things are of one kind
    >>> [round(d, 1) for d in met_domains([replace(kinds, filtered_by_text=True), replace(things, bins=skewed)])]
    [19.9, 19.9]
    """
    domains = shared_domains(members)
    referring = [(m, d) for m, d in zip(members, domains) if m.key_values is None]
    chosen = math.inf  # the fewest values that a filter has left of a key
    matching = []
    for m, domain in zip(members, domains):
        kept = max(1.0, m.kept)
        if m.key_values is not None and kept < domain:
            domain = max(kept, _referred_to(m, domain, referring))
            if m.filtered_by_text:
                domain = max(kept, _named_among(kept, domain, referring))
                domain = _popular(kept, domain, max((_evenness(o, d) for o, d in referring), default=1.0))
                chosen = min(chosen, kept)
        matching.append(domain if m.key_values is not None or m.drawn else min(domain, kept))
    popular = [
        d if m.key_values is not None else _popular(chosen, d, _evenness(m, domain))
        for m, d, domain in zip(members, matching, domains)
    ]
    met = pair_domain(members[0].frequencies, members[1].frequencies, max(domains)) if len(members) == 2 else None
    if met is not None:
        return [max(1.0, domain * met / max(domains)) for domain in popular]
    return effective_ndv(popular, [m.heavy if m.key_values is None else () for m in members])


def referred_shares(members: Sequence[Member]) -> list[float]:
    """Of each member that is a key, which part of its values lies where the references do; 1 of all others.

    >>> days = Member(73000.0, True, 73000.0, 73000.0, min=1, max=73000)
    >>> sales = Member(1800.0, False, None, 1e6, min=36001, max=37825)
    >>> referred_shares([days, sales])
    [0.025, 1.0]
    """
    domains = shared_domains(members)
    referring = [(m, d) for m, d in zip(members, domains) if m.key_values is None]
    return [
        min(1.0, _referred_to(m, domain, referring) / domain) if m.key_values is not None else 1.0
        for m, domain in zip(members, domains)
    ]


def _popular(chosen: float, domain: float, evenness: float) -> float:
    """Of how many equally frequent values the chosen ones would be as large a share as these popular ones are."""
    return chosen * (domain / chosen) ** evenness if chosen < domain else domain


def _referred_to(key: Member, domain: float, referring: Sequence[tuple[Member, float]]) -> float:
    """How many values of a key lie where the references do, if they fill that part of its range."""
    lows, highs = [o.min for o, _ in referring if o.min is not None], [o.max for o, _ in referring if o.max is not None]
    if key.min is None or key.max is None or not referring or not len(lows) == len(highs) == len(referring):
        return domain
    common = min(key.max, max(highs)) - max(key.min, min(lows)) + 1.0
    part = domain * common / (key.max - key.min + 1.0)
    return part if 0 < part and max(d for _, d in referring) >= ASSUMPTIONS.filled_range * part else domain


def _named_among(kept: float, domain: float, referring: Sequence[tuple[Member, float]]) -> float:
    """Among how many values of a key a filter chooses that names its values, if the references have been counted."""
    counted = [d for m, d in referring if m.ndv is not None and not m.guessed]
    referred = max(counted) if referring and len(counted) == len(referring) else domain
    way = ASSUMPTIONS.popular_reference / math.sqrt(kept)
    return domain ** (1.0 - way) * min(domain, referred) ** way


def _evenness(m: Member, domain: float) -> float:
    """1 if all values are referred to alike, less if many references are to few of them."""
    if not m.bins or domain <= 1:
        return 1.0
    return 1.0 - ASSUMPTIONS.popular_reference * (1.0 - min(1.0, math.log(repeat_share(m.bins)) / -math.log(domain)))
