"""Runs a query in Spark three times: as written, through `optimize_joins`, and in a session that optimises every query.

A query that plain Spark cannot run need not run, and every result that plain Spark may give is correct:

* the rows on which a fallible predicate is evaluated can depend on the physical plan (a merge join never reads its
  second side if the first is empty). If an optimised query fails, plain Spark must also run it under other physical
  plans.
* InferFiltersFromConstraints treats equal values as identical. If rows differ, plain Spark must give the same rows
  without that rule.

Such cases are counted, so that a test can limit their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.guarantee.fuzz.extension import Options, frame, through_extension
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.querytree import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Other physical plans of the same query.
OTHER_PLANS: tuple[dict[str, str], ...] = (
    {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"},
    {"spark.sql.autoBroadcastJoinThreshold": "10485760", "spark.sql.adaptive.enabled": "false"},
    {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.join.preferSortMergeJoin": "false"},
)
WITHOUT_INFERENCE = {"spark.sql.constraintPropagation.enabled": "false"}


@dataclass(frozen=True)
class Sessions:
    """Two sessions over the same tables: a plain one, and one that optimises every query."""

    plain: SparkSession
    enabled: SparkSession


class Differs(AssertionError):
    """An optimised query whose rows, schema or success are not those of the plain one."""


@contextmanager
def settings(session: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Context in which a session has these settings."""
    before = {key: session.conf.get(key, None) for key in values}
    for key, value in values.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)


def compare_entrances(sessions: Sessions, query: Query, form: str, options: Options) -> Counter[str]:
    """Run one query in all three ways.

    Returns:
        Counts of what happened.

    Raises:
        Differs: with the name of the entrance first.
    """
    try:
        plain = frame(sessions.plain, query, form)
        expected = signed(plain.collect())
    except Exception as error:
        return Counter(queries=1, not_runnable=1, **{_error_class(error): 1})
    counts = Counter(queries=1, with_rows=bool(expected))
    for entrance in ("call", "extension"):
        try:
            counts.update(_one_entrance(sessions, plain, query, form, options, entrance, expected))
        except Exception as error:
            luck = luck_of(sessions.plain, query, form, expected, rows=isinstance(error, AssertionError))
            if luck is None:
                raise Differs(f"{entrance}: {type(error).__name__}: {str(error)[:1500]}") from error
            counts[luck] += 1
    return counts


def _one_entrance(
    sessions: Sessions, plain: DataFrame, query: Query, form: str, options: Options, entrance: str, expected: list[Any]
) -> Counter[str]:
    if entrance == "call":
        fast = plain.optimize_joins(strict=True, **options)
        assert_same_schema(plain, fast)
        if fast is not plain:
            assert_same_rows(expected, signed(fast.collect()), label=("plain Spark", "call"))
        report = fast._pyjoinopt_report
        return Counter(changed=any(g.changed for g in report.groups), with_groups=bool(report.groups))
    rows, counts = through_extension(sessions.enabled, plain, query, form, options)
    assert_same_rows(expected, signed(rows), label=("plain Spark", "extension"))
    return counts


def luck_of(plain: SparkSession, query: Query, form: str, expected: list[Any], *, rows: bool) -> str | None:
    """The reason why plain Spark could also have given the other result; None if it could not."""
    for values in (WITHOUT_INFERENCE,) if rows else OTHER_PLANS:
        with settings(plain, values):
            try:
                found = signed(frame(plain, query, form).collect())
            except Exception:
                return "plain_fails_by_plan"
            try:
                assert_same_rows(expected, found)
            except AssertionError:
                return "plain_differs_by_plan"
    return None


def signed(rows: Sequence[Any]) -> list[Any]:
    """Rows in which -0.0 is not 0.0.

    >>> signed([(0.0, [-0.0])])
    [(0.0, ['-0.0'])]
    """
    return [tuple(_signed(value) for value in row) for row in rows]


def _signed(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_signed(item) for item in value]
    return "-0.0" if isinstance(value, float) and str(value) == "-0.0" else value


def _error_class(error: Exception) -> str:
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    name = condition() if condition is not None else None
    return f"plain: {name or type(error).__name__}"
