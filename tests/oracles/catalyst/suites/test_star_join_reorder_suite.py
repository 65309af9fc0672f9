"""Spark's StarJoinReorderSuite: without cost-based optimisation, ReorderJoin puts a star first."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.rules.star_schema_detection import find_star_joins, reorder_star_joins
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order, to_fixed_point
from tests.oracles.catalyst.suites.support import Analysed, left_deep, predicates, shape
from tests.support.letters import names

STAR = {"spark.sql.cbo.starSchemaDetection": "true", "spark.sql.cbo.enabled": "false"}


def suite() -> Analysed:
    w = Analysed()
    w.analysed("f1", 6, 48, "f1_fk1:3 f1_fk2:3 f1_fk3:4 f1_c4:4")
    w.analysed("f11", 6, 48, "f11_fk1:3 f11_fk2:3 f11_fk3:4 f11_c4:4")
    w.analysed("d1", 4, 32, "d1_pk1:4 d1_c2:3 d1_c3:4 d1_c4:~2")
    w.analysed("d2", 3, 24, "d2_c2:~3!1 d2_pk1:3 d2_c3:3 d2_c4:~2")
    w.analysed("d3", 5, 40, "d3_fk1:3 d3_c2:3 d3_pk1:5 d3_c4:~2")
    w.analysed("s3", 2, 17, "s3_pk1:2 s3_c2:1 s3_c3:1 s3_c4:~2")
    w.by_name["d3_ns"] = w.relation("d3_ns", "n3_fk1 n3_c2 n3_pk1 n3_c4")
    total = w.alias("col", "sum(d3_fk1)")
    w.by_name["subq"] = w.group("", w.by_name["d3"], total)
    return w


@dataclass(frozen=True)
class Case:
    """FROM, WHERE (`|` between conjuncts), the order of the joins afterwards, and the star (empty if there is none)."""

    tables: str
    where: str
    order: str
    star: str = ""


SNOWFLAKE = "f1_fk2 = d2_pk1 | d2_c2 = 2 | f1_fk1 = d1_pk1 | f1_fk3 = d3_pk1 | d3_fk1 = s3_pk1"
SELECTIVE = "f1_fk1 = d1_pk1 | d1_c2 = 2 | f1_fk3 = d3_pk1 | d3_fk1 = s3_pk1"
CASES = {
    "a selective star on all dimensions": Case("d1 d2 f1 d3 s3", SNOWFLAKE, "f1 d2 d1 d3 s3", "f1 d2 d1 d3"),
    "a dimension joined by <": Case(
        "d1 f1 d2 s3 d3", f"f1_fk2 < d2_pk1 | {SELECTIVE}", "f1 d1 d3 d2 s3", "f1 d1 d3"
    ),
    "a dimension joined on no key": Case(
        "d1 f1 d2 s3 d3", f"f1_fk2 = d2_c4 | {SELECTIVE}", "f1 d1 d3 d2 s3", "f1 d1 d3"
    ),
    "a dimension whose key has a NULL": Case(
        "d1 f1 d2 s3 d3", f"f1_fk2 = d2_c2 | {SELECTIVE}", "f1 d1 d3 d2 s3", "f1 d1 d3"
    ),
    "a table that was not counted": Case(
        "d3_ns f1 d1 d2 s3", SNOWFLAKE.replace("d3_", "n3_"), "d3_ns f1 d1 d2 s3"
    ),
    "a subquery among the tables": Case(
        "subq f1 d1 d2", "f1_fk2 = d2_pk1 | d2_c2 = 2 | f1_fk1 = d1_pk1 | f1_fk3 = col", "subq f1 d1 d2"
    ),
    "two facts": Case(
        "d1 f11 f1 d2 s3",
        "f1_fk2 = d2_pk1 | d2_c2 = 2 | f1_fk1 = d1_pk1 | f1_fk3 = f11_fk3 | f11_fk1 = s3_pk1", "d1 f1 f11 d2 s3",
    ),
    "no keys": Case(
        "d1 d3 f1 d2 s3",
        "f1_fk2 = d2_c4 | d2_c2 = 2 | f1_fk1 = d1_c4 | f1_fk3 = d3_c4 | d3_fk1 = s3_pk1", "d1 f1 d3 d2 s3",
    ),
    "a computed key": Case(
        "d1 d3 f1 d2 s3",
        "f1_fk2 = d2_pk1 | d2_c2 = 2 | abs(f1_fk1) = d1_pk1 | f1_fk3 = d3_pk1 | d3_fk1 = s3_pk1", "d1 f1 d3 d2 s3",
    ),
    "one dimension": Case(
        "d1 d3 f1 d2 s3",
        "f1_fk2 = d2_pk1 | d2_c2 = 2 | f1_fk1 < d1_pk1 | f1_fk3 < d3_pk1 | d3_fk1 = s3_pk1", "d1 f1 d3 d2 s3",
    ),
    "joins that make more rows": Case(
        "d1 d3 f1 d2 s3", "f1_fk2 < d2_pk1 | f1_fk1 < d1_pk1 | f1_fk3 < d3_pk1 | d3_fk1 < s3_pk1", "d1 f1 d3 d2 s3"
    ),
    "nothing selective": Case("d1 d3 f1 d2 s3", SNOWFLAKE.replace("d2_c2 = 2 | ", ""), "d1 f1 d3 d2 s3"),
}  # fmt: skip


def optimize(w: Analysed, plan: LogicalPlan, conf: dict[str, str]) -> LogicalPlan:
    def rules(p: LogicalPlan) -> LogicalPlan:
        return push_down_predicates(reorder_join(push_down_predicates(p), statistics=w.statistics, conf=conf))

    return to_fixed_point(plan, rules)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    w, case = suite(), CASES[name]
    query = w.query(case.tables, case.where.replace("|", "and"))
    result = optimize(w, query, STAR)
    order = case.order.replace("subq", "d3")  # what the subquery reads
    assert shape(result) == left_deep(order)
    assert names(result.output) == names(query.output)
    assert isinstance(result, Project) == (case.order != case.tables)
    assert predicates(result) == predicates(query)
    for node in post_order(result):  # what concerns one table is on that table
        if isinstance(node, Filter):
            assert not node.child.children
        if isinstance(node, Join):
            assert node.condition is not None


@pytest.mark.parametrize("name", CASES)
def test_the_star(name: str) -> None:
    w, case = suite(), CASES[name]
    items = [(plan, "Inner") for plan in w.tables(case.tables)]
    conditions = [w(text) for text in case.where.split(" | ")]
    assert reorder_star_joins(items, conditions, w.statistics, STAR) == [(p, "Inner") for p in w.tables(case.star)]
    found = find_star_joins([plan for plan, _ in items], conditions, w.statistics, STAR)
    fact, *dimensions = w.tables(case.star or ("f1 d2 d1 d3" if name == "nothing selective" else "")) or [None]
    assert found == ([fact, *reversed(dimensions)] if fact else [])


def test_the_first_case_in_full() -> None:
    w, case = suite(), CASES["a selective star on all dimensions"]
    result = optimize(w, w.query(case.tables, case.where.replace("|", "and")), STAR)
    assert show(result).splitlines()[1:] == [
        "  Join Inner (d3_fk1 = s3_pk1)",
        "    Join Inner (f1_fk3 = d3_pk1)",
        "      Join Inner (f1_fk1 = d1_pk1)",
        "        Join Inner (f1_fk2 = d2_pk1)",
        "          LocalRelation f1",
        "          Filter (d2_c2 = 2)",
        "            LocalRelation d2",
        "        LocalRelation d1",
        "      LocalRelation d3",
        "    LocalRelation s3",
    ]


@pytest.mark.parametrize(
    "conf", [{}, {**STAR, "spark.sql.cbo.starSchemaDetection": "false"}, {**STAR, "spark.sql.cbo.enabled": "true"}]
)
def test_only_on_request_and_not_when_costs_decide(conf: dict[str, str]) -> None:
    w, case = suite(), CASES["a selective star on all dimensions"]
    query = w.query(case.tables, case.where.replace("|", "and"))
    assert show(optimize(w, query, conf)) == show(optimize(Analysed(), query, {}))
    assert shape(optimize(w, query, conf)) == left_deep("d1 f1 d2 d3 s3")
