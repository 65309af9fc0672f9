"""Random predicates and values over given columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta

from tests.support.querytree import Call, Column, Constant, Expression, Type
from tests.support.sampledata import FIRST_DAY, WORDS

COMPARISONS = ("<", "<=", ">", ">=", "<>")
TRUE = Call("=", (Constant(1, "int"), Constant(1, "int")), "bool")
FALSE = Call("=", (Constant(1, "int"), Constant(0, "int")), "bool")
KEYS = ("id", "k", "j")


class Conditions:
    """Draws expressions from one source of randomness."""

    #: Last parts of the names of key columns.
    keys: tuple[str, ...] = KEYS

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def constant(self, kind: Type, nulls: float = 0.03) -> Constant:
        rng = self.rng
        if self.chance(nulls):
            return Constant(None, kind)
        if kind == "int":
            return Constant(rng.randrange(-2, 14), kind)
        if kind == "dbl":
            return Constant(rng.randrange(-4, 16) / 4, kind)
        if kind == "str":
            return Constant(rng.choice(WORDS), kind)
        if kind == "date":
            return Constant(FIRST_DAY + timedelta(days=150 * rng.randrange(8)), kind)
        return Constant(self.chance(0.5), kind)

    def column(self, columns: Sequence[Column], *kinds: Type) -> Column | None:
        fitting = [column for column in columns if column.type in kinds]
        return self.rng.choice(fitting) if fitting else None

    def equality(self, left: Sequence[Column], right: Sequence[Column]) -> Expression:
        """left.x = right.y, mostly over keys; sometimes `<=>`, sometimes over an expression, sometimes int = double."""
        keys_left = [c for c in left if c.name.rpartition("_")[2] in self.keys]
        keys_right = [c for c in right if c.name.rpartition("_")[2] in self.keys]
        op = "<=>" if self.chance(0.12) else "="
        if keys_left and keys_right and self.chance(0.8):
            a, b = self.rng.choice(keys_left), self.rng.choice(keys_right)
            if self.chance(0.1):
                return Call(op, (Call("+", (a, Constant(1, "int")), "int"), b), "bool")
            return Call(op, (a, b), "bool")
        a = self.rng.choice(left)
        kinds: tuple[Type, ...] = ("int", "dbl") if a.type in ("int", "dbl") and self.chance(0.3) else (a.type,)
        other = self.column(right, *kinds)
        return Call(op, (a, other), "bool") if other else TRUE

    def comparison(self, left: Sequence[Column], right: Sequence[Column]) -> Expression:
        """left.x < right.y or another order."""
        a = self.column(left, "int", "dbl", "date", "str")
        b = self.column(right, a.type) if a else None
        return Call(self.rng.choice(COMPARISONS), (a, b), "bool") if a and b else TRUE

    def join_condition(self, left: Sequence[Column], right: Sequence[Column]) -> tuple[Expression, ...]:
        """One to three conjuncts, an equality among them most of the time; some look at one side or at none."""
        rng, both = self.rng, [*left, *right]
        parts: list[Expression] = [self.equality(left, right)] if self.chance(0.92) else []
        roll = rng.random()
        if roll < 0.10:
            parts.append(self.equality(left, right))
        elif roll < 0.20:
            parts.append(self.comparison(left, right))
        elif roll < 0.28:
            parts.append(Call("or", (self.equality(left, right), self.equality(left, right)), "bool"))
        elif roll < 0.42:
            parts.append(self.predicate(left if self.chance(0.5) else right))
        elif roll < 0.45:
            parts.append(TRUE if self.chance(0.7) else FALSE)
        elif roll < 0.50:
            parts.append(self.predicate(both))
        if not parts:
            parts.append(self.comparison(left, right) if self.chance(0.7) else self.predicate(both))
        return tuple(parts)

    def predicate(self, columns: Sequence[Column], depth: int = 0) -> Expression:
        """Any condition over some columns."""
        rng = self.rng
        if depth < 2 and self.chance(0.3):
            args = (self.predicate(columns, depth + 1), self.predicate(columns, depth + 1))
            return Call(rng.choice(("and", "or", "or")), args, "bool")
        if depth < 2 and self.chance(0.08):
            return Call("not", (self.predicate(columns, depth + 1),), "bool")
        column = rng.choice(columns)
        kind = column.type
        roll = rng.random()
        if roll < 0.2:
            return Call(rng.choice(("is null", "is not null", "is not null")), (column,), "bool")
        if kind == "bool":
            return column
        if roll < 0.35:
            # Never `x = x`: in the condition of a DataFrame join, Spark reads that as "left x = right x".
            other = self.column([each for each in columns if each != column], kind) or self.constant(kind)
            return Call(rng.choice(("=", "<=>", *COMPARISONS)), (column, other), "bool")
        if roll < 0.5:
            values = tuple(self.constant(kind) for _ in range(rng.randrange(2, 5)))
            return Call("not in" if self.chance(0.25) else "in", (column, *values), "bool")
        if kind == "str" and roll < 0.7:
            return Call("like", (column, Constant(rng.choice(("a%", "%b", "%a%", "_b", "%")), "str")), "bool")
        other = self.foldable(kind) if self.chance(0.1) else self.constant(kind)
        return Call(rng.choice(("=", "<=>", *COMPARISONS)), (self.value(columns, column), other), "bool")

    def foldable(self, kind: Type) -> Expression:
        """An expression that Spark folds to a constant during planning; a literal if none is available."""
        day, later = self.constant("date", nulls=0), self.rng.choice(("days after", "days added", "same"))
        if kind == "date":
            text = Constant(str(day.value), "str")
            cast = Call("to date", (text,), "date") if self.chance(0.5) else day
            if self.chance(0.2):
                cast = Call("today", (), "date")
            return cast if later == "same" else Call(later, (cast,), "date")
        if kind == "int":
            return Call("to int", (Constant(str(self.constant("int", nulls=0).value), "str"),), "int")
        return self.constant(kind)

    def value(self, columns: Sequence[Column], column: Column, depth: int = 0) -> Expression:
        """An expression of the column's type that uses it."""
        roll = self.rng.random()
        if depth > 1 or roll < 0.4:
            return column
        inner = self.value(columns, column, depth + 1)
        if roll < 0.55:
            return Call("coalesce", (inner, self.constant(column.type, nulls=0)), column.type)
        if roll < 0.65:
            other = self.constant(column.type) if self.chance(0.5) else self.column(columns, column.type) or column
            return Call("case", (self.predicate(columns, 1), inner, other), column.type)
        if column.type == "int":
            other = self.constant("int") if self.chance(0.5) else self.column(columns, "int") or column
            choices = (
                Call("+", (inner, other), "int"),
                Call("-", (inner, other), "int"),
                Call("*", (inner, Constant(2, "int")), "int"),
                Call("abs", (inner,), "int"),
            )
            return self.rng.choice(choices)
        if column.type == "dbl":
            return Call("+", (inner, self.constant("dbl")), "dbl")
        if column.type == "str":
            return self.rng.choice(
                (Call("upper", (inner,), "str"), Call("concat", (inner, self.constant("str")), "str"))
            )
        return inner
