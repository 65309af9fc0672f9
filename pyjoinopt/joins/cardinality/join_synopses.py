"""Rows of joins with dimensions, as a sample of the join shows them.

The model of `estimator` takes filters of several relations to be independent of each other and of the references. A
*join synopsis* (Acharya, Gibbons, Poosala and Ramaswamy, SIGMOD 1999) is a sample of the join itself: sampled rows of a
relation, each with its one partner in every dimension.

    SELECT * FROM sales JOIN items ON s_item = i_id JOIN shops ON s_shop = h_id
    WHERE i_class = 'skis' AND h_region = 'Alps'

Of 4,096 sampled sales 31 may be of skis, 200 in the Alps, and 22 both, where the model would expect 1.5. So for a set
with the sales and both dimensions the model's rows are corrected by what the sample shows of them together.

**Few hits.** The share of a set of dimensions is first taken over all sampled rows, and then over those that the
centre's own filter keeps; each is mixed with what was known before it, in logarithms, by how sure it is. What is known
before the first is the share of the set without its most selective dimension, times that dimension's own; before that,
the model's share. A share's weight is the inverse of its relative variance, which is taken between the places of the
files that the rows come from: sales of one month may all lie in one place, and are then as good as one hit. No hit at
all contradicts an estimate above 3/n (`sampled_selectivity`), with n places where references are stored together
(`clustering`), else n rows.

**Where it fits in.** What a set is multiplied with is a function of the set, as in all of the estimate. Only the part
of it that is connected with the centre matters. A set with several centres is corrected for each of them; those of
smaller relations come first, and others count only what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS

_UNSEEN = ASSUMPTIONS.sample_unseen
_THREE = ASSUMPTIONS.sample_rule_of_three
#: Row counts are rounded to nine digits of their logarithm.
_NO_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class Partner:
    """A dimension.

    Attributes:
        vertex: the relation, as a set.
        of: the one that refers to it, as a set.
        matches: the sampled rows with a partner in it that fulfils its filters, as bits.
        filled: those in which no referring column is NULL; None for all, and if the centre is not what refers to it.
        clustered: whether the centre's rows that are stored together have the same partners.
    """

    vertex: int
    of: int
    matches: int
    filled: int | None = None
    clustered: bool = False


@dataclass(frozen=True, slots=True)
class Synopsis:
    """The sampled rows of a relation with their partners.

    Attributes:
        center: the relation, as a set.
        rows: how many were sampled.
        complete: whether these are all of its rows.
        kept: those that fulfil the relation's own filters, as bits.
        starts: the first row of each place in the files; empty if the rows are from all places.
        partners: of each dimension.
        by_key: whether the rows were sampled by a key, and not as those of single relations are.
        hashed: column of the centre or of a dimension -> the hash of each row's value, see `sampled_values`.
    """

    center: int
    rows: int
    complete: bool
    kept: int
    starts: tuple[int, ...]
    partners: tuple[Partner, ...]
    by_key: bool = False
    hashed: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def touched(self) -> int:
        """The centre and its dimensions, as a set."""
        return self.center | sum(p.vertex for p in self.partners)

    def joined(self, relations: int) -> int:
        """The sampled rows that are in the join of a set, as bits."""
        return reduce(and_, (p.matches for p in self.partners if p.vertex & relations), self.kept)


class SynopsisCorrection:
    """Callable: set of vertices -> what the logarithm of its rows is corrected by. Immutable but for its memo.

    Args:
        synopsis: the sample of the join.
        log_shares: per dimension, by what the model multiplies the rows when it is joined with what refers to it.
    """

    def __init__(self, synopsis: Synopsis, log_shares: Sequence[float]) -> None:
        # The model's rows have no NULL in a column that is compared.
        everything = (1 << synopsis.rows) - 1
        for p in synopsis.partners:
            everything &= everything if p.filled is None else p.filled
        self._everything = everything
        self._synopsis = synopsis
        self._model = {p.vertex: log for p, log in zip(synopsis.partners, log_shares)}
        partners = [p for p in synopsis.partners if not self._keeps_every_row(p)]
        self._partners = {p.vertex: p for p in partners}
        #: The centre, as a set: a set without it is not corrected.
        self.center = synopsis.center
        #: The centre, and the dimensions by which sets are corrected.
        self.touched = synopsis.center | sum(self._partners)
        self._direct = sum(p.vertex for p in partners if p.of == synopsis.center)
        self._indirect = [p for p in partners if p.of != synopsis.center]
        self._clustered = sum(p.vertex for p in partners if p.clustered)
        self._kept = synopsis.kept & everything
        self._filtered = self._kept != everything
        ends = (*synopsis.starts[1:], synopsis.rows)
        self._places = [(1 << end) - (1 << start) for start, end in zip(synopsis.starts, ends)]
        self._known: dict[int, float] = {}
        self._overall: dict[int, float] = {}
        self._alone: dict[int, float] = {}
        self._known_together: dict[int, tuple[int, float]] = {0: (everything, 0.0)}

    def _keeps_every_row(self, partner: Partner) -> bool:
        """Whether a dimension keeps each row once, by sample and model, and no other one is reached through it."""
        if self._everything & ~partner.matches or abs(self._model[partner.vertex]) > _NO_SHARE:
            return False
        return all(p.of != partner.vertex for p in self._synopsis.partners)

    def __call__(self, relations: int) -> float:
        if not relations & self.center:
            return 0.0
        relations &= self.touched
        found = self._known.get(relations)
        if found is None:
            found = self._known[relations] = self._of(relations)
        return found

    def _of(self, relations: int) -> float:
        dimensions = relations & self._direct
        if not dimensions:
            return 0.0
        last = 1 << dimensions.bit_length() - 1
        for p in self._indirect:  # each follows what refers to it
            if p.vertex & relations and p.of & dimensions:
                dimensions |= p.vertex
                last = p.vertex
        rows, expected = self._together(dimensions, last)
        if self._synopsis.complete:  # all rows are counted, so nothing is mixed with what was known before
            return _counted(rows, self._kept, expected) - expected
        log_share = self._over_all(dimensions)
        if self._filtered:
            log_share = self._mixed(dimensions, self._kept, log_share)
        return log_share - expected

    def _together(self, dimensions: int, last: int = 0) -> tuple[int, float]:
        """The rows with partners in all of some dimensions, and the logarithm of their share by the model.

        It is computed faster if what they are without `last`, one of them, was computed before.
        """
        found = self._known_together.get(dimensions)
        if found is None:
            last = last or dimensions & -dimensions
            rows, log_share = self._together(dimensions ^ last)
            partner = self._partners[last]
            found = self._known_together[dimensions] = rows & partner.matches, log_share + self._model[last]
        return found

    def _over_all(self, dimensions: int) -> float:
        """Logarithm of the share of all rows that have partners in all of some dimensions."""
        found = self._overall.get(dimensions)
        if found is None:
            needed = 0  # dimensions through which others are reached
            for p in self._indirect:
                if p.vertex & dimensions:
                    needed |= p.of
            rarest = next(vertex for vertex in self._rarest_first if vertex & dimensions & ~needed)
            rest = dimensions ^ rarest
            found = self._own(rarest)
            if rest:
                found = self._mixed(dimensions, self._everything, self._over_all(rest) + found)
            self._overall[dimensions] = found
        return found

    @cached_property
    def _rarest_first(self) -> list[int]:
        """The dimensions by the share of each alone."""
        return sorted(sorted(self._partners), key=self._own)

    def _own(self, vertex: int) -> float:
        """Logarithm of the share of a dimension alone, of the rows that have a partner in what refers to it."""
        found = self._alone.get(vertex)
        if found is None:
            of = self._partners[vertex].of
            referring = self._everything if of == self.center else self._partners[of].matches
            found = self._alone[vertex] = self._mixed(vertex, referring, self._model[vertex])
        return found

    def _mixed(self, dimensions: int, among: int, before: float) -> float:
        """Logarithm of the share of some rows with partners in all of some dimensions, mixed with an estimate."""
        rows = self._together(dimensions)[0]
        if self._synopsis.complete:
            return _counted(rows, among, before)
        hits = rows & among
        k, n = hits.bit_count(), among.bit_count()
        if not k:
            units = len(self._places) if self._places and dimensions & self._clustered else n
            return min(before, math.log(_THREE / (units + 1)))
        share = k / n
        weight = k / max(1.0 - share, 1.0 / n)
        if len(self._places) > 1:
            weight = min(weight, self._weight(hits, among, share))
        return (weight * math.log(share) + before) / (weight + 1.0)

    def _weight(self, hits: int, among: int, share: float) -> float:
        """The inverse of the relative variance of a share, from how it differs between places."""
        places = [((hits & mask).bit_count(), (among & mask).bit_count()) for mask in self._places]
        mean = among.bit_count() / len(places)
        squares = sum(((k - share * n) / mean) ** 2 for k, n in places)
        variance = squares / (len(places) - 1) / len(places)
        return share * share / variance if variance > 0.0 else math.inf


def _counted(rows: int, among: int, before: float) -> float:
    """Logarithm of the share that some rows have among others, if none are missing.

    No row at all does not raise an estimate of fewer: the dimension may be empty, too.
    """
    hits = (rows & among).bit_count()
    log_share = math.log(max(hits, _UNSEEN) / max(among.bit_count(), 1))
    return log_share if hits else min(before, log_share)
