"""True row counts of finished queries: taken from Spark's metrics, stored, and used when the query is repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.errors import NotRunError
from pyjoinopt.estimation.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Half of all sales are of the cheapest items, which estimates of single tables cannot show.
ITEMS = "SELECT id AS item, id % 100 AS price, IF(id % 100 < 10, 'cheap', 'dear') AS kind FROM range(2000)"
SALES = """SELECT id AS sale, IF(id % 2 = 0, id % 20 * 100, id * 7 % 2000) AS item, id % 50 AS shop
    FROM range(20000)"""
SHOPS = "SELECT id AS shop, id % 5 AS region FROM range(50)"
QUERY = """
    SELECT s.sale, i.price, p.region FROM {0} s, {1} i, {2} p
    WHERE s.item = i.item AND s.shop = p.shop AND i.price < 10 AND i.kind = 'cheap' AND p.region = 1
"""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("feedback")
    for name, text in (("items", ITEMS), ("sales", SALES), ("shops", SHOPS)):
        spark.sql(text).coalesce(1).write.parquet(str(folder / name))
    return folder


@pytest.fixture
def db(spark: SparkSession, folder: Path, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(tmp_path / "store.sqlite"))
    session.conf.set("spark.pyjoinopt.strict", "true")
    for path in folder.iterdir():
        session.read.parquet(str(path)).createOrReplaceTempView(path.name)
    yield session


def query(db: SparkSession, order: str = "sales items shops") -> DataFrame:
    """The query with its FROM list in some order."""
    alias = {"sales": "s", "items": "i", "shops": "p"}
    listed = ", ".join(f"{name} {alias[name]}" for name in order.split())
    return db.sql(QUERY.replace("{0} s, {1} i, {2} p", listed))


def true_rows(db: SparkSession) -> dict[frozenset[str], int]:
    items = db.sql("SELECT * FROM items WHERE price < 10 AND kind = 'cheap'")
    shops, sales = db.sql("SELECT * FROM shops WHERE region = 1"), db.table("sales")
    return {
        frozenset({"i"}): items.count(),
        frozenset({"p"}): shops.count(),
        frozenset({"s"}): sales.count(),
        frozenset({"i", "p"}): items.crossJoin(shops).count(),
        frozenset({"s", "i"}): sales.join(items, "item").count(),
        frozenset({"s", "p"}): sales.join(shops, "shop").count(),
        frozenset({"s", "i", "p"}): sales.join(items, "item").join(shops, "shop").count(),
    }


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("threshold", ["-1", "10485760"], ids=["sort-merge", "broadcast"])
def test_observed_counts_are_the_true_ones(db: SparkSession, adaptive: str, threshold: str) -> None:
    db.conf.set("spark.sql.adaptive.enabled", adaptive)
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    expected = true_rows(db)
    fast = query(db).optimize_joins()
    fast.collect()
    seen = {frozenset(o.relations): o.actual for o in fast._pyjoinopt_report.observe()}
    assert len(seen) == 5, "three relations and two joins"
    assert seen == {relations: expected[relations] for relations in seen}


def test_what_was_seen_is_known_next_time_in_any_order(db: SparkSession) -> None:
    fast = query(db).optimize_joins(statistics_without="samples")  # which would be right at once
    before = {join.relations: join.rows for join in fast._pyjoinopt_report.groups[0].estimated_rows}
    fast.collect()
    fast._pyjoinopt_report.observe()
    expected = true_rows(db)
    assert any(expected[frozenset(names)] > 2 * rows for names, rows in before.items())
    for order in ("sales items shops", "shops items sales"):
        (group,) = pyjoinopt.join_report(query(db, order)).groups
        rows = {r.name: r.rows for r in group.relations}
        assert {r.source for r in group.relations} == {"feedback"}
        assert rows == {name: expected[frozenset({name})] for name in "ips"}
        for join in group.estimated_rows:
            assert join.rows == pytest.approx(expected[frozenset(join.relations)])


def test_other_filters_are_another_query(db: SparkSession) -> None:
    fast = query(db).optimize_joins()
    fast.collect()
    fast._pyjoinopt_report.observe()
    (group,) = pyjoinopt.join_report(db.sql(QUERY.format("sales", "items", "shops").replace("= 1", "= 2"))).groups
    assert "feedback" not in {r.source for r in group.relations}


@pytest.mark.parametrize("options", [{"statistics": "footers"}, {"statistics_without": "samples, feedback"}], ids=str)
def test_a_single_source_is_used_alone(db: SparkSession, options: dict[str, str]) -> None:
    fast = query(db).optimize_joins()
    fast.collect()
    fast._pyjoinopt_report.observe()
    (group,) = pyjoinopt.join_report(query(db), **options).groups
    assert {r.source for r in group.relations} == {"footers"}
    assert "feedback" not in set(pyjoinopt.statistics.show(query(db), **options)["source"])


def test_forget(db: SparkSession) -> None:
    fast = query(db).optimize_joins()
    fast.collect()
    fast._pyjoinopt_report.observe()
    pyjoinopt.statistics.forget(fast)
    (group,) = pyjoinopt.join_report(query(db)).groups
    assert "feedback" not in {r.source for r in group.relations}


def test_the_listener_learns_from_count_and_write(db: SparkSession, tmp_path: Path) -> None:
    db.conf.set("spark.pyjoinopt.feedback", "true")
    fast = query(db).optimize_joins()
    fast.write.format("noop").mode("overwrite").save()
    with pytest.raises(NotRunError, match="switch on the option feedback"):
        fast._pyjoinopt_report.observe()
    try:
        for _ in range(100):  # Spark notifies its listeners asynchronously
            (group,) = pyjoinopt.join_report(query(db)).groups
            if group.relations[0].source == "feedback":
                break
            time.sleep(0.1)
        expected = true_rows(db)
        assert {r.name: r.rows for r in group.relations} == {n: expected[frozenset({n})] for n in "ips"}
    finally:
        bridge_for(fast).listen(fast._jdf, False)


def test_below_a_limit_nothing_is_believed(db: SparkSession) -> None:
    fast = query(db).limit(3).optimize_joins()
    fast.collect()
    expected = true_rows(db)
    for seen in fast._pyjoinopt_report.observe():
        assert seen.actual == expected[frozenset(seen.relations)]
    assert frozenset("ips") not in {frozenset(o.relations) for o in fast._pyjoinopt_report.observe()}


def test_run_twice(db: SparkSession) -> None:
    """The second run skips stages, which then have no row counts."""
    fast = query(db).optimize_joins()
    expected = true_rows(db)
    for _ in range(2):
        fast.collect()
        for seen in fast._pyjoinopt_report.observe():
            assert seen.actual == expected[frozenset(seen.relations)]


def test_an_empty_relation(db: SparkSession) -> None:
    empty = db.sql(QUERY.format("sales", "items", "shops").replace("price < 10", "price < 0"))
    fast = empty.optimize_joins()
    assert fast.collect() == []
    for seen in fast._pyjoinopt_report.observe():  # adaptive execution may have dropped it all
        assert "i" not in seen.relations or seen.actual == 0


def test_what_cannot_be_observed_says_why(db: SparkSession) -> None:
    fast = query(db).optimize_joins()
    with pytest.raises(NotRunError, match="did not run"):
        fast._pyjoinopt_report.observe()
    with pytest.raises(NotRunError, match="is gone"):
        pyjoinopt.join_report(query(db)).observe()
    with pytest.raises(NotRunError, match="does not belong to a DataFrame"):
        pyjoinopt.JoinReport().observe()


WITH_CTE = """WITH cheap AS (SELECT item, price FROM items WHERE kind = 'cheap')
    SELECT s.sale, c.price FROM sales s JOIN cheap c ON s.item = c.item JOIN shops p ON s.shop = p.shop
    WHERE p.region = 1"""
WITH_SUBQUERY = """SELECT s.sale FROM sales s JOIN items i ON s.item = i.item JOIN shops p ON s.shop = p.shop
    WHERE i.price > (SELECT avg(price) / 10 FROM items) AND p.region = 1"""


@pytest.mark.parametrize("text", [WITH_CTE, WITH_SUBQUERY], ids=["cte", "subquery"])
def test_what_reads_by_name_or_by_subquery_is_recognised(db: SparkSession, text: str) -> None:
    fast = db.sql(text).optimize_joins()
    fast.collect()
    seen = {frozenset(o.relations): o.actual for o in fast._pyjoinopt_report.observe()}
    (group,) = pyjoinopt.join_report(db.sql(text)).groups
    assert "feedback" in {r.source for r in group.relations}
    for relation in group.relations:
        if relation.source == "feedback":
            assert relation.rows == seen[frozenset({relation.name})]
    changed = text.replace("'cheap'", "'dear'").replace("/ 10", "/ 9")
    (other,) = pyjoinopt.join_report(db.sql(changed)).groups
    assert "feedback" not in {r.source for r in other.relations}


SEMI = """SELECT s.sale FROM sales s JOIN shops p ON s.shop = p.shop WHERE p.region = 1
    AND EXISTS (SELECT 1 FROM items i WHERE i.item = s.item AND i.kind = 'cheap')"""
SELF = """SELECT a.sale, p.region FROM sales a JOIN shops p ON a.shop = p.shop JOIN sales b ON a.sale = b.sale
    WHERE b.item < 50"""


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("threshold", ["-1", "10485760"], ids=["sort-merge", "broadcast"])
@pytest.mark.parametrize(
    "text", [QUERY.format("sales", "items", "shops"), WITH_CTE, SEMI, SELF], ids=["joins", "cte", "semi", "self"]
)
def test_the_jvm_recognises_the_joins_of_a_running_plan_as_python_does(
    db: SparkSession, text: str, threshold: str, adaptive: str
) -> None:
    db.conf.set("spark.sql.adaptive.enabled", adaptive)
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    fast = db.sql(text).optimize_joins()
    fast.collect()
    operators = json.loads(bridge_for(fast).executed(fast._jdf))
    (watch,) = fast._pyjoinopt_report._watches
    located = watch.located(operators).items()
    expected = {names: (rows, operators[i]["m"]["numOutputRows"]) for i, (names, rows) in located if len(names) > 1}
    jvm = db._jvm
    assert jvm is not None and expected
    groups = jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps([watch.to_dict()]))
    (group,) = each(jvm.org.apache.spark.sql.pyjoinopt.ExpectedJoins.of(groups, True, True))
    joins = each(group.located(fast._jdf.queryExecution().executedPlan()))
    assert {tuple(each(j.relations())): (j.estimated(), j.counted().value()) for j in joins} == expected


def each(found: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [found.apply(i) for i in range(found.size())]


def test_what_was_counted_is_shown(db: SparkSession) -> None:
    fast = query(db).optimize_joins()
    fast.collect()
    fast._pyjoinopt_report.observe()
    shown = pyjoinopt.statistics.show(query(db))
    counted = shown[shown["source"] == "feedback"]
    expected = true_rows(db)
    assert len(counted) == 5 and (counted["age"].dt.total_seconds() < 60).all()
    for names, rows in zip(counted["relation"], counted["rows"]):
        assert rows == expected[frozenset(names.split(" ⋈ "))]


ENDING = """
import sys
from pyspark.sql import SparkSession
import pyjoinopt
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1").config("spark.pyjoinopt.feedback", "true")
    .config("spark.pyjoinopt.store", sys.argv[2]).getOrCreate())
for name in ("sales", "items", "shops"):
    spark.read.parquet(f"{sys.argv[1]}/{name}").createOrReplaceTempView(name)
spark.sql(sys.argv[3]).optimize_joins().write.format("noop").mode("overwrite").save()
spark.stop()
del spark
"""


@pytest.mark.slow
def test_the_last_query_before_stop_is_remembered(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    text = QUERY.format("sales", "items", "shops")
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(folder), str(store), text], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert Store(store).has_feedback()
