"""Semi joins of a dimension of which the other relations refer to one part only.

    SELECT * FROM sales JOIN days ON s_day = d_id WHERE d_date IN (SELECT h_date FROM holidays)

A calendar has the 73,000 days of two centuries, and the sales fill five years of it. A *filter* that keeps 20 days is
taken to mean days of these years (`estimation.plans.join_domains`): it keeps 20 in 1,826 of the sales. A semi join that
keeps 20 days filters the calendar, too, but it has a factor of its own, its share of the calendar, 20 in 73,000. So a
set with the calendar, the semi join and what refers to the calendar has 73,000 / 1,826 times as many rows as the
product of the three. The calendar and the semi join alone have not.

Two relations that refer to one calendar raise the rows once, and so do two semi joins of it, by the larger one of their
factors. These are minima over the relations of a set, as classes of equal columns are: with a value for each of some
relations, all but the largest of them count (`Term`, where the values are negative). Over the referring relations and
the right sides of semi joins together, less those over each of the two kinds, that is one value as soon as a set has
both kinds, and nothing before.

An *anti* join that removes 20 days keeps nearly everything of each part, and raises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyjoinopt.estimation.plans.join_domains import Member, met_domains
from pyjoinopt.joins.cardinality.composite_keys import Term

#: [logarithm] Row counts are rounded to nine digits of their logarithm.
_NOTHING = 1e-9
#: The columns of a class: the vertex of each, and what is known of it.
MembersOf = Sequence[tuple[int, Member]]


def raised_by_references(
    classes: Iterable[MembersOf], semi_joins: Mapping[int, Sequence[tuple[int, float]]]
) -> list[Term]:
    """The terms that raise the rows of sets in which a semi-joined dimension is referred to.

    Args:
        classes: the classes of equal columns.
        semi_joins: vertex of a dimension -> of each semi join of it the vertex of its right side, and the logarithm of
            the share of the dimension's rows that it keeps.
    """
    raises: dict[int, tuple[float, dict[int, float], list[int]]] = {}
    for members in classes:
        referring = sorted({vertex for vertex, m in members if m.key_values is None})
        for place, (vertex, m) in enumerate(members):
            if m.key_values is None or vertex in referring or vertex not in semi_joins:
                continue
            each = {right: _raise(members, place, log_share) for right, log_share in semi_joins[vertex]}
            most = max(each.values())
            if referring and most > max(_NOTHING, raises.get(vertex, (0.0,))[0]):
                raises[vertex] = most, each, referring  # by one of its keys, if there are several
    return [term for most, each, referring in raises.values() for term in _terms(each, dict.fromkeys(referring, most))]


def _raise(members: MembersOf, place: int, log_share: float) -> float:
    """By what a semi join of a dimension raises the rows of its join with what refers to it, as a logarithm.

    Args:
        members: the class.
        place: of the dimension's key in it.
        log_share: of the dimension's rows that are kept.
    """
    key = members[place][1]
    unfiltered = [m for _, m in members]
    filtered = [*unfiltered]
    filtered[place] = replace(key, kept=min(key.kept, key.rows) * math.exp(log_share))
    before, after = met_domains(unfiltered)[place], met_domains(filtered)
    return max(0.0, math.log(before / max(after)))


def _terms(semi_joins: Mapping[int, float], referring: Mapping[int, float]) -> list[Term]:
    """Terms that are worth the largest value of a set's semi joins if it has some relation that refers, too.

    The values of the latter must not be smaller than any of the semi joins.
    """
    parts = (1.0, {**semi_joins, **referring}), (-1.0, semi_joins), (-1.0, referring)
    return [
        Term(sign, {vertex: -value for vertex, value in values.items()}) for sign, values in parts if len(values) > 1
    ]
