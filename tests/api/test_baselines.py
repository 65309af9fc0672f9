"""`pyjoinopt.baselines`: a plan is kept, used where it is legal and safe, and refused with a reason otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.baselines import Baseline
from pyjoinopt.errors import PyJoinOptError
from pyjoinopt.feedback.baseline import PinnedHint
from pyjoinopt.testing import JoinOpt, assert_plan, assert_same_rows
from tests.support.small_session import own_store_of, session_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "sales": "SELECT id s_id, id % 40 s_sold, id % 37 s_shipped, id % 7 s_store, id % 11 s_item FROM range(2000)",
    "dates": "SELECT id d_date, id % 4 d_quarter FROM range(40)",
    "stores": "SELECT id st_id, CAST(id % 3 AS string) st_city FROM range(7)",
    "items": "SELECT id i_id, id % 5 i_brand FROM range(11)",
}
STAR = """
    SELECT s_id, st_city, i_brand FROM sales JOIN dates ON s_sold = d_date JOIN stores ON s_store = st_id
    JOIN items ON s_item = i_id WHERE d_quarter = 1 AND i_brand = 3 AND s_id <> 4711
"""
#: The same query, written in another way.
TURNED = """
    SELECT x.s_id, st_city, i_brand FROM items, stores, dates AS d, sales AS x
    WHERE x.s_item = i_id AND d.d_date = x.s_sold AND st_id = x.s_store AND d_quarter = 1 AND i_brand = 3 AND s_id <> 12
"""
TWICE = """
    SELECT s_id, a.d_quarter, b.d_quarter FROM sales JOIN dates a ON s_sold = a.d_date
    JOIN dates b ON s_shipped = b.d_date JOIN stores ON s_store = st_id WHERE b.d_quarter = 3
"""


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_over(spark, tmp_path_factory.mktemp("pinned"), TABLES)


@pytest.fixture(autouse=True)
def store(session: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The store of this session, which is not the active one: those without a DataFrame get its path."""
    yield from own_store_of(session, tmp_path)


def with_order(baseline: Baseline, *order: tuple[str, str]) -> Baseline:
    return replace(baseline, groups=(replace(baseline.groups[0], order=order),))


def keep(baseline: Baseline, store: str) -> None:
    """Put a baseline that was written by hand into the store."""
    path = Path(store).parent / f"{baseline.name}.json"
    path.write_text(baseline.to_json(), encoding="utf-8")
    assert pyjoinopt.baselines.import_(str(path), store=store) == [baseline.name]


def used(session: SparkSession, text: str, name: str = "daily", **options: Any) -> pyjoinopt.JoinReport:
    """The report of a query with a baseline, whose rows are those of the query as written."""
    df = session.sql(text)
    fast = df.optimize_joins(baseline=name, **options)
    report = pyjoinopt.join_report(fast)
    assert report.error is None
    assert_same_rows(df, fast)
    return report


ODD = (("sales", "items"), ("#1", "stores"), ("#2", "dates"))


class TestOrders:
    def test_the_order_is_used_whatever_the_search_would_prefer(self, session: SparkSession, store: str) -> None:
        baseline = pyjoinopt.baselines.pin(session.sql(STAR), "daily")
        assert pyjoinopt.join_report(session.sql(STAR)).groups[0].order_after != "(((sales ⋈ items) ⋈ stores) ⋈ dates)"
        keep(with_order(baseline, *ODD), store)
        report = used(session, STAR)
        assert (report.groups[0].strategy, report.refusals) == ("baseline", [])
        assert report.groups[0].order_after == "(((sales ⋈ items) ⋈ stores) ⋈ dates)"
        assert "the order of a baseline" in report.to_text()

    def test_a_query_that_is_written_in_another_way_has_the_same_plan(self, session: SparkSession, store: str) -> None:
        keep(with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD), store)
        report = used(session, TURNED)
        assert report.groups[0].order_after == "(((x ⋈ items) ⋈ stores) ⋈ d)" and not report.refusals

    @pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
    def test_a_table_that_is_read_twice(self, session: SparkSession, store: str, first: str, second: str) -> None:
        baseline = pyjoinopt.baselines.pin(session.sql(TWICE), "daily")
        keep(with_order(baseline, ("sales", first), ("#1", second), ("#2", "stores")), store)
        assert used(session, TWICE).groups[0].order_after == f"(((sales ⋈ {first}) ⋈ {second}) ⋈ stores)"
        other = TWICE.replace("dates a", "dates one").replace("a.", "one.")
        one, two = (name.replace("a", "one") for name in (first, second))
        assert used(session, other).groups[0].order_after == f"(((sales ⋈ {one}) ⋈ {two}) ⋈ stores)"

    def test_the_written_order_can_be_pinned(self, session: SparkSession, store: str) -> None:
        written = (("sales", "dates"), ("#1", "stores"), ("#2", "items"))
        keep(replace(with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *written), hints=()), store)
        assert not used(session, STAR).changed

    def test_an_order_that_is_no_longer_legal_is_refused(self, session: SparkSession, store: str) -> None:
        keep(with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD), store)
        changed = """
            SELECT s_id, st_city, i_brand FROM sales JOIN dates ON s_sold = d_date JOIN stores ON s_store = st_id
            LEFT JOIN items ON s_item = i_id AND d_quarter = 2
        """
        report = used(session, changed)
        assert [(r.where, "cannot be proved" in r.reason) for r in report.refusals] == [("the baseline daily", True)]
        assert report.groups[0].strategy == "exact"

    def test_two_baselines(self, session: SparkSession, store: str) -> None:
        keep(with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD), store)
        twice = with_order(
            pyjoinopt.baselines.pin(session.sql(TWICE), "twice"), ("sales", "stores"), ("#1", "a"), ("#2", "b")
        )
        keep(twice, store)
        assert used(session, TWICE, "daily, twice").groups[0].order_after == "(((sales ⋈ stores) ⋈ a) ⋈ b)"

    def test_a_query_in_a_subquery(self, session: SparkSession, store: str) -> None:
        text = f"SELECT count(*) FROM stores WHERE st_id IN (SELECT s_id % 7 FROM ({TURNED}))"
        keep(with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD), store)
        assert "(((x ⋈ items) ⋈ stores) ⋈ d)" in [group.order_after for group in used(session, text).groups]


class TestRefusals:
    def test_no_baseline_of_this_name(self, session: SparkSession) -> None:
        report = used(session, STAR, "weekly")
        assert [(r.where, r.reason) for r in report.refusals] == [
            ("the baseline weekly", "the store has no baseline of this name")
        ]
        assert report.refusals[0].advice
        assert report.changed

    def test_another_query(self, session: SparkSession) -> None:
        pyjoinopt.baselines.pin(session.sql(STAR), "daily")
        report = used(session, TWICE)
        assert "for another query" in report.refusals[0].reason

    def test_other_columns(self, session: SparkSession) -> None:
        pyjoinopt.baselines.pin(session.sql(TWICE), "daily")
        report = used(session, TWICE.replace("s_shipped = b.d_date", "s_item = b.d_date"))
        assert "joined by the same columns" in report.refusals[0].reason and report.refusals[0].advice

    def test_options_that_are_not_valid(self, session: SparkSession, store: str) -> None:
        baseline = pyjoinopt.baselines.pin(session.sql(STAR), "daily")
        for options in ({"store": "/tmp/x"}, {"hint_slack": 100}, {"hints": "no"}, {"rewrites_without": "everything"}):
            keep(replace(baseline, options=options), store)
            report = used(session, STAR)
            assert "its options are not valid here" in report.refusals[0].reason


class TestHints:
    def test_they_are_those_of_the_baseline(self, session: SparkSession, store: str) -> None:
        baseline = with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD)
        keep(replace(baseline, hints=(PinnedHint("SHUFFLE_HASH", ("items",), ("sales",)),)), store)
        report = used(session, STAR)
        assert [(h.strategy, h.side, h.reason) for h in report.hints] == [
            ("SHUFFLE_HASH", "right", "pinned by a baseline")
        ]
        plan = session.sql(STAR).optimize_joins(baseline="daily")._jdf.queryExecution().executedPlan().toString()
        assert "ShuffledHashJoin" in plan

    def test_one_that_is_no_longer_safe_is_not_given(self, session: SparkSession, store: str) -> None:
        baseline = with_order(pyjoinopt.baselines.pin(session.sql(STAR), "daily"), *ODD)
        keep(replace(baseline, hints=(PinnedHint("BROADCAST", ("items",), ("sales",)),)), store)
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10")
        try:
            report = used(session, STAR, hint_slack=1)
        finally:
            session.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        assert not report.hints
        assert [r.where for r in report.refusals] == ["a hint of the baseline"]
        assert "that are safe" in report.refusals[0].reason

    def test_options_decide_about_rewrites(self, session: SparkSession) -> None:
        text = STAR + " AND s_id IN (SELECT s_id FROM sales WHERE s_item = 3)"
        df = session.sql(text)
        without = pyjoinopt.baselines.pin(df, "daily", rewrites_without="self_join_to_semi_join", hints=False)
        assert without.options == {"rewrites_without": "self_join_to_semi_join", "hints": False}
        assert not used(session, text).hints


class TestFunctions:
    def test_pin_an_optimised_frame(self, session: SparkSession) -> None:
        df = session.sql(STAR)
        fast = df.optimize_joins(cost="c_out")
        assert pyjoinopt.baselines.pin(fast, "one") == replace(
            pyjoinopt.baselines.pin(df, "two", cost="c_out"), name="one"
        )
        with pytest.raises(ValueError, match="options have no effect"):
            pyjoinopt.baselines.pin(fast, "one", cost="c_out")

    def test_no_constant_is_kept(self, session: SparkSession) -> None:
        assert "4711" not in pyjoinopt.baselines.pin(session.sql(STAR), "daily").to_json()

    def test_show_get_and_drop(self, session: SparkSession, store: str) -> None:
        baseline = pyjoinopt.baselines.pin(session.sql(STAR), "daily")
        assert pyjoinopt.baselines.get("daily", store=store) == baseline
        table = pyjoinopt.baselines.show(store=store)
        assert list(table["name"]) == ["daily"] and "sales" in table["orders"][0]
        assert table["pinned"].dtype.kind == "M"
        pyjoinopt.baselines.drop("daily", store=store)
        assert pyjoinopt.baselines.show(store=store).empty
        for function in (pyjoinopt.baselines.get, pyjoinopt.baselines.drop):
            with pytest.raises(KeyError, match="there is no baseline 'daily' in .*; there are none"):
                function("daily", store=store)

    def test_export_and_import(self, session: SparkSession, store: str, tmp_path: Path) -> None:
        for name, text in (("daily", STAR), ("twice", TWICE)):
            pyjoinopt.baselines.pin(session.sql(text), name)
        files = pyjoinopt.baselines.export(str(tmp_path / "plans"), store=store)
        assert [file.name for file in files] == ["daily.json", "twice.json"]
        other = str(tmp_path / "other.sqlite")
        assert pyjoinopt.baselines.import_(str(tmp_path / "plans"), store=other) == ["daily", "twice"]
        assert pyjoinopt.baselines.get("twice", store=other) == pyjoinopt.baselines.get("twice", store=store)
        (tmp_path / "plans" / "daily.json").write_text("{}")
        with pytest.raises(ValueError, match="daily.json: baseline is None"):
            pyjoinopt.baselines.import_(str(tmp_path / "plans"), store=other)
        with pytest.raises(ValueError, match="must be a folder"):
            pyjoinopt.baselines.export(str(files[0]), store=store)

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda df: pyjoinopt.baselines.pin(df, "a b"), ValueError, "name is 'a b'"),
            (lambda df: pyjoinopt.baselines.pin(df, 3), TypeError, "name is 3"),
            (lambda df: pyjoinopt.baselines.pin(df.sparkSession.table("sales"), "x"), ValueError, "nothing to pin"),
            (lambda df: pyjoinopt.baselines.pin(df, "x", store=3), TypeError, "store is 3"),
            (lambda df: pyjoinopt.baselines.pin(df, "x", store="off"), ValueError, "store is 'off'"),
            (lambda df: pyjoinopt.baselines.pin(df, "x", stratgy="auto"), ValueError, "did you mean 'strategy'"),
            (lambda df: pyjoinopt.baselines.import_("/no/such/file.json"), OSError, "No such file"),
            (lambda df: assert_plan(df, 3), TypeError, "baseline is 3"),
            (lambda df: assert_plan(df, "none"), KeyError, "no baseline 'none'"),
        ],
    )
    def test_wrong_arguments(
        self, session: SparkSession, call: Callable[[Any], Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            call(session.sql(STAR))

    def test_a_store_that_cannot_be_written(self, session: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.warns(RuntimeWarning), pytest.raises(PyJoinOptError, match="cannot be written"):
            pyjoinopt.baselines.pin(session.sql(STAR), "x", store=str(tmp_path / "file" / "store.sqlite"))


class TestAssertPlan:
    def test_by_record_name_and_path(self, session: SparkSession, store: str, tmp_path: Path) -> None:
        df = session.sql(STAR)
        baseline = pyjoinopt.baselines.pin(df, "daily")
        (path,) = pyjoinopt.baselines.export(str(tmp_path), "daily", store=store)
        for given in (baseline, "daily", str(path)):
            assert_plan(session.sql(TURNED), given)
            assert_plan(df.optimize_joins(), given)
            JoinOpt().assert_plan(df, given)

    def test_another_plan_fails_with_the_difference(self, session: SparkSession) -> None:
        df = session.sql(STAR)
        other = with_order(pyjoinopt.baselines.pin(df, "daily"), *ODD)
        with pytest.raises(AssertionError, match=r"the order is .*, not \(\(\(sales ⋈ items\) ⋈ stores\) ⋈ dates\)"):
            assert_plan(df, other)


def test_the_text_is_what_the_page_shows(session: SparkSession) -> None:
    data = json.loads(pyjoinopt.baselines.pin(session.sql(TWICE), "twice").to_json())
    assert list(data) == ["baseline", "name", "spark", "pyjoinopt", "options", "groups", "hints"]
    (group,) = data["groups"]
    assert group["relations"] == {"a": ["dates"], "b": ["dates"], "sales": ["sales"], "stores": ["stores"]}
    assert {"join": "Inner", "columns": {"a": ["d_date"], "sales": ["s_sold"]}} in group["predicates"]
