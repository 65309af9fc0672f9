"""Rows of a plan straight from the definitions of its operators, over tables of a few rows."""

from __future__ import annotations

from hypothesis import strategies as st

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import ANTI, FULL, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan, Project

VALUES = [None, 0, 1, 2]


def truth(e: Expression, row: dict[str, int | None]) -> int | bool | None:
    """The SQL value for one row."""
    args = [truth(child, row) for child in e.children]
    match e.kind:
        case "AttributeReference":
            assert e.attribute is not None
            return row[e.attribute.name]
        case "Literal":
            return e.value  # type: ignore[no-any-return]
        case "And":
            return False if False in args else None if None in args else True
        case "Or":
            return True if True in args else None if None in args else False
        case "Not":
            return None if args[0] is None else not args[0]
        case "IsNull":
            return args[0] is None
        case "IsNotNull":
            return args[0] is not None
        case "EqualNullSafe":
            return args[0] == args[1]
        case "SortOrder" | "Alias":
            return args[0]
        case "Coalesce":
            return next((a for a in args if a is not None), None)
    one, other = args
    if one is None or other is None:
        return None
    return {"EqualTo": one == other, "GreaterThan": one > other, "Add": one + other}[e.kind]


Row = dict[str, "int | None"]


def run(plan: LogicalPlan, tables: dict[str, list[Row]]) -> list[Row]:
    """The rows of a plan of filters, joins, projections, DISTINCT, sorts and limits."""
    if isinstance(plan, Filter):
        return [row for row in run(plan.child, tables) if truth(plan.condition, row) is True]
    if isinstance(plan, Project):
        return [_projected(plan, row) for row in run(plan.child, tables)]
    if plan.kind == "Distinct":
        return [dict(row) for row in dict.fromkeys(tuple(row.items()) for row in run(plan.children[0], tables))]
    if plan.kind == "Sort":
        return sorted(run(plan.children[0], tables), key=lambda row: [_place(truth(e, row)) for e in plan.expressions])
    if plan.kind in ("GlobalLimit", "LocalLimit"):
        return run(plan.children[0], tables)[: plan.info["limit"]]
    if not isinstance(plan, Join):
        return tables[plan.info["rel"]["name"]]
    left, right = run(plan.left, tables), run(plan.right, tables)
    pairs = [(i, j) for i, one in enumerate(left) for j, r in enumerate(right) if _matches(plan, {**one, **r})]
    if plan.join_type in (SEMI, ANTI):
        found = {i for i, _ in pairs}
        return [row for i, row in enumerate(left) if (i in found) is (plan.join_type == SEMI)]
    rows = [{**left[i], **right[j]} for i, j in pairs]
    if plan.join_type in (LEFT, FULL):
        pad = {a.name: None for a in plan.right.output}
        rows += [{**one, **pad} for i, one in enumerate(left) if all(i != p[0] for p in pairs)]
    if plan.join_type in (RIGHT, FULL):
        pad = {a.name: None for a in plan.left.output}
        rows += [{**pad, **r} for j, r in enumerate(right) if all(j != p[1] for p in pairs)]
    return rows


def _matches(plan: Join, row: Row) -> bool:
    return all(truth(p, row) is True for p in conjuncts(plan.condition))


def _projected(plan: Project, row: Row) -> Row:
    return {a.name: truth(e, row) for a, e in zip(plan.output, plan.projections, strict=True)}


def _place(value: int | None) -> tuple[bool, int]:
    """NULLs first."""
    return value is not None, value or 0


def rows(columns: str) -> st.SearchStrategy[list[Row]]:
    """A few rows with these columns."""
    return st.lists(st.fixed_dictionaries({c: st.sampled_from(VALUES) for c in columns}), max_size=4)


def bag(found: list[Row]) -> list[str]:
    """Rows in an order of their own."""
    return sorted(repr(sorted(row.items())) for row in found)
