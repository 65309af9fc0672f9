"""Compares results as multisets of rows, and the public properties of frames.

Floating-point sums depend on the order of addition, and another join order is another order of addition. So rows are
compared exactly first, and only what is left over is matched with a tolerance on its floats (everything else in such a
row still has to be equal).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.run import collect_both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    Rows: TypeAlias = DataFrame | Iterable[Sequence[Any]]

Canonical = tuple[Hashable, ...]
Tolerance = tuple[float, float]  # relative, absolute
Leftover = tuple[list[Canonical], list[Canonical]]

RELATIVE_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-9
ROWS_SHOWN = 5


def rows_of(source: Rows) -> list[Canonical]:
    """The rows of a frame (collected here) or of any iterable of sequences, with values that hash and compare.

    >>> rows_of([[1, [2.0, None], {"a": b"x"}]])
    [(1, ('list', 2.0, None), ('map', frozenset({('a', b'x')})))]
    """
    rows = source.collect() if hasattr(source, "collect") else source
    return [tuple(_canonical(value) for value in row) for row in rows]


def _canonical(value: Any) -> Hashable:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0  # adding zero makes -0.0 equal 0.0 in print as well
    if isinstance(value, (list, tuple)):
        return ("list", *(_canonical(item) for item in value))
    if isinstance(value, dict):
        return ("map", frozenset((_canonical(key), _canonical(item)) for key, item in value.items()))
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Hashable):
        return value
    return repr(value)


def assert_same_rows(
    expected: Rows,
    actual: Rows,
    *,
    loose: bool = False,
    relative: float = RELATIVE_TOLERANCE,
    absolute: float = ABSOLUTE_TOLERANCE,
    label: tuple[str, str] = ("expected", "actual"),
) -> None:
    """Fail unless both hold the same rows the same number of times, in any order.

    Args:
        expected: a frame or rows.
        actual: a frame or rows.
        loose: compare all kinds of numbers by value with a tolerance (another database has other result types).
        relative: relative tolerance for floats.
        absolute: absolute tolerance for floats.
        label: what the two sides are called in the failure text.

    >>> assert_same_rows([(1, 0.1 + 0.2), (None, 1.0)], [(None, 1.0), (1, 0.3)])
    >>> assert_same_rows([(1,), (1,)], [(1,)])
    Traceback (most recent call last):
    ...
    AssertionError: results differ: 2 rows expected, 1 rows actual
      only in expected (1 rows):
        (1,)
    """
    if expected is actual:  # nothing was changed, so the same query would run twice
        return
    if hasattr(expected, "collect") and hasattr(actual, "collect"):
        expected, actual = collect_both(expected, actual)
    left, right = rows_of(expected), rows_of(actual)
    if loose:
        left, right = [_floats(row) for row in left], [_floats(row) for row in right]
    only_left, only_right = _unmatched(left, right, (relative, absolute))
    if not only_left and not only_right:
        return
    lines = [f"results differ: {len(left)} rows {label[0]}, {len(right)} rows {label[1]}"]
    for name, rows in zip(label, (only_left, only_right)):
        if rows:
            lines.append(f"  only in {name} ({len(rows)} rows):")
            lines += [f"    {row}" for row in sorted(rows, key=repr)[:ROWS_SHOWN]]
            lines += ["    ..."] if len(rows) > ROWS_SHOWN else []
    raise AssertionError("\n".join(lines))


def assert_can_be_combined(written: DataFrame, optimised: DataFrame) -> None:
    """Fail unless an optimised frame has the same rows in one query with the frame that it was made of.

    Spark finds common table expressions by ids of the whole query, so this is checked for frames that have some.
    """
    if written is optimised or "CTERelationRef" not in str(written._jdf.queryExecution().analyzed().toString()):
        return
    conf, validation = written.sparkSession.conf, "spark.sql.planChangeValidation"
    before = conf.get(validation)
    # In a union with a projection that gives one column twice under its own name, Spark removes both aliases.
    conf.set(validation, "false")
    try:
        twice = written.union(written).collect()
        for together in (written.union(optimised), optimised.union(written)):
            assert_same_rows(twice, together, label=("twice as written", "as written and optimised"))
    finally:
        conf.set(validation, before)


def _floats(row: Canonical) -> Canonical:
    numbers = (int, Decimal)
    return tuple(float(v) if isinstance(v, numbers) and not isinstance(v, bool) else v for v in row)


def _unmatched(left: list[Canonical], right: list[Canonical], tolerance: Tolerance) -> Leftover:
    counts_left, counts_right = Counter(left), Counter(right)
    rest_left = list((counts_left - counts_right).elements())
    rest_right = list((counts_right - counts_left).elements())
    if not rest_left or not rest_right:
        return rest_left, rest_right
    buckets: dict[Canonical, tuple[list[Canonical], list[Canonical]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((rest_left, rest_right)):
        for row in rows:
            buckets[_without_floats(row)][side].append(row)
    only_left: list[Canonical] = []
    only_right: list[Canonical] = []
    for ours, theirs in buckets.values():
        a, b = _match(ours, theirs, tolerance)
        only_left += a
        only_right += b
    return only_left, only_right


def _without_floats(value: Any) -> Any:
    if isinstance(value, float):
        return "float"
    if isinstance(value, tuple):
        return tuple(_without_floats(item) for item in value)
    return value


def _match(ours: list[Canonical], theirs: list[Canonical], tolerance: Tolerance) -> Leftover:
    """Pair rows that are close; returns the unpaired rows. Sorted order first, then any match."""
    ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    alone: list[Canonical] = []
    for row in ours:
        partner = next((i for i, other in enumerate(theirs) if _close(row, other, tolerance)), None)
        if partner is None:
            alone.append(row)
        else:
            del theirs[partner]
    return alone, theirs


def _close(a: Any, b: Any, tolerance: Tolerance) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance[0], abs_tol=tolerance[1])
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a, b))
    return bool(a == b)


def assert_same_schema(original: DataFrame, optimised: DataFrame) -> None:
    """Fail unless names, types, order, metadata and attribute ids agree and no column became nullable."""
    before, after = original.schema.fields, optimised.schema.fields
    assert [f.name for f in before] == [f.name for f in after], "column names or their order changed"
    for old, new in zip(before, after):
        problem = _wider(old.dataType, new.dataType)
        assert problem is None, f"column {old.name!r}: {problem}"
        assert old.nullable or not new.nullable, f"column {old.name!r} became nullable"
        assert old.metadata == new.metadata, f"column {old.name!r}: metadata changed to {new.metadata}"
    assert attributes(original) == attributes(optimised), "attribute ids or qualifiers changed"


def _wider(old: DataType, new: DataType) -> str | None:
    """What is different between two types, beyond nullability that became narrower."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    waiting = [(old, new)]
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b):
            return f"type changed from {a.simpleString()} to {b.simpleString()}"
        if isinstance(a, ArrayType) and isinstance(b, ArrayType):
            if b.containsNull and not a.containsNull:
                return "elements became nullable"
            waiting.append((a.elementType, b.elementType))
        elif isinstance(a, MapType) and isinstance(b, MapType):
            if b.valueContainsNull and not a.valueContainsNull:
                return "map values became nullable"
            waiting += [(a.keyType, b.keyType), (a.valueType, b.valueType)]
        elif isinstance(a, StructType) and isinstance(b, StructType):
            if a.names != b.names:
                return f"fields changed from {a.names} to {b.names}"
            for f, g in zip(a.fields, b.fields):
                if g.nullable and not f.nullable:
                    return f"field {f.name!r} became nullable"
                waiting.append((f.dataType, g.dataType))
        elif a != b:
            return f"type changed from {a} to {b}"
    return None


def attributes(df: DataFrame) -> list[tuple[str, str]]:
    """Each output column as Catalyst prints it (`name#12`), and the alias that qualifies it (`t` of `t.name`)."""
    output = df._jdf.queryExecution().analyzed().output()
    columns = [output.apply(position) for position in range(output.length())]
    return [(str(column.toString()), str(column.qualifier().mkString("."))) for column in columns]
