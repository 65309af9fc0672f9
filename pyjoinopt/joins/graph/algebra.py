"""Which neighbouring joins may change places: the algebra of pairs of join types.

Three moves make every join order out of every other one (with inner and full joins also exchanging their sides):

    associativity    (R1 a R2) b R3  =  R1 a (R2 b R3)       the condition of b reads R2 and R3
    left asscom      (R1 a R2) b R3  =  (R1 b R3) a R2       the condition of b reads R1 and R3
    right asscom     R1 a (R2 b R3)  =  R2 b (R1 a R3)       the condition of a reads R1 and R3

Whether a move keeps the rows depends on the types of a and b, and in a few cells on more: an outer join pads rows
with NULLs, and where the other join would then compare the padding, its condition must be sure to answer anything but
true. Such a condition *rejects NULLs* on the side that both joins share: R2, R1 and R3 in the three moves.

A cell is `+` (always), `-` (never), `1` (the condition of a must reject NULLs), `2` (that of b must), `12` (both)
or `.` (the condition would read a column that a semi or anti join does not have, so there is no such case).
The tables hold for conditions that read both of their sides. They are no copy: a test finds every cell by trying all
small relations, NULLs and duplicates included.

Source: the names of the moves are those of Moerkotte, Fender and Eich, "On the Correct and Complete Enumeration of
the Core Search Space" (SIGMOD 2013).
"""

from __future__ import annotations

from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI

#: The types that the tables speak of; a right join is a left one with its sides exchanged.
JOIN_TYPES = (INNER, SEMI, ANTI, LEFT, FULL)

#: Which conditions must reject NULLs for a move: bits of `FIRST` and `SECOND`; NEVER if nothing helps.
FIRST, SECOND, NEVER = 1, 2, -1

_CELLS = {"+": 0, "-": NEVER, ".": NEVER, "1": FIRST, "2": SECOND, "12": FIRST | SECOND}

Table = dict[tuple[str, str], int]


def _table(text: str) -> Table:
    """Rows are the first join (a), columns the second one (b), both in the order of `JOIN_TYPES`."""
    rows = [line.split()[1:] for line in text.strip().splitlines()[1:]]
    return {
        (a, b): _CELLS[cell]
        for a, cells in zip(JOIN_TYPES, rows, strict=True)
        for b, cell in zip(JOIN_TYPES, cells, strict=True)
    }


ASSOCIATIVE = _table(
    """
            inner  semi  anti  left  full
    inner     +     +     +     +     -
    semi      .     .     .     .     .
    anti      .     .     .     .     .
    left      -     -     -     2     -
    full      -     -     -     2     12
    """
)
LEFT_ASSCOM = _table(
    """
            inner  semi  anti  left  full
    inner     +     +     +     +     -
    semi      +     +     +     +     -
    anti      +     +     +     +     -
    left      +     +     +     +     1
    full      -     -     -     2     12
    """
)
RIGHT_ASSCOM = _table(
    """
            inner  semi  anti  left  full
    inner     +     .     .     -     -
    semi      .     .     .     .     .
    anti      .     .     .     .     .
    left      -     .     .     -     -
    full      -     .     .     -     12
    """
)


def holds(need: int, first_rejects: bool, second_rejects: bool) -> bool:
    """Whether a cell allows the move, given which conditions reject NULLs on the shared side.

    >>> holds(ASSOCIATIVE[LEFT, LEFT], first_rejects=False, second_rejects=True)
    True
    >>> holds(ASSOCIATIVE[LEFT, INNER], first_rejects=True, second_rejects=True)
    False
    """
    return need >= 0 and (not need & FIRST or first_rejects) and (not need & SECOND or second_rejects)


def _open(join_type: str) -> tuple[bool, bool]:
    """Per side of a join whether relations that nothing connects with it may be multiplied in and out there."""
    left = LEFT_ASSCOM[join_type, INNER] == 0 and ASSOCIATIVE[INNER, join_type] == 0
    right = ASSOCIATIVE[join_type, INNER] == 0 and RIGHT_ASSCOM[INNER, join_type] == 0
    return left, right


#: join type -> per side whether it is *open*: a join with any other relation may happen before or after. The other
#: sides are *closed*: those that the join pads, and the right side of a semi or anti join.
OPEN = {join_type: _open(join_type) for join_type in JOIN_TYPES}
