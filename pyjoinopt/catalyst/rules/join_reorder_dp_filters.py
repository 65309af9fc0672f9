"""JoinReorderDPFilters: which pairs of plans the search of join orders need not look at.

`join_reorder_dp` tries every pair of plans that some condition connects. If the tables contain a star
(`star_schema_detection`), most pairs that mix star and other tables are not worth a look: the star's joins lose rows,
so they come first. A join of two plans is tried only if their tables together

    are all of the star,  or  contain the whole star,  or  are none of the star.

Take a fact f with the dimensions d1 and d2, and tables t1 - f, d1 - t2 - t3. Of the five pairs that conditions connect,
f ⋈ t1 and d1 ⋈ t2 are dropped. Three are left to build on: f ⋈ d1, f ⋈ d2 and t2 ⋈ t3. The search ends sooner, with a
plan that may not be the cheapest one.

Off by default (`spark.sql.cbo.joinReorder.dp.star.filter`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.catalyst.rules.rule_context import Statistics
from pyjoinopt.catalyst.rules.star_schema_detection import find_star_joins, is_on
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(frozen=True, slots=True)
class JoinGraphInfo:
    """The tables of a join group in two sets, bit *i* for table *i*."""

    star: int
    others: int


def build_join_graph_info(
    items: Sequence[LogicalPlan],
    conditions: Sequence[Expression],
    statistics: Statistics,
    conf: Mapping[str, str],
) -> JoinGraphInfo | None:
    """What the filter needs to know of a group; None if it is off, if there is no star, or if all is star.

    Args:
        items: the relations of the group.
        conditions, statistics, conf: see `find_star_joins`; estimates of filtered tables are used in any case.
    """
    if not is_on(conf, "spark.sql.cbo.joinReorder.dp.star.filter"):
        return None
    star = find_star_joins(items, conditions, statistics, {**conf, "spark.sql.cbo.enabled": "true"})
    members = {id(plan) for plan in star}
    found = sum(1 << i for i, item in enumerate(items) if id(item) in members)
    others = (1 << len(items)) - 1 & ~found
    return JoinGraphInfo(found, others) if found and others else None


def star_join_filter(one: int, other: int, info: JoinGraphInfo) -> bool:
    """True if two plans, given by their sets of tables, may be joined.

    >>> star = JoinGraphInfo(star=0b0111, others=0b1000)
    >>> [star_join_filter(one, other, star) for one, other in ((0b001, 0b010), (0b001, 0b1000), (0b111, 0b1000))]
    [True, False, True]
    """
    joined = one | other
    return not one & other and (not joined & ~info.star or not info.star & ~joined or not joined & ~info.others)
