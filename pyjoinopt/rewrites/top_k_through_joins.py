"""The first rows by an order are chosen before the joins that keep every row, and once more above them.

    before  SELECT o.*, c.name FROM orders o LEFT JOIN customer c ON o.customer = c.id ORDER BY o.day DESC LIMIT 10
    after   SELECT o.*, c.name FROM (SELECT * FROM orders ORDER BY day DESC LIMIT 10) o
            LEFT JOIN customer c ON o.customer = c.id ORDER BY o.day DESC LIMIT 10

The join drops no order, so the first ten of its rows are rows of the first ten orders: these make ten rows at least,
and no other order comes before them. Where several rows are equal by the order, Spark may return any of them, and here
as there it is not defined which.

Legal if

* the order and the limit are global, and there is no offset;
* what is ordered by is computed from columns of the row-preserving side: the left side of a left outer or existence
  join, the right side of a right outer join;
* between are only such joins, names, and projections, all deterministic;
* nothing is cached or read by others between, and that side is not limited already;
* the plan is not that of a correlated subquery, in which a limit holds for each row of the enclosing query.

Catalyst's LimitPushDown does this for limits without an order.

Source: Carey and Kossmann, "On saying 'enough already!' in SQL" (SIGMOD 1997): a stop operator below a join that is
non-reductive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pyjoinopt.plan.constructors import over
from pyjoinopt.plan.expressions import SUBQUERY, Expression, substitute
from pyjoinopt.plan.nodes import EXISTENCE, LEFT, RIGHT, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.outer_references import has_outer_references
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import parents_of, post_order
from pyjoinopt.rewrites.lost_columns import with_replacements

NAME = "top_k_through_joins"
#: Join type -> which child's rows it keeps.
_PRESERVED = {LEFT: 0, EXISTENCE: 0, RIGHT: 1}


class TopK(NamedTuple):
    """A place for the first rows.

    Attributes:
        operators: the limits and the sort above the joins, from the top.
        order: what is ordered by, in terms of `below`.
        rows: how many are wanted.
        below: the plan of whose rows the first are chosen.
        joined: the other sides of the joins above it.
    """

    operators: tuple[LogicalPlan, LogicalPlan, LogicalPlan]
    order: tuple[Expression, ...]
    rows: int
    below: LogicalPlan
    joined: tuple[LogicalPlan, ...]

    @property
    def first(self) -> LogicalPlan:
        """The first rows of `below`."""
        everywhere, in_each, sort = self.operators
        return over(everywhere, over(in_each, over(sort.with_expressions(self.order), self.below)))


def places_for_top_k(plan: LogicalPlan) -> list[TopK]:
    """Where in a plan the first rows could be chosen before they are joined, the lowest place for each limit."""
    nodes = list(post_order(plan))
    if not any(node.kind == "GlobalLimit" for node in nodes) or has_outer_references(nodes):
        return []
    parents = parents_of(nodes)
    return [found for node in nodes for found in _places(node, parents)]


def with_top_k(plan: LogicalPlan, place: TopK) -> Rewritten:
    """The plan with the first rows chosen at one of its places."""
    names = ", ".join(map(relation_name, place.joined))
    note = f"the first {place.rows:,} rows of {relation_name(place.below)} are chosen before the joins with {names}"
    return Rewritten(with_replacements(list(post_order(plan)), {id(place.below): lambda _: place.first}), (note,))


def _places(limit: LogicalPlan, parents: Mapping[int, list[LogicalPlan]]) -> Iterator[TopK]:
    """The lowest place for one limit, if there is one."""
    if limit.kind != "GlobalLimit" or limit.cached or limit.children[0].kind != "LocalLimit":
        return
    (in_each,) = limit.children
    sort, rows = in_each.children[0], limit.info.get("limit")
    while not sort.cached and isinstance(sort, Project) and _is_deterministic(sort):
        sort = sort.child
    if sort.kind != "Sort" or sort.cached or not sort.info.get("global") or not isinstance(rows, int):
        return
    if in_each.cached or in_each.info.get("limit") != rows or not _is_deterministic(sort):
        return
    order, joined = sort.expressions, list[LogicalPlan]()
    plan = sort.children[0]
    best: TopK | None = None
    while not plan.cached and len(parents.get(id(plan), ())) == 1:
        if isinstance(plan, Join):
            kept = _PRESERVED.get(plan.join_type)
            if kept is None or not _is_deterministic(plan):
                break
            joined.append(plan.children[1 - kept])
            plan = plan.children[kept]
            if not all(e.references and not e.references & ~plan.output_set for e in order):
                break
            if len(parents.get(id(plan), ())) == 1:
                best = TopK((limit, in_each, sort), order, rows, plan, tuple(joined))
        elif isinstance(plan, Project) and _is_deterministic(plan):
            order = tuple(substitute(e, _computed(plan)) for e in order)
            plan = plan.child
        elif is_only_a_name(plan):
            (plan,) = plan.children
        else:
            break
    if best is not None and plan.kind != "GlobalLimit":
        yield best


def _computed(node: Project) -> dict[int, Expression]:
    """Columns that a projection computes."""
    named = (e for e in node.projections if e.kind == "Alias")
    return {e.attribute.bit: e.children[0] for e in named if e.attribute is not None}


def _is_deterministic(node: LogicalPlan) -> bool:
    return all(e.deterministic and not e.contains & SUBQUERY for e in node.expressions)
