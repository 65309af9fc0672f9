"""Which functions are computed in two steps."""

from __future__ import annotations

import math

import pytest

from pyjoinopt.optimizer.eager_aggregation.split_functions import SplitConditions, may_be_repeated, may_be_split
from pyjoinopt.plan.constructors import aggregate_call
from pyjoinopt.plan.expressions import ANSI, TRYING, Attribute, Expression, reference

#: Function, type of its argument, its own type, rows below, flags -> whether it may be split in ANSI mode.
CASES = [
    ("Count", "double", "bigint", 1e99, 0, True),
    ("Min", "string", "string", 1e99, 0, True),
    ("Max", "decimal(38,9)", "decimal(38,9)", 1e99, 0, True),
    ("Max", "double", "double", 1.0, 0, False),
    ("Max", "string collate UTF8_LCASE", "string collate UTF8_LCASE", 1.0, 0, False),
    ("Max", "binary", "binary", 1.0, 0, False),
    ("Sum", "int", "bigint", 2.0**32 - 1, ANSI, True),
    ("Sum", "int", "bigint", 2.0**32, ANSI, False),
    ("Sum", "int", "bigint", math.inf, ANSI, False),
    ("Sum", "tinyint", "bigint", 9.0, ANSI, True),
    ("Sum", "int", "bigint", 9.0, TRYING, False),
    ("Sum", "int", "bigint", 9.0, 0, False),
    ("Sum", "bigint", "bigint", 1.0, ANSI, False),
    ("Sum", "double", "double", 1.0, ANSI, False),
    ("Sum", "interval day to second", "interval day to second", 1.0, ANSI, False),
    ("Sum", "decimal(28,4)", "decimal(38,4)", 1e10, ANSI, True),
    ("Sum", "decimal(28,4)", "decimal(38,4)", 1e10 + 1, ANSI, False),
    ("Sum", "decimal(36,4)", "decimal(38,4)", 100.0, ANSI, True),
    ("Sum", "decimal(36,4)", "decimal(38,4)", 101.0, ANSI, False),
    ("Sum", "decimal(38,4)", "decimal(38,4)", 2.0, ANSI, False),
    ("Sum", "decimal(7,2)", "decimal(17,2)", 1.01e10, ANSI, False),
    ("Sum", "decimal(7,2)", "decimal(17,3)", 9.0, ANSI, False),
    ("Sum", "decimal(7,2)", "decimal(17,2)", 9.0, ANSI, True),
    ("Sum", "decimal(7,2)", "decimal(18,2)", 9.0, ANSI, False),
    ("Average", "int", "double", 2.0**22, ANSI, True),
    ("Average", "int", "double", 2.0**22 + 1, ANSI, False),
    ("Average", "int", "double", 1.0, 0, False),
    ("Average", "int", "double", 1.0, TRYING, False),
    ("Average", "double", "double", 1.0, ANSI, False),
    ("Average", "decimal(11,2)", "decimal(15,6)", 9e4, ANSI, True),
    ("Average", "decimal(11,2)", "decimal(15,6)", 1e5, ANSI, False),
    ("Average", "decimal(12,2)", "decimal(16,6)", 1e10, ANSI, True),
    ("Average", "decimal(12,2)", "decimal(16,6)", 1.1e10, ANSI, False),
    ("Average", "decimal(29,2)", "decimal(33,6)", 1.0, ANSI, False),
]


def function(name: str, argument: str, result: str, flags: int) -> Expression:
    call = aggregate_call(name, reference(Attribute(0, 0, "x", argument)), result)
    call.children[0].flags |= flags
    return call


@pytest.mark.parametrize(("name", "argument", "result", "rows", "flags", "split"), CASES)
def test_what_may_be_split(name: str, argument: str, result: str, rows: float, flags: int, split: bool) -> None:
    assert may_be_split(function(name, argument, result, flags), SplitConditions(rows, rows, ansi=True)) is split


def test_a_sum_of_what_is_smaller_than_its_type() -> None:
    """A BIGINT that is made of an INT is no larger than that."""
    narrow = reference(Attribute(0, 0, "x", "int"))
    call = aggregate_call("Sum", Expression("Cast", (narrow,), "bigint"), "bigint")
    call.children[0].flags |= ANSI
    assert may_be_split(call, SplitConditions(2.0**32 - 1, math.inf, ansi=True))
    assert not may_be_split(call, SplitConditions(2.0**32, math.inf, ansi=True))


@pytest.mark.parametrize(
    ("argument", "result"), [("int", "double"), ("decimal(9,2)", "decimal(13,6)"), ("decimal(20,2)", "decimal(24,6)")]
)
def test_an_average_of_rows_that_joins_repeat(argument: str, result: str) -> None:
    call = function("Average", argument, result, ANSI)
    assert may_be_split(call, SplitConditions(9.0, 1e6, ansi=True))
    assert not may_be_split(call, SplitConditions(9.0, 1e20, ansi=True))


def test_integers_start_anew_without_ansi_mode() -> None:
    assert may_be_split(function("Sum", "bigint", "bigint", 0), SplitConditions(1e99, 1e99, ansi=False))
    assert may_be_split(function("Sum", "int", "bigint", 0), SplitConditions(1e99, 1e99, ansi=False))
    assert not may_be_split(function("Sum", "int", "bigint", ANSI), SplitConditions(9.0, 9.0, ansi=False))
    assert not may_be_split(function("Sum", "int", "bigint", TRYING), SplitConditions(9.0, 9.0, ansi=False))


#: Function, type of its argument, its own type, joined rows, whether results of groups are repeated -> whether it fits.
REPEATED = [
    ("Count", "double", "bigint", 1e99, True, True),
    ("Max", "decimal(38,9)", "decimal(38,9)", 1e99, True, True),
    ("Sum", "int", "bigint", 2.0**32 - 1, False, True),
    ("Sum", "int", "bigint", 2.0**32, False, False),
    ("Sum", "decimal(8,2)", "decimal(18,2)", 9e10, False, True),
    ("Sum", "decimal(8,2)", "decimal(18,2)", 1e11, False, False),
    ("Sum", "decimal(7,2)", "decimal(17,2)", 9e11, False, True),
    ("Sum", "decimal(7,2)", "decimal(17,2)", 1e12, False, False),
    ("Sum", "decimal(9,2)", "decimal(19,2)", 1e10, True, True),
    ("Sum", "decimal(17,2)", "decimal(27,2)", 1e10, False, True),
    ("Sum", "decimal(27,2)", "decimal(37,2)", 9e9, False, True),
    ("Sum", "decimal(27,2)", "decimal(37,2)", 9.0, True, False),
    ("Sum", "decimal(28,2)", "decimal(38,2)", 9e8, False, True),
    ("Sum", "decimal(28,2)", "decimal(38,2)", 1e9, False, False),
    ("Sum", "decimal(36,2)", "decimal(38,2)", 9.0, False, True),
    ("Sum", "decimal(36,2)", "decimal(38,2)", 10.0, False, False),
    ("Sum", "decimal(37,2)", "decimal(38,2)", 0.0, False, False),
    ("Average", "decimal(11,2)", "decimal(15,6)", 9e4, True, True),
    ("Average", "decimal(16,2)", "decimal(20,6)", 1e10, True, True),
    ("Average", "decimal(18,2)", "decimal(22,6)", 9e8, True, True),
    ("Average", "decimal(18,2)", "decimal(22,6)", 1e9, True, False),
    ("Average", "decimal(28,2)", "decimal(32,6)", 1.0, True, False),
]


@pytest.mark.parametrize(("name", "argument", "result", "joined", "early", "fits"), REPEATED)
def test_what_may_stand_for_several_rows(
    name: str, argument: str, result: str, joined: float, early: bool, fits: bool
) -> None:
    conditions = SplitConditions(1.0, joined, ansi=True)
    assert may_be_repeated(function(name, argument, result, ANSI), conditions, early=early) is fits


def test_short_decimals_that_are_not_added_up_as_bigint() -> None:
    short = function("Sum", "decimal(7,2)", "decimal(17,2)", ANSI)
    assert may_be_repeated(short, SplitConditions(1.0, 9e9, ansi=True, unscaled=False), early=False)
    assert not may_be_repeated(short, SplitConditions(1.0, 1.1e10, ansi=True, unscaled=False), early=False)
