"""Predicates over one relation in a join condition, which every reordering must preserve.

Spark 4's own search loses such predicates: it fails, or gives too many rows.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, SubqueryAlias
from pyjoinopt.plan.traversal import post_order
from tests.support.letters import join, names
from tests.support.made_up_tables import Tables, suite, tree


def test_a_one_sided_predicate_is_applied_exactly_once() -> None:
    w, t = suite()
    plan = join(join(t["t1"], t["t2"], w("k1 = k2 and v1 > 3")), t["t3"], w("v1 = v3"))
    result = cost_based_join_reorder(plan, w.statistics)
    assert tree(result) == "((t1 ⋈ t3) ⋈ t2)"
    assert _applied(result) == sorted(["(k1 = k2)", "(v1 > 3)", "(v1 = v3)"])
    assert show(result).splitlines()[3].strip() == "Filter (v1 > 3)"


def test_a_one_sided_predicate_that_can_fail_waits_for_all_joins() -> None:
    w, t = suite()
    for columns in ("k1 v1 k2 v3", "v3"):
        body = join(join(t["t1"], t["t2"], w("k1 = k2 and raise_error(k1) = 1")), t["t3"], w("v1 = v3"))
        plan = w.project(columns, body)
        assert push_down_predicates(plan) is plan
        result = cost_based_join_reorder(plan, w.statistics)
        assert tree(result) == "((t1 ⋈ t3) ⋈ t2)"
        assert _applied(result) == sorted(["(k1 = k2)", "(raiseerror(k1) = 1)", "(v1 = v3)"])
        lines = show(result).splitlines()
        assert lines[0] == "Project " + columns.replace(" ", ", ")
        assert lines[1].strip() == "Filter (raiseerror(k1) = 1)"
        _check_columns(result)


def test_a_predicate_without_columns_is_kept() -> None:
    w, t = suite()
    plan = join(join(t["t1"], t["t2"], w("k1 = k2 and false")), t["t3"], w("v1 = v3"))
    assert _applied(cost_based_join_reorder(plan, w.statistics)) == sorted(["(k1 = k2)", "false", "(v1 = v3)"])


def _applied(plan: LogicalPlan) -> list[str]:
    nodes = [node for node in post_order(plan) if isinstance(node, (Join, Filter))]
    return sorted(repr(p) for node in nodes for e in node.expressions for p in conjuncts(e))


def _check_columns(plan: LogicalPlan) -> None:
    for node in post_order(plan):
        if node.children:
            available = 0
            for child in node.children:
                available |= child.output_set
            assert not node.references & ~available


# -- properties -----------------------------------------------------------------------------------------------------


@st.composite
def groups_of_joins(draw: st.DrawFn) -> tuple[Tables, LogicalPlan]:
    w = Tables()
    n = draw(st.integers(3, 6))
    plans = []
    for i in range(n):
        rows = draw(st.integers(0, 1000))
        plans.append(w.table(f"r{i}", rows, f"a{i}:{draw(st.integers(1, 50))} b{i}:{draw(st.integers(1, 50))}"))
    plan: LogicalPlan = plans[0]
    for i in range(1, n):
        condition = f"b{draw(st.integers(0, i - 1))} = a{i}"
        if draw(st.booleans()):
            condition += f" and a{draw(st.integers(0, i))} + b{draw(st.integers(0, i))} > {i}"
        if draw(st.booleans()):
            condition += f" and b{draw(st.integers(0, i))} > {i}"
        plan = join(plan, plans[i], w(condition))
    if draw(st.booleans()):
        plan = SubqueryAlias("s", plan)
    kept = [c for c in names(plan.output) if draw(st.booleans())] or ["a0"]
    return w, w.project(" ".join(kept), plan)


@given(groups_of_joins())
@settings(max_examples=60, deadline=None)
def test_reordered_groups_mean_the_same(case: tuple[Tables, LogicalPlan]) -> None:
    w, plan = case
    groups: list[ReorderedGroup] = []
    result = cost_based_join_reorder(plan, w.statistics, groups=groups)
    assert result.output == plan.output
    assert _applied(result) == _applied(plan)
    _check_columns(result)
    for group in groups:
        assert None not in (group.rows_before, group.rows_after, group.bytes_before, group.bytes_after)
        assert group.pairs >= len(group.relations) - 1
