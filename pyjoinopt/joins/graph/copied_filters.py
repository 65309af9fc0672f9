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

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    classes = {vertices for vertices in equals.values() if vertices.bit_count() > 1}
    if not classes or (len(classes) == 1 and max(classes).bit_count() == 2):
        return False
    shared = sum(1 << bit for bit, vertices in equals.items() if vertices in classes)
    read = [(vertex, e.references) for vertex, one in enumerate(inputs) for e in _fallible(one.plan, filters[vertex])]
    owned = sum(1 << bit for bit in columns)
    for mask in above:  # of the columns of relations, all in one if it is a filter of a relation
        of = reduce(or_, (columns[bit] for bit in members(mask & owned)), 0)
        read.append((of.bit_length() - 1, mask & owned))
    links: list[tuple[int, int, int]] = []
    for vertex, mask in read:
        mask = _below_projections(mask, inputs[vertex])
        reached = {equals[bit] for bit in members(mask & shared)}
        if len(reached) > 1 or any(vertices.bit_count() > 2 for vertices in reached):
            together = max(reached)
            if len(reached) > 1 or mask.bit_count() > 1 or padded & together:
                return True
            links = links or [*_links(inferring, columns), *_renamed(inputs, columns)]
            if not _reaches_all(tree, vertex, together, mask, links):
                return True
    return False


def _below_projections(read: int, one: JoinInput) -> int:
    """What a filter reads once Spark has moved it below the projections of an input, as a set of columns."""
    for e in reversed(one.columns):
        if e.attribute is not None and e.attribute.mask & read:
            read = read & ~e.attribute.mask | e.references
    return read


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
                        yield one.references, other.references, columns.get(other.references.bit_length() - 1, 0)


def _renamed(inputs: Iterable[JoinInput], columns: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """The same from a column to its other name in a projection."""
    for e in (e for one in inputs for e in one.columns):
        if e.attribute is not None and e.children[0].kind == "AttributeReference":
            yield e.references, e.attribute.mask, columns.get(e.attribute.bit, 0)


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
    for one in (1 << vertex, *filter(None, reversed(brought))):
        reached = [other for known, other, at in links if known & column and at == one]
        if not reached and one != 1 << vertex:  # also if there are several: a link ends at one
            return False
        column = reduce(or_, reached, column)
        for known, other, at in links:  # and its other names
            column |= other if known & column and at == one else 0
    return True
