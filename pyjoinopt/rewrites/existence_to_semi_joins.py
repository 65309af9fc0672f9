"""Existence joins of which only the marked rows are kept, or only the others: they are semi and anti joins.

    Project [a.x]                            Project [a.x]
      Filter (mark)                            Join a ⋉ b
        ExistenceJoin a, b  (gives mark)

An order that holds a semi join where Spark would move it down makes such plans (`joins.emit.pinned_semi_joins`). They
come back when a frame that was optimised is used in another one, and a join group takes in semi and anti joins but no
existence joins. Where the mark is read by anything else the existence join stays; and one that may fail, as Spark moves
semi joins. Catalyst has no such rule.
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
        sensitive: columns over which Spark must see no new equality (`plan.facts.equality_substitution`); of an
        existence
            join it sees none.

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
    join_type = _kept(tests[0]) if len(tests) == 1 else None
    if join_type is None:
        return None
    joined = Join(join.left, join.right, join_type, join.condition)
    rest = conjunction([p for p in conjuncts(node.condition) if p is not tests[0]])
    return joined if rest is None else Filter(rest, joined)


def _kept(test: Expression) -> str | None:
    """The type of join that a test of the mark comes to."""
    if test.kind == "AttributeReference":
        return SEMI
    return ANTI if test.kind == "Not" and test.children[0].kind == "AttributeReference" else None
