"""What is requested of the sample of one leaf, and of the relations that it is joined with in a star."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyjoinopt.estimation.sources.column_lineage import number_of
from pyjoinopt.estimation.sources.registry import Files
from pyjoinopt.estimation.sources.star_joins import Star
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(frozen=True)
class SampleRequest:
    """What is requested of one leaf.

    Attributes:
        leaf, files, conjuncts: the relation, and what is evaluated on its sample.
        entry: the request.
        joined: whether the leaf is of some star.
        star: the one of which it is the centre.
        predicates: of that star, number of a leaf -> its conjuncts.
    """

    leaf: LogicalPlan
    files: Files
    conjuncts: Sequence[Expression]
    entry: dict[str, Any]
    joined: bool
    star: Star | None = None
    predicates: dict[int, Sequence[Expression]] = field(default_factory=dict)

    def again(self, read: bool, blob: bytes | None) -> SampleRequest:
        """The same with what the store has, and perhaps with files that may be opened."""
        stored = {} if blob is None else {"blob": base64.b64encode(blob).decode("ascii")}
        return replace(self, entry={**self.entry, "read": read, **stored})

    def without_dimensions(self) -> SampleRequest:
        """The same for the relation alone, although it may have dimensions of its own."""
        return replace(self, entry={k: v for k, v in self.entry.items() if k != "dimensions"}, star=None)


def with_dimensions(requested: Sequence[SampleRequest], stars: Sequence[Star]) -> list[SampleRequest]:
    """The same with the dimensions of each star, which are entries of the same request."""
    place = {number_of(one.leaf): i for i, one in enumerate(requested)}
    of_center = {number_of(star.center): star for star in stars}
    predicates = {number_of(one.leaf): one.conjuncts for one in requested}
    found = []
    for one in requested:
        star = of_center.get(number_of(one.leaf))
        if star is not None and all(number_of(d.leaf) in place for d in star.dimensions):
            dimensions = [
                {
                    "relation": place[number_of(d.leaf)], "of": d.of, "columns": [a.bit for a in d.columns],
                    "key": [a.bit for a in d.key],
                }
                for d in star.dimensions
            ]
            one = replace(one, entry={**one.entry, "dimensions": dimensions}, star=star, predicates=predicates)
        found.append(one)
    return found


def selects(conjuncts: Sequence[Expression]) -> bool:
    """Whether they do more than to leave out NULLs."""
    return any(e.kind != "IsNotNull" for e in conjuncts)
