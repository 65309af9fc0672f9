"""Semi and anti joins over sensitive columns are given back as the IN and EXISTS that they were.

    SELECT * FROM p JOIN w ON w.id = p.id WHERE p.c IN (SELECT c FROM r WHERE c > 3)     -- c: STRING, ANSI mode

    before  (p JOIN w ON w.id = p.id) LEFT SEMI JOIN (r WHERE cast(r.c AS BIGINT) > 3) ON p.c = r.c
    after   the filter p.c IN (SELECT ...) above the join, at the place of the semi join

Spark makes a join of such a subquery after InferFiltersFromConstraints; `optimize_joins()` makes it earlier, to find
its place in the join order. An early LeftSemi offers its equality to that rule, which copies predicates across it in
both directions (a LeftAnti those of its left side to its right one), and its IS NOT NULL makes Spark turn outer joins
below it into inner ones. In the example `cast(r.c AS BIGINT) > 3` holds of all rows of r, and fails for p.c = 'none'.

Done if the condition reads a column that is sensitive, or guarded by an outer join that must remain one
(`plan.facts.equality_substitution`). Spark then pushes the filter down as in the written query; the order of the other
joins is searched as if the join were where the order has it.

Source: ours.
"""

from __future__ import annotations

from pyjoinopt.plan.facts.equality_substitution import null_supplied_by_guarded
from pyjoinopt.plan.nodes import ANTI, SEMI, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order


def restore_subqueries(plan: LogicalPlan, sensitive: int) -> LogicalPlan:
    """The plan with these semi and anti joins marked as subqueries; `plan` itself if there are none.

    Args:
        plan: a plan, or that of a subquery.
        sensitive: see `sensitive_columns`, of the whole query.
    """
    nodes = list(post_order(plan))
    early = [n for n in nodes if isinstance(n, Join) and n.join_type in (SEMI, ANTI) and n.early is not None]
    if not early:
        return plan
    at_risk = sensitive | null_supplied_by_guarded(nodes, sensitive)
    restored = {id(join) for join in early if not join.cached and _references(join) & at_risk}
    if not restored:
        return plan
    done: dict[int, LogicalPlan] = {}
    for node in nodes:
        new = node if node.cached else node.with_children(tuple(done[id(child)] for child in node.children))
        done[id(node)] = new.as_subquery() if isinstance(new, Join) and id(node) in restored else new
    return done[id(plan)]


def _references(join: Join) -> int:
    return 0 if join.condition is None else join.condition.references
