"""IN and EXISTS that must remain subqueries until Spark itself makes joins of them.

Spark makes a join of such a subquery after InferFiltersFromConstraints; `optimize_joins()` looks at it as a semi or
anti join before, to find it a place in the join order. An early LeftSemi offers its equality to that rule, which copies
predicates across it in both directions (a LeftAnti those of its left side to its right one), and its IS NOT NULL makes
Spark turn outer joins below it into inner ones. Where a *sensitive* predicate could be copied that way
(`plan.facts.equality_substitution`), or an outer join must remain one, the join is given back as the filter that it
was.

    SELECT * FROM p JOIN w ON w.id = p.id WHERE p.c IN (SELECT c FROM r WHERE c > 3)     -- c: STRING, ANSI mode

`cast(r.c AS BIGINT) > 3` holds of all rows of r; of p.c = 'none' it fails. Spark then pushes the filter down to p, as
it does in the written query; the order of the other joins is searched as if it stood where the order has it.
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
