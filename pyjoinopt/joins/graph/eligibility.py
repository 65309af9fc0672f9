"""What must be joined before an outer, semi or anti join, and what must not: legality as sets of relations.

An order is a tree of binary joins. Inner joins are cross products that a filter stands on, conjunct by conjunct, so
a group consists of relations, *filters* (inner conjuncts) and *operators* (each outer, semi or anti join, its
condition whole). A node of an order applies an operator or is a cross product, and filters go on top of the first
node that has what they require. Whether such an order gives the rows of the written one is decided a node at a time,
from the two sets of relations that it joins:

* an operator has a set on each side that must be there (`sides`: its *total eligibility set*, by side), and a set
  that its side must not exceed (`room`);
* the node that first has both of an operator's sets must apply it, sides as they should be;
* a filter has one set that must be there (`required`).

All of this follows from the tables of `conflicts`, going up the written order. What counts is which sides are open
(anything may be multiplied in, before or after: the left side of a left, semi or anti join) and which are closed (a
side that is padded or looked into).

**A closed side** must hold all that stood in it as written, filters applied, for nothing can be multiplied in later.
Its room is what stood in it. The exceptions are joins whose condition rejects NULLs:

    A ⟕ (B ⟕q C)  =  (A ⟕ B) ⟕q C        if q rejects NULLs on B

so C is *peeled* off the left side's requirements of the lower tree; and, the same law from the other end, C may *slip*
into the closed side of the right one: its room grows by C.

**What reads a closed side from above**, a filter or an operator, must wait for that side's operator, unless it is an
operator that may slip in. It need not wait for more than that operator's own sets.

The method is conflict detection as in "On the Correct and Complete Enumeration of the Core Search Space" (Moerkotte,
Fender and Eich 2013, CD-C), with three departures. Inner joins are taken apart into product and filters, so they have
no conflict rules of their own, and products need no predicate. What CD-C says by conditional rules over the union of
both inputs (if something of T1 is there, all of T2 must be) is said here by `room`, which knows on which side things
are; rules would let A ⟕ (B × C) pass, and CD-C only excludes it because it knows no product. And for a full join the
requirements are those of the whole padded side, not of what the condition reads.

Some operators keep more than they need, so that some right orders count as illegal, never the other way round: a
condition that may fail at run time requires both sides as written; one that reads nothing on an open side (`b LEFT JOIN
c ON true`) requires the whole of that side as written, though any part of it would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pyjoinopt.joins.graph.algebra import ASSOCIATIVE, LEFT_ASSCOM, OPEN, RIGHT_ASSCOM, holds
from pyjoinopt.plan.nodes import FULL, LEFT


@dataclass(eq=False)
class NonInnerJoin:
    """An outer, semi or anti join of the written order; `compute_eligibility_sets` fills in `sides` and `room`.

    Attributes:
        join_type: left, full, semi or anti.
        written: the relations on its left and right side as written.
        reads: the relations that its condition reads.
        rejects: tells for a side (0 left, 1 right) whether the condition is never true where all columns of that
            side are NULL.
        fixed: whether both sides must be as written (the condition may fail at run time).
        guarded: whether Spark must not find it needless (`plan.facts.equality_substitution.null_supplied_by_guarded`).
        What
            stands above it and rejects NULLs in what associativity brought into its null-supplying side would do that.
        guests: operators that may slip into one of its sides: (that side, operator, the side that it brings along).
    """

    join_type: str
    written: tuple[int, int]
    reads: int
    rejects: Callable[[int], bool]
    fixed: bool = False
    guarded: bool = False
    sides: tuple[int, int] = (0, 0)
    room: list[int] = field(default_factory=list)
    guests: list[tuple[int, NonInnerJoin, int]] = field(default_factory=list)

    @property
    def below(self) -> int:
        """All relations under it as written."""
        return self.written[0] | self.written[1]

    @property
    def required(self) -> int:
        """Its total eligibility set."""
        return self.sides[0] | self.sides[1]

    @cached_property
    def closed(self) -> tuple[int, ...]:
        """The sides that are closed."""
        return tuple(side for side in (0, 1) if not OPEN[self.join_type][side])


@dataclass(eq=False)
class InnerConjunct:
    """A conjunct of the inner joins; `compute_eligibility_sets` widens `required` from what it reads to what it must
    wait for.

    Attributes:
        reads: the relations that it reads.
        below: the relations under it as written.
        required: the relations without which it may not be applied.
        fixed: whether that must be all of `below`, unless one relation will do (it may fail at run time).
    """

    reads: int
    below: int
    required: int
    fixed: bool = False


def compute_eligibility_sets(operators: Iterable[NonInnerJoin], filters: Iterable[InnerConjunct]) -> None:
    """Work out what the operators and filters of a group must wait for.

    Args:
        operators: all outer, semi and anti joins.
        filters: all conjuncts of inner joins and filters, those over one relation included.
    """
    found: list[NonInnerJoin] = []
    placed: list[InnerConjunct] = []
    everything: list[NonInnerJoin | InnerConjunct] = [*operators, *filters]
    for e in sorted(everything, key=lambda e: (e.below.bit_count(), isinstance(e, InnerConjunct))):
        if isinstance(e, InnerConjunct):
            for operator in found:
                if not operator.below & ~e.below and e.reads & _enclosed(operator):
                    e.required |= operator.required
            if e.fixed and e.required.bit_count() > 1:
                e.required = e.below
            placed.append(e)
        else:
            _settle(e, found, placed)
            found.append(e)
            _let_guests_bring_guests(found)


def _enclosed(operator: NonInnerJoin) -> int:
    """All that the closed sides of the operator may hold."""
    held = 0
    for side in operator.closed:
        held |= operator.room[side]
    return held


def _settle(upper: NonInnerJoin, found: list[NonInnerJoin], placed: list[InnerConjunct]) -> None:
    upper.room = [upper.written[side] if side in upper.closed else -1 for side in (0, 1)]
    slips: list[tuple[NonInnerJoin, int, int]] = []
    sides = []
    for side in (0, 1):
        inside = [e for e in found if not e.below & ~upper.written[side]]
        reads = upper.reads & upper.written[side]
        if upper.fixed or not (reads or side in upper.closed):
            sides.append(upper.written[side])
        elif side in upper.closed:
            sides.append(_closed(upper, side, reads, inside, placed, slips))
        else:
            sides.append(_open(upper, reads, inside, slips))
    upper.sides = (sides[0], sides[1])
    for lower, place, side in slips:
        if lower.required & ~sides[side]:
            lower.room[place] |= upper.written[1 - side]
            lower.guests.append((place, upper, 1 - side))


def _let_guests_bring_guests(operators: list[NonInnerJoin]) -> None:
    """What slipped into an operator's side may hold what slipped into it: that side is any relation to the law."""
    growing = True
    while growing:
        growing = False
        for host in operators:
            for place, guest, side in host.guests:
                if guest.room[side] & ~host.room[place]:
                    host.room[place] |= guest.room[side]
                    growing = True


def _open(
    upper: NonInnerJoin, reads: int, inside: list[NonInnerJoin], slips: list[tuple[NonInnerJoin, int, int]]
) -> int:
    """What the left side of a left, semi or anti join must hold."""
    must = reads
    for lower in inside:
        for place in lower.closed:
            if reads & lower.room[place]:
                if not reads & ~lower.room[place] and _may_slip(lower, place, upper, 0):
                    slips.append((lower, place, 0))
                else:
                    must |= lower.required
    return must


def _may_slip(lower: NonInnerJoin, place: int, upper: NonInnerJoin, side: int) -> bool:
    """May `upper`, which reads on its `side` only what `lower` has in `place`, be applied below `lower`, in there?"""
    if lower.fixed or lower.guarded:
        return False
    if side == 0:
        law = (ASSOCIATIVE if place == 1 else LEFT_ASSCOM)[lower.join_type, upper.join_type]
        first, second = (lower, place), (upper, side)
    else:
        law = (ASSOCIATIVE if place == 0 else RIGHT_ASSCOM)[upper.join_type, lower.join_type]
        first, second = (upper, side), (lower, place)
    if law <= 0:
        return law == 0
    return holds(law, first[0].rejects(first[1]), second[0].rejects(second[1]))


def _closed(
    upper: NonInnerJoin, side: int, reads: int, inside: list[NonInnerJoin], placed: list[InnerConjunct],
    slips: list[tuple[NonInnerJoin, int, int]],
) -> int:  # fmt: skip
    """What a closed side must hold: all that stood there as written, but for what may be peeled off."""
    whole = upper.written[side]
    must, apart = reads, 0
    peeled: list[tuple[NonInnerJoin, int]] = []
    skipped: list[int] = []
    for lower in sorted(inside, key=lambda e: -e.below.bit_count()):
        if any(not lower.below & ~part for part in skipped):
            continue
        off = _peeled_side(lower, upper, side, reads, whole & ~apart)
        if off is None:
            must |= lower.required
            if lower.join_type == upper.join_type == FULL:
                continue  # what slips in below it leaves it on top of the rest, and may be peeled off here too
            for place in lower.closed:
                skipped.append(lower.written[place])
                apart |= lower.written[place]
        else:
            peeled.append((lower, off))
            skipped.append(lower.written[off])
            apart |= lower.written[off]
    must |= whole & ~apart
    for waiting in placed:
        if not waiting.below & ~whole and not any(not waiting.below & ~part for part in skipped):
            must |= waiting.required
    changed = True
    while changed:  # what is there of a peeled part brings its operator with it
        changed = False
        for lower, off in [*peeled, *((e, 1) for e in inside if e.join_type == LEFT)]:
            if must & lower.room[off] and lower.required & ~must:
                must |= lower.required
                changed = True
    slips.extend((lower, 1 - off, side) for lower, off in peeled if 1 - off in lower.closed)
    return must


def _peeled_side(lower: NonInnerJoin, upper: NonInnerJoin, side: int, reads: int, rest: int) -> int | None:
    """The side of `lower`, in the closed `side` of `upper`, that may be joined after `upper`; None if neither may."""
    if lower.join_type == LEFT and not reads & lower.room[1]:
        return 1 if _may_slip(lower, 0, upper, side) else None
    if lower.join_type == upper.join_type == FULL:
        for place in (0, 1):
            if not rest & ~lower.written[1 - place] & ~lower.room[place] and not reads & lower.written[1 - place]:
                return 1 - place if _may_slip(lower, place, upper, side) else None
    return None
