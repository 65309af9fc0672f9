"""Flattening and rebuilding chains of joins: examples worked out by hand, then properties."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import create_ordered_join, flatten_join, reorder_join
from pyjoinopt.plan.expressions import call, conjuncts, reference
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, INNER, LEFT, Filter, Join, LogicalPlan, Project, SubqueryAlias
from pyjoinopt.plan.traversal import post_order, to_fixed_point
from tests.support.letters import Letters, join, names


def flat(plan: LogicalPlan) -> tuple[list[tuple[LogicalPlan, str]], list[str]]:
    items, conditions = flatten_join(plan)
    return items, [repr(c) for c in conditions]


# -- flattenJoin: six examples of its documentation ---------------------------------------------------------------


def four(w: Letters) -> tuple[LogicalPlan, LogicalPlan, LogicalPlan, LogicalPlan]:
    return w.relation("t1", "id1"), w.relation("t1", "id1b"), w.relation("t2", "id2"), w.relation("t3", "id3")


def test_example_1_one_cross_join() -> None:
    w = Letters()
    t1, again, _, _ = four(w)
    assert flat(join(t1, again, type=CROSS)) == ([(t1, CROSS), (again, CROSS)], [])


def test_example_2_an_inner_join_with_a_filter() -> None:
    w = Letters()
    t1, _, t2, _ = four(w)
    assert flat(Filter(w("id1 = id2"), join(t1, t2))) == ([(t1, INNER), (t2, INNER)], ["(id1 = id2)"])


def test_example_3_a_compound_filter() -> None:
    w = Letters()
    t1, again, t2, _ = four(w)
    plan = Filter(w("id2 = id1 and id1 > 10"), join(join(t1, again, type=CROSS), t2))
    assert flat(plan) == ([(t1, CROSS), (again, CROSS), (t2, INNER)], ["(id2 = id1)", "(id1 > 10)"])


def test_example_4_filters_in_between() -> None:
    w = Letters()
    t1, again, t2, t3 = four(w)
    lower = Filter(w("id2 = id1 and id1 > 10"), join(join(t1, again, type=CROSS), t2))
    right = w.project("id3", t3)
    items, conditions = flat(Filter(w("id3 = id1"), join(lower, right)))
    assert [plan for plan, _ in items] == [t1, again, t2, right]
    assert conditions == ["(id2 = id1)", "(id1 > 10)", "(id3 = id1)"]


def test_example_5_a_projection_ends_the_chain() -> None:
    w = Letters()
    t1, again, t2, t3 = four(w)
    closed = w.project("id1 id1b", join(t1, again, type=CROSS))
    lower = Filter(w("id2 = id1 and id1 > 10"), join(closed, t2))
    items, conditions = flat(Filter(w("id3 = id1"), join(lower, w.project("id3", t3))))
    assert [plan.kind for plan, _ in items] == ["Project", "LocalRelation", "Project"]
    assert len(conditions) == 3


def test_example_6_a_join_on_the_right_is_one_relation() -> None:
    w = Letters()
    t1, again, t2, _ = four(w)
    right = Filter(w("id2 = id1b and id1b > 10"), join(again, t2))
    last = w.relation("t2", "id2b")
    plan = Filter(w("id2b = id1 and id1 > 10"), join(join(t1, right, type=CROSS), last))
    items, conditions = flat(plan)
    assert [p for p, _ in items] == [t1, right, last]
    assert conditions == ["(id2b = id1)", "(id1 > 10)"]


# -- ExtractFiltersAndInnerJoins: the cases of Spark's suite -------------------------------------------------------


def test_chains_of_the_join_optimization_suite() -> None:
    w = Letters()
    x, z, y = w.relation("x", "a b c"), w.relation("z", "a2 b2 c2"), w.relation("y", "d")
    x2 = w.relation("x", "a3 b3 c3")
    b_is_d = w("b = d")
    xz = join(x2, z)
    assert flat(x) == ([(x, INNER)], [])
    assert len(flatten_join(Filter(w("a > 1"), x))[0]) == 1
    assert flat(join(x, y)) == ([(x, INNER), (y, INNER)], [])
    assert flat(join(x, y, b_is_d)) == flat(Filter(b_is_d, join(x, y))) == ([(x, INNER), (y, INNER)], ["(b = d)"])
    assert flat(join(join(x, y), z)) == ([(x, INNER), (y, INNER), (z, INNER)], [])
    assert flat(join(Filter(b_is_d, join(x, y)), z)) == ([(x, INNER), (y, INNER), (z, INNER)], ["(b = d)"])
    assert flat(join(join(x, y), xz)) == ([(x, INNER), (y, INNER), (xz, INNER)], [])
    assert flat(Filter(b_is_d, join(join(x, y), xz))) == ([(x, INNER), (y, INNER), (xz, INNER)], ["(b = d)"])
    assert flat(join(x, y, type=CROSS)) == ([(x, CROSS), (y, CROSS)], [])
    all_cross = join(join(x, y, type=CROSS), z, type=CROSS)
    assert flat(all_cross) == ([(x, CROSS), (y, CROSS), (z, CROSS)], [])
    assert flat(join(join(x, y, b_is_d, CROSS), z, type=CROSS))[0] == [(x, CROSS), (y, CROSS), (z, CROSS)]
    assert flat(join(join(x, y, b_is_d), z, type=CROSS))[0] == [(x, INNER), (y, INNER), (z, CROSS)]
    assert flat(join(join(x, y, b_is_d, CROSS), z))[0] == [(x, CROSS), (y, CROSS), (z, INNER)]


def test_hints_outer_joins_and_cached_joins_end_the_chain() -> None:
    w = Letters()
    t1, again, t2, _ = four(w)
    for lower in (
        join(t1, again, w("id1 = id1b"), hint=(None, "BROADCAST")),
        join(t1, again, w("id1 = id1b"), LEFT),
        Join(t1, again, INNER, w("id1 = id1b"), info={"cached": True}),
    ):
        assert flatten_join(join(lower, t2, w("id1 = id2")))[0] == [(lower, INNER), (t2, INNER)]


# -- createOrderedJoin: two examples of its documentation ----------------------------------------------------------


def test_two_relations() -> None:
    w = Letters()
    t1, t2 = w.relation("t1", "a"), w.relation("t2", "b")
    conditions = [w("a = b"), w("row_number() = 2"), w("true")]
    assert show(create_ordered_join([(t1, INNER), (t2, CROSS)], conditions)).splitlines() == [
        "Filter (rownumber() = 2)",
        "  Join Cross ((a = b) AND true)",
        "    LocalRelation t1",
        "    LocalRelation t2",
    ]


def test_three_relations_and_more() -> None:
    w = Letters()
    t1, t2, t3, t4 = (w.relation(f"t{i}", f"id{i}") for i in range(1, 5))
    conditions = [w("id1 = id2"), w("row_number() = 2"), w("true"), w("id4 = id1")]
    items = [(t1, INNER), (t2, INNER), (t3, CROSS), (t4, INNER)]
    assert show(create_ordered_join(items, conditions)).splitlines() == [
        "Filter (rownumber() = 2)",
        "  Join Inner (id4 = id1)",
        "    Join Cross",
        "      Join Inner ((id1 = id2) AND true)",
        "        LocalRelation t1",
        "        LocalRelation t2",
        "      LocalRelation t3",
        "    LocalRelation t4",
    ]


def test_the_relation_that_a_condition_connects_comes_next() -> None:
    w = Letters()
    p1, again = w.relation("p1", "id"), w.relation("p1", "id_again")
    p2, p3 = w.relation("p2", "id2 b"), w.relation("p3", "id3 a")
    items = [(p1, CROSS), (again, CROSS), (p2, INNER), (p3, INNER)]
    ordered = create_ordered_join(items, [w("id = id3"), w("b = a")])
    assert show(ordered).splitlines() == [
        "Join Cross",
        "  Join Inner (b = a)",
        "    Join Inner (id = id3)",
        "      LocalRelation p1",
        "      LocalRelation p3",
        "    LocalRelation p2",
        "  LocalRelation p1",
    ]


def test_one_relation_is_no_join() -> None:
    with pytest.raises(ValueError, match="two relations"):
        create_ordered_join([(Letters().relation("x"), INNER)], [])


# -- the rule: the cases of Spark's suite --------------------------------------------------------------------------


def xyz(w: Letters) -> tuple[LogicalPlan, LogicalPlan, LogicalPlan]:
    return w.relation("x", "xa xb xc"), w.relation("y", "yd"), w.relation("z", "za zb zc")


@pytest.mark.parametrize(
    ("first", "second", "where", "expected"),
    [
        (INNER, INNER, "xb = zb and yd = za", (INNER, "xb = zb", INNER, "yd = za")),
        (CROSS, CROSS, "xb = zb and yd = za", (CROSS, "xb = zb", CROSS, "yd = za")),
        (INNER, CROSS, "xb = za", (CROSS, "xb = za", INNER, "")),
    ],
)
def test_conditions_bring_relations_forward(
    first: str, second: str, where: str, expected: tuple[str, str, str, str]
) -> None:
    w = Letters()
    x, y, z = xyz(w)
    pushed = push_down_predicates(Filter(w(where), join(join(x, y, type=first), z, type=second)))
    result = to_fixed_point(pushed, reorder_join)
    lower = join(x, z, w(expected[1]), expected[0])
    upper = join(lower, y, w(expected[3]) if expected[3] else None, expected[2])
    assert show(result) == show(w.project("xa xb xc yd za zb zc", upper))


def test_names_do_not_end_a_chain() -> None:
    w = Letters()
    x, y, z = xyz(w)
    named = SubqueryAlias("s", Filter(w("xc > yd"), SubqueryAlias("r", join(SubqueryAlias("x", x), y))))
    assert [plan for plan, _ in flatten_join(join(named, z))[0]] == [named.child.child.child.left, y, z]
    in_order = join(SubqueryAlias("s", join(x, y, w("xa = yd"))), z, w("yd = za"))
    assert reorder_join(in_order) is in_order
    other = join(SubqueryAlias("s", join(x, y)), z, w("xb = zb and yd = za"))
    assert show(reorder_join(other)).splitlines()[1:3] == ["  Join Inner (yd = za)", "    Join Inner (xb = zb)"]


def test_a_chain_in_order_is_left_alone() -> None:
    w = Letters()
    x, y, z = xyz(w)
    plan = join(join(x, y, w("xa = yd")), z, w("yd = za and xb = zb"))
    groups: list = []
    assert reorder_join(plan, groups=groups) is plan
    assert len(groups) == 1 and groups[0].after is plan and groups[0].relations == (x, y, z)
    cross = join(join(x, y, type=CROSS), z, type=CROSS)
    assert reorder_join(cross) is cross


def test_chains_inside_relations_are_found() -> None:
    w = Letters()
    x, y, z = xyz(w)
    inner = join(join(x, y), z, w("xb = zb and yd = za"))
    t, u = w.relation("t"), w.relation("u")
    plan = join(join(t, w.group("xa", inner), w("t = xa")), u, w("u = t"))
    result = reorder_join(plan)
    assert "Join Inner (xb = zb)" in show(result)
    assert result.output == plan.output


def test_predicates_that_must_not_move() -> None:
    w = Letters()
    x, y, z = xyz(w)
    plan = Filter(w("rand() > 0 and xb = zb"), join(join(x, y), z, w("yd = za")))
    assert reorder_join(plan) is plan
    # A predicate without columns connects anything, so with it y stays before z; the joins below it are then looked at
    # without it.
    assert show(reorder_join(plan, as_catalyst=True)).splitlines() == [
        "Filter (rand() > 0)",
        "  Project xa, xb, xc, yd, za, zb, zc",
        "    Join Inner (yd = za)",
        "      Join Inner (xb = zb)",
        "        LocalRelation x",
        "        LocalRelation z",
        "      LocalRelation y",
    ]


def test_a_thousand_relations() -> None:
    w = Letters()
    relations = [w.relation(f"r{i}", f"k{i}") for i in range(1000)]
    items = [(r, INNER) for r in (relations[0], *reversed(relations[1:]))]
    conditions = [w(f"k{i} = k{i + 1}") for i in range(999)]
    started = time.perf_counter()
    plan = create_ordered_join(items, conditions)
    result = reorder_join(plan)
    assert time.perf_counter() - started < 20
    assert result is plan
    assert [n.attribute.name for n in map(reference, plan.output) if n.attribute] == [f"k{i}" for i in range(1000)]


# -- properties -------------------------------------------------------------------------------------------------


@given(st.data())
def test_every_condition_and_every_relation_survives(data: st.DataObject) -> None:
    w = Letters()
    n = data.draw(st.integers(2, 7))
    relations = [w.relation(f"r{i}", f"k{i} v{i}") for i in range(n)]
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=8))
    conditions = [w(f"k{i} = v{j}" if k % 2 else f"k{i} + v{j} > k{(i + j) % n}") for k, (i, j) in enumerate(pairs)]
    types = data.draw(st.lists(st.sampled_from([INNER, CROSS]), min_size=n - 1, max_size=n - 1))
    plan: LogicalPlan = relations[0]
    for relation, join_type in zip(relations[1:], types):
        plan = join(plan, relation, type=join_type)
    written: LogicalPlan = plan
    for condition in conditions:
        written = Filter(condition, written)
    written = push_down_predicates(written)
    result = to_fixed_point(written, reorder_join)
    assert result.output == written.output
    assert sorted(map(id, _leaves(result))) == sorted(map(id, relations))
    before = {c.key for node in post_order(written) for e in _predicates(node) for c in conjuncts(e)}
    after = [c.key for node in post_order(result) for e in _predicates(node) for c in conjuncts(e)]
    assert set(after) == before and len(after) == len(set(after))
    for node in post_order(result):
        if isinstance(node, (Join, Filter)):
            available = 0
            for child in node.children:
                available |= child.output_set
            assert not node.references & ~available


def _leaves(plan: LogicalPlan) -> list[LogicalPlan]:
    return [node for node in post_order(plan) if not node.children]


def _predicates(node: LogicalPlan) -> tuple:
    return node.expressions if isinstance(node, (Join, Filter)) else ()


def test_output_order_is_restored() -> None:
    w = Letters()
    x, i, a = w.relation("x", "x y"), w.relation("i", "i j"), w.relation("a", "a b")
    plan = join(join(x, i, type=CROSS), a, call("And", w("a = x"), w("b = i")))
    result = reorder_join(plan)
    assert isinstance(result, Project) and names(result.output) == ["x", "y", "i", "j", "a", "b"]
    assert show(result).splitlines()[1:4] == [
        "  Join Cross (b = i)",
        "    Join Inner (a = x)",
        "      LocalRelation x",
    ]
