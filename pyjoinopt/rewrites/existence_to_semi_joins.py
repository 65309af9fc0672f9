"""Existence joins of which only the marked rows are kept, or only the others, become semi and anti joins.

    before  SELECT a.x FROM (a EXISTENCE JOIN b ON a.k = b.k AS mark) WHERE mark AND a.x > 1
    after   SELECT a.x FROM (a LEFT SEMI JOIN b ON a.k = b.k) WHERE a.x > 1

With `WHERE NOT mark` the result is an anti join. Such plans come from this package: a pinned semi join is emitted as an
existence join (`joins.emit.pinned_semi_joins`), and a frame that was optimised may be used in another one. A join group
takes in semi and anti joins, but no existence joins.

Legal if

* the filter is directly above the existence join; one of its conjuncts is the mark or its negation, and no other reads
  the mark;
* every operator above the filter is a projection or an aggregate that does not read the mark;
* the join has a condition that cannot throw: Spark moves semi joins, and would evaluate it on other rows;
* the condition reads no column that is sensitive or guarded (`plan.facts.equality_substitution`): of an existence join
  Spark infers nothing;
* neither is cached, and the join has no hint.

Source: ours; it undoes `joins.emit.pinned_semi_joins`.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import Expression, conjunction, conjuncts
from pyjoinopt.plan.facts.equality_substitution import null_supplied_by_guarded
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, NO_HINT, SEMI, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import parents_of, post_order


def existence_as_semi(plan: LogicalPlan, sensitive: int = 0) -> LogicalPlan:
    """Turn existence joins whose mark is only filtered by into semi and anti joins.

    Args:
        plan: any plan; cached sub-plans are left as they are.
        sensitive: columns over which Spark must see no new equality (`plan.facts.equality_substitution`).

    Returns:
        The plan, the very same object if no join changed.
    """
    nodes = list(post_order(plan))
    if not any(isinstance(node, Join) and node.join_type == EXISTENCE for node in nodes):
        return plan
    parents = parents_of(nodes)
    at_risk = sensitive | null_supplied_by_guarded(nodes, sensitive)
    done: dict[int, LogicalPlan] = {}
    for node in nodes:
        new = node if node.cached else node.with_children(tuple(done[id(child)] for child in node.children))
        if isinstance(new, Filter) and not new.cached:
            new = _semi_join(new, parents.get(id(node), []), at_risk) or new
        done[id(node)] = new
    return done[id(plan)]


def _semi_join(node: Filter, above: list[LogicalPlan], at_risk: int) -> LogicalPlan | None:
    join = node.child
    if not isinstance(join, Join) or join.join_type != EXISTENCE or join.cached or join.hint != NO_HINT:
        return None
    mark = join.output[-1].mask
    if not above or not all(isinstance(n, (Project, Aggregate)) and not n.references & mark for n in above):
        return None
    if join.condition is None or may_throw(join.condition) or join.condition.references & at_risk:
        return None
    tests = [p for p in conjuncts(node.condition) if p.references & mark]
    join_type = _join_type(tests[0]) if len(tests) == 1 else None
    if join_type is None:
        return None
    joined = Join(join.left, join.right, join_type, join.condition)
    rest = conjunction([p for p in conjuncts(node.condition) if p is not tests[0]])
    return joined if rest is None else Filter(rest, joined)


def _join_type(test: Expression) -> str | None:
    """The type of join that a test of the mark makes."""
    if test.kind == "AttributeReference":
        return SEMI
    return ANTI if test.kind == "Not" and test.children[0].kind == "AttributeReference" else None
