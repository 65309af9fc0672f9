"""May this predicate be evaluated somewhere else, or on more rows, than where it was written?

Four answers matter. *Movable*: it reads only its row, gives the same answer everywhere, and is neither a Python UDF
(costly, evaluated by its own operator) nor tied to an enclosing query. *Movable subquery*: it would be movable but for
a subquery; a filter elsewhere may evaluate it, a join's condition may not. *Throwing*: in ANSI mode a cast or a
division can fail on a row that a join would have removed, so such a predicate must not be evaluated on rows on which
the written query does not evaluate it. *Throwable* is Catalyst's own, stronger mark (`raise_error`, `sequence`).
"""

from __future__ import annotations

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    ANSI,
    CORRELATED,
    OUTER_REFERENCE,
    PYTHON_UDF,
    REPLACED,
    SUBQUERY,
    THROWABLE,
    Expression,
    walk,
)  # fmt: skip
from pyjoinopt.plan.facts.constant_values import evaluates, is_cast, is_fixed
from pyjoinopt.plan.fallible.nonzero_divisors import NO_KEYS, NonZeroKeys, not_zero, operands_with_nonzero
from pyjoinopt.plan.fallible.value_ranges import FLOATING, cannot_overflow, is_of_decimals
from pyjoinopt.plan.nodes import Aggregate
from pyjoinopt.plan.operator_kinds import NEVER_MORE_ROWS
from pyjoinopt.plan.traversal import post_order

#: Kinds that give a value or NULL on every input, in any mode.
_TOTAL = frozenset(
    """
    And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull IsNaN
    In InSet Coalesce If CaseWhen NullIf NullIfResult TypedNullLiteral Nvl Nvl2 IfNull AttributeReference Literal
    Alias LikeAll LikeAny NotLikeAll NotLikeAny StartsWith EndsWith Contains Upper Lower StringTrim StringTrimLeft
    StringTrimRight Length Substring Concat Year Month DayOfMonth DayOfWeek Quarter WeekOfYear Hour Minute Second
    DateAdd DateSub DateDiff Greatest Least KnownNotNull KnownNullable NormalizeNaNAndZero
    KnownFloatingPointNormalized UpCast Collate Murmur3Hash XxHash64 ScalarSubquery Exists InSubquery ListQuery
    OuterReference
    """.split()
)
_PATTERNS = frozenset({"Like"})
#: Kinds that evaluate some operands on some rows only.
_CONDITIONAL = frozenset({"If", "CaseWhen", "Coalesce", "Nvl", "Nvl2", "IfNull", "NullIf"})
_DIVISIONS = frozenset({"Divide", "IntegralDivide", "Remainder", "Pmod"})
_ARITHMETIC = _DIVISIONS | {"UnaryMinus", "Abs", "Add", "Subtract", "Multiply"}
#: Kinds that fail where a decimal gets too long, in ANSI mode or not.
_FAIL_OF_DECIMALS = frozenset({"UnaryMinus", "Abs", "IntegralDivide", "Remainder", "Pmod"})
_COSTLY_KINDS = frozenset(
    """
    ScalaUDF ScalaUDAF PythonUDF RLike Like LikeAll LikeAny NotLikeAll NotLikeAny RegExpReplace RegExpExtract
    RegExpExtractAll RegExpCount RegExpInStr RegExpSubStr StringSplit JsonToStructs GetJsonObject StructsToJson
    JsonTuple ParseJson VariantGet XmlToStructs CsvToStructs FromAvro ToAvro
    """.split()
)


def is_movable(predicate: Expression) -> bool:
    """True if a join's condition or a filter elsewhere could hold it (Catalyst's canEvaluateWithinJoin, stricter)."""
    return predicate.deterministic and not predicate.contains & (
        PYTHON_UDF | OUTER_REFERENCE | CORRELATED | SUBQUERY | AGGREGATE_OR_WINDOW
    )


def has_movable_subquery(predicate: Expression) -> bool:
    """True if a filter elsewhere in its query could hold it, and it has a subquery, perhaps a correlated one."""
    never = PYTHON_UDF | OUTER_REFERENCE | AGGREGATE_OR_WINDOW
    return predicate.deterministic and bool(predicate.contains & SUBQUERY) and not predicate.contains & never


def is_meant_to_throw(expression: Expression) -> bool:
    """True if Catalyst itself refuses to move it because it is meant to fail."""
    return bool(expression.contains & THROWABLE)


def may_throw(expression: Expression) -> bool:
    """True unless every part is known to answer on every row; what a subquery does with a column of the row is one.

    What is constant does not count where it is always evaluated: Spark computes it before it reads any row. In a branch
    it may be one that fails, and Spark leaves that for the rows which take the branch; see `evaluates`.
    """
    if expression.fallible is None:
        expression.fallible = _has_a_fallible_part(expression)
    return expression.fallible


def _has_a_fallible_part(expression: Expression) -> bool:
    stack = [(inline_common_expressions(expression), NO_KEYS, True)]
    while stack:
        e, known, always = stack.pop()
        if evaluates(e, always):
            continue
        if not _total(e, known) or _fails_within(e):
            return True
        always = always and e.kind not in _CONDITIONAL
        stack += ((child, there, always) for child, there in operands_with_nonzero(e, known))
    return False


def _fails_within(subquery: Expression) -> bool:
    """True if the plan of a correlated subquery computes something from a column around it, and that may fail."""
    if subquery.plan is None or not subquery.flags & CORRELATED:
        return False
    inside = (e for node in post_order(subquery.plan) for e in node.expressions)
    return any(e.contains & (OUTER_REFERENCE | CORRELATED) and may_throw(e) for e in inside)


def _total(e: Expression, known: NonZeroKeys) -> bool:
    """Does this node answer for all that its operands give? `known`: what is not zero where it is evaluated."""
    if e.kind in _PATTERNS:  # a pattern may be malformed; a constant one was checked already
        return is_fixed(e.children[-1])
    if e.kind == "ScalarSubquery" and e.flags & CORRELATED and _may_give_several(e):
        return False
    if e.kind in _TOTAL or e.flags & REPLACED:
        return not e.flags & THROWABLE
    if is_cast(e):
        if any(part.type.startswith("interval") for part in (e, *e.children)) and e.type != "string":
            return False  # in any mode
        return (not e.flags & ANSI or cannot_overflow(e)) and not any("variant" in c.type for c in e.children)
    if e.kind in _ARITHMETIC and not any(part.type.startswith("interval") for part in (e, *e.children)):
        if not e.flags & ANSI and not (e.kind in _FAIL_OF_DECIMALS and is_of_decimals(e)):
            return True
        if e.flags & ANSI and e.kind in _DIVISIONS and not not_zero(e.children[1], known):
            return False
        return e.type in FLOATING or cannot_overflow(e)
    return False


def _may_give_several(subquery: Expression) -> bool:
    """False if its plan gives one row at most, whatever outer row it is evaluated for; two are an error."""
    plan = subquery.plan
    while plan is not None and plan.kind in NEVER_MORE_ROWS:
        plan = plan.children[0]
    return not (isinstance(plan, Aggregate) and not plan.grouping)


def is_costly(body: Expression) -> bool:
    """True if a computed column should not be computed twice, once for a filter and once for its value."""
    return any(e.kind in _COSTLY_KINDS for e in walk(body))


def extracts_variant(expression: Expression) -> bool:
    """True if Spark may compute a part of it early that can fail: what it takes out of a VARIANT.

    A projection right above a join makes Spark 4.3 compute such parts of the join's condition below that join
    (`PullOutVariantExtractions`), for rows that the join would not have compared. So no projection may be added there.
    """
    return any(
        (e.kind == "Cast" and "variant" in e.children[0].type) or (e.kind == "VariantGet" and e.flags & ANSI)
        for e in walk(expression)
    )


def why_not_movable(predicate: Expression) -> str:
    """The reason for a report, for a predicate that is not `is_movable`."""
    if predicate.contains & PYTHON_UDF:
        return "it calls a Python UDF, which may fail or behave differently on other rows"
    if predicate.contains & (OUTER_REFERENCE | CORRELATED):
        return "it reads columns of an outer query, so it must not be moved out of its place in the subquery"
    if predicate.contains & SUBQUERY:
        return "it contains a subquery predicate that is not ordered as a join, so it is evaluated where it is written"
    if not predicate.deterministic:
        return "it contains a nondeterministic expression, whose values depend on the order of the rows"
    return "it contains an aggregate or window function, whose result depends on all rows of its input"
