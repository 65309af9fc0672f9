"""Spark's StarJoinCostBasedReorderSuite: the search of join orders keeps a star together.

Costs and numbers of kept plans are worked out by hand; the numbers without the filter show what it saves.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder, extract_inner_joins
from pyjoinopt.catalyst.rules.join_reorder_dp_filters import JoinGraphInfo, build_join_graph_info, star_join_filter
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.rules.star_schema_detection import find_star_joins
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.nodes import Project
from pyjoinopt.plan.traversal import to_fixed_point
from tests.oracles.catalyst.suites.support import Analysed, mirrored, shape
from tests.support.letters import names

CBO = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}
STAR = {**CBO, "spark.sql.cbo.joinReorder.dp.star.filter": "true"}


def suite() -> Analysed:
    w = Analysed()
    w.analysed("f1", 1000, 28000, "f1_fk1:100 f1_fk2:100 f1_fk3:100 f1_c1:100 f1_c2:100")
    w.analysed("d1", 100, 3000, "d1_pk:100 d1_c2:50 d1_c3:50")
    w.analysed("d2", 20, 3000, "d2_pk:20 d2_c2:10 d2_c3:10")
    w.analysed("d3", 10, 3000, "d3_pk:10 d3_c2:5 d3_c3:5")
    w.analysed("t1", 50, 3000, "t1_c1:20 t1_c2:10 t1_c3:10")
    for i in range(2, 7):
        w.analysed(f"t{i}", 10, 3000, f"t{i}_c1:5 t{i}_c2:5 t{i}_c3:5")
    return w


@dataclass(frozen=True)
class Case:
    """One query: FROM, WHERE, which tables are the star, what ReorderJoin and then the search make of it.

    `cost` is (rows, bytes); `plans` and `unfiltered` are numbers of kept plans with and without the filter.
    """

    tables: str
    where: str
    star: str
    items: str
    tree: object
    cost: tuple[int, int]
    plans: int
    unfiltered: int


F_D2_D1 = (("f1", "d2"), "d1")
CASES = {
    "two dimensions and two others": Case(
        "f1 t1 t2 d1 d2", "f1_c1 = t1_c1 and f1_c2 = t2_c1 and f1_fk1 = d1_pk and f1_fk2 = d2_pk",
        "f1 d1 d2", "f1 t1 t2 d1 d2", ((F_D2_D1, "t2"), "t1"), (500, 24800), 11, 20,
    ),
    "a chain hangs on a dimension": Case(
        "d1 t1 t2 f1 d2 t3",
        "d1_pk = f1_fk1 and t1_c1 = f1_c1 and d2_pk = f1_fk2 and f1_fk2 = d2_pk and d1_c2 = t2_c1 and t2_c2 = t3_c1",
        "f1 d1 d2", "d1 t2 f1 t1 d2 t3", ((F_D2_D1, ("t3", "t2")), "t1"), (500, 25120), 15, 24,
    ),
    "branches of branches": Case(
        "d1 t1 t2 t3 t4 f1 d2",
        "t1_c1 = t2_c1 and t3_c1 = t4_c1 and t1_c2 = t4_c2 and d1_c2 = t4_c3 and f1_fk1 = d1_pk and f1_fk2 = d2_pk",
        "f1 d1 d2", "d1 t4 t1 t2 t3 f1 d2", ((F_D2_D1, ("t3", "t4")), ("t1", "t2")), (525, 25920), 22, 34,
    ),
    "a branch on each dimension": Case(
        "d1 t3 t4 f1 d3 d2 t5 t6 t1 t2",
        "d1_c2 = t3_c1 and t3_c2 = t4_c2 and d1_pk = f1_fk1 and f1_fk2 = d2_pk and d2_c2 = t5_c1 and t5_c2 = t6_c2"
        " and f1_fk3 = d3_pk and d3_c2 = t1_c1 and t1_c2 = t2_c2",
        "f1 d1 d2 d3", "d1 t3 t4 f1 d3 d2 t5 t6 t1 t2",
        ((((((("f1", "d3"), "d2"), "d1")), ("t4", "t3")), ("t2", "t1")), ("t5", "t6")), (530, 33200), 46, 82,
    ),
    "nothing but a star": Case(
        "d1 d2 f1 d3", "f1_fk1 = d1_pk and f1_fk2 = d2_pk and f1_fk3 = d3_pk",
        "f1 d1 d2 d3", "d1 f1 d2 d3", ((("f1", "d3"), "d2"), "d1"), (200, 9200), 11, 11,
    ),
    "tables around a fact, but no keys": Case(
        "t1 f1 t2 t3", "f1_fk1 = t1_c1 and f1_fk2 = t2_c1 and f1_fk3 = t3_c1",
        "", "t1 f1 t2 t3", ((("f1", "t3"), "t2"), "t1"), (200, 9200), 11, 11,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    w, case = suite(), CASES[name]
    query = w.query(case.tables, case.where)
    ready = to_fixed_point(query, lambda plan: reorder_join(push_down_predicates(plan), conf=STAR))
    group = ready.children[0] if isinstance(ready, Project) else ready
    items, conditions = extract_inner_joins(group)
    assert items == w.tables(case.items)
    assert {id(plan) for plan in find_star_joins(items, conditions, w.statistics, STAR)} == set(
        map(id, w.tables(case.star))
    )

    groups: list[ReorderedGroup] = []
    result = cost_based_join_reorder(ready, w.statistics, conf=STAR, groups=groups)
    assert mirrored(shape(result)) == mirrored(case.tree)
    assert isinstance(result, Project) and names(result.output) == names(query.output)
    assert [(g.rows_after, g.bytes_after) for g in groups] == [case.cost]

    best, plans = w.search(group, STAR)
    assert ((best.rows, best.bytes), plans) == (case.cost, case.plans)
    assert w.search(group, CBO)[1] == case.unfiltered


@pytest.mark.parametrize("name", CASES)
def test_the_filter_is_for_stars_with_company(name: str) -> None:
    w, case = suite(), CASES[name]
    items = w.tables(case.items)
    conditions = [w(text) for text in case.where.split(" and ")]
    assert build_join_graph_info(items, conditions, w.statistics, CBO) is None
    info = build_join_graph_info(items, conditions, w.statistics, STAR)
    star = sum(1 << case.items.split().index(name) for name in case.star.split())
    others = (1 << len(items)) - 1 - star
    assert info == (JoinGraphInfo(star, others) if star and others else None)


def test_which_joins_the_filter_lets_pass() -> None:
    info = JoinGraphInfo(star=0b00111, others=0b11000)
    assert star_join_filter(0b00001, 0b00010, info)  # inside the star
    assert star_join_filter(0b01000, 0b10000, info)  # outside
    assert star_join_filter(0b00111, 0b01000, info)  # the whole star and more
    assert star_join_filter(0b00011, 0b01100, info)
    assert not star_join_filter(0b00011, 0b01000, info)  # part of the star and more
    assert not star_join_filter(0b00011, 0b00010, info)  # a table twice
