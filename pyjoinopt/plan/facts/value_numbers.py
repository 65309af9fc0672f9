"""Value numbering: equal expressions have one number, so that predicates are compared by number.

Inference makes the same predicate again and again: `b > 5` from `a > 5` and `a = b`, then `a > 5` back from it. Each
must be recognised, also when it is written `5 < b` or `NOT (b <= 5)`. A `ValueNumbering` gives every expression a
number, equal for equivalent expressions, so that a set of predicates is a dict and a comparison costs nothing.

Some parameters of expressions are kept in the JVM (the escape character of LIKE, for one). Expressions that
look alike but for such parameters get the same number too, which is then not `certain`. A number that is not certain
is good for leaving something out ("we know that already"), never for putting one expression in place of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import ANSI, EQUALITIES, MIRRORED, NEGATED, STRUCTURAL, TRYING, Expression
from pyjoinopt.util.node_memo import NodeMemo

#: Kinds without parameters beside their children, their type and what they do where a result does not fit.
_PLAIN = STRUCTURAL | frozenset(
    """
    In Coalesce If CaseWhen Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus Abs Upper Lower
    Substring Concat Length StartsWith EndsWith Contains Year Month DayOfMonth Quarter DateAdd DateSub DateDiff Greatest
    Least IsNaN StringTrim CreateArray CreateMap CreateNamedStruct KnownNotNull NormalizeNaNAndZero
    """.split()
)
#: Kinds that differ in parameters the mirror does not have, so that equal structure proves nothing.
_APART = frozenset({"ScalaUDF", "PythonUDF", "Invoke", "StaticInvoke"})
#: What is exported of the parameters of some kinds that have them.
_PARAMETERS = {"Cast": ("tz",), "GetStructField": ("ordinal",), "GetArrayStructFields": ("ordinal",)}
_CHAINS = frozenset({"And", "Or", "Add", "Multiply"})
_VALUES = (bool, int, float, str, Decimal, date)


class ValueNumbering:
    """Gives out the numbers; they compare with each other only.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> a, b = reference(Attribute(0, 1, "a")), reference(Attribute(1, 2, "b"))
    >>> meanings = ValueNumbering()
    >>> meanings(call("LessThan", a, b)) == meanings(call("Not", call("LessThanOrEqual", b, a)))
    True
    """

    def __init__(self) -> None:
        #: Results of callers that work with numbered expressions, by the ids of these, which live as long as this does.
        self.memo: dict[Any, Any] = {}
        self._numbers: dict[Any, int] = {}
        self._known = NodeMemo[Expression, int]()
        self._chains: dict[int, tuple[int, ...]] = {}
        self._uncertain: set[int] = set()

    def __call__(self, root: Expression) -> int:
        """The number of an expression."""
        known = self._known.get(root)
        return self._known.filled(root, lambda e: e.children, self._number) if known is None else known

    def replaceable(self, one: Expression, other: Expression) -> bool:
        """True if one may replace the other."""
        number = self(one)
        return number == self(other) and (number not in self._uncertain or one.same(other))

    def _number(self, e: Expression) -> int:
        below = tuple([self._known[c] for c in e.children])
        key, certain = self._key(e, below)
        number = self._numbers.setdefault(key, len(self._numbers))
        if not certain or not self._uncertain.isdisjoint(below):
            self._uncertain.add(number)
        if e.kind in _CHAINS and key[0] == e.kind:
            self._chains[number] = key[3]
        return number

    def _key(self, e: Expression, below: tuple[int, ...]) -> tuple[Any, bool]:
        kind = e.kind
        if not e.deterministic:
            return ("itself", id(e)), True
        if kind == "AttributeReference" and e.attribute is not None:
            return ("column", e.attribute.bit), True
        if kind == "Literal" and (e.value is None or isinstance(e.value, _VALUES)):
            return ("literal", e.type, type(e.value), e.value), True
        if kind in EQUALITIES:
            return (kind, *sorted(below)), True
        if kind == "Not" and e.children[0].kind in NEGATED:
            inner = e.children[0]
            kind, below = NEGATED[inner.kind], tuple([self._known[c] for c in inner.children])
        if kind in ("GreaterThan", "GreaterThanOrEqual"):
            return (MIRRORED[kind], *reversed(below)), True
        if kind in ("LessThan", "LessThanOrEqual"):
            return (kind, *below), True
        mode = e.flags & (ANSI | TRYING)
        if kind in _CHAINS:
            parts = tuple(sorted(part for c, n in zip(e.children, below) for part in self._parts(e, c, n)))
            return (kind, e.type, mode, parts if len(parts) <= limits.CHAIN else tuple(sorted(below))), True
        if kind == "In":
            return (kind, below[0], *sorted(below[1:])), True
        if kind in _PLAIN:
            return (kind, e.type, mode, below), True
        if kind in _PARAMETERS:
            return (kind, e.type, mode, *(e.info.get(p) for p in _PARAMETERS[kind]), below), True
        if e.plan is not None or kind in _APART or kind == "Literal":
            if e.sem is None:
                return ("itself", id(e)), True
            return (("sem", e.sem) if e.number is not None else ("sem", e.sem, below)), True
        return (kind, e.type, mode, e.text, e.info.get("name"), below), False

    def _parts(self, e: Expression, child: Expression, number: int) -> tuple[int, ...]:
        same_chain = child.kind == e.kind and child.type == e.type and (child.flags ^ e.flags) & (ANSI | TRYING) == 0
        return self._chains.get(number, (number,)) if same_chain else (number,)


class ExpressionSet:
    """Predicates in the order they were added, equivalent ones once (Catalyst's `ExpressionSet`)."""

    __slots__ = ("meanings", "_by_number")

    def __init__(self, meanings: ValueNumbering, predicates: Iterable[Expression] = ()) -> None:
        self.meanings = meanings
        self._by_number: dict[int, Expression] = {}
        self.update(predicates)

    def add(self, predicate: Expression) -> None:
        self._by_number.setdefault(self.meanings(predicate), predicate)

    def update(self, predicates: Iterable[Expression]) -> None:
        if isinstance(predicates, ExpressionSet) and predicates.meanings is self.meanings:
            for number, predicate in predicates._by_number.items():
                self._by_number.setdefault(number, predicate)
            return
        for predicate in predicates:
            self.add(predicate)

    def get(self, predicate: Expression) -> Expression | None:
        """The equivalent one in the set."""
        return self._by_number.get(self.meanings(predicate))

    def without(self, other: ExpressionSet) -> list[Expression]:
        """Those that have no equivalent in the other set, which is of the same `ValueNumbering`."""
        return [p for n, p in self._by_number.items() if n not in other._by_number]

    def __contains__(self, predicate: Expression) -> bool:
        return self.meanings(predicate) in self._by_number

    def __iter__(self) -> Iterator[Expression]:
        return iter(self._by_number.values())

    def __len__(self) -> int:
        return len(self._by_number)
