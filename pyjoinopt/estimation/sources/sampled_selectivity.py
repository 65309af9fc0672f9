"""From hits in a sample to a share of all rows, and where a sample is worth having.

**Few hits.** Of n rows k fulfil the condition. The share is taken for k/n, mixed with the arithmetic estimate as if
that were one row more. No hit proves no emptiness: with a chance of 95 % a share of 3/n is not seen. The estimate is
then half a row of n, or less if the arithmetic estimate is less, and `source` notes that there was no hit. Where
arithmetic is sound (numbers compared within known bounds) no hit only contradicts an estimate above 3/n, and k hits
weigh k times as much as the arithmetic estimate, in logarithms. If the sample is the whole relation, k is a count.

**Rows that are stored together.** Of a large table only some row groups are read, and if it is sorted, the rows that
match may be in another one. No hit in rows from m places is then as little as no hit in m rows: the estimate is
half-way, in logarithms. Conditions on partition columns alone are left to arithmetic, which covers all partitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.comparisons import TEXT, comparison
from pyjoinopt.estimation.model.literals import constant_value
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.model.sample_bounds import share_bound
from pyjoinopt.plan.expressions import EQUALITIES, Expression


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the sampled rows fulfil some conjuncts.

    Attributes:
        hits, rows: so many of so many.
        complete: the sample is the whole relation.
        places: from how many parts of the relation the rows come; 0 for all.
        unknown: conjuncts that were not evaluated.
        together: the rows that fulfil them, as bits.
        draws, stretch: how a random sample was drawn, see `share_bound`; None for any other sample.
    """

    hits: int
    rows: int
    complete: bool
    unknown: tuple[Expression, ...] = ()
    places: int = 0
    together: int = 0
    draws: int | None = None
    stretch: float = 1.0

    @property
    def likely_most(self) -> float:
        """A share that is not exceeded, but for a chance of one in a million, whatever the order of the rows.

        >>> round(Share(20, 4096, False, draws=128).likely_most, 3), Share(20, 4096, False).likely_most
        (0.121, 1.0)
        """
        if self.draws is None:
            return 1.0
        return share_bound(self.hits, self.rows, self.draws, self.stretch, ASSUMPTIONS.sample_failure)

    @property
    def bound(self) -> float:
        """A share that is not exceeded, with a chance of 95 %, if rows that are stored together are independent.

        >>> Share(0, 3000, False).bound
        0.001
        """
        if self.complete:
            return self.hits / self.rows
        return min(1.0, ASSUMPTIONS.sample_rule_of_three / self.rows) if not self.hits else 1.0

    def estimate(self, arithmetic: float, sound: bool = False) -> float:
        """The share that the conjuncts keep, mixed with the arithmetic estimate, which may be sound.

        >>> Share(40, 4095, False).estimate(0.96)
        0.01
        >>> Share(0, 4999, False).estimate(0.25), Share(0, 4999, False).estimate(1e-6), Share(1, 4, True).estimate(0.9)
        (0.0001, 1e-06, 0.25)
        >>> Share(0, 4999, False).estimate(0.0004, True), round(Share(1, 10000, False).estimate(0.0004, True), 9)
        (0.0004, 0.0002)
        """
        if self.complete:
            return self.hits / self.rows
        if not self.hits:
            unseen = ASSUMPTIONS.sample_unseen
            none = (ASSUMPTIONS.sample_rule_of_three if sound else unseen) / (self.rows + 1)
            return min(arithmetic, math.sqrt(none * unseen / (self.places + 1)) if self.places else none)
        if sound and arithmetic:
            return math.exp((self.hits * math.log(self.hits / self.rows) + math.log(arithmetic)) / (self.hits + 1))
        return (self.hits + arithmetic) / (self.rows + 1)


_TIMES = ("date", "timestamp")


def is_weak(conjuncts: Iterable[Expression], known: RelationStatistics) -> bool:
    """True if arithmetic has little to go by: only one column, compared within known bounds, it does well.

    Of a range it does so for points in time and with a histogram alone; amounts and durations are seldom uniform.

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics
    >>> a = reference(Attribute(0, 1, "a", "date"))
    >>> t = RelationStatistics(9.0, 9.0, columns={0: ColumnStatistics(min=1, max=9)})
    >>> is_weak([call("IsNotNull", a), call("LessThan", a, literal(3, "int"))], t)
    False
    """
    columns = set()
    for e in conjuncts:
        if e.kind == "IsNotNull":
            continue
        simple = comparison(e)
        if simple is None:
            return True
        attribute, kind, constant = simple
        column = known.column(attribute.bit)
        counted = column.bins or (column.ndv is not None and not column.guessed)
        if attribute.type.startswith(TEXT) and not (kind in EQUALITIES and column.bins):
            return True
        if kind not in EQUALITIES and not column.bins and not attribute.type.startswith(_TIMES):
            return True
        if constant_value(constant) is None or (column.min is None and not counted):
            return True
        columns.add(attribute.bit)
    return len(columns) > 1
