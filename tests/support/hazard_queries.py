"""Random queries over the tables of `hazards.py`, with predicates that may fail or that distinguish equal values.

Predicates that may fail are mostly over clean columns: in a filter, in a subquery, over a column that a subquery's
inner SELECT computes, and over the operand of an IN. For two equated columns, predicates test what differs: the text
of a zero, the length of a padded string, the scale of a decimal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.support.conditions import COMPARISONS, Conditions
from tests.support.generator import HINTS, MOST_ROWS, Draw, World
from tests.support.hazards import CLEAN, is_clean, tables_of_world
from tests.support.hazards import COLUMNS as HAZARD_COLUMNS
from tests.support.querytree import (
    Aggregate,
    Call,
    Column,
    Constant,
    Expression,
    Filter,
    Join,
    Kind,
    Node,
    Project,
    Query,
    Subquery,
    Table,
    Top,
    Type,
    Union_,
    output,
)

#: Types that are compared with each other.
FAMILIES: tuple[frozenset[Type], ...] = (
    frozenset({"int", "big", "dbl", "flt", "dec", "amt"}),
    frozenset({"chr", "chw", "str"}),
    frozenset({"date", "ts"}),
    frozenset({"lcs"}), frozenset({"adbl"}), frozenset({"rec"}), frozenset({"arr"}),
)  # fmt: skip
#: Of equal values of these, which one a MIN, a GROUP BY or the end of a LIMIT gives is luck.
LUCKY = frozenset({"dbl", "flt", "lcs", "adbl", "rec"})
_BASIC = frozenset({"int", "str", "dbl", "date", "bool"})
MAY_FAIL: dict[Type, tuple[str, ...]] = {
    "int": ("100 /", "12 div", "10 %", "large product", "pick"),
    "big": ("100 /", "10 %", "large sum"),
    "str": ("to int", "text >"),
    "dbl": ("100 /", "to int"),
    "flt": ("100 /", "to int"),
    "dec": ("100 /",),
    "amt": ("100 /",),
    "arr": ("fourth", "element"),
}
TELLS: dict[Type, tuple[tuple[str, tuple[object, ...]], ...]] = {
    "dbl": (("as text", ("-0.0", "0.0", "NaN", "1.0")), ("angle", (2.0, -2.0))),
    "flt": (("as text", ("-0.0", "0.0", "1.0")), ("angle", (2.0, -2.0))),
    "int": (("as text", ("1", "2", "1.0")), ("hash", (0,))),
    "big": (("as text", ("1", "1.0")), ("hash", (0,))),
    "dec": (("as text", ("1.0", "2.0", "1.00")), ("hash", (0,))),
    "amt": (("as text", ("1.00", "2.00", "1.0")), ("hash", (0,))),
    "chr": (("length", (1, 2, 4, 6)), ("concat", ("a   !", "a!"))),
    "chw": (("length", (1, 2, 4, 6)), ("concat", ("a     !", "a!"))),
    "str": (("length", (1, 2)), ("hash", (0,))),
    "lcs": (("binary", ("61", "41", "6162", "4142")), ("hash", (0,))),
    "date": (("as text", ("2020-01-01", "2020-01-02", "2020-01-01 00:00:00")),),
    "ts": (("as text", ("2020-01-01", "2020-01-02 00:00:00", "2020-01-01 00:00:00")),),
    "adbl": (("joined text", ("-0.0", "0.0", "NaN", "-0.0,1.0")),),
    "rec": (("field text", ("-0.0", "0.0", "NaN")),),
}
_RESULTS: dict[str, Type] = {
    "as text": "str", "joined text": "str", "field text": "str", "binary": "str", "concat": "str",
    "angle": "dbl", "hash": "int", "length": "int",
}  # fmt: skip


class HazardConditions(Conditions):
    """Conditions that may fail, and conditions that distinguish equal values, in addition to ordinary ones."""

    keys = ("id", "k", "j", "idc", "kc", "jc")

    def constant(self, kind: Type, nulls: float = 0.03) -> Constant:
        rng = self.rng
        if kind == "str" and not self.chance(nulls):
            return Constant(str(rng.randrange(1, 7)), kind)
        if kind in ("dbl", "flt") and not self.chance(nulls):
            return Constant(rng.choice((0.0, -0.0, 1.0, 2.0, 2.5)), kind)
        if kind == "int" and not self.chance(nulls):
            return Constant(rng.randrange(0, 8), kind)
        if kind in _BASIC:
            return super().constant(kind, nulls)
        if self.chance(nulls):
            return Constant(None, kind)
        values: dict[Type, tuple[object, ...]] = {
            "big": (1, 3, 5), "dec": ("1.0", "2.5"), "amt": ("1.00", "2.50"), "chr": ("a", "ab"), "chw": ("a", "ab"),
            "lcs": ("a", "AB"), "ts": ("2020-01-02 00:00:00",), "arr": ((1,),), "adbl": ((-0.0,),), "rec": ((-0.0,),),
            "flt": (0.0, -0.0, 1.0),
        }  # fmt: skip
        return Constant(rng.choice(values[kind]), kind)

    def equality(self, left: Sequence[Column], right: Sequence[Column]) -> Expression:
        """Half of the time between two columns of one family, which need not be of one type."""
        if self.chance(0.5):
            return super().equality([c for c in left if c.type != "lcs"] or left, right)
        op = "<=>" if self.chance(0.12) else "="
        kinds = [f for f in FAMILIES if any(c.type in f for c in left) and any(c.type in f for c in right)]
        if not kinds:
            return super().equality(left, right)
        family = self.rng.choice(kinds)
        a, b = self.column(left, *family), self.column(right, *family)
        assert a is not None and b is not None
        if a.type != b.type and self.chance(0.5):
            b = self.column(right, a.type) or b
        return Call(op, (a, b), "bool")

    def predicate(self, columns: Sequence[Column], depth: int = 0) -> Expression:
        roll = self.rng.random()
        if roll < 0.3 and (found := self.may_fail(columns)):
            return found
        if roll < 0.5 and (found := self.tells(columns)):
            return found
        plain = [c for c in columns if c.type in _BASIC]
        if not plain:
            return Call("is not null", (self.rng.choice(columns),), "bool")
        return super().predicate(plain, depth)

    def may_fail(self, columns: Sequence[Column]) -> Expression | None:
        """A comparison of an expression that may fail, mostly over columns on which it does not."""
        fitting = [c for c in columns if c.type in MAY_FAIL]
        clean = [c for c in fitting if is_clean(c.name)]
        if not fitting or not clean and self.chance(0.7):
            return None
        column = self.rng.choice(clean if clean and self.chance(0.9) else fitting)
        others = [c for c in clean if c.type == column.type and c != column]
        if column.type == "int" and others and self.chance(0.25):
            product = Call("*", (column, self.rng.choice(others)), "int")
            return Call(">", (Call("100 /", (product,), "dbl"), Constant(10, "int")), "bool")
        return self.failing(column)

    def failing(self, column: Column) -> Expression:
        """An expression over this column that may fail."""
        op = self.rng.choice(MAY_FAIL[column.type])
        if op == "text >":
            return Call(op, (column, Constant(self.rng.randrange(1, 5), "int")), "bool")
        bound = {"100 /": 30, "large product": 200000000, "large sum": 2, "12 div": 3}.get(op, 2)
        value = Call(op, (column,), "dbl" if op == "100 /" else "int")
        return Call(self.rng.choice(("<", ">", "<>", "<>")), (value, Constant(bound, "int")), "bool")

    def tells(self, columns: Sequence[Column]) -> Expression | None:
        """A condition that is true of one of two equal values, and not of the other."""
        fitting = [c for c in columns if c.type in TELLS]
        if not fitting:
            return None
        column = self.rng.choice(fitting)
        op, values = self.rng.choice(TELLS[column.type])
        args = (column, Constant("!", "str")) if op == "concat" else (column,)
        kind = _RESULTS[op]
        test = self.rng.choice(("=", "=", "<>") if kind == "str" else COMPARISONS)
        return Call(test, (Call(op, args, kind), Constant(self.rng.choice(values), kind)), "bool")


HAZARDS = World(
    tables_of_world(),
    (1.0, 1.0, 1.0, 0.4, 1.2, 1.2, 1.0, 0.4),
    frozenset({"da", "db", "de", *CLEAN}),
    HazardConditions,
)


class HazardGenerator:
    """Draws such queries; `query(number)` depends on the seed and the number alone."""

    def __init__(self, seed: int, rows: Callable[[Node], int]) -> None:
        self.seed, self.rows = seed, rows

    def query(self, number: int) -> Query:
        """The query with this number: two of three are focused."""
        draw = HazardDraw(random.Random(f"hazard {self.seed} {number}"), self.rows, HAZARDS)
        return draw.query() if number % 3 == 2 else draw.focused()


class HazardDraw(Draw):
    """A query with more subqueries, and with hints and subqueries on joins."""

    conditions: HazardConditions

    def __init__(self, rng: random.Random, rows: Callable[[Node], int], world: World) -> None:
        super().__init__(rng, rows, world)
        self.asks = rng.choice((0.4, 0.7, 0.9))
        # Few columns, the same of each table, so that they match: seventeen per relation would be unreadable.
        some = {"id", "k", "j", *rng.sample([name for name, _ in HAZARD_COLUMNS], 5)}
        self.world = replace(world, tables=tuple(_narrow(table, some) for table in world.tables))
        self.tables = list(self.world.tables)

    def focused(self) -> Query:
        """Two to four tables joined on integers, and subqueries over keys on which predicates fail or differ."""
        node: Node = self.leaf_of([t for t in self.tables if t.name in ("da", "db", "ca", "cb")])
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            right: Node = self.chain(self.rng.choice((2, 3))) if self.chance(0.06) else self.leaf_of(self.tables)
            kinds: tuple[Kind, ...] = ("inner", "inner", "inner", "inner", "inner", "left", "semi")
            for _ in range(4):
                condition: tuple[Expression, ...] = (self.key_equality(node, right),)
                if self.chance(0.15):
                    condition += (self.conditions.predicate([*output(node), *output(right)]),)
                hint = self.rng.choice(HINTS) if self.chance(0.06) else None
                made = Join(node, right, self.rng.choice(kinds), condition, "join", hint)
                if 0 < self.rows(made) <= MOST_ROWS:
                    break
            node = made
        for _ in range(self.rng.choice((1, 1, 2))):
            if self.chance(0.12):
                node = self.subquery_in_on(node)
            drawn = [Filter(node, tuple(self.key_subquery(node))) for _ in range(4)]
            node = next((made for made in drawn if self.rows(made)), drawn[0])
        if self.chance(0.3):
            node = Filter(node, (self.conditions.predicate(output(node)),))
        return Query((), self.aggregate(node) if self.chance(0.15) else self.project(node))

    def leaf_of(self, tables: Sequence[Table]) -> Table:
        """One of these, seldom one of the tiny ones."""
        weights = [0.25 if table.name in ("de", "ce") else 1.0 for table in tables]
        return replace(self.rng.choices(tables, weights)[0], alias=f"r{next(self.numbers)}")

    def key_equality(self, left: Node, right: Node) -> Expression:
        """Of two keys, mostly integers."""
        if self.chance(0.25):
            return self.conditions.equality(output(left), output(right))
        keys = [[c for c in output(n) if c.name in self.conditions.keys] for n in (left, right)]
        return Call("=", (self.rng.choice(keys[0]), self.rng.choice(keys[1])), "bool")

    def key_subquery(self, node: Node) -> list[Expression]:
        """IN or EXISTS over a pair of keys, and a test of one of them inside or beside it."""
        rng, conditions = self.rng, self.conditions
        outside = rng.choice([c for c in output(node) if c.type in TELLS or c.type in MAY_FAIL])
        family = next(f for f in FAMILIES if outside.type in f)
        want_clean = not is_clean(outside.name) or self.chance(0.3)
        tables = [t for t in self.world.tables if t.name in self.world.inside and (t.name in CLEAN) is want_clean]
        source = replace(self.leaf_of(tables), alias=f"q{next(self.numbers)}")
        same = [c for c in output(source) if c.type == outside.type]
        inside = rng.choice(same if same and self.chance(0.8) else [c for c in output(source) if c.type in family])
        test, beside = self.test_of(inside), self.test_of(outside)
        negated, conditions_inside = self.chance(0.25), [test] if test is not None and self.chance(0.8) else []
        if self.chance(0.2):
            conditions_inside.append(conditions.predicate(output(source)))
        parts: list[Expression] = [beside] if beside is not None and self.chance(0.3) else []
        if self.chance(0.5):
            equal = Call("=", (inside, outside), "bool")
            return [*parts, Subquery("exists", source, (equal, *conditions_inside), "bool", negated=negated)]
        found = Subquery("in", source, tuple(conditions_inside), "bool", outside, inside, negated)
        return [*parts, self.computed(found)]

    def test_of(self, column: Column) -> Expression | None:
        """A predicate that fails on rows other than those of this column, or that distinguishes equal values."""
        if is_clean(column.name) and column.type in MAY_FAIL and self.chance(0.6):
            return self.conditions.failing(column)
        return self.conditions.tells([column])

    def subquery_in_on(self, node: Node) -> Node:
        """One more join, whose condition holds a subquery over both of its sides."""
        right = self.leaf_of(self.tables)
        made = Join(node, right, "inner", (self.key_equality(node, right),), "join", self.rng.choice((None, *HINTS)))
        requested = self.key_subquery(made)[-1]
        if isinstance(requested, Subquery):
            extra = self.conditions.equality(output(right), output(requested.source))
            requested = replace(requested, condition=(*requested.condition, extra))
        made = replace(made, condition=(*made.condition, requested))
        return made if 0 < self.rows(made) <= MOST_ROWS else node

    def filtered(self, node: Node, *, subqueries: bool = True) -> Node:
        made = super().filtered(node, subqueries=subqueries)
        return self.with_failing_operand(made) if isinstance(made, Filter) and self.chance(0.4) else made

    def with_failing_operand(self, node: Filter) -> Node:
        """Beside an IN or EXISTS, a predicate that may fail over the column that it reads."""
        inside = [part for part in node.conjuncts if isinstance(part, Subquery)]
        if not inside:
            return node
        found = inside[0]
        read: list[Expression] = [found.operand] if found.operand is not None else []
        read += [arg for part in found.condition if isinstance(part, Call) for arg in part.args]
        here = [c for c in output(node.child) if c in read and c.type in MAY_FAIL and is_clean(c.name)]
        return Filter(node.child, (*node.conjuncts, self.conditions.failing(self.rng.choice(here)))) if here else node

    def subquery(self, columns: Sequence[Column]) -> Expression:
        """Often over a SELECT that computes what may fail, which the subquery then tests."""
        found = super().subquery(columns)
        return self.with_test(self.computed(found) if isinstance(found, Subquery) else found)

    def computed(self, found: Subquery) -> Expression:
        """Of an IN now and then the same over an inner SELECT, which computes what is tested then."""
        if found.value is None or not self.chance(0.35):
            return found
        value = found.value
        clean = [c for c in output(found.source) if c.type in ("int", "str", "big") and is_clean(c.name)]
        if not clean or not isinstance(value, Column) or found.form != "in":
            return found
        column = value if value in clean and self.chance(0.6) else self.rng.choice(clean)
        op = self.rng.choice([name for name in MAY_FAIL[column.type] if name != "text >"])
        computed = Call(op, (column,), "dbl" if op == "100 /" else "int")
        inner = Project(found.source, f"p{next(self.numbers)}", (("k", value), ("v", computed)))
        test = Call(">", (Column(inner.alias, "v", computed.type), Constant(2, "int")), "bool")
        source: Node = inner if not found.condition else replace(inner, child=Filter(inner.child, found.condition))
        return replace(found, source=source, value=Column(inner.alias, "k", value.type), condition=(test,))

    def with_test(self, found: Expression) -> Expression:
        """A predicate over the key of the subquery that may fail, or that distinguishes equal values."""
        if not isinstance(found, Subquery) or not self.chance(0.6):
            return found
        inside = frozenset(output(found.source))
        keys = [found.value] if isinstance(found.value, Column) else []
        keys += [a for p in found.condition if isinstance(p, Call) for a in p.args if isinstance(a, Column)]
        keys = [key for key in keys if key in inside]
        test = self.conditions.tells(keys) if keys and self.chance(0.5) else self.conditions.may_fail(keys)
        return replace(found, condition=(*found.condition, test)) if test is not None else found

    def random_join(self, left: Node, right: Node) -> Join:
        node = super().random_join(left, right)
        if node.kind == "cross" or not self.chance(0.15):
            return node
        node = replace(node, hint=self.rng.choice(HINTS), style="join")
        if node.kind == "inner" and self.chance(0.7):
            requested = self.subquery([*output(left), *output(right)])
            node = replace(node, condition=(*node.condition, requested))
        return node

    def dressed(self, node: Node) -> Node:
        made = super().dressed(node)
        lucky = any(column.type in LUCKY for column in output(node))
        return node if isinstance(made, Top) and lucky else made

    def project(self, node: Node) -> Project:
        made = super().project(node)
        return replace(made, distinct=made.distinct and not any(c.type in LUCKY for c in output(made)))

    def union(self, node: Node) -> Union_:
        made = super().union(node)
        return replace(made, distinct=made.distinct and not any(c.type in LUCKY for c in output(made)))

    def aggregate(self, node: Node) -> Aggregate:
        made = super().aggregate(node)
        keys = tuple(item for item in made.keys if item[1].type != "lcs")
        values = tuple((n, _certain(value)) for n, value in made.values)
        return replace(made, keys=keys, values=values)


def _narrow(table: Table, names: set[str]) -> Table:
    return replace(table, columns=tuple(c for c in table.columns if c[0].removesuffix("c") in names))


def _certain(value: Expression) -> Expression:
    """An aggregate whose result does not depend on the order of the rows."""
    if isinstance(value, Call) and value.op in ("min", "max", "sum") and value.args[0].type not in _CERTAIN:
        return Call("count", value.args, "int")
    return value


_CERTAIN = _BASIC - LUCKY | {"big", "dec", "amt", "ts"}
