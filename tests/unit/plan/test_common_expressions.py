"""Inlining of common expressions."""

from __future__ import annotations

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import DETERMINISTIC, UNEVALUABLE, Expression, call, describe, walk
from tests.support.letters import Letters

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
