"""Catalyst's own rules as a measure for ours.

Both run on the very same exported plan. The results are compared in a canonical form that forgets how a plan is
numbered: columns by Catalyst's expression ids, conditions by their conjuncts. Equal plans get equal numbers from one
`Canon`, so comparing is cheap however deep they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.plan.expressions import Expression, conjuncts, walk
from pyjoinopt.plan.nodes import CROSS, INNER, Filter, Join, LogicalPlan, show
from pyjoinopt.plan.tree import post_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rule = Callable[[Export], LogicalPlan]


class Canon:
    """Numbers for plans: equal numbers mean equal plans."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def plan(self, root: LogicalPlan) -> int:
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
        return (node.kind, tuple(a.id for a in node.output), listed, *children)

    def _conjuncts(self, condition: Expression | None) -> frozenset[int]:
        return frozenset(self._expression(p) for p in conjuncts(condition))

    def _expression(self, root: Expression) -> int:
        numbers: list[int] = []
        for e in walk(root):
            n = len(e.children)
            children = tuple(numbers[len(numbers) - n :])
            del numbers[len(numbers) - n :]
            column = e.attribute.id if e.attribute is not None else None
            text = e.text if e.kind == "Literal" else ""
            inner = self.plan(e.plan) if e.plan is not None else None
            numbers.append(self._number((e.kind, e.type, column, text, inner, children)))
        return numbers[0]

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


class Oracle:
    """The rules of a live Spark; use it as a context manager so that the plans it opened are let go."""

    def __init__(self, shim: Any) -> None:
        self.shim = shim
        self._handles: list[int] = []

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            self.shim.release(handle)

    def finished(self, df: DataFrame) -> Export:
        """The analysed plan without aliases, views, hint nodes and common expressions: the optimizer's first batch."""
        export = self._keep(self.shim.exportStage(df._jdf, json.dumps({"stage": "finish"})))
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
        """What Catalyst's rules make of an export, or of a plan that one of our rules made of it."""
        request: dict[str, Any] = {"rules": list(rules), "once": once, "confs": confs or {}}
        if plan is not None:
            edits = Edits()
            request |= edits.message(edits.plan(plan))
        return self._keep(self.shim.applyRule(export.handle, json.dumps(request)))

    def statistics(self, export: Export, node: LogicalPlan) -> dict[str, Any]:
        """Catalyst's statistics of a node of an export."""
        request = {"nodes": [node.number], "source": "catalyst"}
        answer = json.loads(self.shim.statistics(export.handle, json.dumps(request)))
        found: dict[str, Any] = answer["nodes"][str(node.number)]
        return found

    def _keep(self, text: str) -> Export:
        export = decode(text)
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
            plans = {"before": before, "Catalyst": catalyst, "Python": python}
            self.different.append("\n".join([name, *(f"--- {who}\n{show(plan)}" for who, plan in plans.items())]))

    def row(self) -> str:
        return f"{self.rule:<44}{self.plans:>6}{self.fired_in_catalyst:>18}{self.fired_in_python:>16}{self.equal:>7}"


HEADER = f"{'rule':<44}{'plans':>6}{'fired in Catalyst':>18}{'fired in Python':>16}{'equal':>7}"
