"""Rows of star joins over real files, where filters of dimensions depend on each other and on the references."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.subplans import groups_of, normal_plans
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.optimizer.group_synopses import synopses_of
from tests.support.compare import assert_same_rows
from tests.support.shop import optimised

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Items of class "skis" are sold in the Alps alone; every tenth sale names an item that is not there, every fifth none.
SALES = [
    "id", "case when id % 5 = 4 then null when id % 10 = 3 then 100000 + id else (id * 7919) % 2000 end as item",
    "case when (id * 7919) % 2000 < 100 then id % 20 else id % 400 end as shop", "id % 97 as amount",
    "concat('c', (id * 31) % 3000) as customer",
]  # fmt: skip
ITEMS = ["id as i_id", "if(id < 100, 'skis', concat('class', id % 9)) as i_class", "id % 50 as i_price"]
SHOPS = ["cast(id as int) as h_id", "id div 10 as h_region", "concat('shop', id) as h_name"]
REGIONS = ["id as r_id", "if(id < 2, 'Alps', concat('region', id % 4)) as r_name"]
CUSTOMERS = [
    "concat('c', id) as c_id", "id % 7 as c_age", "id % 20 as c_item",
    "concat(if(id < 200, 'shop', 'town'), id) as c_near",
]  # fmt: skip


@pytest.fixture(scope="module")
def shops(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("star")
    tables = {
        "s": (200_000, SALES), "i": (2000, ITEMS), "h": (400, SHOPS), "r": (40, REGIONS), "c": (5000, CUSTOMERS),
    }  # fmt: skip
    for name, (rows, columns) in tables.items():
        path = folder / name
        spark.range(rows).selectExpr(*columns).repartition(2).write.parquet(str(path))
        for n, file in enumerate(sorted(path.glob("*.parquet"))):
            file.rename(path / f"part-{n}.parquet")  # what is drawn of a file depends on its name
        spark.read.parquet(str(path)).createOrReplaceTempView(f"star_{name}")
    bridge_for(spark.range(1)).forgetSamples()
    yield spark
    for name in tables:
        spark.catalog.dropTempView(f"star_{name}")


def estimates_of(df: DataFrame, sampled: bool = True, joined: bool = True) -> dict[tuple[str, ...], float]:
    """Names of each connected set of the query's one group -> estimated rows.

    Args:
        df: the query.
        sampled: with samples of the relations.
        joined: with samples of joins.
    """
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes, patient = gateway.export.nodes, ReadDeadline(3_600_000)
        leaf = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes, None, patient)
        request = partial(gateway.samples, evaluateMs=300_000)
        samples = Samples(request, leaf.relation, deadline=patient) if sampled else None
        estimates = PlanEstimates(leaf, nodes, samples, leaf.applied)
        (plan,) = normal_plans(gateway.export)
        estimates.prefetch_samples(plan)
        (group,) = groups_of(gateway.export, [plan], 500)
        statistics = [estimates(plan) for plan in group.graph.relations]
        synopses = synopses_of(group.graph, statistics, estimates) if joined else []
        sizes = GraphEstimates(group.graph, statistics, synopses=synopses)
        return {group.graph.names_of(s): sizes.rows(s) for s in group.sets}


JOINS = {
    ("s", "i"): "s.item = i.i_id",
    ("s", "h"): "s.shop = h.h_id",
    ("h", "r"): "h.h_region = r.r_id",
    ("s", "c"): "s.customer = c.c_id",
}
QUERIES = {
    "correlated dimensions": ("s i h", "i_class = 'skis' AND h_name IN ('shop3', 'shop4', 'shop5')"),
    "snowflake": ("s i h r", "i_class = 'skis' AND r_name = 'Alps'"),
    "missing partners": ("s i h", "h_name LIKE 'shop1%'"),
    "keys of text": ("s i c", "c_age = 3 AND i_price < 10"),
    "with a filter of its own": ("s i h r", "amount < 40 AND i_class LIKE 'ski%' AND r_name = 'Alps'"),
    "all": ("s i h r c", "c_age > 2 AND i_class <> 'skis' AND r_name LIKE 'region%' AND amount > 10"),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", QUERIES)
def test_all_sub_plans_are_near_the_truth(shops: SparkSession, name: str) -> None:
    tables, condition = QUERIES[name]
    used = tables.split()
    on = [predicate for pair, predicate in JOINS.items() if set(pair) <= set(used)]
    clauses = [*on, *condition.split(" AND ")]
    found = estimates_of(shops.sql(_query(used, clauses)))
    assert len(found) > 3
    clauses.append("s.item IS NOT NULL")  # the join with the items requires it, below all joins
    worst = 1.0
    for names, estimate in found.items():
        of_set = [c for c in clauses if _reads(c, names)]
        truth = max(1, shops.sql(_query(names, of_set)).count())
        error = max(estimate / truth, truth / estimate)
        worst = max(worst, error)
        # Of 200,000 sales 4,096 are drawn: with at least 30 hits the standard error is below a fifth.
        if truth > 1500 or "s" not in names:
            assert error < 1.7, (names, estimate, truth)
    assert worst < 20


def test_without_samples_they_are_not(shops: SparkSession) -> None:
    df = shops.sql(_query(["s", "i", "h", "r"], [*list(JOINS.values())[:3], "i_class = 'skis'", "r_name = 'Alps'"]))
    truth = df.count()
    assert estimates_of(df, sampled=False)["s", "i", "h", "r"] < truth / 3
    assert truth / 1.5 < estimates_of(df)["s", "i", "h", "r"] < truth * 1.5


def test_texts_of_a_tiny_relation_show_how_few_rows_have_a_partner(shops: SparkSession) -> None:
    """Nothing is filtered: 200 of 5,000 customers live near one of 400 shops."""
    df = shops.sql("""SELECT s.id, c.c_id, h.h_name FROM star_s s JOIN star_c c ON s.customer = c.c_id
        JOIN star_h h ON c.c_near = h.h_name""")
    assert estimates_of(df)["c", "h"] == pytest.approx(200.0, rel=0.2)
    assert estimates_of(df, joined=False)["c", "h"] > 1000
    truth = df.count()  # a filter of customers would be estimated alike: there are sales to some of them only
    assert truth / 2 < estimates_of(df)["s", "c", "h"] < truth * 2


def test_a_column_that_is_no_key_is_left_to_the_model(shops: SparkSession) -> None:
    """`c_item` has twenty values in five thousand customers: each sale of these items meets 250 of them."""
    df = shops.sql("""SELECT s.id, c.c_id, h.h_id FROM star_s s JOIN star_c c ON s.item = c.c_item
        JOIN star_h h ON s.shop = h.h_id WHERE c.c_age = 3 AND h.h_name LIKE 'shop1%'""")
    found, model = estimates_of(df), estimates_of(df, joined=False)
    assert found["s", "c"] == model["s", "c"] and found["s", "h"] != model["s", "h"]


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_rows(shops: SparkSession, name: str) -> None:
    tables, condition = QUERIES[name]
    used = tables.split()
    on = [predicate for pair, predicate in JOINS.items() if set(pair) <= set(used)]
    written = [*used[1:], used[0]]  # the sales last, after a product of their dimensions
    df = shops.sql(_query(written, [*on, condition]))
    fast, report = optimised(df)
    assert report.changed and report.error is None
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))


def test_files_that_vanish_do_no_harm(shops: SparkSession, tmp_path: Path) -> None:
    shops.range(100).selectExpr("id as v_id", "concat('v', id) as v_name").write.parquet(str(tmp_path / "gone"))
    gone = shops.read.parquet(str(tmp_path / "gone"))
    df = shops.table("star_s").join(gone, shops.table("star_s").item == gone.v_id).join(
        shops.table("star_h"), shops.table("star_s").shop == shops.table("star_h").h_id
    ).where("v_name LIKE 'v1%' AND h_name LIKE 'shop1%'")  # fmt: skip
    for file in (tmp_path / "gone").glob("*.parquet"):
        file.unlink()
    bridge_for(shops.range(1)).forgetSamples()
    fast = df.optimize_joins()
    assert fast._pyjoinopt_report.error is None and fast.schema == df.schema


def _reads(clause: str, names: tuple[str, ...]) -> bool:
    owners = {"i_": "i", "h_": "h", "r_": "r", "c_": "c"}
    words = {w.strip("()',") for w in clause.replace(".", " ").split()}
    used = {owners[w[:2]] for w in words if w[:2] in owners and w[:2] != "" and len(w) > 2}
    used |= {"s" for w in words if w in ("s", "item", "shop", "amount", "customer")}
    return used <= set(names)


def _query(tables: list[str] | tuple[str, ...], clauses: list[str]) -> str:
    return f"SELECT * FROM {', '.join(f'star_{t} {t}' for t in tables)} WHERE {' AND '.join(clauses) or 'true'}"
