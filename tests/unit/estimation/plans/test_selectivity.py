"""Selectivities of predicates."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pytest

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.histogram import Bin
from pyjoinopt.estimation.model.literals import constant_value
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics, from_json, unknown
from pyjoinopt.estimation.plans import selectivity as s
from pyjoinopt.estimation.plans.intervals import share_below
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression, call, literal, reference
from tests.support.estimated_tables import KNOWN, col, eq, lit

A = reference(Attribute(0, 1, "a", "int"))
B = reference(Attribute(1, 2, "b", "int"))
T = RelationStatistics(
    1000.0,
    16000.0,
    columns={
        0: ColumnStatistics(ndv=100.0, min=1.0, max=100.0, nulls=0.0),
        1: ColumnStatistics(ndv=10.0, min=0.0, max=9.0, nulls=0.2),
    },
)
NOTHING = unknown()


def of(e: Expression, known: RelationStatistics = T) -> float:
    return s.selectivity(e, known)


def listed(column: Expression, *values: object) -> Expression:
    return Expression("In", (column, *(literal(v, "int") for v in values)))


def test_equality() -> None:
    assert of(eq(A, lit(5))) == pytest.approx(0.01)
    assert of(eq(lit(5), A)) == pytest.approx(0.01)
    assert of(eq(A, lit(500))) == 0
    assert of(eq(B, lit(5))) == pytest.approx(0.08)  # a fifth is NULL
    assert of(eq(A, literal(None, "int"))) == 0
    assert of(eq(A, lit(5)), NOTHING) == ASSUMPTIONS.equality
    assert of(eq(A, B)) == pytest.approx(0.01)
    five_rows = RelationStatistics(5.0, 60.0)
    assert of(eq(A, lit(5)), five_rows) == pytest.approx(0.2)  # five rows have five values at most


def test_constants_alone() -> None:
    assert of(eq(lit(5), lit(5))) == 1 and of(eq(lit(5), lit(6))) == 0
    text = [literal(value, "string") for value in ("s", "s", "c", None)]
    assert [of(eq(text[0], other)) for other in text[1:]] == [1, 0, 0]
    assert of(call("EqualNullSafe", text[3], text[3])) == 1 and of(call("EqualNullSafe", text[0], text[3])) == 0


def test_constants_that_are_sums() -> None:
    day = literal(datetime.date(2000, 1, 27), "date")
    assert constant_value(Expression("DateAdd", (day, lit(30)))) == 10983 + 30
    assert (
        constant_value(Expression("DateSub", (Expression("Cast", (literal("2000-01-27", "string"),), "date"), lit(1))))
        == 10982
    )
    assert constant_value(Expression("UnaryMinus", (call("Subtract", lit(3), lit(10)),))) == 7
    assert constant_value(call("Add", lit(3), literal(None, "int"))) is None
    assert constant_value(call("Add", lit(3), col("c_nation"))) is None
    both_ends = call(
        "And", call("GreaterThanOrEqual", A, lit(8)), call("LessThanOrEqual", A, call("Add", lit(8), lit(1)))
    )
    assert of(both_ends) == pytest.approx(2 / 100)


def test_null_tests() -> None:
    assert of(call("IsNull", B)) == pytest.approx(0.2)
    assert of(call("IsNotNull", B)) == pytest.approx(0.8)
    assert of(call("IsNotNull", A), NOTHING) >= 0.95  # Spark adds these everywhere: they count little
    assert of(call("EqualNullSafe", B, literal(None, "int"))) == pytest.approx(0.2)
    never_null = reference(Attribute(7, 7, "k", "int", nullable=False))
    assert of(call("IsNull", never_null)) == 0 and of(call("IsNotNull", never_null)) == 1


def test_ranges() -> None:
    assert of(call("LessThan", A, lit(1000))) == 1
    assert of(call("GreaterThan", A, lit(1000))) == 0
    assert of(call("LessThanOrEqual", A, lit(50))) == pytest.approx(50 / 100)
    assert of(call("GreaterThan", lit(50), A)) == pytest.approx(49 / 100)
    assert of(call("LessThan", A, lit(5)), NOTHING) == pytest.approx(ASSUMPTIONS.ordering)
    low, high = call("GreaterThanOrEqual", A, lit(40)), call("LessThan", A, lit(50))
    assert of(call("And", low, high)) == pytest.approx(10 / 100)  # not 61 % of 49 %
    assert of(call("And", low, high), NOTHING) == pytest.approx(ASSUMPTIONS.between)
    assert of(Expression("Between", (call("And", low, high),))) == pytest.approx(10 / 100)


def test_dates_decimals_and_casts() -> None:
    orders = KNOWN["orders"]
    middle = datetime.date(1970, 1, 1) + datetime.timedelta(days=(8035 + 10440) // 2)
    assert of(call("LessThan", col("o_date"), lit(middle)), orders) == pytest.approx(0.5, abs=0.01)
    text = Expression("Cast", (lit(middle.isoformat()),), "date")
    assert of(call("LessThan", col("o_date"), text), orders) == pytest.approx(0.5, abs=0.01)
    shifted = Expression("DateSub", (lit(middle), lit(100)), "date")
    assert of(call("LessThan", col("o_date"), shifted), orders) == pytest.approx(0.458, abs=0.01)
    wide = Expression("Cast", (col("o_cust"),), "decimal(20,0)")
    half = literal(Decimal("75000.0"), "decimal(6,1)")
    assert of(call("LessThan", wide, half), orders) == pytest.approx(0.5, abs=0.01)
    as_text = Expression("Cast", (col("o_cust"),), "string")
    assert of(call("LessThan", as_text, lit("7")), orders) == pytest.approx(ASSUMPTIONS.ordering)
    stamp = Expression("Cast", (col("o_date"),), "timestamp")
    midnight = literal((8035 + 10440) // 2 * 86_400_000_000, "timestamp")
    assert of(call("LessThan", stamp, midnight), orders) == pytest.approx(0.5, abs=0.01)


def test_lists() -> None:
    assert of(listed(A, 1, 2, 3)) == pytest.approx(0.03)
    assert of(listed(A, 1, 2, 3000)) == pytest.approx(0.02)
    assert of(listed(A, *range(1, 190)), NOTHING) == ASSUMPTIONS.boolean
    many = Expression("InSet", (A,), info={"hset": 20})
    assert of(many) == pytest.approx(0.2)


def test_and_or_not() -> None:
    five, six = eq(A, lit(5)), eq(B, lit(6))
    assert of(call("And", five, six)) == pytest.approx(0.01 * 0.08)
    assert of(call("Or", five, six)) == pytest.approx(0.01 + 0.08 - 0.01 * 0.08)
    assert of(call("Not", five)) == pytest.approx(0.99)
    assert of(call("Not", six)) == pytest.approx(0.72)  # NULLs are not kept either
    assert of(lit(True)) == 1 and of(lit(False)) == 0
    assert of(call("Not", call("Not", five))) == pytest.approx(0.01)


def test_patterns_and_the_rest() -> None:
    def like(pattern: str) -> float:
        return of(Expression("Like", (col("n_name"), lit(pattern))), KNOWN["nations"])

    assert like("GER%") == pytest.approx(1 / 25)  # of 25 names, one at least
    assert like("%GER%") == pytest.approx(1 / 25)
    assert like("%G%") == ASSUMPTIONS.pattern_contains
    assert like("GERMANY") == pytest.approx(1 / 25)  # 25 rows have 25 values at most
    assert like("%") == 1
    assert of(Expression("StartsWith", (A, lit("xyz")))) == ASSUMPTIONS.pattern_prefix  # many rows have one value
    assert of(Expression("ScalaUDF", (A,))) == ASSUMPTIONS.other_predicate
    assert of(Expression("Exists", flags=SUBQUERY)) == ASSUMPTIONS.subquery_test
    assert of(reference(Attribute(3, 3, "flag", "boolean"))) == ASSUMPTIONS.boolean


def test_every_answer_is_a_fraction() -> None:
    leaves = [eq(A, lit(5)), call("LessThan", B, lit(3)), call("IsNull", B), listed(B, 1, 2), lit(None), lit(1)]
    pool = list(leaves)
    for i in range(60):
        kind = ("And", "Or", "Not")[i % 3]
        parts = [pool[(i * 7) % len(pool)], pool[(i * 11 + 3) % len(pool)]]
        pool.append(call(kind, *parts[: 1 if kind == "Not" else 2]))
    for known in (T, NOTHING, RelationStatistics(0.0, 0.0)):
        for e in pool:
            assert 0 <= of(e, known) <= 1
            assert math.isfinite(of(e, known))


def test_deep_predicates() -> None:
    e = eq(A, lit(0))
    for i in range(3000):
        e = call("Or" if i % 2 else "And", call("Not", e), eq(A, lit(i)))
    assert 0 <= of(e) <= 1


def test_filter_narrows_columns() -> None:
    after = s.apply_filter(T, call("And", call("LessThan", A, lit(51)), eq(B, lit(3))))
    assert after.rows == pytest.approx(1000 * 50 / 100 * 0.08)
    assert after.column(0).max == 50 and after.column(0).ndv == pytest.approx(50)
    assert after.column(1).ndv == 1 and after.column(1).nulls == 0
    assert not after.exact and after.base_rows == 1000
    # A filter on one column does not change what another column's values are drawn from.
    other = s.apply_filter(T, eq(B, lit(3)))
    assert other.column(0).ndv == 100 and other.distinct(0) == pytest.approx(80)


def test_filter_keeps_the_proved_bound() -> None:
    known = KNOWN["nations"]
    after = s.apply_filter(known, eq("n_name", lit("GERMANY")))
    assert after.upper_bound == 25 and after.rows == pytest.approx(1)


YEAR = reference(Attribute(0, 1, "year", "int"))
#: Four bins of 25 rows each: half of the rows are of 2008 and later, though that is a tenth of the range.
YEARS = ((1880, 1999, 100), (2000, 2007, 8), (2008, 2011, 4), (2012, 2019, 8))
MOVIES = from_json(
    {"rows": 100, "columns": {"0": {"ndv": 120, "min": 1880, "max": 2019, "nulls": 0, "bins": YEARS}}},
    [Attribute(0, 1, "year", "int")],
)


def test_histograms() -> None:
    assert MOVIES.column(0).bins == tuple(Bin(*b) for b in YEARS)
    assert of(call("GreaterThan", YEAR, lit(2007)), MOVIES) == pytest.approx(0.5)
    assert of(call("GreaterThanOrEqual", YEAR, lit(2008)), MOVIES) == pytest.approx(0.5)
    assert of(call("LessThan", YEAR, lit(2000)), MOVIES) == pytest.approx(0.25)
    inside = call("And", call("GreaterThanOrEqual", YEAR, lit(2010)), call("LessThanOrEqual", YEAR, lit(2013)))
    assert of(inside, MOVIES) == pytest.approx(0.25 * 2 / 4 + 0.25 * 2 / 8)
    assert of(eq(YEAR, lit(2009)), MOVIES) == pytest.approx(0.25 / 4)
    assert of(listed(YEAR, 2009, 2013), MOVIES) == pytest.approx(0.25 / 4 + 0.25 / 8)
    after = s.apply_filter(MOVIES, inside)
    assert (after.column(0).min, after.column(0).max) == (2010, 2013)
    assert after.column(0).ndv == pytest.approx(4) and after.column(0).bins == ()


def test_bins_that_are_not_numbers_are_not_used() -> None:
    known = from_json({"rows": 10, "columns": {"0": {"min": 1, "max": 9, "bins": [[1, 5, 3], ["NaN", 9, 2]]}}})
    assert known.column(0).bins == ()


def test_popular_texts() -> None:
    """A text that a query names is more frequent than the average one, unless all are different."""
    country, name = (reference(Attribute(i, i, "c", "string")) for i in (0, 1))
    known = RelationStatistics(
        10_000.0, 1e6, columns={0: ColumnStatistics(ndv=256.0, nulls=0.2), 1: ColumnStatistics(ndv=10_000.0)}
    )
    assert of(eq(country, lit("us")), known) == pytest.approx(0.8 / 64)  # 256 ** 0.75 = 64
    assert of(Expression("In", (country, *map(lit, "abcdefghijklmnop"))), known) == pytest.approx(0.8 / 8)
    assert of(eq(name, lit("John")), known) == pytest.approx(1e-4)
    likes_not = call("Not", Expression("Like", (country, lit("%abc%"))))
    kept = 0.8 * (1 - ASSUMPTIONS.pattern_contains)  # NULL is neither like nor unlike
    assert of(likes_not, known) == pytest.approx(kept)


def test_each_letter_of_a_pattern_leaves_fewer_names_but_not_fewer_notes() -> None:
    """ILIKE '%anita%' matches 2,745 of 4,167,491 names of actors; '%(worldwide)%' a tenth of the notes of releases."""
    name, note, unknown = (reference(Attribute(i, i, c, "string")) for i, c in enumerate(("name", "note", "unknown")))
    known = RelationStatistics(
        4e6, 4e8, columns={0: ColumnStatistics(ndv=4e6), 1: ColumnStatistics(ndv=1e5), 2: ColumnStatistics()}
    )

    def like(column: Expression, pattern: str, kind: str = "Like") -> float:
        return of(Expression(kind, (column, lit(pattern))), known)

    shares = [like(name, f"%{'anita'[:letters]}%") for letters in range(1, 6)]
    assert shares == sorted(shares, reverse=True) and shares[0] == ASSUMPTIONS.pattern_contains
    assert shares[4] == like(name, "%anita%", "ILike") == like(name, "anita", "Contains") == pytest.approx(0.00256)
    assert like(name, "%Downey%Robert%") == ASSUMPTIONS.pattern_least
    assert like(note, "%(worldwide)%") == ASSUMPTIONS.pattern_contains
    assert like(unknown, "%sequel%") < ASSUMPTIONS.equality  # which is a default, no count
    assert like(unknown, "sequel") == ASSUMPTIONS.equality
    assert like(name, "%--%") == ASSUMPTIONS.pattern_contains  # no letter


def test_filters_that_name_what_they_want() -> None:
    text, number = reference(Attribute(0, 0, "c", "string")), reference(Attribute(1, 1, "n", "int"))
    assert s.apply_filter(NOTHING, eq(text, lit("us"))).filtered_by_text
    assert s.apply_filter(NOTHING, Expression("In", (text, lit("us"), lit("ca")))).filtered_by_text
    assert not s.apply_filter(NOTHING, eq(number, lit(5))).filtered_by_text
    assert not s.apply_filter(NOTHING, Expression("Like", (text, lit("%us%")))).filtered_by_text


def test_columns_compared_by_their_ranges() -> None:
    # a lies in 1..100, b in 0..9 and a fifth of it is NULL. Of a, (9 - 1) / 99 lie below 9 and meet b from 0 to 9:
    # (9 - 1)^2 / 2 / (99 * 9) of all pairs have a < b.
    share = (9 - 1) ** 2 / 2 / (99 * 9)
    assert of(call("LessThan", A, B)) == of(call("GreaterThan", B, A)) == pytest.approx(0.8 * share)
    assert of(call("GreaterThanOrEqual", A, B)) == pytest.approx(0.8 * (1 - share))
    assert of(call("LessThan", A, B), NOTHING) == ASSUMPTIONS.ordering


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ((0, 4), (5, 9), 1.0), ((5, 9), (0, 4), 0.0), ((3, 3), (0, 4), 0.25), ((0, 4), (1, 1), 0.25),
        ((7, 7), (7, 7), 0.5),
    ],
)  # fmt: skip
def test_ranges_that_do_not_meet_or_are_one_value(
    one: tuple[int, int], other: tuple[int, int], share: float
) -> None:
    a, b = (ColumnStatistics(min=low, max=high) for low, high in (one, other))
    assert share_below(a, b) == share
