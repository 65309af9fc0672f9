"""Copies of operators that carry fewer columns than before.

Opaque operators remember their output; a copy over narrower children must forget the columns that are gone. Expand,
Generate and Window also hold lists that get shorter: such a copy is marked (`info["narrowed"]`), so that it is sent
with its lists written in full.
"""

from __future__ import annotations

from typing import Any

from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias


def pruned(plan: LogicalPlan, wanted: int) -> LogicalPlan:
    """The plan under a projection of its wanted columns; the plan itself if it has no others.

    >>> from pyjoinopt.plan.nodes import relation
    >>> from pyjoinopt.plan.format import show
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> print(show(pruned(relation("t", [a, b]), b.mask)))
    Project b
      LocalRelation t
    """
    if not plan.output_set & ~wanted:
        return plan
    return Project(tuple(reference(a) for a in plan.output if a.mask & wanted), plan)


def rebuild_over(
    node: LogicalPlan, children: tuple[LogicalPlan, ...], output: tuple[Attribute, ...] | None = None
) -> LogicalPlan:
    """A copy of a node over narrower children; its output is what they still have."""
    if all(a is b for a, b in zip(node.children, children, strict=True)):
        return node
    if isinstance(node, (Aggregate, Filter, Join, Project, SubqueryAlias)):
        return node.with_children(children)
    gone = 0
    for old, new in zip(node.children, children, strict=True):
        gone |= old.output_set & ~new.output_set
    if output is None:
        output = tuple(a for a in node.output if not a.mask & gone)
    return _copy(node, children, output, node.expressions, node.info)


def narrowed_expand(node: LogicalPlan, wanted: int) -> LogicalPlan:
    """An Expand with the wanted columns only, in each of its lists."""
    kept = [i for i, a in enumerate(node.output) if a.mask & wanted]
    lists = [tuple(listed[i] for i in kept) for listed in node.info["lists"]]
    reads = 0
    for listed in lists:
        for e in listed:
            reads |= e.references
    output = tuple(node.output[i] for i in kept)
    info = {**node.info, "narrowed": True, "lists": lists, "reads_set": reads}
    return _copy(node, node.children, output, tuple(e for listed in lists for e in listed), info)


def narrowed_generate(node: LogicalPlan, wanted: int) -> LogicalPlan:
    """A Generate over what it and those above read, handing on only what those above read."""
    produced = 0
    for bit in node.info["generated"]:
        produced |= 1 << bit
    generated = node.output[len(node.output) - len(node.info["generated"]) :]
    reads = node.expressions[0].references  # of the generator alone; what it puts out may have its arguments' names
    child = pruned(node.children[0], wanted & ~produced | reads)
    unrequired = [i for i, a in enumerate(child.output) if a.mask & reads & ~wanted]
    if child is node.children[0] and unrequired == list(node.info["unrequired"]):
        return node
    only_read = set(unrequired)
    handed_on = tuple(a for i, a in enumerate(child.output) if i not in only_read)
    info = {**node.info, "narrowed": True, "unrequired": unrequired}
    return _copy(node, (child,), handed_on + generated, node.expressions, info)


def narrowed_window(node: LogicalPlan, wanted: int) -> LogicalPlan:
    """A Window with the wanted functions only; its child if none is wanted."""
    functions, *rest = node.info["parts"]
    kept = tuple(e for e in node.expressions[:functions] if e.attribute is None or e.attribute.mask & wanted)
    if not kept:
        return node.children[0]
    gone = 0
    for e in node.expressions[:functions]:
        if e.attribute is not None and not e.attribute.mask & wanted:
            gone |= e.attribute.mask
    output = tuple(a for a in node.output if not a.mask & gone)
    expressions = kept + node.expressions[functions:]
    info = {**node.info, "narrowed": True, "parts": [len(kept), *rest]}
    if "reads_set" in info:
        reads = 0
        for e in expressions:
            reads |= e.references
        info["reads_set"] = reads & node.info["reads_set"]
    return _copy(node, node.children, output, expressions, info)


def _copy(node: LogicalPlan, children: tuple[LogicalPlan, ...], output: tuple[Attribute, ...],
          expressions: tuple[Expression, ...], info: dict[str, Any]) -> LogicalPlan:  # fmt: skip
    info = {key: value for key, value in info.items() if key != "cached"}
    return LogicalPlan(node.kind, children, output, expressions, None, node.origin, info)
