"""`pyjoinopt.testing`: each assertion passes on correct input, and fails with a message that shows the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.testing import JoinOpt, assert_max_rows, assert_no_cartesian, assert_reordered, assert_same_rows
from tests.support import shop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_ROWS: dict[str, Any] = {"cost": "c_out", "strict": True, "statistics_ms": 60_000}


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = spark.newSession()
    folder = tmp_path_factory.mktemp("shop")
    shop.write(folder)
    shop.register(session, folder)
    return session


@pytest.fixture
def slow(session: SparkSession) -> DataFrame:
    return shop.slow(session)


class TestReordered:
    def test_as_written_and_optimised(self, slow: DataFrame) -> None:
        assert_reordered(slow, **BY_ROWS)
        assert_reordered(slow.optimize_joins(**BY_ROWS))

    def test_an_order_that_stays_fails_with_the_report(self, slow: DataFrame) -> None:
        with pytest.raises(AssertionError, match="^the joins keep their written order\n\nJoins would be: "):
            assert_reordered(slow, strategy="none")

    def test_a_query_without_joins_fails(self, session: SparkSession) -> None:
        with pytest.raises(AssertionError, match="written order"):
            assert_reordered(session.table("orders"))

    def test_an_eliminated_outer_join_alone_is_no_other_order(self, session: SparkSession) -> None:
        df = session.sql("SELECT * FROM orders LEFT JOIN vip ON v_customer = o_customer WHERE v_rank = 1")
        assert pyjoinopt.join_report(df).changed
        with pytest.raises(AssertionError, match="written order(?s:.*)became inner"):
            assert_reordered(df)

    def test_the_report_of_an_unchanged_frame_is_not_that_of_other_options(self, slow: DataFrame) -> None:
        same = slow.optimize_joins(strategy="none")
        assert same is slow
        assert_reordered(same, **BY_ROWS)

    def test_options_do_not_fit_an_optimised_frame(self, slow: DataFrame) -> None:
        fast = slow.optimize_joins(**BY_ROWS)
        with pytest.raises(ValueError, match=r"result of optimize_joins\(\), so cost cannot change"):
            assert_reordered(fast, cost="spark")


class TestNoCartesian:
    def test_joins_with_conditions_are_none(self, session: SparkSession, slow: DataFrame) -> None:
        assert_no_cartesian(slow)
        assert_no_cartesian(session.sql("SELECT * FROM lines JOIN vip ON l_qty < v_rank"))

    @pytest.mark.parametrize(
        ("threshold", "operator"), [("10m", "BroadcastNestedLoopJoin"), ("-1", "CartesianProduct")]
    )
    def test_a_product_fails_by_its_operator(self, session: SparkSession, threshold: str, operator: str) -> None:
        own = session.newSession()
        own.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        df = own.range(40).selectExpr("id AS a").crossJoin(own.range(30).selectExpr("id AS b"))
        said = rf"has a Cartesian product:\n  {operator} of the rows \((?s:.*)Joins: "
        for frame in (df, df.optimize_joins()):
            with pytest.raises(AssertionError, match=said):
                assert_no_cartesian(frame)
        joined = df.filter("a < b")
        assert_no_cartesian(joined)

    def test_a_product_with_one_row_multiplies_nothing(self, session: SparkSession) -> None:
        assert_no_cartesian(session.sql("SELECT l_price / total FROM lines, (SELECT sum(l_price) AS total FROM lines)"))
        with pytest.raises(AssertionError, match="Cartesian product"):
            assert_no_cartesian(session.sql("SELECT * FROM lines, (SELECT l_qty AS q FROM lines GROUP BY l_qty)"))

    def test_an_existence_test_is_none(self, session: SparkSession) -> None:
        assert_no_cartesian(session.sql("SELECT * FROM orders LEFT SEMI JOIN vip ON true"))

    def test_a_product_in_a_subquery_is_found(self, session: SparkSession) -> None:
        df = session.sql("SELECT * FROM vip WHERE v_rank < (SELECT max(o_id + r_id) FROM orders, regions)")
        with pytest.raises(AssertionError, match="Cartesian product"):
            assert_no_cartesian(df)

    def test_a_product_in_a_plan_that_has_run_is_found(self, session: SparkSession) -> None:
        df = session.sql("SELECT o_day, count(*) FROM orders, regions GROUP BY o_day")
        df.collect()
        with pytest.raises(AssertionError, match="Cartesian product"):
            assert_no_cartesian(df)


class TestMaxRows:
    @pytest.mark.parametrize(
        "join",
        [["orders", "vip"], {"vip", "orders"}, "vip ⋈ orders", "(orders, vip)"],
        ids=["list", "set", "text", "brackets"],
    )
    def test_a_join_of_the_chosen_order(self, slow: DataFrame, join: Any) -> None:
        true = slow.sparkSession.sql("SELECT * FROM orders JOIN vip ON v_customer = o_customer").count()
        assert 0 < true < 100
        assert_max_rows(slow, join, true, **BY_ROWS)
        assert_max_rows(slow.optimize_joins(**BY_ROWS), join, true)
        with pytest.raises(AssertionError) as failure:
            assert_max_rows(slow, join, true - 1, **BY_ROWS)
        text = str(failure.value)
        assert text.startswith(("orders ⋈ vip gives ", "vip ⋈ orders gives "))
        assert f" gives {true} rows, more than {true - 1}\n  Counted joins:\n" in text
        assert f"orders ⋈ vip: {true} rows" in text and "Joins: " in text and "Run optimised: " in text

    def test_the_whole_group(self, slow: DataFrame) -> None:
        assert_max_rows(slow, ["lines", "orders", "vip"], slow.count(), **BY_ROWS)
        with pytest.raises(AssertionError, match="lines ⋈ orders ⋈ vip gives "):
            assert_max_rows(slow, ["lines", "orders", "vip"], slow.count() - 1, **BY_ROWS)

    def test_a_join_that_the_order_does_not_make(self, slow: DataFrame) -> None:
        said = "^the plan has no join of just lines ⋈ orders\n  Counted joins:\n(?s:.*)vip"
        with pytest.raises(AssertionError, match=said):
            assert_max_rows(slow, ["lines", "orders"], 10**9, **BY_ROWS)

    def test_two_relations_alone(self, session: SparkSession) -> None:
        df = session.sql("SELECT * FROM orders JOIN vip ON v_customer = o_customer")
        true = df.count()
        for frame in (df, df.optimize_joins()):
            assert_max_rows(frame, ["orders", "vip"], true)
            with pytest.raises(AssertionError, match="orders ⋈ vip gives "):
                assert_max_rows(frame, ["orders", "vip"], true - 1)

    def test_a_name_that_no_relation_has(self, slow: DataFrame) -> None:
        with pytest.raises(ValueError, match="named 'order': there are lines, orders, vip; did you mean 'orders'"):
            assert_max_rows(slow, ["order", "vip"], 1)

    def test_a_query_without_joins(self, session: SparkSession) -> None:
        with pytest.raises(ValueError, match="no join whose rows could be counted"):
            assert_max_rows(session.table("orders"), ["orders", "vip"], 1)

    def test_a_join_without_rows_is_not_vacuously_small(self, session: SparkSession) -> None:
        df = session.sql(f"SELECT * FROM {shop.SLOW} WHERE v_rank > 9")
        assert df.count() == 0
        with pytest.raises(AssertionError, match="did not count the rows of orders ⋈ vip: it skipped the join"):
            assert_max_rows(df, ["orders", "vip"], 10, **BY_ROWS, statistics_without="samples")

    @pytest.mark.parametrize(
        ("join", "n", "error", "said"),
        [
            (["orders", "vip"], 1.5, TypeError, r"n is 1\.5 \(float\)"),
            (["orders", "vip"], True, TypeError, r"n is True \(bool\)"),
            (["orders", "vip"], -1, ValueError, "n is -1, but must be at least 0"),
            (["orders"], 1, ValueError, "two relations or more"),
            ("orders", 1, ValueError, "two relations or more"),
            ("orders ⋈ ", 1, ValueError, "two relations or more"),
            (["orders", 3], 1, TypeError, r"join has 3 \(int\)"),
            (7, 1, TypeError, r"join is 7 \(int\)"),
            ({"orders": 1, "vip": 2}, 1, TypeError, "names of its relations"),
        ],
    )
    def test_bad_arguments(self, slow: DataFrame, join: Any, n: Any, error: type[Exception], said: str) -> None:
        with pytest.raises(error, match=said):
            assert_max_rows(slow, join, n)


class TestSameRows:
    def test_a_query_and_its_optimised_self(self, slow: DataFrame) -> None:
        assert_same_rows(slow, slow.optimize_joins(**BY_ROWS))
        assert_same_rows(slow, slow)

    def test_values_are_equal_as_in_spark(self, session: SparkSession) -> None:
        one = session.sql("SELECT * FROM VALUES (DOUBLE('NaN'), 0.0D, NULL), (1D, 2D, 'x') AS t(a, b, c)")
        other = session.sql("SELECT * FROM VALUES (1D, 2D, 'x'), (DOUBLE('NaN'), -0.0D, NULL) AS t(a, b, c)")
        assert_same_rows(one, other)
        assert_same_rows(one, [(float("nan"), -0.0, None), (1.0, 2.0, "x")])

    def test_the_first_differing_rows_are_shown(self, session: SparkSession) -> None:
        one, other, none = (session.range(*ends).selectExpr("id AS a", "'x' AS b") for ends in ((20,), (2, 20), (0,)))
        with pytest.raises(AssertionError) as failure:
            assert_same_rows(one, other)
        assert str(failure.value) == (
            "the rows differ: 20 rows in the first result, 18 in the second\n  only in the first (2):\n"
            "    (0, 'x')\n    (1, 'x')"
        )
        with pytest.raises(AssertionError, match=r"only in the second \(18\):\n(?:    \(\d, 'x'\)\n){5}    …$"):
            assert_same_rows(none, other)

    def test_rows_count_as_often_as_they_are_there(self, session: SparkSession) -> None:
        with pytest.raises(AssertionError, match="3 rows in the first result, 2 in the second"):
            assert_same_rows(session.sql("SELECT * FROM VALUES (1), (1), (2)"), [(1,), (2,)])

    def test_the_report_of_an_optimised_frame_is_shown(self, slow: DataFrame) -> None:
        fast = slow.optimize_joins(**BY_ROWS)
        said = r"only in the first \(\d+\):(?s:.*)Joins: 1 group of 3 relations reordered"
        with pytest.raises(AssertionError, match=said):
            assert_same_rows(fast, slow.limit(3))

    @pytest.mark.parametrize(
        ("one", "other", "said"),
        [
            ("1 AS a, 2 AS b", "1 AS a, 2 AS c", "column 2: b int in the first result, c int in the second$"),
            ("1 AS a", "1L AS a", "column 1: a int in the first result, a bigint in the second$"),
            ("1 AS a, 2 AS b", "2 AS b, 1 AS a", "(?s:.*)column 1: a int(?s:.*)column 2: b int"),
            ("1 AS a", "1 AS a, 2 AS b", r"the columns differ: 1 \(a\) in the first result, 2 \(a, b\)"),
        ],
    )
    def test_columns_are_compared_by_position(self, session: SparkSession, one: str, other: str, said: str) -> None:
        with pytest.raises(AssertionError, match=said):
            assert_same_rows(session.sql(f"SELECT {one}"), session.sql(f"SELECT {other}"))

    def test_whether_a_column_may_be_null_is_not_compared(self, session: SparkSession) -> None:
        assert_same_rows(session.sql("SELECT 1 AS a"), session.sql("SELECT nullif(1, 2) AS a"))

    def test_the_tolerance_of_floats(self, session: SparkSession) -> None:
        one, other = session.sql("SELECT 100D AS a"), session.sql("SELECT 101D AS a")
        assert_same_rows(one, other, rtol=0.01)
        assert_same_rows(one, other, atol=1)
        with pytest.raises(AssertionError, match=r"only in the first \(1\):\n    \(100.0,\)"):
            assert_same_rows(one, other)
        with pytest.raises(AssertionError):
            assert_same_rows([(0.1 + 0.2,)], [(0.3,)], rtol=0, atol=0)

    @pytest.mark.parametrize(
        ("given", "error", "said"),
        [
            ({"a": 3, "b": []}, TypeError, "expected a pyspark.sql.DataFrame or a list of rows, got int"),
            ({"a": [1], "b": []}, TypeError, r"a row is 1 \(int\)"),
            ({"a": [], "b": [], "rtol": -1}, ValueError, "rtol is -1, but must be at least 0"),
            ({"a": [], "b": [], "atol": float("nan")}, ValueError, "atol is nan"),
            ({"a": [], "b": [], "atol": "1"}, TypeError, r"atol is '1' \(str\)"),
            ({"a": [], "b": [], "rtol": True}, TypeError, r"rtol is True \(bool\)"),
        ],
    )
    def test_bad_arguments(self, given: dict[str, Any], error: type[Exception], said: str) -> None:
        with pytest.raises(error, match=said):
            assert_same_rows(**given)


class TestJoinOpt:
    def test_its_options_hold_for_every_call(self, slow: DataFrame, tmp_path: Path) -> None:
        joinopt = JoinOpt({**BY_ROWS, "store": str(tmp_path / "statistics.sqlite")})
        fast = joinopt.optimize(slow)
        joinopt.assert_reordered(slow)
        joinopt.assert_reordered(fast)
        joinopt.assert_no_cartesian(slow)
        joinopt.assert_max_rows(slow, ["orders", "vip"], 100)
        joinopt.assert_max_rows(fast, ["orders", "vip"], 100)
        joinopt.assert_same_rows(slow)
        joinopt.assert_same_rows(slow, fast)
        assert joinopt.report(slow).joins_reordered == joinopt.report(fast).joins_reordered == 2
        assert (tmp_path / "statistics.sqlite").exists()

    def test_a_call_may_differ(self, slow: DataFrame) -> None:
        with pytest.raises(AssertionError, match="written order"):
            JoinOpt(BY_ROWS).assert_reordered(slow, strategy="none")

    def test_each_assertion_can_fail(self, session: SparkSession, slow: DataFrame) -> None:
        joinopt = JoinOpt(BY_ROWS)
        with pytest.raises(AssertionError, match="written order"):
            joinopt.assert_reordered(session.table("orders"))
        with pytest.raises(AssertionError, match="Cartesian product"):
            joinopt.assert_no_cartesian(session.sql("SELECT * FROM orders, regions"))
        with pytest.raises(AssertionError, match="more than 0"):
            joinopt.assert_max_rows(slow, "orders, vip", 0)
        with pytest.raises(AssertionError, match="the rows differ"):
            joinopt.assert_same_rows(session.sql("SELECT 1"), [(2,)])

    def test_wrong_options_raise_at_once(self) -> None:
        with pytest.raises(ValueError, match="unknown option 'costs'"):
            JoinOpt({"costs": "c_out"})
        with pytest.raises(ValueError, match="c_out"):
            JoinOpt({"cost": "rows"})

    def test_one_list_cannot_be_optimised(self) -> None:
        with pytest.raises(TypeError, match="pass a second result"):
            JoinOpt().assert_same_rows([(1,)])


@pytest.mark.parametrize(
    "call", [assert_reordered, assert_no_cartesian, lambda df: assert_max_rows(df, ["a", "b"], 1)],
    ids=["assert_reordered", "assert_no_cartesian", "assert_max_rows"],
)  # fmt: skip
@pytest.mark.parametrize("given", [3, None, "orders", [1]], ids=repr)
def test_what_is_no_dataframe(spark: SparkSession, call: Callable[[Any], None], given: object) -> None:
    with pytest.raises(TypeError, match=r"expected a pyspark\.sql\.DataFrame.*, got "):
        call(given)


@pytest.mark.parametrize("call", [assert_reordered, assert_no_cartesian], ids=["reordered", "no_cartesian"])
def test_options_are_checked(slow: DataFrame, call: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="unknown option 'costs'"):
        call(slow, costs="c_out")
    with pytest.raises(ValueError, match="c_out"):
        call(slow, cost="rows")


class OnConnect:
    """Stands in its module for a DataFrame of Spark Connect."""


OnConnect.__module__, OnConnect.__qualname__ = "pyspark.sql.connect.dataframe", "DataFrame"


@pytest.mark.parametrize(
    "call", [assert_no_cartesian, lambda df: assert_max_rows(df, ["a", "b"], 1), JoinOpt(BY_ROWS).assert_no_cartesian],
    ids=["assert_no_cartesian", "assert_max_rows", "fixture"],
)  # fmt: skip
def test_plans_on_a_server_cannot_be_read(call: Callable[[Any], None]) -> None:
    with pytest.raises(pyjoinopt.UnsupportedDataFrameError, match="its plans are on the server"):
        call(OnConnect())
