"""Column pruning, operator by operator, and compared with Catalyst's own rule on every state of a plan."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.column_pruning import column_pruning
from pyjoinopt.plan.constructors import distinct, union
from pyjoinopt.plan.expressions import Expression, literal
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, FULL, LEFT, SEMI, Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import to_fixed_point
from tests.support.letters import Letters, join, names


def pruned(plan: LogicalPlan) -> str:
    return show(to_fixed_point(plan, column_pruning))


def tree(*lines: str) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize("join_type", ["Inner", "Cross", LEFT, FULL])
def test_a_join_reads_its_condition_and_what_is_wanted_above(join_type: str) -> None:
    w = Letters()
    plan = w.project("a", join(w.relation("x", "a b c"), w.relation("y", "d e"), w("b = d"), join_type))
    assert pruned(plan) == tree(
        "Project a", f"  Join {join_type} (b = d)", "    Project a, b", "      LocalRelation x", "    Project d",
        "      LocalRelation y",
    )  # fmt: skip


@pytest.mark.parametrize("join_type", [SEMI, ANTI, EXISTENCE])
def test_the_right_side_of_a_semi_join_needs_no_projection_above(join_type: str) -> None:
    w = Letters()
    x, y, mark = w.relation("x", "a b"), w.relation("y", "d e"), w.attribute("found")
    plan = join(x, y, w("a = d"), join_type, exists=mark if join_type == EXISTENCE else None)
    after = column_pruning(plan)
    assert names(after.children[1].output) == ["d"] and after.children[0] is x
    assert after.output == plan.output


def test_an_aggregate_loses_functions_that_are_not_read_and_columns_it_does_not_read() -> None:
    w = Letters()
    grouped = w.group("a", w.relation("x", "a b c d"), w.alias("m", "max(b)"), w.alias("n", "max(c)"))
    assert pruned(w.project("m", grouped)) == tree(
        "Project m", "  Aggregate a, max(b) AS m", "    Project a, b", "      LocalRelation x"
    )


def test_projections_lose_what_the_upper_one_does_not_read() -> None:
    w = Letters()
    lower = w.project("a", w.relation("x", "a b c"), w.alias("s", "b + c"), w.alias("t", "c + 1"))
    assert pruned(w.project("s", lower)) == tree("Project s", "  Project (b + c) AS s", "    LocalRelation x")


def test_no_plain_projection_stays_below_a_filter() -> None:
    w = Letters()
    plan = w.project("a", Filter(w("b > 1"), join(w.relation("x", "a b c"), w.relation("y", "d"), w("a = d"))))
    after = pruned(plan)
    assert after.splitlines()[:3] == ["Project a", "  Filter (b > 1)", "    Join Inner (a = d)"]
    assert "Project a, b\n        LocalRelation x" in after
    # One that computes something stays.
    computed = w.project("a", Filter(w("s > 1"), w.project("a", w.relation("z", "a b"), w.alias("s", "b + 1"))))
    assert column_pruning(computed) is computed


def test_a_union_keeps_the_same_positions_in_every_branch() -> None:
    w = Letters()
    branches = [w.relation("x", "a b c"), w.relation("y", "d e f")]
    assert pruned(w.project("c a", union(branches))) == tree(
        "Project c, a", "  Union", "    Project a, c", "      LocalRelation x", "    Project d, f",
        "      LocalRelation y",
    )  # fmt: skip


def test_what_compares_whole_rows_keeps_all_columns() -> None:
    w = Letters()
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    for kind in ("Intersect", "Except"):
        plan = w.project("a", LogicalPlan(kind, (x, y), x.output))
        assert column_pruning(plan) is plan
    plan = w.project("a", distinct(x))
    assert column_pruning(plan) is plan


def window(w: Letters, child: LogicalPlan, *functions: Expression) -> LogicalPlan:
    """Functions over PARTITION BY a ORDER BY b."""
    output = child.output + tuple(f.attribute for f in functions if f.attribute is not None)
    info = {"parts": [len(functions), 1, 1]}
    return LogicalPlan("Window", (child,), output, (*functions, w("a"), w("b")), info=info)


def test_a_window_loses_functions_and_then_itself() -> None:
    w = Letters()
    over = window(w, w.relation("x", "a b c d"), w.alias("r", "rank(b)"), w.alias("t", "total(c)"))
    one = to_fixed_point(w.project("r", over), column_pruning)
    assert show(one) == tree("Project r", "  Window rank(b) AS r, a, b", "    Project a, b", "      LocalRelation x")
    assert one.children[0].info["parts"] == [1, 1, 1] and names(one.children[0].output) == ["a", "b", "r"]
    assert pruned(w.project("a", over)) == tree("Project a", "  LocalRelation x")


def test_an_expand_loses_positions_of_every_list() -> None:
    w = Letters()
    x = w.relation("x", "a b c")
    lists = [tuple(w(c) for c in "abc") + (w("0"),), (w("a"), literal(None), w("c"), w("1"))]
    output = tuple(w.attribute(n) for n in ("a", "g", "c", "id"))
    expand = LogicalPlan("Expand", (x,), output, (*lists[0], *lists[1]), info={"lists": lists})
    after = to_fixed_point(w.project("id a", expand), column_pruning).children[0]
    assert [list(map(repr, one)) for one in after.info["lists"]] == [["a", "0"], ["a", "1"]]
    assert names(after.output) == ["a", "id"] and names(after.children[0].output) == ["a"]


def test_a_generate_hands_on_only_what_is_read_above() -> None:
    w = Letters()
    x, v = w.relation("x", "a b c"), w.attribute("v")
    info = {"generated": [v.bit], "unrequired": [], "outer": False}
    generate = LogicalPlan("Generate", (x,), (*x.output, v), (w("explode(a)"),), info={**info, "reads_set": 1})
    after = column_pruning(w.project("v b", generate)).children[0]
    assert names(after.children[0].output) == ["a", "b"] and after.info["unrequired"] == [0]
    assert names(after.output) == ["b", "v"]
    again = Project((w("v"), w("b")), after)
    assert column_pruning(again) is again


def test_opaque_operators_forget_the_columns_that_are_gone() -> None:
    w = Letters()
    x = w.relation("x", "a b c")
    sort = LogicalPlan("Sort", (x,), x.output, (w("b"),))
    limit = LogicalPlan("GlobalLimit", (sort,), sort.output, (w("3"),))
    after = to_fixed_point(w.project("a", limit), column_pruning)
    assert show(after) == tree(
        "Project a",
        "  GlobalLimit 3",
        "    Project a",
        "      Sort b",
        "        Project a, b",
        "          LocalRelation x",
    )
    assert names(after.children[0].output) == ["a"] and names(after.children[0].children[0].children[0].output) == [
        "a",
        "b",
    ]


def test_cached_plans_stay_as_they_are() -> None:
    w = Letters()
    grouped = w.group("a", w.relation("x", "a b c"), w.alias("m", "max(b)"))
    grouped.cached = True
    plan = w.project("a", grouped)
    assert column_pruning(plan) is plan
    over_join = w.project("m", join(grouped, w.relation("y", "d"), w("m = d")))
    assert "Project m\n      Aggregate" in pruned(over_join)


def test_two_thousand_levels() -> None:
    w = Letters()
    plan: LogicalPlan = w.relation("x", "c0 unread")
    for i in range(2000):
        plan = w.project(f"c{i}", plan, w.alias(f"c{i + 1}", f"c{i} + 1"))
    after = column_pruning(w.project("c2000", plan))
    assert after is not plan and names(after.children[0].output) == ["c2000"]
