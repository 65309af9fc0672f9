"""Walks over plans, without recursion: users nest `withColumn` two thousand deep, Python's stack does not.

Nodes may be shared (Spark plans are DAGs now and then); each distinct node is visited once and its result reused.
No walk goes below a cached node: Spark reads the cache only while that sub-plan is not changed at all, so for every
pass it is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from pyjoinopt.plan.expressions import SUBQUERY, Expression, rewrite
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.spark_defaults import MAX_ITERATIONS

Change = Callable[[LogicalPlan], LogicalPlan]


def post_order(root: LogicalPlan) -> Iterator[LogicalPlan]:
    """Every distinct node, children before parents; subquery plans and cached sub-plans are not entered."""
    if not root.children or root.cached:
        return iter((root,))
    if root.below is None:  # one plan is walked by many steps, so the walk is kept; without the root, which keeps it
        root.below = tuple(_post_order_below(root))
    return chain(root.below, (root,))


def _post_order_below(root: LogicalPlan) -> Iterator[LogicalPlan]:
    seen: set[int] = set()
    stack: list[LogicalPlan | None] = [*root.children[::-1]]  # None: the one below it has had its children
    pop = stack.pop
    while stack:
        node = pop()
        if node is None:
            node = pop()
            assert node is not None
            yield node
            continue
        number = id(node)
        if number in seen:
            continue
        seen.add(number)
        children = node.children
        if not children or node.cached:
            yield node
        elif len(children) == 1:
            stack += (node, None, children[0])
        else:
            stack += (node, None, *children[::-1])


def transform_up(root: LogicalPlan, change: Change) -> LogicalPlan:
    """Children first; `change` sees a node over its changed children."""
    done: dict[int, LogicalPlan] = {}
    for node in post_order(root):
        changed = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
        done[id(node)] = change(changed)
    return done[id(root)]


def transform_down(root: LogicalPlan, change: Change) -> LogicalPlan:
    """Parents first; the children of the *result* are visited next, as Catalyst's `transformDown` does.

    `change` is called once a node and gives the node itself to leave it.
    """
    done: dict[int, LogicalPlan] = {}
    # A frame is (original, replacement or None); a replacement waits on the stack for its children.
    stack: list[tuple[LogicalPlan, LogicalPlan | None]] = [(root, None)]
    keep_alive: list[LogicalPlan] = []  # ids in `done` must stay unique
    while stack:
        node, changed = stack.pop()
        if changed is None:
            if id(node) in done:
                continue
            changed = change(node)
            keep_alive += (node, changed)
            if changed.children and not changed.cached:
                stack.append((node, changed))
                stack.extend((child, None) for child in reversed(changed.children))
            else:
                done[id(node)] = changed
        else:
            done[id(node)] = changed.with_children(tuple(done[id(c)] for c in changed.children))
    return done[id(root)]


def to_fixed_point(root: LogicalPlan, change: Change, most: int = MAX_ITERATIONS) -> LogicalPlan:
    """Apply until nothing changes, at most `most` times (Catalyst's FixedPoint(optimizer.maxIterations))."""
    for _ in range(most):
        result = change(root)
        if result is root:
            break
        root = result
    return root


def map_subqueries(root: LogicalPlan, change: Change) -> LogicalPlan:
    """Apply `change` to the plan of every subquery expression in the tree (one level; recurse inside `change`)."""

    def inside(e: Expression) -> Expression:
        return e.with_plan(change(e.plan)) if e.plan is not None else e

    def at(node: LogicalPlan) -> LogicalPlan:
        if node.cached or not any(e.contains & SUBQUERY for e in node.expressions):
            return node
        rewritten = [rewrite(e, inside) if e.contains & SUBQUERY else e for e in node.expressions]
        return node.with_expressions(tuple(rewritten))

    return transform_up(root, at)


def parents_of(nodes: Iterable[LogicalPlan]) -> dict[int, list[LogicalPlan]]:
    """Id of a node -> the nodes among these whose child it is."""
    parents: dict[int, list[LogicalPlan]] = {}
    for node in nodes:
        for child in node.children:
            parents.setdefault(id(child), []).append(node)
    return parents


def same_plan(one: LogicalPlan, other: LogicalPlan) -> bool:
    """True if two plans are certainly equal node by node, also where one was built anew; what they share costs nothing.

    A rule that undoes its last change must return its input if this is true, or no fixed point is reached.
    """
    stack = [(one, other)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if type(a) is not type(b) or a.kind != b.kind or a.origin != b.origin or a.output != b.output:
            return False
        if len(a.children) != len(b.children) or len(a.expressions) != len(b.expressions):
            return False
        if any(getattr(a, part, None) != getattr(b, part, None) for part in ("join_type", "hint", "name")):
            return False
        if a.info.get("narrowed") != b.info.get("narrowed") or a.info.get("unrequired") != b.info.get("unrequired"):
            return False
        if any(not x.same(y) for x, y in zip(a.expressions, b.expressions, strict=True)):
            return False
        stack.extend(zip(a.children, b.children, strict=True))
    return True
