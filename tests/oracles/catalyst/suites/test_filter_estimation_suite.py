"""The cases of Spark's FilterEstimationSuite: rows, bytes and columns after a filter over columns with statistics.

Every column has ten rows without NULL, unless noted otherwise. A column is checked as (values, lowest, highest).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics, row_width
from pyjoinopt.catalyst.statistics.filter_estimation import filter_statistics
from pyjoinopt.catalyst.statistics.histogram import SparkHistogram
from pyjoinopt.estimation.model.histogram import Bin
from pyjoinopt.plan.expressions import Expression, call, literal, reference
from pyjoinopt.plan.nodes import Filter
from tests.support.letters import Letters, join

DAY = 17167  # 2017-01-01, in days since 1970
Known = tuple[int, Any, Any]


def histogram(*bins: tuple[float, float, int]) -> SparkHistogram:
    return SparkHistogram(2.0, tuple(Bin(*b) for b in bins))


EVEN = histogram((1, 2, 2), (2, 4, 2), (4, 6, 2), (6, 8, 2), (8, 10, 2))
SKEWED = histogram((1, 4, 2), (4, 5, 2), (5, 5, 1), (5, 6, 2), (6, 10, 2))
COLUMNS: dict[str, tuple[str, ColumnStatistics]] = {
    "cint": ("int", ColumnStatistics(10, 1, 10, 0, 4, 4)),
    "cbool": ("boolean", ColumnStatistics(2, False, True, 0, 1, 1)),
    "cdate": ("date", ColumnStatistics(10, DAY, DAY + 9, 0, 4, 4)),
    "cdecimal": ("decimal(18,2)", ColumnStatistics(4, 0.2, 0.8, 0, 8, 8)),
    "cdouble": ("double", ColumnStatistics(10, 1.0, 10.0, 0, 8, 8)),
    "cstring": ("string", ColumnStatistics(10, None, None, 0, 2, 2)),
    "cint2": ("int", ColumnStatistics(10, 7, 16, 0, 4, 4)),
    "cint3": ("int", ColumnStatistics(10, 30, 39, 0, 4, 4)),
    "cint4": ("int", ColumnStatistics(10, 1, 10, 0, 4, 4)),
    "hgm": ("int", ColumnStatistics(10, 1, 10, 0, 4, 4, EVEN)),
    "skew": ("int", ColumnStatistics(5, 1, 10, 0, 4, 4, SKEWED)),
}


class Suite(Letters):
    """A relation with the columns that a condition names, ten rows unless specified otherwise."""

    def filtered(
        self, condition: Expression, columns: str, rows: int = 10, spark: tuple[int, int] = (4, 1), **changed: Any
    ) -> CatalystStatistics:
        names = columns.split()
        plan = self.relation("t", " ".join(self.column(name).name for name in names))
        known = {self.columns[n].bit: replace(COLUMNS[n][1], **changed.get(n, {})) for n in names}
        before = CatalystStatistics(rows, rows * row_width(plan.output, known), known)
        return filter_statistics(Filter(condition, plan), before, spark)

    def column(self, name: str) -> Any:
        return self.attribute(name, COLUMNS[name][0])


def check(text: str, rows: int, columns: dict[str, Known], base: int = 10, **changed: Any) -> None:
    w = Suite()
    for name in columns:
        w.column(name)
    check_expression(w, w(text), rows, columns, base, **changed)


def check_expression(
    w: Suite, condition: Expression, rows: int, columns: dict[str, Known], base: int = 10, **changed: Any
) -> None:
    for spark in ((4, 1), (4, 3)):
        found = w.filtered(condition, " ".join(columns), base, spark, **changed)
        assert found.rows == rows
        if rows == 0:
            assert (dict(found.columns), found.bytes) == ({}, 1)
            continue
        output = tuple(w.columns[name] for name in columns)
        assert found.bytes == rows * row_width(output, found.columns)
        for name, (ndv, low, high) in columns.items():
            known = found.columns[w.columns[name].bit]
            assert (known.ndv, known.min, known.max) == (ndv, low, high), name


@pytest.mark.parametrize(
    ("text", "rows", "known"),
    [
        ("true", 10, (10, 1, 10)), ("false", 0, (0, 0, 0)), ("null", 0, (0, 0, 0)), ("not null", 0, (0, 0, 0)),
        ("not not null", 0, (0, 0, 0)), ("cint < 3 and null", 0, (0, 0, 0)), ("cint < 3 or null", 3, (3, 1, 10)),
        ("not (cint < 3 and null)", 8, (8, 1, 10)), ("not (cint < 3 or null)", 0, (0, 0, 0)),
        ("not (cint < 3 and not null)", 8, (8, 1, 10)), ("cint = 2", 1, (1, 2, 2)), ("cint <=> 2", 1, (1, 2, 2)),
        ("cint = 0", 0, (0, 0, 0)), ("cint < 3", 3, (3, 1, 3)), ("cint <= 3", 3, (3, 1, 3)),
        ("cint < 0", 0, (0, 0, 0)), ("cint > 10", 0, (0, 0, 0)), ("cint > 6", 5, (5, 6, 10)),
        ("cint >= 6", 5, (5, 6, 10)), ("cint is null", 0, (0, 0, 0)), ("cint is not null", 10, (10, 1, 10)),
        ("cint is not null and null", 0, (0, 0, 0)), ("cint > 3 and cint <= 6", 4, (4, 3, 6)),
        ("cint = 3 or cint = 6", 2, (2, 1, 10)), ("not (cint > 3 and cint <= 6)", 6, (6, 1, 10)),
        ("not (cint <= 3 or cint > 6)", 5, (5, 1, 10)), ("in(cint, 3, 4, 5)", 3, (3, 3, 5)),
        ("not in(cint, 3, 4, 5)", 7, (7, 1, 10)),
        ("2 = cint", 1, (1, 2, 2)), ("3 > cint", 3, (3, 1, 3)), ("6 <= cint", 5, (5, 6, 10)),
    ],
)  # fmt: skip
def test_whole_numbers(text: str, rows: int, known: Known) -> None:
    check(text, rows, {"cint": known})


@pytest.mark.parametrize(
    ("text", "rows", "known"),
    [
        ("not (hgm < 3 and null)", 7, (7, 1, 10)), ("hgm = 5", 1, (1, 5, 5)), ("hgm = 0", 0, (0, 0, 0)),
        ("hgm < 3", 3, (3, 1, 3)), ("hgm < 0", 0, (0, 0, 0)), ("hgm <= 3", 3, (3, 1, 3)),
        ("hgm > 6", 4, (4, 6, 10)), ("hgm > 10", 0, (0, 0, 0)), ("hgm >= 6", 5, (5, 6, 10)),
        ("hgm > 3 and hgm <= 6", 4, (4, 3, 6)), ("hgm = 3 or hgm = 6", 3, (3, 1, 10)),
    ],
)  # fmt: skip
def test_an_even_histogram(text: str, rows: int, known: Known) -> None:
    check(text, rows, {"hgm": known})


@pytest.mark.parametrize(
    ("text", "rows", "known"),
    [
        ("not (skew < 3 and null)", 9, (5, 1, 10)), ("skew = 5", 4, (1, 5, 5)), ("skew = 0", 0, (0, 0, 0)),
        ("skew < 3", 2, (1, 1, 3)), ("skew < 0", 0, (0, 0, 0)), ("skew <= 3", 2, (1, 1, 3)),
        ("skew > 6", 2, (1, 6, 10)), ("skew > 10", 0, (0, 0, 0)), ("skew >= 6", 3, (2, 6, 10)),
        ("skew > 3 and skew <= 6", 8, (4, 3, 6)), ("skew = 3 or skew = 6", 3, (2, 1, 10)),
    ],
)  # fmt: skip
def test_a_skewed_histogram(text: str, rows: int, known: Known) -> None:
    check(text, rows, {"skew": known})


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("cint = cint2", 4, {"cint": (4, 7, 10), "cint2": (4, 7, 10)}),
        ("cint > cint2", 4, {"cint": (4, 7, 10), "cint2": (4, 7, 10)}),
        ("cint < cint2", 4, {"cint": (4, 1, 10), "cint2": (4, 7, 16)}),
        ("cint = cint4", 10, {"cint": (10, 1, 10), "cint4": (10, 1, 10)}),
        ("cint < cint4", 4, {"cint": (4, 1, 10), "cint4": (4, 1, 10)}),
        ("cint = cint3", 0, {"cint": (0, 0, 0), "cint3": (0, 0, 0)}),
        ("cint < cint3", 10, {"cint": (10, 1, 10), "cint3": (10, 30, 39)}),
        ("cint > cint3", 0, {"cint": (0, 0, 0), "cint3": (0, 0, 0)}),
    ],
)
def test_two_columns(text: str, rows: int, columns: dict[str, Known]) -> None:
    check(text, rows, columns)


def test_other_columns_lose_values_with_the_rows() -> None:
    columns = {"cint": (5, 3, 10), "cint4": (5, 1, 6), "cstring": (5, None, None)}
    check("cint > 3 and cint4 <= 6", 5, columns)



def test_texts() -> None:
    w = Suite()
    name = reference(w.column("cstring"))
    some, below = (call(kind, name, literal("A2", "string")) for kind in ("EqualTo", "LessThan"))
    check_expression(w, some, 1, {"cstring": (1, None, None)})
    check_expression(w, below, 10, {"cstring": (10, None, None)})
    one = Expression("In", (name, literal("A0", "string")))
    check_expression(w, one, 1, {"cstring": (1, None, None)})
    check_expression(w, one, 0, {"cstring": (0, 0, 0)}, base=0, cstring={"ndv": 0})


@pytest.mark.parametrize(("operator", "rows", "ndv"), [("and", 10, 10), ("or", 9, 9)])
def test_not_over_a_test_that_has_no_formula(operator: str, rows: int, ndv: int) -> None:
    """NOT (cint = 3 AND cstring < 'A8') cannot be estimated; for NOT (... OR ...) the first test can."""
    w = Suite()
    cint, text = reference(w.column("cint")), reference(w.column("cstring"))
    tests = call("EqualTo", cint, literal(3, "int")), call("LessThan", text, literal("A8", "string"))
    condition = call("Not", call(operator.title(), *tests))
    check_expression(w, condition, rows, {"cint": (ndv, 1, 10), "cstring": (ndv, None, None)})


def test_booleans() -> None:
    w = Suite()
    flag = reference(w.column("cbool"))
    for condition in (call("EqualTo", flag, literal(True)), Expression("In", (flag, literal(True)))):
        check_expression(w, condition, 5, {"cbool": (1, True, True)})
    check_expression(w, call("GreaterThan", flag, literal(False)), 5, {"cbool": (1, False, True)})


def test_dates() -> None:
    w = Suite()
    day = reference(w.column("cdate"))
    dates = [literal(date(2017, 1, i), "date") for i in range(1, 6)]
    check_expression(w, call("EqualTo", day, dates[1]), 1, {"cdate": (1, DAY + 1, DAY + 1)})
    check_expression(w, call("LessThan", day, dates[2]), 3, {"cdate": (3, DAY, DAY + 2)})
    check_expression(w, Expression("In", (day, *dates[2:])), 3, {"cdate": (3, DAY + 2, DAY + 4)})


def test_fractions() -> None:
    w = Suite()
    price, double = reference(w.column("cdecimal")), reference(w.column("cdouble"))
    some, bound = (literal(Decimal(text), "decimal(18,2)") for text in ("0.4", "0.60"))
    check_expression(w, call("EqualTo", price, some), 1, {"cdecimal": (1, Decimal("0.4"), Decimal("0.4"))}, base=4)
    check_expression(w, call("LessThan", price, bound), 3, {"cdecimal": (3, 0.2, Decimal("0.60"))}, base=4)
    check_expression(w, call("LessThan", double, literal(3.0, "double")), 3, {"cdouble": (3, 1.0, 3.0)})


def test_a_list_longer_than_the_column_has_values() -> None:
    check("in(cint, 1, 2, 3, 4, 5)", 2, {"cint": (2, 1, 5)}, base=2, cint={"ndv": 2, "min": 1, "max": 6})


def test_nulls_are_believed_of_leaves_only() -> None:
    """Over a join of ten rows with three, the number of NULLs is unknown."""
    w = Suite()
    known = {w.column("cint").bit: COLUMNS["cint"][1]}
    joined = join(w.relation("t", "cint"), w.relation("u", "other"))
    before = CatalystStatistics(30, 30 * 16, known)
    for test in ("cint is null", "cint is not null"):
        assert filter_statistics(Filter(w(test), joined), before) == before


def test_counts_of_nulls() -> None:
    w = Suite()
    flag = call("EqualTo", reference(w.column("cbool")), literal(True))
    for spark in ((4, 1), (4, 3)):
        found = w.filtered(flag, "cbool cstring", 10, spark, cstring={"nulls": 10})
        text = found.columns[w.column("cstring").bit]
        assert (found.rows, text.ndv, text.nulls) == (5, 5, 5)
        some = w("cstring is not null")
        assert w.filtered(some, "cstring", 10, spark, cstring={"nulls": 15}).rows == 0
        found = w.filtered(some, "cstring", 10, spark, cstring={"nulls": -1})
        assert (found.rows, found.columns[w.column("cstring").bit].nulls) == (10, 0)


def test_what_is_known_of_a_column() -> None:
    columns = [ColumnStatistics(), ColumnStatistics(ndv=1), ColumnStatistics(ndv=1, nulls=0), ColumnStatistics(min=1)]
    columns.append(ColumnStatistics(min=1, max=2))
    assert [c.has_counts for c in columns] == [False, False, True, False, False]
    assert [c.has_range for c in columns] == [False, False, False, False, True]
