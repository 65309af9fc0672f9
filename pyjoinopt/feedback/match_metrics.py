"""True row counts, read off what Spark did, for the sets of relations of a join group.

The plan that was run still carries the column ids of the plan that was ordered. So every operator that was run is
known by the relations below it, and the highest one above just these relations has the count of their join. Nothing is
taken from an operator that may have stopped early (below a limit), that a filter made at run time has thinned out, or
whose relations are not all known. A count of zero is used only where all was read: a join with an empty side
does not read the other one, whose rows are then 0 as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyjoinopt.plan.leaves import leaves_of
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.outer_references import joined_plans
from pyjoinopt.plan.traversal import post_order

#: An operator of `ExecutedPlan`'s JSON.
Operator = Mapping[str, Any]

_NOT_ONE = -1  # a column id that more than one relation has


@dataclass(frozen=True)
class Observation:
    """One set of relations: how many rows were estimated, and how many there were.

    Attributes:
        relations: their names.
        estimated: rows, by the estimate that the order rests on.
        actual: rows, as counted by Spark.
    """

    relations: tuple[str, ...]
    estimated: float
    actual: float

    @property
    def q_error(self) -> float:
        """How many times too high or too low the estimate was; both sides count as at least one row.

        >>> Observation(("a",), 10.0, 40.0).q_error
        4.0
        """
        high, low = max(self.estimated, self.actual, 1.0), max(min(self.estimated, self.actual), 1.0)
        return high / low


def column_owners(
    relations: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan] | None = None
) -> dict[int, int]:
    """Column id -> the one vertex that it comes from, or `_NOT_ONE`.

    Args:
        relations: the vertices.
        definitions: of common table expressions; one that two vertices read belongs to neither.
    """
    owners: dict[int, int] = {}
    for vertex, (plan, leaves) in enumerate(zip(relations, _leaves_read(relations, definitions))):
        for attribute in (*plan.output, *(a for leaf in leaves for a in leaf.output)):
            known = owners.setdefault(attribute.id, vertex)
            if known != vertex:
                owners[attribute.id] = _NOT_ONE
    return owners


def leaf_counts(
    relations: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan] | None = None
) -> tuple[int, ...]:
    """Per vertex how many leaves it is read from at least; a common table expression is what its definition reads."""
    known = definitions or {}
    return tuple(sum(leaf.info.get("cte") not in known for leaf in leaves) for leaves in _leaves_read(relations, known))


def _leaves_read(
    relations: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan] | None
) -> list[list[LogicalPlan]]:
    """The leaves of each relation, those of subqueries among them that Spark will join with it."""
    found = leaves_of(relations, definitions)
    for plan, leaves in zip(relations, found):
        for subquery in (p for node in post_order(plan) for e in node.expressions for p in joined_plans(e)):
            leaves.extend(*leaves_of([subquery], definitions))
    return found


def observed_rows(plan: Sequence[Operator], owners: Mapping[int, int], leaves: Sequence[int]) -> dict[int, float]:
    """Set of vertices -> true rows, of all sets whose join this plan has made; for the arguments see `located`."""
    counts = {relations: float(plan[i]["m"]["numOutputRows"]) for relations, i in located(plan, owners, leaves).items()}
    return {relations: n for relations, n in counts.items() if not _never_ran(relations, counts)}


def located(plan: Sequence[Operator], owners: Mapping[int, int], leaves: Sequence[int]) -> dict[int, int]:
    """Set of vertices -> the operator that gives their join.

    Args:
        plan: operators in post-order.
        owners: of column ids, see `column_owners`.
        leaves: of each vertex, see `leaf_counts`.
    """
    below: list[int] = []  # per operator the vertices below it
    read: list[int] = []  # ... the leaves below it
    sure: list[bool] = []  # ... whether that is all there is below it
    whole: dict[int, int] = {}  # vertex -> leaves that it is read from
    for operator in plan:
        children = operator["k"]
        reads = 0
        trusted = not operator.get("reduced", False) and all(sure[child] for child in children)
        for child in children:
            reads |= below[child]
        if not children:
            owner = {owners.get(column, _NOT_ONE) for column in operator["o"]}
            trusted = trusted and len(owner) == 1 and _NOT_ONE not in owner
            if trusted:
                vertex = owner.pop()
                reads = 1 << vertex
                whole[vertex] = whole.get(vertex, 0) + 1
        below.append(reads)
        sure.append(trusted)
        read.append(sum(read[child] for child in children) if children else 1)
    was_read = _was_read(plan)
    found: dict[int, int] = {}
    for i, (operator, reads, trusted) in enumerate(zip(plan, below, sure)):
        if "numOutputRows" not in operator["m"] or not trusted or not reads or operator.get("limited"):
            continue
        inside = [v for v in range(len(leaves)) if reads >> v & 1]
        if read[i] != sum(whole[v] for v in inside) or any(whole[v] < leaves[v] for v in inside):
            continue  # one branch of several
        if not operator["m"]["numOutputRows"] and not was_read[i]:
            continue
        if len(inside) < len(leaves) or _joins(operator, plan):  # operators above the whole group are no part of it
            found[reads] = i
    return found


def _was_read(plan: Sequence[Operator]) -> list[bool]:
    """Per operator whether all leaves below it were read, even if no row came.

    A leaf was if rows came out of it, or if it feeds an exchange, with no join in between, that has worked.
    """
    feeds: dict[int, int] = {child: i for i, operator in enumerate(plan) for child in operator["k"]}
    read: list[bool] = []
    for i, operator in enumerate(plan):
        if operator["k"]:
            read.append(all(read[child] for child in operator["k"]))
            continue
        above: int | None = i
        while above is not None and "Exchange" not in plan[above]["c"]:
            above = feeds.get(above)
            if above is not None and len(plan[above]["k"]) != 1:
                above = None
        worked = above is not None and any(name != "numOutputRows" for name in plan[above]["m"])
        read.append(worked or operator["m"].get("numOutputRows", 0) > 0)
    return read


def _joins(operator: Operator, plan: Sequence[Operator]) -> bool:
    """Whether rows of two inputs meet here: in a join, or in the filter over what an existence join has marked."""
    if operator["c"] == "Filter":
        return bool(plan[operator["k"][0]].get("marks"))
    joins_two = len(operator["k"]) == 2 and ("Join" in operator["c"] or "Product" in operator["c"])
    return joins_two and not operator.get("marks")


def _never_ran(relations: int, rows: Mapping[int, float]) -> bool:
    """True for a count of 0 below a count that is not: a stage whose old result was taken once more counts nothing."""
    return rows[relations] == 0 and any(n > 0 and not relations & ~other for other, n in rows.items())
