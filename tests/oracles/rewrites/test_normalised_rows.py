"""Plans give the same rows before and after normalisation; joins, filters and NULLs are evaluated by definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import FULL, INNER, LEFT, OUTER, RIGHT, Filter, Join, LogicalPlan
from pyjoinopt.rewrites.normalise import normalise
from tests.support.letters import Letters, join

ATOMS = ["a > 1", "b is null", "e is not null", "e = 2", "a <=> d", "coalesce(b, e) = 1", "c + f > 0", "f is null"]


def predicates() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            inner.map(lambda p: f"not ({p})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        ),
        max_leaves=6,
    )


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
        case "Coalesce":
            return next((a for a in args if a is not None), None)
    one, other = args
    if one is None or other is None:
        return None
    return {"EqualTo": one == other, "GreaterThan": one > other, "Add": one + other}[e.kind]


Row = dict[str, "int | None"]


def run(plan: LogicalPlan, tables: dict[str, list[Row]]) -> list[Row]:
    """The rows of a plan of filters and joins over two tables, straight from the definitions."""
    if isinstance(plan, Filter):
        return [row for row in run(plan.child, tables) if truth(plan.condition, row) is True]
    if not isinstance(plan, Join):
        return tables[plan.info["rel"]["name"]]
    left, right = run(plan.left, tables), run(plan.right, tables)
    pairs = [(i, j) for i, one in enumerate(left) for j, r in enumerate(right) if _matches(plan, {**one, **r})]
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


def tables() -> st.SearchStrategy[dict[str, list[Row]]]:
    def rows(columns: str) -> st.SearchStrategy[list[Row]]:
        return st.lists(st.fixed_dictionaries({c: st.sampled_from(VALUES) for c in columns}), max_size=4)

    return st.fixed_dictionaries({"x": rows("abc"), "y": rows("def")})


@given(predicates(), predicates(), st.sampled_from(sorted(OUTER | {INNER})), tables())
def test_normalised_plans_give_the_same_rows(above: str, on: str, join_type: str, data: dict[str, list[Row]]) -> None:
    w = Letters()
    plan = Filter(w(above), join(w.relation("x", "a b c"), w.relation("y", "d e f"), w(on), join_type))
    result = normalise(plan).plan

    def bag(rows: list[Row]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    assert bag(run(result, data)) == bag(run(plan, data))
    assert normalise(result).plan is result
