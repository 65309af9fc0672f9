"""Which queries of a session are changed: lists of tables and descriptions, and a share of all queries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.config import Options, resolve
from pyjoinopt.optimizer.rollout import why_left_out
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, relation


def table(number: int, name: str, path: str = "") -> LogicalPlan:
    made = relation(name, [Attribute(number, 100 + number, f"c{number}", "int")])
    made.info["rel"] = {"kind": "file", "format": "parquet", "name": name, "path": path, "bytes": 10.0}
    return made


def query(*names: str, constant: int = 1, path: str = "") -> LogicalPlan:
    tables = [table(number, name, path) for number, name in enumerate(names)]
    plan = tables[0]
    for other in tables[1:]:
        plan = Join(plan, other, condition=call("EqualTo", reference(plan.output[0]), reference(other.output[0])))
    return Filter(call("LessThan", reference(plan.output[0]), literal(constant, "int")), plan)


ORDERS = query("spark_catalog.sales.orders", "spark_catalog.sales.customers", path="/data/sales/t")


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        ("orders", True),
        ("ORD*", True),
        ("sales.orders", True),
        ("sales.*", True),
        ("spark_catalog.sales.orders", True),
        ("/data/sales/*", True),
        ("hr.*, orders", True),
        ("order", False),
        ("hr.*", False),
        ("talog.sales.orders", False),
        ("/data/sales", False),
        ("", False),
        (" , ", False),
    ],
)
def test_tables_are_named_in_full_without_their_schema_or_by_their_path(patterns: str, fits: bool) -> None:
    reason = why_left_out(Options(deny_tables=patterns), ORDERS)
    assert (reason is not None) == fits
    assert reason is None or "spark.pyjoinopt.denyTables" in reason


def test_all_tables_must_be_allowed() -> None:
    assert why_left_out(Options(allow_tables="sales.*"), ORDERS) is None
    assert why_left_out(Options(allow_tables="orders, customers"), ORDERS) is None
    reason = why_left_out(Options(allow_tables="orders"), ORDERS)
    assert reason == "it reads a table that is not in spark.pyjoinopt.allowTables: spark_catalog.sales.customers"
    assert why_left_out(Options(allow_tables="sales.*", deny_tables="customers"), ORDERS) is not None


def test_rows_that_are_no_table_need_no_permission() -> None:
    values = relation("", [Attribute(9, 109, "v", "int")])
    values.info["rel"] = {"kind": "local", "name": ""}
    assert why_left_out(Options(allow_tables="sales.*"), Join(ORDERS, values)) is None


def test_tables_of_subqueries_count() -> None:
    inner = table(7, "hr.salaries")
    subquery = Expression("ScalarSubquery", (), "int", plan=inner, flags=1 | SUBQUERY)
    outer = Filter(call("LessThan", reference(ORDERS.output[0]), subquery), ORDERS)
    assert "hr.salaries" in str(why_left_out(Options(deny_tables="hr.*"), outer))


@pytest.mark.parametrize(
    ("allow", "deny", "description", "left"),
    [
        ("nightly *", "", "nightly 7", False),
        ("nightly *", "", "Nightly 7", False),
        ("nightly *", "", "hourly", True),
        ("nightly *", "", "", True),
        ("", "nightly *", "nightly 7", True),
        ("", "nightly *", "", False),
        ("*", "*7", "nightly 7", True),
        ("", "", "nightly 7", False),
    ],
)
def test_descriptions_of_jobs(allow: str, deny: str, description: str, left: bool) -> None:
    options = Options(allow_descriptions=allow, deny_descriptions=deny)
    assert (why_left_out(options, ORDERS, description) is not None) == left


def test_a_share_holds_for_a_query_with_any_constants() -> None:
    for share in (0.2, 0.5, 0.8):
        for name in "abcdefgh":
            reasons = {why_left_out(Options(canary=share), query(name, "z", constant=c)) for c in range(5)}
            assert len(reasons) == 1


def test_a_share_is_a_share_and_grows() -> None:
    queries = [query(f"t{number}", f"u{number}") for number in range(400)]
    before: set[int] = set()
    for share in (0.0, 0.1, 0.3, 0.7, 1.0):
        options = Options(canary=share)
        changed = {number for number, plan in enumerate(queries) if why_left_out(options, plan) is None}
        assert abs(len(changed) / len(queries) - share) < 0.08
        assert before <= changed
        before = changed
    assert len(before) == len(queries)


def test_in_report_mode_the_lists_hold_and_the_share_does_not() -> None:
    options = Options(mode="report", canary=0.0)
    assert why_left_out(options, ORDERS) is None
    assert why_left_out(replace(options, mode="on"), ORDERS) is not None
    assert why_left_out(replace(options, deny_tables="orders"), ORDERS) is not None


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("file:/data/raw/x", "/data/raw/*", True),
        ("file:/data/raw", "/data/raw/*", True),
        ("file:/data/rawer", "/data/raw/*", False),
        ("hdfs://nn:8020/data/raw/x", "/data/raw/*", True),
        ("hdfs://nn:8020/data/raw/x", "hdfs://nn:8020/*", True),
        ("s3a://bucket/data/raw/x", "s3a://bucket/data/*", True),
        ("s3a://bucket/data/raw/x", "s3a://other/*", False),
    ],
)
def test_paths_are_matched_with_and_without_their_file_system(path: str, pattern: str, fits: bool) -> None:
    assert (why_left_out(Options(deny_tables=pattern), query("x", "y", path=path)) is not None) == fits


def test_each_of_several_paths_counts() -> None:
    several = table(8, "a", "file:/ok/a")
    several.info["rel"]["paths"] = ["file:/ok/a", "file:/data/raw/b"]
    assert why_left_out(Options(deny_tables="/data/raw/*"), Join(ORDERS, several)) is not None


@pytest.mark.parametrize(
    ("kind", "name", "pattern", "fits"),
    [
        ("jdbc", "public.orders at postgresql://host/db", "public.orders", True),
        ("jdbc", "public.orders at postgresql://host/db", "orders", True),
        ("jdbc", "public.orders at postgresql://host/db", "db", False),
        ("v2", "cat.`my-db`.t", "my-db.*", True),
        ("memory", "sales.cached_table", "sales.*", True),
        ("memory", "cached", "cached", False),
        ("rdd", "rdd", "*", False),
    ],
)
def test_names_of_other_kinds(kind: str, name: str, pattern: str, fits: bool) -> None:
    other = table(8, name)
    other.info["rel"]["kind"] = kind
    assert (why_left_out(Options(deny_tables=pattern), other) is not None) == fits


@pytest.mark.parametrize("mode", ["report", "off"])
def test_modes_that_change_nothing(mode: str) -> None:
    for strategy in ("auto", "spark"):
        options = resolve({"strategy": strategy}, {"spark.pyjoinopt.mode": mode})
        assert (options.mode, options.strategy) == (mode, "none")
    assert replace(resolve({}, {}), mode=mode).strategy == "auto"


@pytest.mark.parametrize("text", ["-0.1", "1.1", "nan", "inf", "a tenth", ""])
def test_a_share_is_from_0_to_1(text: str) -> None:
    with pytest.raises(ValueError, match=r"spark\.pyjoinopt\.canary is .*, but must be a number from 0 to 1"):
        resolve({}, {"spark.pyjoinopt.canary": text})


@pytest.mark.parametrize("value", ["0.1", True, None])
def test_a_share_is_a_number(value: object) -> None:
    with pytest.raises(TypeError, match=r"option 'canary' is .*, but must be a number from 0 to 1"):
        resolve({"canary": value}, {})
    assert resolve({"canary": 1}, {}).canary == 1.0
