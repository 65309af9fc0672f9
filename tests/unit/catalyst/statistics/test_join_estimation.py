"""Spark's estimates of joins: the inner-join cases of its own suite, and the effect of a projection on widths."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics, default_size, row_width
from pyjoinopt.catalyst.statistics.join_estimation import join_statistics
from pyjoinopt.catalyst.statistics.operator_estimation import project_statistics
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics
from pyjoinopt.plan.expressions import FOLDABLE, Expression
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan
from tests.support.letters import Letters, join


class Columns(Letters):
    """Relations whose columns are written `name:low-high`, distinct values without gaps."""

    def table(self, name: str, rows: int, columns: str) -> tuple[LogicalPlan, CatalystStatistics]:
        known = {}
        for column in columns.split():
            label, _, bounds = column.partition(":")
            low, high = map(int, bounds.split("-"))
            known[self.attribute(label).bit] = ColumnStatistics(high - low + 1, low, high, 0, 4, 4)
        plan = self.relation(name, " ".join(c.split(":")[0] for c in columns.split()))
        return plan, CatalystStatistics(rows, rows * row_width(plan.output, known), known)


def three(w: Columns) -> list[tuple[LogicalPlan, CatalystStatistics]]:
    return [
        w.table("table1", 5, "k15:1-5 k59:5-9"),
        w.table("table2", 3, "k12:1-2 k24:2-4"),
        w.table("table3", 2, "l12:1-2 k23:2-3"),
    ]


def test_cross_join() -> None:
    w = Columns()
    (p1, s1), (p2, s2), _ = three(w)
    assert join_statistics(join(p1, p2), s1, s2) == CatalystStatistics(15, 15 * 24, {**s1.columns, **s2.columns})


def test_disjoint_keys() -> None:
    w = Columns()
    (p1, s1), (p2, s2), _ = three(w)
    disjoint = w("k59 = k24 and k15 = k12")
    s2 = CatalystStatistics(3, s2.bytes, {**s2.columns, w.attribute("k24").bit: ColumnStatistics(3, 2, 4, 0, 4, 4)})
    assert join_statistics(join(p1, p2, disjoint), s1, s2) == CatalystStatistics(0, 1, {})


def test_one_key() -> None:
    w = Columns()
    (p1, s1), (p2, s2), _ = three(w)
    result = join_statistics(join(p1, p2, w("k15 = k12")), s1, s2)
    assert (result.rows, result.bytes) == (3, 3 * 24)
    by_name = {name: result.columns[w.attribute(name).bit] for name in ("k15", "k12", "k59", "k24")}
    assert by_name["k15"] == by_name["k12"] == ColumnStatistics(2, 1, 2, 0, 4, 4)
    assert by_name["k59"].ndv == 3 and by_name["k24"] == s2.columns[w.attribute("k24").bit]


def test_two_keys_the_most_selective_counts() -> None:
    w = Columns()
    _, (p2, s2), (p3, s3) = three(w)
    result = join_statistics(join(p2, p3, w("k12 = l12 and k23 = k24")), s2, s3)
    assert (result.rows, result.bytes) == (2, 2 * 24)
    assert result.columns[w.attribute("l12").bit] == ColumnStatistics(2, 1, 2, 0, 4, 4)
    assert result.columns[w.attribute("k24").bit] == ColumnStatistics(2, 2, 3, 0, 4, 4)


def test_an_all_null_key_meets_nothing() -> None:
    w = Columns()
    (p1, s1), _, _ = three(w)
    empty = w.relation("empty", "n")
    nothing = CatalystStatistics(1, 12, {w.attribute("n").bit: ColumnStatistics(0, None, None, 1, 4, 4)})
    assert join_statistics(join(p1, empty, w("k15 = n")), s1, nothing) == CatalystStatistics(0, 1, {})


@pytest.mark.parametrize("condition", ["k15 <=> k12", "k15 + 1 = k12", "k15 > k12"])
def test_keys_that_are_not_plain_equalities_do_not_count(condition: str) -> None:
    w = Columns()
    (p1, s1), (p2, s2), _ = three(w)
    assert join_statistics(join(p1, p2, w(condition)), s1, s2).rows == 15


def test_columns_without_both_counts_do_not_count_and_are_forgotten() -> None:
    w = Columns()
    (p1, s1), (p2, s2), _ = three(w)
    bit = w.attribute("k15").bit
    s1 = CatalystStatistics(5, s1.bytes, {**s1.columns, bit: ColumnStatistics(5, 1, 5, None, 40, 40)})
    assert join_statistics(join(p1, p2, w("k15 = k12")), s1, s2).rows == 15
    result = join_statistics(join(p1, p2, w("k59 = k24 and k15 = k12")), s1, CatalystStatistics(3, 1, {
        w.attribute("k24").bit: ColumnStatistics(9, 1, 9, 0, 4, 4),
    }))  # fmt: skip
    assert bit not in result.columns
    assert result.bytes == result.rows * 24


def test_a_side_that_is_unique_on_its_keys() -> None:
    """Numbers of Spark's test of a join with its own GROUP BY: without column statistics it is no cross product."""
    w = Letters()
    item = w.relation("item", "brand class_id")
    grouped = w.relation("item2", "b2 c2")
    group = w.group("b2 c2", grouped)
    assert isinstance(group, Aggregate)
    sizes = {id(item): CatalystStatistics(202995, 4059900), id(group): CatalystStatistics(13728, 400000)}
    statistics = SparkStatistics(lambda plan: sizes.get(id(plan)))
    both = join(item, group, w("brand = b2 and class_id = c2"))
    result = statistics(both)
    assert result is not None and (result.rows, result.bytes) == (202995, 4871880)
    one = statistics(join(item, group, w("brand = b2")))
    assert one is not None and one.rows == 202995 * 13728


def test_projections() -> None:
    w = Columns()
    (p1, s1), _, _ = three(w)
    one = Expression("Literal", type="bigint", flags=1 | FOLDABLE, value=1, text="1")
    plan = w.project("k15", p1, w.alias("copy", "k59"), w.alias("one", one), w.alias("sum", "k15 + k59"))
    result = project_statistics(plan, s1)
    assert result.rows == 5 and result.bytes == 5 * (8 + 4 + 4 + 8 + 4)
    assert result.columns[w.attribute("copy").bit] == s1.columns[w.attribute("k59").bit]
    assert result.columns[w.attribute("one").bit] == ColumnStatistics(1, 1, 1, 0, 8, 8)
    assert w.attribute("sum").bit not in result.columns and w.attribute("k59").bit not in result.columns


def test_strings_are_wider_than_their_average() -> None:
    w = Letters()
    name = w.attribute("name", "string")
    assert row_width((name,), {}) == 8 + 20
    assert row_width((name,), {name.bit: ColumnStatistics(avg_len=7)}) == 8 + 7 + 12


@pytest.mark.parametrize(
    ("type", "size"),
    [
        ("boolean", 1), ("smallint", 2), ("decimal(18,2)", 8), ("decimal(19,2)", 16), ("string collate UTF8_LCASE", 20),
        ("array<struct<a:int,b:array<double>>>", 12), ("map<int,decimal(30,2)>", 20), ("interval day to second", 8),
        ("interval year to month", 4), ("binary", 100),
    ],
)  # fmt: skip
def test_default_sizes(type: str, size: int) -> None:
    assert default_size(type) == size


def test_what_the_jvm_sends() -> None:
    column = {"ndv": 3.0, "min": 1, "max": 9, "nulls": 0.0, "avgLen": 4.0, "maxLen": 4.0}
    entry = {"rows": 5.0, "bytes": 60.0, "columns": {"2": column}}
    assert CatalystStatistics.from_json(entry) == CatalystStatistics(5, 60, {2: ColumnStatistics(3, 1, 9, 0, 4, 4)})
    assert CatalystStatistics.from_json({"rows": None, "bytes": 5}) is None
    assert CatalystStatistics.from_json({"error": "x"}) is None
