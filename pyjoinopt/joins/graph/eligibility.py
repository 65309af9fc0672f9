"""Total eligibility sets: what must be joined before an outer, semi or anti join, and what must not.

An order is a tree of binary joins. Inner joins are cross products with filters on top, conjunct by conjunct. So a group
consists of relations, inner *conjuncts* and *operators* (each outer, semi or anti join, its condition whole). A node of
an order applies an operator or is a cross product, and conjuncts go on top of the first node that has what they need.
Whether such an order gives the rows of the written one is decided node by node, from the two sets that the node joins:

* an operator has a set on each side that must be there, its *total eligibility set* (TES) by side, and a set that its
  side must not exceed (`max_left`, `max_right`);
* the node that is the first to have both TES of an operator must apply it, with its sides in their places;
* a conjunct has one set that must be there, its TES.

All of this follows from the tables of `algebra`, going up the written order. A side of an operator is either
*row-preserving* (the left side of a left, semi or anti join: anything may be multiplied into it, before or after) or
*null-supplying* or *filtering* (the sides that the join pads, and the right side of a semi or anti join; both are
called *closed* below, for nothing may be multiplied into them later).

    SELECT * FROM a LEFT JOIN (b LEFT JOIN c ON b.y = c.y) ON a.x = b.x  JOIN d ON d.z = a.z

    join                 | left TES | right TES | max left | max right
    b LEFT JOIN c        | {b}      | {c}       | any      | {c}
    a LEFT JOIN (b, c)   | {a}      | {b}       | any      | {b, c}

and the conjunct d.z = a.z has the TES {a, d}. The right side of the upper join is closed, and {b, c} is in it as
written. But

    A ⟕ (B ⟕q C)  =  (A ⟕ B) ⟕q C        if q rejects NULLs on B

and b.y = c.y rejects NULLs. So c is *detachable*: it need not be below the upper join, whose right TES is {b} alone. It
may be, so its maximum is {b, c}. From the other end, the same law lets a join *associate into* the closed side of a
join below it: the maximum of that side grows by what the upper join brings along.

**A closed side** must contain all that was in it as written, conjuncts applied, but for what is detachable.

**What reads a closed side from above**, a conjunct or an operator, must wait for that side's operator, unless it is an
operator that may associate into that side. It need not wait for more than that operator's own TES.

The method is conflict detection as in Moerkotte, Fender and Eich, "On the Correct and Complete Enumeration of the Core
Search Space", SIGMOD 2013, section 5 (CD-C), with three departures. Inner joins are taken apart into products and
conjuncts, so they have no conflict rules of their own, and products need no predicate. What CD-C expresses by
conditional rules over the union of both inputs (if something of T1 is there, all of T2 must be) is expressed here by
maximum sets, which know the side; rules would allow A ⟕ (B × C), which CD-C excludes only because it has no products.
And the TES of a full join is the whole padded side, not what the condition reads.

Some operators require more than they need, so some correct orders count as illegal, never the other way round: a
condition that may throw at run time requires both sides as written; one that reads nothing on a row-preserving side
(`b LEFT JOIN c ON true`) requires the whole of that side as written, though any part of it would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyjoinopt.joins.graph.algebra import ASSOCIATIVE, LEFT_ASSCOM, OPEN, RIGHT_ASSCOM, holds
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.null_rejection import rejects_nulls
from pyjoinopt.plan.nodes import FULL, LEFT

_LEFT_SIDE, _RIGHT_SIDE = 0, 1


@dataclass(frozen=True, eq=False)
class NonInnerJoin:
    """An outer, semi or anti join of the written order.

    Attributes:
        join_type: left, full, semi or anti.
        written: the relations on its left and on its right side as written.
        ses: the relations that its condition reads.
        condition: the condition.
        columns: the columns of each side that the condition reads, as attribute masks.
        fallible: whether the condition may throw; both sides must be as written then.
        pinned: whether no other join may associate into it. A NULL-rejecting predicate over what came in would let
            Spark turn it into an inner join (`plan.facts.equality_substitution.null_supplied_by_guarded`).
    """

    join_type: str
    written: tuple[int, int]
    ses: int
    condition: Expression
    columns: tuple[int, int]
    fallible: bool = False
    pinned: bool = False

    @property
    def below(self) -> int:
        """All relations under it as written."""
        return self.written[0] | self.written[1]

    @cached_property
    def closed(self) -> tuple[int, ...]:
        """Its null-supplying and filtering sides: 0 for the left, 1 for the right one."""
        return tuple(side for side in (0, 1) if not OPEN[self.join_type][side])

    @cached_property
    def _rejects_left(self) -> bool:
        return rejects_nulls(self.condition, self.columns[0])

    @cached_property
    def _rejects_right(self) -> bool:
        return rejects_nulls(self.condition, self.columns[1])

    def rejects(self, side: int) -> bool:
        """Whether the condition is never true where all columns of a side are NULL."""
        return self._rejects_left if side == _LEFT_SIDE else self._rejects_right


@dataclass(frozen=True, eq=False)
class InnerConjunct:
    """A conjunct of the inner joins, or of a filter.

    Attributes:
        needs: the relations without which it cannot be applied, as far as the predicate alone decides.
        ses: the relations that it reads.
        below: the relations under it as written.
        fallible: whether it may throw; it waits for all of `below` then, unless one relation is enough.
    """

    ses: int
    below: int
    needs: int
    fallible: bool = False


@dataclass(frozen=True)
class Eligibility:
    """What the sides of an operator must contain, and what they may contain at most (-1 for anything)."""

    left_tes: int
    right_tes: int
    max_left: int
    max_right: int

    @property
    def tes(self) -> int:
        """Its total eligibility set."""
        return self.left_tes | self.right_tes

    def at_most(self, side: int) -> int:
        """What a side may contain at most."""
        return self.max_left if side == _LEFT_SIDE else self.max_right


@dataclass(frozen=True, eq=False)
class _Hosted:
    """A join (`guest`) that associativity lets into a closed side of another one, with one of its own sides.

    A ⟕ (B ⟕q C) = (A ⟕ B) ⟕q C: the join with C may be applied in the null-supplying side of the join with B, and
    brings C along.
    """

    host: NonInnerJoin
    into: int
    guest: NonInnerJoin
    brings: int


@dataclass(frozen=True)
class _Below:
    """What is known when the next join up is processed.

    Attributes:
        joins: the eligibility of the operators processed before.
        conjuncts: the TES of conjuncts.
    """

    joins: Mapping[NonInnerJoin, Eligibility]
    conjuncts: Mapping[InnerConjunct, int]

    def inside(self, relations: int) -> list[NonInnerJoin]:
        """The operators of which all relations are among these."""
        return [join for join in self.joins if not join.below & ~relations]


@dataclass(frozen=True)
class _Tes:
    """What a side of a join must contain, and the joins (with a side each) that the join may associate into."""

    tes: int
    into: tuple[tuple[NonInnerJoin, int], ...] = ()


def compute_eligibility_sets(
    joins: Iterable[NonInnerJoin], conjuncts: Iterable[InnerConjunct]
) -> tuple[dict[NonInnerJoin, Eligibility], dict[InnerConjunct, int]]:
    """What the operators and conjuncts of a group must wait for.

    Args:
        joins: all outer, semi and anti joins.
        conjuncts: all conjuncts of inner joins and filters, those over one relation included.

    Returns:
        The eligibility of each operator, and the TES of each conjunct.
    """
    known: dict[NonInnerJoin, Eligibility] = {}
    tes: dict[InnerConjunct, int] = {}
    hosted: list[_Hosted] = []
    everything: list[NonInnerJoin | InnerConjunct] = [*joins, *conjuncts]
    for e in sorted(everything, key=lambda e: (e.below.bit_count(), isinstance(e, InnerConjunct))):
        if isinstance(e, InnerConjunct):
            tes[e] = _tes_of_conjunct(e, known)
            continue
        known[e], new = _eligibility_of(e, _Below(known, tes))
        hosted += new
        known = _with_hosted(known, hosted)
    return known, tes


def _tes_of_conjunct(conjunct: InnerConjunct, known: Mapping[NonInnerJoin, Eligibility]) -> int:
    tes = conjunct.needs
    for join, eligibility in known.items():
        inside = (eligibility.at_most(side) for side in join.closed)
        if not join.below & ~conjunct.below and any(conjunct.ses & most for most in inside):
            tes |= eligibility.tes
    return conjunct.below if conjunct.fallible and tes.bit_count() > 1 else tes


def _eligibility_of(join: NonInnerJoin, below: _Below) -> tuple[Eligibility, list[_Hosted]]:
    """The eligibility of a join as far as what is below it decides, and which joins host it."""
    left, right = (_tes_of_side(join, side, below) for side in (0, 1))
    most = [join.written[side] if side in join.closed else -1 for side in (0, 1)]
    hosted = [
        _Hosted(host, into, join, 1 - side)
        for side, found in enumerate((left, right))
        for host, into in found.into
        if below.joins[host].tes & ~found.tes
    ]
    return Eligibility(left.tes, right.tes, *most), hosted


def _with_hosted(
    known: Mapping[NonInnerJoin, Eligibility], hosted: Sequence[_Hosted]
) -> dict[NonInnerJoin, Eligibility]:
    """Maximum sets, grown by what hosted joins bring along, which may include what these host themselves."""
    grown, growing = dict(known), True
    while growing:
        growing = False
        for each in hosted:
            host, brought = grown[each.host], grown[each.guest].at_most(each.brings)
            if brought & ~host.at_most(each.into):
                side = "max_left" if each.into == _LEFT_SIDE else "max_right"
                grown[each.host] = replace(host, **{side: host.at_most(each.into) | brought})
                growing = True
    return grown


def _tes_of_side(join: NonInnerJoin, side: int, below: _Below) -> _Tes:
    reads = join.ses & join.written[side]
    if join.fallible or not (reads or side in join.closed):
        return _Tes(join.written[side])
    if side in join.closed:
        return _tes_of_closed_side(join, side, reads, below)
    return _tes_of_preserved_side(join, reads, below)


def _tes_of_preserved_side(join: NonInnerJoin, reads: int, below: _Below) -> _Tes:
    """What the left side of a left, semi or anti join must contain."""
    tes = reads
    into: list[tuple[NonInnerJoin, int]] = []
    for lower in below.inside(join.written[_LEFT_SIDE]):
        eligibility = below.joins[lower]
        for side in lower.closed:
            most = eligibility.at_most(side)
            if reads & most:
                if not reads & ~most and _may_associate_into(lower, side, join, _LEFT_SIDE):
                    into.append((lower, side))
                else:
                    tes |= eligibility.tes
    return _Tes(tes, tuple(into))


def _may_associate_into(lower: NonInnerJoin, into: int, upper: NonInnerJoin, side: int) -> bool:
    """Whether `upper`, which on its `side` reads only what `lower` has on its side `into`, may be applied in there."""
    if lower.fallible or lower.pinned:
        return False
    if side == _LEFT_SIDE:
        law = (ASSOCIATIVE if into == _RIGHT_SIDE else LEFT_ASSCOM)[lower.join_type, upper.join_type]
        first, second = (lower, into), (upper, side)
    else:
        law = (ASSOCIATIVE if into == _LEFT_SIDE else RIGHT_ASSCOM)[upper.join_type, lower.join_type]
        first, second = (upper, side), (lower, into)
    if law <= 0:
        return law == 0
    return holds(law, first[0].rejects(first[1]), second[0].rejects(second[1]))


def _tes_of_closed_side(join: NonInnerJoin, side: int, reads: int, below: _Below) -> _Tes:
    """What a closed side must contain: all that was in it as written, but for what is detachable."""
    whole = join.written[side]
    inside = below.inside(whole)
    tes, gone = reads, 0
    detached: list[tuple[NonInnerJoin, int]] = []
    skipped: list[int] = []
    for lower in sorted(inside, key=lambda e: -e.below.bit_count()):
        if any(not lower.below & ~part for part in skipped):
            continue
        off = _detachable_side(lower, join, side, reads, whole & ~gone, below.joins[lower])
        if off is None:
            tes |= below.joins[lower].tes
            if lower.join_type == join.join_type == FULL:
                continue  # what associates into it leaves it on top of the rest, and may be detachable here, too
            parts = [lower.written[place] for place in lower.closed]
        else:
            detached.append((lower, off))
            parts = [lower.written[off]]
        for part in parts:
            skipped.append(part)
            gone |= part
    tes |= whole & ~gone
    for conjunct, waits_for in below.conjuncts.items():
        if not conjunct.below & ~whole and not any(not conjunct.below & ~part for part in skipped):
            tes |= waits_for
    attached = [*detached, *((e, _RIGHT_SIDE) for e in inside if e.join_type == LEFT)]
    tes = _with_operators_of(tes, [(below.joins[lower], off) for lower, off in attached])
    return _Tes(tes, tuple((lower, 1 - off) for lower, off in detached if 1 - off in lower.closed))


def _with_operators_of(tes: int, detachable: Sequence[tuple[Eligibility, int]]) -> int:
    """A TES with the operators of the detachable parts that it contains something of."""
    changed = True
    while changed:
        changed = False
        for eligibility, off in detachable:
            if tes & eligibility.at_most(off) and eligibility.tes & ~tes:
                tes |= eligibility.tes
                changed = True
    return tes


def _detachable_side(
    lower: NonInnerJoin, upper: NonInnerJoin, side: int, reads: int, rest: int, eligibility: Eligibility
) -> int | None:
    """The side of `lower`, in the closed `side` of `upper`, that may be joined after `upper`; None if neither may."""
    if lower.join_type == LEFT and not reads & eligibility.max_right:
        return _RIGHT_SIDE if _may_associate_into(lower, _LEFT_SIDE, upper, side) else None
    if lower.join_type == upper.join_type == FULL:
        for place in (0, 1):
            kept = lower.written[1 - place]
            if not rest & ~kept & ~eligibility.at_most(place) and not reads & kept:
                return 1 - place if _may_associate_into(lower, place, upper, side) else None
    return None
