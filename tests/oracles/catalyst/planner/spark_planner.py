"""Spark's own choice of join operators, to compare predictions with.

`JoinSelection` runs when an optimised plan becomes a physical one, and reads the settings at that time. So a plan
is optimised once and planned under several configurations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyjoinopt.catalyst.planner.join_selection import (
    BROADCAST_HASH,
    CARTESIAN,
    NESTED_LOOP,
    SHUFFLED_HASH,
    SORT_MERGE,
    JoinOperator,
    predict_joins,
)  # fmt: skip
from pyjoinopt.plan.expressions import SUBQUERY
from pyjoinopt.plan.nodes import Join, LogicalPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPERATOR = re.compile(
    rf"^[\s:+|-]*({BROADCAST_HASH}|{SHUFFLED_HASH}|{SORT_MERGE}|{CARTESIAN}|{NESTED_LOOP})(?:\(|\s|$)(.*)"
)
_BUILD = re.compile(r"\bBuild(Left|Right)\b")
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


@contextmanager
def settings(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """The session, made the active one, with some settings changed and adaptive execution off."""
    companion = getattr(_class(session, session._jsparkSession.getClass().getName() + "$"), "MODULE$")
    active = companion.getActiveSession()
    companion.setActiveSession(session._jsparkSession)
    changed = {"spark.sql.adaptive.enabled": "false", **conf}
    before = {key: session.conf.get(key, None) for key in changed}
    try:
        for key, value in changed.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)
        if active.isDefined():
            companion.setActiveSession(active.get())
        else:
            companion.clearActiveSession()


def planned(session: SparkSession, plan: Any) -> list[JoinOperator]:
    """The joins of the physical plan that Spark makes of an optimised one, top down, left before right."""
    answer = _class(session, f"{_LOGICAL}.ReturnAnswer")(plan.clone())
    physical = session._jsparkSession.sessionState().planner().plan(answer).next()
    return read_operators(physical.treeString())


def read_operators(tree: str) -> list[JoinOperator]:
    """The joins in the text of a physical plan."""
    found = []
    for line in tree.splitlines():
        if match := _OPERATOR.match(line):
            build = _BUILD.search(match[2])
            found.append(JoinOperator(match[1], build[1].lower() if build else None))
    return found


def with_subqueries(plan: Any) -> list[Any]:
    """A plan of the JVM and the plans of its subqueries, those of their subqueries too."""
    roots = [plan]
    for root in roots:
        stack = [root]
        while stack:
            node = stack.pop()
            roots.extend(items(node.subqueries()))
            stack.extend(reversed(items(node.children())))
    return roots


def predicted(roots: list[LogicalPlan], conf: Mapping[str, str], spark: tuple[int, int]) -> list[list[JoinOperator]]:
    """The predicted operators of a plan and its subqueries, one list each, a join as often as it occurs."""
    operators = {id(join): operator for join, operator in predict_joins(roots[0], conf, spark=spark)}
    return [[operators[id(join)] for join in joins_of(root)] for root in roots]


def mirror_with_subqueries(plan: LogicalPlan) -> list[LogicalPlan]:
    """The same of a mirrored plan."""
    roots = [plan]
    for root in roots:
        for node in tree_order(root):
            for e in node.expressions:
                waiting = [e]
                while waiting:
                    part = waiting.pop()
                    if part.plan is not None:
                        roots.append(part.plan)
                    waiting.extend(child for child in reversed(part.children) if child.contains & SUBQUERY)
    return roots


def joins_of(plan: LogicalPlan) -> list[Join]:
    """The joins of a plan's tree, top down, left before right."""
    return [node for node in tree_order(plan) if isinstance(node, Join)]


def tree_order(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """Every node of a plan's tree, top down, left before right; a shared one as often as it occurs."""
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    iterator, found = sequence.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def version_of(session: SparkSession) -> tuple[int, int]:
    major, minor = session.version.split(".")[:2]
    return int(major), int(minor)


def hint_of(session: SparkSession, left: str | None, right: str | None) -> Any:
    """A JoinHint of the JVM, with any strategies, those too that Spark gives only itself."""
    option = session._jvm.scala.Option
    sides = []
    for name in (left, right):
        strategy = None if name is None else getattr(_class(session, f"{_LOGICAL}.{name}$"), "MODULE$")
        info = None if strategy is None else _class(session, f"{_LOGICAL}.HintInfo")(option.apply(strategy))
        sides.append(option.apply(info))
    return _class(session, f"{_LOGICAL}.JoinHint")(*sides)


def with_hint(session: SparkSession, join: Any, hint: Any) -> Any:
    """A join of the JVM with another hint."""
    return _class(session, f"{_LOGICAL}.Join")(join.left(), join.right(), join.joinType(), join.condition(), hint)


def side_by_side(session: SparkSession, plans: list[Any]) -> Any:
    """Plans of the JVM under one node, so that the planner is called once for all."""
    one_column = session.range(1).selectExpr("id AS c")._jdf.queryExecution().analyzed().projectList()
    project = _class(session, f"{_LOGICAL}.Project")
    union = getattr(_class(session, f"{_LOGICAL}.Union$"), "MODULE$")
    children = [project(one_column, plan) for plan in plans]
    return union.apply(_class(session, "org.apache.spark.api.python.PythonUtils").toSeq(children), False, False)


def _class(session: SparkSession, name: str) -> Any:
    return getattr(session._jvm, name)
