"""To which relations Spark copies a filter that may throw, and whether the join order decides it.

From `r.k = s.k` and a filter on `r.k` Spark infers the same filter on `s.k` (InferFiltersFromConstraints), once for the
whole plan, at each join from what it knows of columns that the join can still see.

    r JOIN (s JOIN t ON s.k = t.k) ON r.k = s.k WHERE 100 / r.k > 5

The upper join gives `100 / s.k > 5` to its right side. Nothing above the lower join reads `t.k`, column pruning has
hidden it, and no filter on `t` is inferred. In the order `(r JOIN s) JOIN t` it is, so `100 / t.k` is computed for rows
of `t` that meet no row of `s`, and in ANSI mode a query that ran fails where one of them is 0.

The rule here: another order must not add a copy. Two relations of an equality class are joined by one join whatever the
order. With three or more it is enough that the *written* order copies the filter to all of them, for then no order can
add one (`_reaches_all`). What cannot be shown keeps its order.

Source: Catalyst's `InferFiltersFromConstraints`, `ConstraintHelper`, `ColumnPruning`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from pyjoinopt.joins.graph.fallible_predicates import equated_vertices
from pyjoinopt.joins.groups.join_group import Conjunct, JoinInput
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.facts.constraints import PlanFacts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.bitset import members


def order_decides_copies(
    inputs: Sequence[JoinInput],
    filters: Sequence[Iterable[Expression]],
    padded: int,
    written: Sequence[Conjunct],
    tree: JoinTree,
    columns: Mapping[int, int],
    above: Iterable[int] = (),
) -> bool:
    """Whether another join order may let Spark copy a filter that may throw to a relation that has no copy as written.

    Args:
        inputs: of each vertex.
        filters: per vertex the conjuncts of the group that read it alone.
        padded: the vertices whose columns an outer join of the group fills up with NULLs.
        written: the predicates of the group.
        tree: the order as written.
        columns: column -> its vertices, as a set; of the right sides of semi and anti joins, too.
        above: the columns that predicates above the group read that may throw, and that Spark moves into it.
    """
    inferring = [conjunct for conjunct in written if conjunct.subquery is None]  # the others are IN or EXISTS again
    equals = equated_vertices(inferring, columns, (e for one in inputs for e in one.columns))
    shared = {bit for bit, vertices in equals.items() if vertices.bit_count() > 1}
    if any(_may_have_copies(_classes(mask, equals, shared)) for mask in above):
        return True
    for vertex, one in enumerate(inputs if shared else ()):
        for e in _fallible(one.plan, filters[vertex]):
            classes = _classes(e.references, equals, shared)
            if not _may_have_copies(classes):
                continue
            if len(classes) > 1 or e.references.bit_count() > 1 or padded & max(classes):
                return True
            if not _reaches_all(tree, vertex, max(classes), e.references, tuple(_links(inferring, columns))):
                return True
    return False


def _classes(read: int, equals: Mapping[int, int], shared: Collection[int]) -> set[int]:
    """For each of some columns, the vertices to which a filter on it may be copied."""
    return {equals[bit] for bit in members(read) if bit in shared}


def _may_have_copies(classes: Collection[int]) -> bool:
    """Whether the order may decide which of these vertices get a copy of a filter."""
    return len(classes) > 1 or any(vertices.bit_count() > 2 for vertices in classes)


def _fallible(plan: LogicalPlan, own: Iterable[Expression]) -> list[Expression]:
    """The predicates over a vertex that may throw and of which Spark knows that they hold of every row of it."""
    found = list(filter(_may_throw, own))
    conditions = (e for node in post_order(plan) if isinstance(node, (Filter, Join)) for e in conjuncts(node.condition))
    if any(map(_may_throw, conditions)):
        found += filter(_may_throw, PlanFacts().constraints(plan))
    return found


def _may_throw(e: Expression) -> bool:
    return fallibility.may_throw(e) and not fallibility.is_meant_to_throw(e)


def _links(written: Iterable[Conjunct], columns: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """From which column to which Spark copies a filter, both as sets, and the vertex of the latter, as a set."""
    for conjunct in written:
        if conjunct.sides is None or conjunct.join_type == SEMI:
            for left, right, null_safe in equalities(conjunct.predicate):
                if left.kind == right.kind == "AttributeReference" and not null_safe:
                    for one, other in ((left, right), (right, left)):
                        yield one.references, other.references, columns[other.references.bit_length() - 1]


def _reaches_all(
    tree: JoinTree, vertex: int, together: int, column: int, links: Sequence[tuple[int, int, int]]
) -> bool:
    """Whether Spark certainly copies a filter of a vertex to all others of the equality class in the written order.

    Going up from the vertex, each join must bring at most one more of the class, set equal to one already there:
    a second one could be hidden by then.

    Args:
        tree: the order.
        vertex: that has the filter.
        together: the vertices of the class.
        column: that the filter reads, as a set.
        links: see `_links`.
    """
    brought = []
    while tree.left is not None and tree.right is not None:
        sides = (tree.left, tree.right) if tree.left.relations >> vertex & 1 else (tree.right, tree.left)
        brought.append(sides[1].relations & together)
        tree = sides[0]
    for one in filter(None, reversed(brought)):
        reached = reduce(or_, (other for known, other, at in links if known & column and at == one), 0)
        if not reached:  # also if there are several: a link ends at one
            return False
        column |= reached
    return True
