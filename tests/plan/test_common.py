"""Common expressions written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import DETERMINISTIC, UNEVALUABLE, Expression, call, describe, walk
from tests.support.letters import Letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLAGS = DETERMINISTIC | UNEVALUABLE


def ref(id: int) -> Expression:
    return Expression("CommonExpressionRef", type="int", flags=FLAGS, info={"id": id})


def defined(child: Expression, **definitions: Expression) -> Expression:
    """`defined(child, _1=x)`: child WITH ref 1 := x."""
    parts = [
        Expression("CommonExpressionDef", (e,), "int", FLAGS, info={"id": int(name[1:])})
        for name, e in definitions.items()
    ]
    return Expression("With", (child, *parts), flags=FLAGS)


def test_each_reference_finds_its_own_definition() -> None:
    w = Letters()
    w.attribute("a"), w.attribute("b")
    predicate = defined(call("LessThan", ref(7), call("And", ref(8), ref(7))), _7=w("a"), _8=w("b"))
    assert describe(inline_common_expressions(predicate)) == "(a < (b AND a))"


def test_nested_definitions() -> None:
    w = Letters()
    w.attribute("a"), w.attribute("b")
    inner = defined(call("And", ref(2), ref(1)), _2=call("Or", ref(1), w("b")))
    inlined = inline_common_expressions(defined(call("EqualTo", inner, ref(1)), _1=w("a")))
    assert describe(inlined) == "(((a OR b) AND a) = a)"
    in_definition = defined(call("And", ref(2), ref(2)), _2=defined(call("Or", ref(1), ref(1)), _1=w("a")))
    assert describe(inline_common_expressions(in_definition)) == "((a OR a) AND (a OR a))"


def test_a_reference_of_an_outer_definition_stays() -> None:
    w = Letters()
    w.attribute("a")
    written = inline_common_expressions(defined(call("And", ref(1), ref(9)), _1=w("a")))
    assert [e.kind for e in walk(written)] == ["AttributeReference", "CommonExpressionRef", "And"]


def test_an_id_defined_twice_means_nothing_sure() -> None:
    w = Letters()
    w.attribute("a"), w.attribute("b")
    definitions = [Expression("CommonExpressionDef", (w(n),), "int", FLAGS, info={"id": 1}) for n in "ab"]
    twice = Expression("With", (ref(1), *definitions), flags=FLAGS)
    assert inline_common_expressions(twice) is twice


def test_doubling_ends_somewhere() -> None:
    w = Letters()
    w.attribute("a")
    predicate = w("a")
    for id in range(1, 60):
        predicate = defined(call("Or", ref(id), ref(id)), **{f"_{id}": predicate})
    assert sum(1 for _ in walk(inline_common_expressions(predicate))) < 20_000


QUERIES = {
    "id between 1 and 2": "And",
    "nullif(id, 3) between 1 and nullif(n, 4)": "And",
    "(id between 0 and n) = (n between 1 and nullif(id, 2))": "EqualTo",
}


@pytest.mark.parametrize("text", QUERIES)
def test_what_spark_makes(spark: SparkSession, text: str) -> None:
    """Nothing of Spark's own shorthand is left, and every column is found where it belongs."""
    from pyjoinopt.bridge.decode import decode
    from pyjoinopt.bridge.shim import bridge_for

    if spark.version < "4":
        pytest.skip("Spark 3.5 has no common expressions")
    df = spark.range(9).selectExpr("id", "id + 1 as n").where(text)
    bridge = bridge_for(df)
    export = decode(bridge.export(df._jdf, "{}"))
    written = inline_common_expressions(export.root.expressions[0])
    assert written.kind == QUERIES[text]
    assert not {e.kind for e in walk(written)} & {"With", "CommonExpressionRef", "CommonExpressionDef"}
