"""The encoding of edits: unchanged nodes as numbers, changed nodes as copies, new nodes in full."""

from __future__ import annotations

import json

import pytest

from pyjoinopt.bridge.decode import PROTOCOL, UNREAD, decode
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.errors import BridgeError
from pyjoinopt.plan.expressions import Expression, call, conjunction, reference
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project


def export(**changes):
    """Filter (a = 1) over Join (a = b) of two leaves; numbers as the shim would give them."""
    data = {
        "protocol": PROTOCOL,
        "handle": 3,
        "types": ["int", "boolean"],
        "attributes": [[11, "j", "a", 0, 1], [12, "j", "b", 0, 0]],
        "expressions": [
            ["AttributeReference", 0, 1, 0, [], {"a": 0}],
            ["AttributeReference", 0, 1, 1, [], {"a": 1}],
            ["EqualTo", 1, 3, 2, [0, 1], None],
            ["Literal", 0, 5, 3, [], {"v": 1, "s": "1"}],
            ["EqualTo", 1, 3, 4, [0, 3], None],
        ],
        "nodes": [
            {"c": "LocalRelation", "k": [], "o": [0], "x": []},
            {"c": "LocalRelation", "k": [], "o": [1], "x": []},
            {"c": "Join", "k": [0, 1], "o": [0, 1], "x": [2], "t": "Inner", "cond": 2, "hint": [None, None]},
            {"c": "Filter", "k": [2], "o": [0, 1], "x": [4], "cond": 4},
            {"c": "Sort", "k": [3], "o": [0, 1], "x": [0]},
        ],
        "root": 4,
        "filtersNull": [4],
        **changes,
    }
    return decode(json.dumps(data))


def test_decoding_builds_the_tree():
    plan = export()
    assert show(plan.root).splitlines() == [
        "Sort a", "  Filter (a = 1)", "    Join Inner (a = b)", "      LocalRelation", "      LocalRelation",
    ]  # fmt: skip
    assert plan.filters_null == {4} and plan.handle == 3
    assert not plan.attributes[1].nullable


def test_another_protocol_is_refused():
    with pytest.raises(BridgeError, match="protocol 99"):
        export(protocol=99)


@pytest.mark.parametrize(
    ("extra", "value"),
    [
        ({"v": None, "s": "NULL"}, None),
        ({"v": {"d": "1.50"}, "s": "1.50"}, __import__("decimal").Decimal("1.50")),
        ({"v": {"date": 1}, "s": "x"}, __import__("datetime").date(1970, 1, 2)),
        ({"v": {"ts": 5}, "s": "x"}, 5),
        ({"v": {"date": 10**9}, "s": "far away"}, UNREAD),
        ({"v": [1, 2], "s": "array"}, UNREAD),
        ({"s": "a very long string"}, UNREAD),
    ],
)
def test_literals(extra, value):
    found = export(expressions=[
        ["AttributeReference", 0, 1, 0, [], {"a": 0}], ["AttributeReference", 0, 1, 1, [], {"a": 1}],
        ["EqualTo", 1, 3, 2, [0, 1], None], ["Literal", 0, 5, 3, [], extra], ["EqualTo", 1, 3, 4, [0, 3], None],
    ])  # fmt: skip
    assert found.expressions[3].value == value
    hash(found.expressions[3].value)


def test_an_untouched_plan_is_one_number():
    plan = export()
    edits = Edits()
    assert edits.plan(plan.root) == 4
    assert edits.message(4, restore=4) == {"exprs": [], "nodes": [], "root": 4}


def test_a_swapped_join_is_spelled_out_and_the_rest_copied():
    plan = export()
    join, filter_ = plan.nodes[2], plan.nodes[3]
    swapped = Join(join.right, join.left, "Inner", join.condition)
    root = plan.root.with_children((filter_.with_children((swapped,)),))
    edits = Edits()
    message = edits.message(edits.plan(root), restore=4)
    assert message["exprs"] == []
    assert message["nodes"] == [
        ["Join", 1, 0, "Inner", 2, [None, None]], ["Copy", 3, [-1]], ["Copy", 4, [-2]], ["Output", -3, 4],
    ]  # fmt: skip


def test_new_predicates_are_spelled_and_shared():
    plan = export()
    a, b = plan.nodes[0].output[0], plan.nodes[1].output[0]
    implied = call("EqualTo", reference(a), reference(b))
    condition = conjunction([plan.expressions[2], implied, implied])
    edits = Edits()
    edits.plan(Filter(condition, plan.nodes[2]))
    assert edits.expressions == [
        ["Attr", 0], ["Attr", 1], ["EqualTo", -1, -2], ["And", 2, -3], ["And", -4, -3],
    ]  # fmt: skip
    assert edits.nodes == [["Filter", 2, -5]]


def test_expressions_of_an_opaque_node_are_replaced_in_place():
    plan = export()
    edits = Edits()
    edits.plan(plan.root.with_expressions((plan.expressions[1],)))
    assert edits.nodes == [["Exprs", 4, [3], [[0, 1]]]]


def test_what_nobody_knows_how_to_build_is_refused():
    plan = export()
    edits = Edits()
    with pytest.raises(BridgeError, match="Pivot"):
        edits.plan(LogicalPlan("Pivot", (plan.root,), plan.root.output))


def test_a_projection_of_columns():
    plan = export()
    edits = Edits()
    edits.plan(Project((reference(plan.nodes[1].output[0]),), plan.nodes[2]))
    assert edits.nodes == [["Project", 2, [-1]]]


def test_ten_thousand_levels():
    plan = export()
    leaf = plan.nodes[0]
    for _ in range(10_000):
        leaf = Filter(plan.expressions[4], leaf)
    edits = Edits()
    assert edits.plan(leaf) == -10_000


def test_an_existence_join_with_a_hint_is_a_copy_of_its_origin():
    attributes = [[11, "j", "a", 0, 1], [12, "j", "b", 0, 0], [13, "j", "exists", 1, 0]]
    data = export().root.children[0].children[0].info | {"t": "ExistenceJoin", "exists": 2, "o": [0, 2]}
    nodes = [
        {"c": "LocalRelation", "k": [], "o": [0], "x": []},
        {"c": "LocalRelation", "k": [], "o": [1], "x": []},
        {**data, "c": "Join"},
    ]
    join = export(attributes=attributes, nodes=nodes, root=2, filtersNull=[]).root
    assert isinstance(join, Join)
    hinted = join.with_hint((None, "BROADCAST"))
    assert hinted.output == join.output and hinted.hint == (None, "BROADCAST")
    edits = Edits()
    assert edits.plan(join) == 2 and edits.plan(hinted) == -1
    assert edits.nodes == [["JoinLike", 2, 0, 1, None, 2, [None, "BROADCAST"]]]
    again = hinted.with_children((Filter(join.condition, join.left), join.right))
    assert edits.plan(again) == -3 and edits.nodes[-1] == ["JoinLike", 2, -2, 1, None, 2, [None, "BROADCAST"]]


@pytest.mark.parametrize("kind", ["CastLike", "MakeDecimal"])
def test_a_type_is_sent_as_an_expression_that_has_it(kind: str) -> None:
    plan = export()
    child, like = plan.expressions[0], plan.expressions[3]
    edits = Edits()
    assert edits.expression(Expression(kind, (child,), like.type, info={"typed_like": like})) == -1
    assert edits.expressions == [[kind, 0, 3]]
