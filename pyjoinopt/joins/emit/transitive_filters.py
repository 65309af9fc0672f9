"""Filters across equality classes: from a.k = b.k, b.k = c.k and c.k > 5 follows a.k > 5.

Spark infers such filters, too, but one join at a time, and loses between two joins what a projection there leaves out.
So it depends on the order for which relations it infers them. A new order is emitted with all of them: fewer rows reach
the joins, and no expression of a relation is evaluated on rows that the written order had filtered out.

A filter is inferred where the equality holds as soon as both sides are there, and waits for no outer join: no row that
it removes would have found a partner. And it must do no new harm. Spark pushes a filter down to where its columns come
from, so it is inferred for columns that are read as they are, never for computed ones, which would be computed for more
rows.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_

from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression, substitute
from pyjoinopt.plan.facts.equality_substitution import null_supplied
from pyjoinopt.plan.facts.or_extraction import top_filters
from pyjoinopt.plan.facts.value_numbers import ValueNumbering
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import OUTER, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: Values of other types may be equal and differ in what is computed of them: 0.0 and -0.0, texts under a collation.
_EXACT = frozenset("boolean tinyint smallint int bigint decimal date timestamp timestamp_ntz string binary".split())
_MOST = limits.PROPAGATED_FILTERS


def transitive_filters(graph: JoinGraph) -> dict[int, list[Expression]]:
    """What follows for each relation from the filters of the others: conjuncts over one column.

    Args:
        graph: of a group.

    Returns:
        Vertex -> conjuncts, without those that its plan tests anyway; only vertices that have some.
    """
    equals = _equals(graph)
    passed = [
        (vertex, p)
        for vertex, plan in enumerate(graph.relations if equals else ())
        for p in top_filters(plan)
        if not p.references & ~plan.output_set  # of hidden columns, another relation may have namesakes
    ]
    meaning = ValueNumbering()
    known = {(vertex, meaning(p)) for vertex, p in passed}
    found: dict[int, list[Expression]] = defaultdict(list)
    pending = [p for _, p in passed if _may_be_inferred(p)]
    for conjunct in pending:  # which grows
        bit = conjunct.references.bit_length() - 1
        for vertex, other in equals.get(bit, ()):
            inherited = substitute(conjunct, {bit: other})
            if (vertex, meaning(inherited)) not in known and len(known) < _MOST:
                known.add((vertex, meaning(inherited)))
                found[vertex].append(inherited)
                pending.append(inherited)
    return dict(found)


def _equals(graph: JoinGraph) -> dict[int, list[tuple[int, Expression]]]:
    """Column (its bit) -> what it equals in other relations, each a column or a cast one, and the vertex of it."""
    found: dict[int, list[tuple[int, Expression]]] = defaultdict(list)
    read: dict[int, int] = {}
    for edge in graph.edges:
        if edge.keys is None or edge.implied or edge.predicate.kind != "EqualTo" or edge.tes != edge.ses:
            continue
        if any(not operator.tes & ~edge.tes for operator in graph.operators):
            continue  # it may stand above this operator
        for (_, column), (side, other) in (edge.keys, edge.keys[::-1]):
            vertex = side.bit_length() - 1
            if column.attribute is None or column.type.split("(")[0] not in _EXACT or side.bit_count() != 1:
                continue
            plain = other.children[0] if other.kind == "Cast" and not fallibility.may_throw(other) else other
            if vertex not in read:
                read[vertex] = _read_as_they_are(graph.relations[vertex])
            if plain.kind == "AttributeReference" and not plain.references & ~read[vertex]:
                found[column.attribute.bit].append((vertex, other))
    return found


def _read_as_they_are(plan: LogicalPlan) -> int:
    """The columns of the leaves of a plan that no outer join in it supplies NULLs for.

    A filter on one of the others would make that join an inner one, and its condition would be tested on other rows.
    """
    nodes = list(post_order(plan))
    leaves = reduce(or_, (node.output_set for node in nodes if not node.children or node.cached), 0)
    outer = (node for node in nodes if isinstance(node, Join) and node.join_type in OUTER)
    return leaves & ~reduce(or_, map(null_supplied, outer), 0)


def _may_be_inferred(e: Expression) -> bool:
    """Whether a filter may be copied to another relation; IS NOT NULL need not: Spark infers it from equalities."""
    return (
        e.kind != "IsNotNull"
        and e.references.bit_count() == 1
        and fallibility.is_movable(e)
        and not fallibility.may_throw(e)
        and not fallibility.is_costly(e)
    )
