"""Every public function rejects bad arguments at once; the error names the value, the allowed values and a fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt import statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATAFRAMES: dict[str, Callable[[Any], Any]] = {
    "optimize_joins": pyjoinopt.optimize_joins, "join_report": pyjoinopt.join_report,
    "explain_joins": pyjoinopt.explain_joins, "compare": pyjoinopt.compare, "show": statistics.show,
    "rules.apply": lambda df: pyjoinopt.rules.apply(df, "ReorderJoin"), "rules.trace": pyjoinopt.rules.trace,
    "forget": lambda df: statistics.forget(df if df is not None else 0),
}  # fmt: skip
SESSIONS: dict[str, Callable[[Any], Any]] = {
    "enable": pyjoinopt.enable, "disable": pyjoinopt.disable, "is_enabled": pyjoinopt.is_enabled,
    "last_reports": pyjoinopt.last_reports, "analyze": lambda spark: pyjoinopt.analyze(spark, "orders"),
}  # fmt: skip
OPTIONS: dict[str, Callable[..., Any]] = {
    "optimize_joins": lambda spark, **o: spark.range(1).optimize_joins(**o),
    "join_report": lambda spark, **o: spark.range(1).join_report(**o),
    "explain_joins": lambda spark, **o: spark.range(1).explain_joins(**o),
    "compare": lambda spark, **o: pyjoinopt.compare(spark.range(1), **o),
    "show": lambda spark, **o: statistics.show(spark.range(1), **o),
    "forget": lambda spark, **o: statistics.forget(spark.range(1), **o),
    "enable": pyjoinopt.enable,
    "configure": lambda spark, **o: pyjoinopt.configure(type(spark).builder, **o),
}


class OnSpark:
    """Stands in its name and module for a pandas-on-Spark frame, which needs a package that may be missing."""


OnSpark.__module__, OnSpark.__qualname__ = "pyspark.pandas.frame", "DataFrame"


@pytest.mark.parametrize("name", DATAFRAMES)
@pytest.mark.parametrize("given", [3, None, "orders", [1]], ids=repr)
def test_what_is_no_dataframe(spark: SparkSession, name: str, given: object) -> None:
    with pytest.raises(TypeError, match=r"expected a pyspark\.sql\.DataFrame.*, got "):
        DATAFRAMES[name](given)


@pytest.mark.parametrize("name", DATAFRAMES)
def test_pandas_on_spark_is_pointed_to_its_dataframe(spark: SparkSession, name: str) -> None:
    with pytest.raises(TypeError, match=r"pyspark\.pandas\.frame\.DataFrame.*\.to_spark\(\)"):
        DATAFRAMES[name](OnSpark())


def test_real_pandas_on_spark(spark: SparkSession) -> None:
    frame = spark.range(3).pandas_api()
    with pytest.raises(TypeError, match=r"\.to_spark\(\)"):
        pyjoinopt.optimize_joins(frame)
    assert pyjoinopt.optimize_joins(frame.to_spark()).count() == 3


@pytest.mark.parametrize("name", SESSIONS)
def test_what_is_no_session(spark: SparkSession, name: str) -> None:
    for given, hint in ((3, "int"), (None, "NoneType"), (spark.range(1), r"\.sparkSession")):
        with pytest.raises(TypeError, match=rf"expected a pyspark\.sql\.SparkSession, got .*{hint}"):
            SESSIONS[name](given)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stratgy": "auto"}, ValueError, "unknown option 'stratgy'; did you mean 'strategy'"),
        ({"strategy": "fast"}, ValueError, "'strategy' is 'fast', but must be one of 'auto'"),
        ({"hints": "yes"}, TypeError, "'hints' is 'yes'.*must be true or false"),
        ({"pair_budget": 0}, ValueError, "'pair_budget' is 0, but must be at least 1"),
    ],
)
def test_options(
    spark: SparkSession, name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        OPTIONS[name](spark, **options)


CALLS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda s: pyjoinopt.configure(s), TypeError, r"expected a SparkSession\.builder, got .*call pyjoinopt\.enable"),
    (lambda s: pyjoinopt.configure(3), TypeError, r"expected a SparkSession\.builder, got int"),  # type: ignore[type-var]
    (lambda s: pyjoinopt.enable(s, strict=True), ValueError, "'strict' is an option of optimize_joins"),
    (lambda s: s.range(1).explain_joins(mode="txt"), ValueError, "mode is 'txt'.*did you mean 'text'"),
    (lambda s: s.range(1).explain_joins(mode=3), ValueError, "mode is 3, but must be one of 'text'"),
    (lambda s: s.range(1).explain_joins(analyze="both"), ValueError, "analyze is 'both', but must be True"),
    (lambda s: s.range(1).explain_joins(ascii_only="no"), TypeError, "ascii_only is 'no', but must be True"),
    (lambda s: pyjoinopt.compare(s.range(1), repeat=0), ValueError, "repeat is 0, but must be at least 1"),
    (lambda s: pyjoinopt.compare(s.range(1), repeat="3"), TypeError, "repeat is '3'.*whole number"),
    (lambda s: pyjoinopt.compare(s.range(1), progress="no"), TypeError, "progress is 'no', but must be True"),
    (lambda s: pyjoinopt.analyze(s, 3), TypeError, "names of tables, DataFrames.*not int"),
    (lambda s: pyjoinopt.analyze(s, []), ValueError, "nothing to analyse"),
    (lambda s: pyjoinopt.analyze(s, s.range(1), sample_rows=0), ValueError, "sample_rows is 0"),
    (lambda s: pyjoinopt.analyze(s, s.range(1), columns="id"), TypeError, "columns is a list of names, not 'id'"),
    (lambda s: pyjoinopt.analyze(s, s.range(1), progress=7), TypeError, "progress is 7"),
    (lambda s: statistics.declare(3, key="id"), TypeError, "named by strings.*not by 3"),
    (lambda s: statistics.declare("t", key=3), TypeError, "key is 3, but must be the name of a column"),
    (lambda s: statistics.declare("t", key=["a", 3]), TypeError, "not by 3"),
    (lambda s: statistics.declare("t", key=""), TypeError, "not empty, not by ''"),
    (lambda s: statistics.declare("t"), ValueError, "nothing is declared: name a key"),
    (lambda s: statistics.declare("t", foreign_keys="u.id"), TypeError, "foreign_keys is 'u.id'.*mapping"),
    (lambda s: statistics.declare("t", foreign_keys={"a": "id"}), ValueError, "must refer to 'table.column'"),
    (lambda s: statistics.forget_declared(3), TypeError, "named by a string, not by 3"),
    (lambda s: statistics.register(object()), TypeError, "a source has a name"),
    (lambda s: statistics.unregister(3), TypeError, "a source, or its name.*not 3"),
    (lambda s: pyjoinopt.rules.apply(s.range(1), "ReorderJoins"), ValueError, "did you mean 'ReorderJoin'"),
    (lambda s: pyjoinopt.JoinReport().save("x.doc"), ValueError, "has the suffix '.doc', but must have one of"),
    (lambda s: pyjoinopt.JoinReport().to_svg(1), ValueError, "there is no group 1"),
    (lambda s: pyjoinopt.JoinReport().to_svg("1"), TypeError, "group is '1', but must be a whole number"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(spark: SparkSession, number: int) -> None:
    call, error, message = CALLS[number]
    with pytest.raises(error, match=message):
        call(spark)
