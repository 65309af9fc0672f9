"""The rules by the names that Catalyst gives them.

Each entry runs one pass of a rule over a plan whose names (aliases, views) are gone, as Spark's optimizer does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.tree import MOST_PASSES, to_fixed_point
from pyjoinopt.rules.context import RuleContext
from pyjoinopt.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.rules.push_down_predicates import push_down_predicates
from pyjoinopt.rules.reorder_join import reorder_join


@dataclass(frozen=True)
class NamedRule:
    """A rule, ready to run.

    Attributes:
        name: Catalyst's name.
        run: (plan, context) -> plan, the very same object if nothing changed.
        about: one sentence.
        once: whether Spark runs it a single time.
    """

    name: str
    run: Callable[[LogicalPlan, RuleContext], LogicalPlan]
    about: str
    once: bool = False

    def to_fixed_point(self, plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
        """Run it until nothing changes; once, if that is how Spark runs it."""
        return to_fixed_point(plan, lambda p: self.run(p, context), self.rounds)

    @property
    def rounds(self) -> int:
        """How often it may run."""
        return 1 if self.once else MOST_PASSES


_ALL = (
    NamedRule(
        "EliminateOuterJoin",
        lambda plan, c: eliminate_outer_join(plan, filters_null=c.filters_null),
        "an outer join whose padded rows are filtered out, or never seen, becomes a simpler one",
    ),
    NamedRule(
        "PushDownPredicates",
        lambda plan, c: push_down_predicates(plan, faithful=True),
        "every conjunct as far down as it may go",
    ),
    NamedRule(
        "ReorderJoin",
        lambda plan, c: reorder_join(plan, faithful=True),
        "no cross product where a condition is at hand",
    ),
    NamedRule(
        "CostBasedJoinReorder",
        lambda plan, c: cost_based_join_reorder(plan, c.statistics, conf=c.conf, faithful=True),
        "the cheapest order of inner joins by statistics of every column",
        once=True,
    ),
)

#: Catalyst's name -> rule.
RULES = {rule.name: rule for rule in _ALL}
