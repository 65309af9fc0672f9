"""ReorderJoin: no cross product while a condition is at hand.

People list tables in any order and put all conditions into WHERE. Joined as written, `FROM a, b, c WHERE a.x = c.x AND
b.y = c.y` starts with a cross product of a and b. This rule takes the joins apart and puts them together again: start
with the first relation, always add the first of the remaining ones that some condition connects, else simply the next.
It uses no statistics and changes nothing where every join has its condition already.

With `spark.sql.cbo.starSchemaDetection`, and cost-based optimisation off, it does need the row counts of tables. If
they show a star (`star_schema_detection`), its tables are taken first: the fact, the dimensions from small to large,
then all others as written. Spark needs `spark.sql.cbo.planStats.enabled` for that, without which tables have no counts.

Only left-deep chains are taken apart: the right side of a join is one relation, whatever it holds. So is a join with a
hint, and what is below a projection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyjoinopt.catalyst.rules.rule_context import Statistics
from pyjoinopt.catalyst.rules.star_schema_detection import is_on, reorder_star_joins
from pyjoinopt.catalyst.support.predicate_helper import can_evaluate_within_join, filtered
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.expressions import Expression, conjunction, conjuncts, reference
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import CROSS, INNER, INNER_LIKE, NO_HINT, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import transform_down
from pyjoinopt.util.node_memo import NodeMemo

#: A relation of a chain, and the type of the join that it came with.
Item = tuple[LogicalPlan, str]


def flatten_join(plan: LogicalPlan, *, as_catalyst: bool = True) -> tuple[list[Item], list[Expression]]:
    """Take a left-deep chain of inner and cross joins apart (Catalyst's `ExtractFiltersAndInnerJoins`).

    Args:
        plan: a join, or a filter over one; anything else is a chain of one relation.
        as_catalyst: False to stop at a join or filter with a predicate that must not be moved.

    Returns:
        The relations left to right, each with its join type (the first with that of the lowest join), and the
        conjuncts of all join conditions and filters, innermost first.
    """
    items: list[Item] = []
    conditions: list[list[Expression]] = []
    join_type = INNER
    while True:
        top = _below_names(plan)
        join = _below_names(top.child) if isinstance(top, Filter) and _may_open(top, as_catalyst) else top
        if not (isinstance(join, Join) and _opens(join) and _may_open(join, as_catalyst)):
            break
        if isinstance(top, Filter):
            conditions.append(conjuncts(top.condition))
        items.append((join.right, join.join_type))
        conditions.append(conjuncts(join.condition))
        plan, join_type = join.left, join.join_type
    items.append((plan, join_type))
    return items[::-1], [predicate for group in reversed(conditions) for predicate in group]


def _below_names(plan: LogicalPlan) -> LogicalPlan:
    """Below subquery aliases and views, which Catalyst has dropped when it comes to this rule."""
    while is_only_a_name(plan) and not plan.cached:
        plan = plan.children[0]
    return plan


def _opens(plan: LogicalPlan) -> bool:
    return isinstance(plan, Join) and plan.join_type in INNER_LIKE and plan.hint == NO_HINT


def _may_open(plan: LogicalPlan, as_catalyst: bool) -> bool:
    if plan.cached:
        return False
    return as_catalyst or all(fallibility.is_movable(p) for e in plan.expressions for p in conjuncts(e))


def create_ordered_join(items: Sequence[Item], conditions: Iterable[Expression]) -> LogicalPlan:
    """Join the relations, each as soon as a condition connects it (Catalyst's `ReorderJoin.createOrderedJoin`).

    A condition goes into the first join that has all its columns. The last join takes every condition that a join can
    hold; what none can hold becomes a filter on top. A condition without columns connects anything.

    Args:
        items: two relations or more, with join types.
        conditions: conjuncts over their columns.

    Raises:
        ValueError: fewer than two relations.
    """
    if len(items) < 2:
        raise ValueError(f"a join needs two relations, not {len(items)}")
    (left, left_type), *rest = items
    conditions = list(conditions)
    within = {id(p): can_evaluate_within_join(p) for p in conditions}
    while len(rest) > 1:
        right, join_type = rest.pop(_next(left, rest, conditions))
        known = left.output_set | right.output_set
        here = [p for p in conditions if within[id(p)] and not p.references & ~known]
        if here:
            placed = {id(p) for p in here}
            conditions = [p for p in conditions if id(p) not in placed]
        left, left_type = Join(left, right, join_type, conjunction(here)), INNER
    right, right_type = rest[0]
    join_type = INNER if left_type == right_type == INNER else CROSS
    joined = Join(left, right, join_type, conjunction([p for p in conditions if within[id(p)]]))
    return filtered([p for p in conditions if not within[id(p)]], joined)


def _next(left: LogicalPlan, rest: list[Item], conditions: list[Expression]) -> int:
    """Index of the first relation that some condition connects to `left`; 0 if there is none."""
    missing = []
    for predicate in conditions:
        if not predicate.references:
            return 0
        if predicate.references & left.output_set and predicate.references & ~left.output_set:
            missing.append(predicate.references & ~left.output_set)
    if missing:
        for index, (plan, _) in enumerate(rest):
            if any(not columns & ~plan.output_set for columns in missing):
                return index
    return 0


def reorder_join(
    plan: LogicalPlan,
    *,
    as_catalyst: bool = False,
    groups: list[ReorderedGroup] | None = None,
    statistics: Statistics | None = None,
    conf: Mapping[str, str] | None = None,
) -> LogicalPlan:
    """Put every chain of three or more inner joins into an order without needless cross products.

    Args:
        plan: a plan with its predicates pushed down; cached sub-plans are left as they are.
        as_catalyst: take apart whatever Catalyst does, also around Python UDFs, subqueries and outer references.
        groups: gets one entry for every chain that was looked at.
        statistics: of tables; None if the row count is unknown. Without it, stars are not looked for.
        conf: Spark's settings: `spark.sql.cbo.starSchemaDetection`, and those of `find_star_joins`.

    Returns:
        The plan, the very same object if every chain is in order. A chain whose columns came out in another order has
        a projection on top that restores it.
    """
    conf = conf or {}
    stars = is_on(conf, "spark.sql.cbo.starSchemaDetection") and not is_on(conf, "spark.sql.cbo.enabled")
    rule = _Rule(as_catalyst, groups, statistics if stars else None, conf)
    return transform_down(plan, rule.at)


class _Rule:
    def __init__(
        self,
        as_catalyst: bool,
        groups: list[ReorderedGroup] | None,
        statistics: Statistics | None,
        conf: Mapping[str, str],
    ) -> None:
        self.as_catalyst = as_catalyst
        self.groups = groups
        self.statistics = statistics
        self.conf = conf
        self.done = NodeMemo[LogicalPlan, bool]()

    def at(self, node: LogicalPlan) -> LogicalPlan:
        if node in self.done or not isinstance(node, (Filter, Join)):
            return node
        items, conditions = flatten_join(node, as_catalyst=self.as_catalyst)
        if len(items) < 2:
            return node
        if len(items) == 2 or not conditions:
            self._finish(node, items[0][0])
            return node
        ordered = create_ordered_join(self._star_first(items, conditions), conditions)
        if _same(node, ordered):
            ordered = node
        self._finish(ordered, items[0][0])
        if self.groups is not None:
            relations = tuple(plan for plan, _ in items)
            self.groups.append(ReorderedGroup(relations, tuple(conditions), node, ordered))
        if [a.bit for a in ordered.output] != [a.bit for a in node.output]:
            return Project(tuple(reference(a) for a in node.output), ordered)
        return ordered

    def _star_first(self, items: list[Item], conditions: list[Expression]) -> list[Item]:
        if self.statistics is None:
            return items
        star = reorder_star_joins(items, conditions, self.statistics, self.conf)
        members = {id(plan) for plan, _ in star}
        return star + [item for item in items if id(item[0]) not in members]

    def _finish(self, chain: LogicalPlan, head: LogicalPlan) -> None:
        """Remember the joins of a finished chain: its lower part, taken by itself, would come out the same.

        Not so below a filter that no join can hold. Its columns pulled relations forward, but below it they do not
        count, so the joins alone may come out otherwise. Catalyst looks at them once more, too. Nor is it so if stars
        are looked for: a part may hold a star where the whole has none.
        """
        while chain is not head and self.statistics is None:
            self.done[chain] = True
            if isinstance(chain, Filter):
                break
            chain = chain.children[0]


def _same(old: LogicalPlan, new: LogicalPlan) -> bool:
    """True if two chains are equal node by node (conditions by their conjuncts)."""
    while old is not new:
        if is_only_a_name(old):
            old = old.children[0]
        elif isinstance(old, Filter) and isinstance(new, Filter):
            if not _same_conjuncts(old.condition, new.condition):
                return False
            old, new = old.child, new.child
        elif isinstance(old, Join) and isinstance(new, Join):
            if old.join_type != new.join_type or old.hint != new.hint or old.right is not new.right:
                return False
            if not _same_conjuncts(old.condition, new.condition):
                return False
            old, new = old.left, new.left
        else:
            return False
    return True


def _same_conjuncts(old: Expression | None, new: Expression | None) -> bool:
    one, other = conjuncts(old), conjuncts(new)
    return len(one) == len(other) and all(a is b for a, b in zip(one, other))
