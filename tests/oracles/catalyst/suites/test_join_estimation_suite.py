"""The cases of Spark's JoinEstimationSuite: rows, bytes and columns after joins of three small tables, and histograms.

table1 has the values 1..5 and 5..9 in five rows, table2 1..2 and 2..4 in three, table3 1..2 and 2..3 in two.
"""

from __future__ import annotations

from typing import Any

import pytest

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics, PlanSize, row_width
from pyjoinopt.catalyst.statistics.histogram import SparkHistogram, overlaps
from pyjoinopt.catalyst.statistics.join_estimation import join_statistics
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics
from pyjoinopt.estimation.model.histogram import Bin
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, LogicalPlan
from tests.support.letters import Letters, join

TABLES = {"table1": (5, "k15:1-5 k59:5-9"), "table2": (3, "k12:1-2 k24:2-4"), "table3": (2, "l12:1-2 l23:2-3")}


class Suite(Letters):
    """The three tables."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, LogicalPlan] = {}
        self.known: dict[str, CatalystStatistics] = {}
        for name, (rows, columns) in TABLES.items():
            known = {}
            for column in columns.split():
                label, low, high = column.replace(":", " ").replace("-", " ").split()
                known[self.attribute(label).bit] = values(int(low), int(high))
            self.plans[name] = self.relation(name, " ".join(c.split(":")[0] for c in columns.split()))
            self.known[name] = CatalystStatistics(rows, rows * row_width(self.plans[name].output, known), known)

    def joined(self, left: str, right: str, condition: str | None, kind: str = INNER) -> CatalystStatistics:
        test = None if condition is None else self(condition)
        both = join(self.plans[left], self.plans[right], test, kind)
        found = join_statistics(both, self.known[left], self.known[right])
        assert found is not None
        if found.rows:
            assert found.bytes == found.rows * (8 + 4 * len(both.output))
        return found

    def named(self, found: CatalystStatistics) -> dict[str, ColumnStatistics]:
        """The columns of a result by name."""
        names = {a.bit: name for name, a in self.columns.items()}
        return {names[bit]: column for bit, column in found.columns.items()}


def values(low: int, high: int, ndv: int | None = None) -> ColumnStatistics:
    return ColumnStatistics(high - low + 1 if ndv is None else ndv, low, high, 0, 4, 4)


def all_null(rows: int) -> ColumnStatistics:
    return ColumnStatistics(0, None, None, rows, 4, 4)


def test_cross_join() -> None:
    w = Suite()
    found = w.joined("table1", "table2", None)
    assert found.rows == 15
    assert w.named(found) == {"k15": values(1, 5), "k59": values(5, 9), "k12": values(1, 2), "k24": values(2, 4)}


def test_disjoint_keys_of_an_inner_join() -> None:
    w = Suite()
    assert w.joined("table1", "table2", "k59 = k24") == CatalystStatistics(0, 1, {})


def test_disjoint_keys_of_outer_joins() -> None:
    w = Suite()
    left = w.joined("table1", "table2", "k59 = k24", LEFT)
    first, second = {"k15": values(1, 5), "k59": values(5, 9)}, {"k12": values(1, 2), "k24": values(2, 4)}
    assert (left.rows, w.named(left)) == (5, {**first, "k12": all_null(5), "k24": all_null(5)})
    right = w.joined("table1", "table2", "k59 = k24", RIGHT)
    assert (right.rows, w.named(right)) == (3, {"k15": all_null(3), "k59": all_null(3), **second})
    full = w.joined("table1", "table2", "k59 = k24", FULL)
    nulls = {name: (column.ndv, column.nulls) for name, column in w.named(full).items()}
    assert full.rows == 8
    assert nulls == {"k15": (5, 3), "k59": (5, 3), "k12": (2, 5), "k24": (3, 5)}


def test_inner_joins() -> None:
    w = Suite()
    one = w.joined("table1", "table2", "k15 = k12")
    # 5 * 3 / 5 rows; of five values of k59 in five rows 5 * 3 / 5 are left.
    columns = {"k15": values(1, 2), "k59": values(5, 9, ndv=3), "k12": values(1, 2), "k24": values(2, 4)}
    assert (one.rows, w.named(one)) == (3, columns)
    two = w.joined("table2", "table3", "k12 = l12 and k24 = l23")
    met = {"k12": values(1, 2), "l12": values(1, 2), "k24": values(2, 3), "l23": values(2, 3)}
    assert (two.rows, w.named(two)) == (2, met)


def test_outer_joins() -> None:
    w = Suite()
    second, third = {"k12": values(1, 2), "k24": values(2, 4)}, {"l12": values(1, 2), "l23": values(2, 3)}
    met = {"k12": values(1, 2), "k24": values(2, 3)}
    left = w.joined("table3", "table2", "l23 = k24", LEFT)
    assert (left.rows, w.named(left)) == (2, {**third, **met})
    right = w.joined("table2", "table3", "k24 = l23", RIGHT)
    assert (right.rows, w.named(right)) == (2, {**met, **third})
    full = w.joined("table2", "table3", "k24 = l23", FULL)
    assert (full.rows, w.named(full)) == (3, {**second, **third})


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_semi_and_anti_joins_keep_their_left_side(kind: str) -> None:
    w = Suite()
    found = w.joined("table2", "table3", "k24 = l23", kind)
    assert (found.rows, w.named(found)) == (3, {"k12": values(1, 2), "k24": values(2, 4)})


@pytest.mark.parametrize(
    ("type", "low", "length"),
    [
        ("boolean", False, 1), ("tinyint", 1, 1), ("smallint", 1, 2), ("int", 1, 4), ("bigint", 1, 8),
        ("double", 1.0, 8), ("float", 1.0, 4), ("decimal(38,18)", 1.5, 16), ("string", None, 3), ("binary", None, 3),
        ("date", 17000, 4), ("timestamp", 1_500_000_000_000_000, 8),
    ],
)  # fmt: skip
def test_types_of_keys(type: str, low: Any, length: int) -> None:
    w = Letters()
    column = ColumnStatistics(1, low, low, 0, length, length)
    a, b = w.attribute("a", type), w.attribute("b", type)
    sides = [CatalystStatistics(1, 0, {attribute.bit: column}) for attribute in (a, b)]
    found = join_statistics(join(w.relation("t", "a"), w.relation("u", "b"), w("a = b")), *sides)
    width = length + (12 if type == "string" else 0)
    assert found == CatalystStatistics(1, 8 + 2 * width, {a.bit: column, b.bit: column})


def test_a_key_that_is_null_everywhere() -> None:
    w = Suite()
    w.known["table2"] = CatalystStatistics(1, 12, {w.attribute("k12").bit: all_null(1)})
    assert w.joined("table1", "table2", "k15 = k12") == CatalystStatistics(0, 1, {})


def test_a_side_of_no_bytes_and_unknown_rows() -> None:
    """SPARK-33018: 100 bytes, not a product of 0."""
    w = Letters()
    x, y = w.relation("x", "a"), w.relation("y", "b")
    sizes = {id(x): PlanSize(100), id(y): PlanSize(0)}
    found = SparkStatistics(lambda plan: sizes.get(id(plan))).size(join(x, y, w("a = b"), LEFT))
    assert (found.bytes, found.counted) == (100, None)


Range = tuple[float, float, float, float, float, float]
_CONTAINED = [(10, 30, 10, 20, 300, 40), (30, 50, 20, 20, 200, 40), (50, 60, 10, 8, 100, 20)]
_TRIMMED = [(50, 50, 1, 1, 30, 2), (50, 60, 10, 8, 300, 20), (60, 75, 3, 12, 300, 30)]
_SKEWED = [(30, 30, 1, 1, 300, 2), (30, 30, 1, 1, 300, 2), (30, 50, 20, 20, 200, 40), (50, 60, 10, 8, 100, 20)]
_OTHER = [(30, 30, 1, 1, 300, 2), (30, 50, 20, 20, 200, 40), (50, 50, 1, 1, 10, 100)]
_SAME = [(30, 30, 1, 1, 300, 5), (30, 30, 1, 1, 300, 150), (30, 30, 1, 1, 10, 5), (30, 30, 1, 1, 10, 150)]
_WIDE = [(0, 50, 50), (50, 100, 40)]


@pytest.mark.parametrize(
    ("left", "right", "height", "bounds", "ranges", "ndv", "rows"),
    [
        # 300 * 40 / 20 + 200 * 40 / 20 + 100 * 20 / 10
        ([(10, 30, 10), (30, 60, 30)], _WIDE, 100, (10, 60), _CONTAINED, 38, 1200),
        # 30 * 2 + 300 * 20 / 10 + 300 * 30 / 12; the one value and the range after it end apart
        ([(50, 60, 10), (60, 75, 3)], _WIDE, 100, (50, 75), _TRIMMED, 12, 1410),
        ([(30, 30, 1), (30, 30, 1), (30, 60, 30)], _WIDE, 100, (30, 60), _SKEWED, 29, 1800),
        ([(30, 30, 1), (30, 60, 30)], [(0, 50, 50), (50, 50, 1)], 100, (30, 50), _OTHER, 21, 2000),
        ([(30, 30, 1), (30, 60, 30)], [(0, 30, 30), (30, 30, 1)], 150, (30, 30), _SAME, 1, 48050),
    ],
    ids=["contained", "one value after trimming", "skewed", "skewed elsewhere", "skewed alike"],
)  # fmt: skip
def test_histograms(
    left: list[tuple[float, float, float]],
    right: list[tuple[float, float, float]],
    height: float,
    bounds: tuple[int, int],
    ranges: list[Range],
    ndv: int,
    rows: int,
) -> None:
    one = SparkHistogram(300, tuple(Bin(*b) for b in left))
    other = SparkHistogram(height, tuple(Bin(*b) for b in right))
    assert [tuple(part) for part in overlaps(one, other, *bounds)] == [pytest.approx(part) for part in ranges]
    for first, second in ((one, other), (other, one)):
        found = joined_by(first, second)
        assert found.rows == rows
        for column in found.columns.values():
            assert (column.ndv, column.min, column.max, column.nulls) == (ndv, *bounds, 0)


def joined_by(first: SparkHistogram, second: SparkHistogram) -> CatalystStatistics:
    w = Letters()
    sides = []
    for name, histogram in (("a", first), ("b", second)):
        low, high = int(histogram.bins[0].low), int(histogram.bins[-1].high)
        ndv = int(sum(b.ndv for b in histogram.bins))
        rows = int(histogram.height * len(histogram.bins))
        column = ColumnStatistics(ndv, low, high, 0, 4, 4, histogram)
        sides.append(CatalystStatistics(rows, rows * 12, {w.attribute(name).bit: column}))
    found = join_statistics(join(w.relation("t", "a"), w.relation("u", "b"), w("a = b")), *sides)
    assert found is not None
    return found
