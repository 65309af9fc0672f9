"""Which plans may be read twice for their keys, and what the second reading is."""

from __future__ import annotations

from pyjoinopt.optimizer.prefilter.sources import joined_source, relation_source
from pyjoinopt.plan.constructors import ColumnFactory, constant
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order


def column(bit: int) -> Attribute:
    return Attribute(bit, bit, f"c{bit}", "int")


def files(bit: int) -> LogicalPlan:
    info = {"rel": {"kind": "file", "name": f"t{bit}"}}
    return LogicalPlan("LogicalRelation", (), (column(bit),), (), bit, None, info)


def filtered(bit: int) -> LogicalPlan:
    return Filter(call("EqualTo", reference(column(bit)), constant(3, "int")), files(bit))


def chain(relations: int) -> LogicalPlan:
    """Files joined on their only columns, the first of them filtered."""
    plan = filtered(0)
    for bit in range(1, relations):
        plan = Join(plan, files(bit), "Inner", call("EqualTo", reference(column(bit - 1)), reference(column(bit))))
    return plan


def test_a_relation_needs_a_filter() -> None:
    assert relation_source(files(0)) is None
    source = relation_source(filtered(0))
    assert source is not None and source.name == "t0"


def test_a_join_of_a_few_relations() -> None:
    source = joined_source(chain(5))
    assert source is not None and source.name == "t0 with t1 with t2 with t3 with t4"
    assert joined_source(chain(6)) is None and joined_source(chain(2000)) is None


def test_the_second_reading_shares_no_column() -> None:
    plan = chain(3)
    source = joined_source(plan)
    assert source is not None
    keys, key = source.keys(column(2), ColumnFactory(10))
    assert keys.output == (key,) and key.type == "int"
    assert not any(node.output_set & plan.output_set for node in post_order(keys))
    assert [node.info["again"] for node in post_order(keys) if not node.children] == [True, True, True]
