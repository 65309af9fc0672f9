"""Catalyst's own rules as a reference for ours.

Both run on the same exported plan. The results are compared in a canonical form that is independent of a plan's
numbering: columns by Catalyst's expression ids, conditions by their conjuncts. Equal plans get equal numbers from one
`Canon`, so comparing deep plans is cheap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.decode import Export, decoded
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.plan.expressions import Expression, conjuncts, walk
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, INNER, Aggregate, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rule = Callable[[Export], LogicalPlan]

#: What distinguishes two nodes of a kind beyond columns, expressions and children.
_DETAILS = {
    "Generate": ("outer", "unrequired"), "Sort": ("global",), "Window": ("parts",), "Union": ("byName",),
    "Intersect": ("all",), "Except": ("all",),
}  # fmt: skip


class Canon:
    """Numbers for plans: equal numbers mean equal plans.

    Args:
        known: ids of columns that exist before a rule runs; all others are numbered by their first occurrence.
    """

    def __init__(self, known: Iterable[int] | None = None) -> None:
        self._numbers: dict[Any, int] = {}
        self._known = None if known is None else frozenset(known)
        self._new: dict[int, int] = {}

    def plan(self, root: LogicalPlan) -> int:
        """The number of a plan; columns that it makes are counted from one."""
        self._new = {}
        return self._plan(root)

    def _plan(self, root: LogicalPlan) -> int:
        done: dict[int, int] = {}
        for node in post_order(root):
            done[id(node)] = self._number(self._of(node, [done[id(child)] for child in node.children]))
        return done[id(root)]

    def _of(self, node: LogicalPlan, children: list[int]) -> Any:
        if isinstance(node, Join):
            join_type = INNER if node.join_type == CROSS and node.condition is not None else node.join_type
            return ("Join", join_type, node.hint, self._conjuncts(node.condition), *children)
        if isinstance(node, Filter):
            return ("Filter", self._conjuncts(node.condition), *children)
        listed = tuple(self._expression(e) for e in node.expressions)
        columns = tuple(self._column(a.id) for a in node.output)
        grouping = len(node.grouping) if isinstance(node, Aggregate) else 0
        details = tuple(str(node.info.get(key)) for key in _DETAILS.get(node.kind, ()))
        return (node.kind, columns, grouping, details, listed, *children)

    def _column(self, column: int) -> Any:
        if self._known is None or column in self._known:
            return column
        return "new", self._new.setdefault(column, len(self._new) + 1)

    def _conjuncts(self, condition: Expression | None) -> frozenset[int]:
        return frozenset(self._expression(p) for p in conjuncts(condition))

    def _expression(self, root: Expression) -> int:
        numbers: list[int] = []
        for e in walk(root):
            n = len(e.children)
            children = tuple(numbers[len(numbers) - n :])
            del numbers[len(numbers) - n :]
            column = self._column(e.attribute.id) if e.attribute is not None else None
            text = e.text if e.kind == "Literal" else ""
            inner = self._plan(e.plan) if e.plan is not None else None
            numbers.append(self._number((e.kind, e.type, column, text, inner, children)))
        return numbers[0]

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


class Oracle:
    """The rules of a live Spark; use it as a context manager so that the plans it opened are released."""

    def __init__(self, session: SparkSession) -> None:
        self.shim = bridge_of(session)
        self._catalyst = oracle_of(session)
        self._handles: list[int] = []

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def finished(self, df: DataFrame) -> Export:
        """The analysed plan without aliases, views, hint nodes and common expressions: the optimizer's first batch."""
        export = self._keep(self._catalyst.exportStage(df._jdf, json.dumps({"stage": "finish"})))
        return self.applied(export, ["RewriteWithExpression"], once=True)

    def applied(
        self,
        export: Export,
        rules: Iterable[str],
        *,
        once: bool = False,
        confs: dict[str, str] | None = None,
        plan: LogicalPlan | None = None,
    ) -> Export:
        """The result of Catalyst's rules on an export, or on the result of one of our rules."""
        request: dict[str, Any] = {"rules": list(rules), "once": once, "confs": confs or {}}
        if plan is not None:
            edits = Edits()
            request |= edits.message(edits.plan(plan))
        return self._keep(self._catalyst.applyRule(export.handle, json.dumps(request)))

    def intermediate_plans(self, df: DataFrame) -> list[Export]:
        """Every plan between a query's analysed plan and its optimised one, those of its subqueries included."""
        return [self._keep_one(plan) for plan in json.loads(self._catalyst.intermediatePlans(df._jdf))]

    def effective(
        self, export: Export, rules: dict[str, int], confs: dict[str, str] | None = None
    ) -> dict[str, Export]:
        """The rules that change an exported plan, each with its result after at most this many applications."""
        request = {"rules": list(rules.items()), "confs": confs or {}}
        answer = json.loads(self._catalyst.effectiveRules(export.handle, json.dumps(request)))
        return {rule: self._let_go(decoded(plan)) for rule, plan in answer.items()}

    def built(self, export: Export, plan: LogicalPlan) -> Export:
        """A plan of ours as the JVM builds it: the proof that it can be built, and with which columns."""
        return self._let_go(self.applied(export, [], once=True, plan=plan))

    def _let_go(self, export: Export) -> Export:
        """A read-only export; the JVM keeps few of them."""
        if export.handle in self._handles:
            self._handles.remove(export.handle)
        self.shim.release(export.handle)
        return export

    def release(self) -> None:
        """Release all plans opened so far."""
        while self._handles:
            self.shim.release(self._handles.pop())

    def statistics(self, export: Export, node: LogicalPlan) -> dict[str, Any]:
        """Catalyst's statistics of a node of an export."""
        request = {"nodes": [node.number], "source": "catalyst"}
        answer = json.loads(self.shim.statistics(export.handle, json.dumps(request)))
        found: dict[str, Any] = answer["nodes"][str(node.number)]
        return found

    def relations(self, export: Export, leaves: list[LogicalPlan], source: str) -> dict[int, dict[str, Any]]:
        """The result of `Gateway.statistics` for relations of an export."""
        request = {"nodes": [leaf.number for leaf in leaves], "source": source}
        answer = json.loads(self.shim.statistics(export.handle, json.dumps(request)))
        return {int(number): entry for number, entry in answer["nodes"].items()}

    def _keep(self, text: str) -> Export:
        return self._keep_one(json.loads(text))

    def _keep_one(self, data: dict[str, Any]) -> Export:
        export = decoded(data)
        self._handles.append(export.handle)
        return export


@dataclass
class Tally:
    """How often a rule fired on either side, and how often both gave the same plan."""

    rule: str
    plans: int = 0
    fired_in_catalyst: int = 0
    fired_in_python: int = 0
    equal: int = 0
    different: list[str] = field(default_factory=list)

    def count(self, name: str, before: LogicalPlan, catalyst: LogicalPlan, python: LogicalPlan) -> None:
        canon = Canon()
        start, theirs, ours = canon.plan(before), canon.plan(catalyst), canon.plan(python)
        self.plans += 1
        self.fired_in_catalyst += theirs != start
        self.fired_in_python += ours != start
        self.equal += theirs == ours
        if theirs != ours:
            self.differs(name, before, catalyst, python)

    def differs(self, name: str, before: LogicalPlan, catalyst: LogicalPlan, python: LogicalPlan) -> None:
        """Store a difference for the report."""
        plans = {"before": before, "Catalyst": catalyst, "Python": python}
        self.different.append("\n".join([name, *(f"--- {who}\n{show(plan)}" for who, plan in plans.items())]))

    def row(self) -> str:
        return f"{self.rule:<44}{self.plans:>6}{self.fired_in_catalyst:>18}{self.fired_in_python:>16}{self.equal:>7}"


HEADER = f"{'rule':<44}{'plans':>6}{'fired in Catalyst':>18}{'fired in Python':>16}{'equal':>7}"
