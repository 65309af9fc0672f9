"""A short notation for plans, for tests of the rules.

    w = Letters()
    x, y = w.relation("x", "a b c"), w.relation("y", "d e f")
    plan = Filter(w("b > 1"), join(x, y, w("a = d"), FULL))

A `Letters` hands out attribute numbers, so plans of one test never share columns by accident. Calling it reads a small
expression language: comparisons, `is null`, `is not null`, `and`, `or`, `not`, parentheses, numbers, `true`, `false`,
`null`, `+`, and functions, each of which is null-intolerant unless it is one of `coalesce`, `if` or `in`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyjoinopt.plan.expressions import (
    DETERMINISTIC,
    NULL_INTOLERANT,
    THROWABLE,
    UNEVALUABLE,
    Attribute,
    Expression,
    call,
    literal,
    reference,
)  # fmt: skip
from pyjoinopt.plan.nodes import INNER, NO_HINT, Aggregate, Hint, Join, LogicalPlan, Project, relation

_TOKEN = re.compile(r"\s*(<=>|>=|<=|!=|[-+()=<>,]|[\w.]+)")
_COMPARISONS = {
    "=": "EqualTo", "<=>": "EqualNullSafe", "<": "LessThan", "<=": "LessThanOrEqual",
    ">": "GreaterThan", ">=": "GreaterThanOrEqual",
}  # fmt: skip
_FUNCTIONS = {"coalesce": "Coalesce", "if": "If", "in": "In", "rand": "Rand", "raise_error": "RaiseError"}


class Letters:
    """The columns and relations of one test."""

    def __init__(self) -> None:
        self.columns: dict[str, Attribute] = {}

    def attribute(self, name: str, type: str = "int", nullable: bool = True) -> Attribute:
        """The column of that name, made on first use."""
        if name not in self.columns:
            bit = len(self.columns)
            self.columns[name] = Attribute(bit, bit + 1, name, type, nullable)
        return self.columns[name]

    def relation(self, name: str, columns: str | None = None, **info: Any) -> LogicalPlan:
        """A leaf; without columns it has one, named like itself."""
        return relation(name, [self.attribute(c) for c in (columns or name).split()], **info)

    def alias(self, name: str, body: str | Expression) -> Expression:
        """`body AS name`."""
        child = self(body) if isinstance(body, str) else body
        column = self.attribute(name, child.type)
        return Expression("Alias", (child,), child.type, child.flags & DETERMINISTIC, column)

    def project(self, columns: str, child: LogicalPlan, *aliases: Expression) -> Project:
        """SELECT the named columns, then the aliases."""
        return Project((*(self(c) for c in columns.split()), *aliases), child)

    def group(self, keys: str, child: LogicalPlan, *aggregates: Expression, names: str | None = None) -> Aggregate:
        """GROUP BY `keys`, with output `names` (by default the keys) and the aggregates."""
        listed = [self(c) for c in (keys if names is None else names).split()] + list(aggregates)
        output = tuple(e.attribute for e in listed if e.attribute is not None)
        return Aggregate(tuple(self(c) for c in keys.split()), tuple(listed), child, output)

    def __call__(self, text: str) -> Expression:
        """Read an expression."""
        tokens = _TOKEN.findall(text)
        assert "".join(tokens) == re.sub(r"\s", "", text), f"cannot read {text!r}"
        parser = _Parser(self, [*tokens, ""])
        result = parser.any_of()
        assert parser.here == "", f"left over in {text!r}: {parser.here!r}"
        return result


class _Parser:
    def __init__(self, letters: Letters, tokens: list[str]) -> None:
        self.letters, self.tokens, self.at = letters, tokens, 0

    @property
    def here(self) -> str:
        return self.tokens[self.at]

    def take(self, *expected: str) -> bool:
        if tuple(self.tokens[self.at : self.at + len(expected)]) == expected:
            self.at += len(expected)
            return True
        return False

    def any_of(self) -> Expression:
        e = self.all_of()
        while self.take("or"):
            e = call("Or", e, self.all_of())
        return e

    def all_of(self) -> Expression:
        e = self.single()
        while self.take("and"):
            e = call("And", e, self.single())
        return e

    def single(self) -> Expression:
        if self.take("not"):
            return call("Not", self.single())
        e = self.total()
        if self.here in _COMPARISONS:
            kind = _COMPARISONS[self.here]
            self.at += 1
            return call(kind, e, self.total())
        if self.take("is", "not", "null"):
            return call("IsNotNull", e)
        if self.take("is", "null"):
            return call("IsNull", e)
        return e

    def total(self) -> Expression:
        e = self.atom()
        while self.take("+"):
            flags = DETERMINISTIC if e.deterministic else 0
            e = Expression("Add", (e, self.atom()), "int", flags | NULL_INTOLERANT)
        return e

    def atom(self) -> Expression:
        if self.take("("):
            e = self.any_of()
            assert self.take(")")
            return e
        word = self.here
        self.at += 1
        if self.take("("):
            return self.function(word)
        if word in ("true", "false"):
            return literal(word == "true")
        if word == "null":
            return literal(None)
        return literal(int(word), "int") if word.isdigit() else reference(self.letters.attribute(word))

    def function(self, name: str) -> Expression:
        args = []
        while not self.take(")"):
            args.append(self.any_of())
            self.take(",")
        kind = _FUNCTIONS.get(name, name.title().replace("_", ""))
        flags = DETERMINISTIC if all(a.deterministic for a in args) and name != "rand" else 0
        if name not in ("coalesce", "if", "rand", "raise_error"):
            flags |= NULL_INTOLERANT
        if name == "raise_error":
            flags |= THROWABLE
        if name == "row_number":
            flags |= UNEVALUABLE
        return Expression(kind, tuple(args), "int", flags)


def join(
    left: LogicalPlan,
    right: LogicalPlan,
    condition: Expression | None = None,
    type: str = INNER,
    hint: Hint = NO_HINT,
    exists: Attribute | None = None,
) -> Join:
    """A join, its type last because most are inner."""
    return Join(left, right, type, condition, hint, exists=exists)


def names(columns: Sequence[Attribute]) -> list[str]:
    """The column names of an output."""
    return [c.name for c in columns]
