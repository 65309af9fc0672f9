"""Tables of a Hive metastore: statistics of its catalog and of the files, read in a separate session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.slow, pytest.mark.jvm]
ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import pyjoinopt

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]").enableHiveSupport()
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.warehouse.dir", folder + "/warehouse")
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={folder}/metastore;create=true")
    .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}").getOrCreate()
)
spark.range(300).selectExpr("id", "id % 30 AS k").createOrReplaceTempView("rows")
for name, format in (("counted", "TEXTFILE"), ("converted", "PARQUET"), ("plain", "TEXTFILE")):
    spark.sql(f"CREATE TABLE {name} (id BIGINT, k BIGINT) STORED AS {format}")
    spark.sql(f"INSERT INTO {name} SELECT * FROM rows")
spark.sql("CREATE TABLE parts (id BIGINT) PARTITIONED BY (p INT) STORED AS PARQUET")
for p in (1, 2, 3):
    spark.sql(f"INSERT INTO parts PARTITION (p = {p}) SELECT id FROM rows WHERE id < {100 * p}")
spark.sql("ANALYZE TABLE counted COMPUTE STATISTICS FOR ALL COLUMNS")
jobs = spark.sparkContext.statusTracker()
before = set(jobs.getJobIdsForGroup(None))
told = {}
queries = {name: f"SELECT * FROM {name}" for name in ("counted", "converted", "plain", "parts")}
for name, text in {**queries, "pruned": "SELECT * FROM parts WHERE p = 2"}.items():
    (row,) = pyjoinopt.statistics.show(spark.sql(text), store="off").to_dict("records")
    told[name] = {key: row[key] for key in ("relation", "rows", "source", "exact", "distinct")}
query = spark.sql(
    "SELECT c.id FROM counted c JOIN converted v ON c.id = v.id JOIN parts p ON v.id = p.id WHERE p.p = 2 AND c.k < 3"
)
fast = query.optimize_joins(store="off", strict=True)
started = len(set(jobs.getJobIdsForGroup(None)) - before)
same = sorted(fast.collect()) == sorted(query.collect())
sources = {r.name: r.source for r in pyjoinopt.join_report(query, store="off").groups[0].relations}
print("TOLD " + json.dumps({"told": told, "jobs": started, "same": same, "sources": sources}))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("hive")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=500, check=False,
    )  # fmt: skip
    lines = [line for line in run.stdout.splitlines() if line.startswith("TOLD ")]
    assert lines, run.stderr[-3000:]
    return json.loads(lines[0].removeprefix("TOLD "))


def test_analysed_tables_are_as_in_the_metastore(answer: dict) -> None:
    row = answer["told"]["counted"]
    assert (row["rows"], row["source"]) == (300, "catalog")
    assert row["distinct"]["k"] == pytest.approx(30, rel=0.1)


def test_files_of_tables_that_spark_reads_itself(answer: dict) -> None:
    row = answer["told"]["converted"]
    assert (row["rows"], row["source"]) == (300, "footers")
    assert (answer["told"]["parts"]["rows"], answer["told"]["pruned"]["rows"]) == (600, 200)


def test_tables_of_which_only_the_size_is_known(answer: dict) -> None:
    row = answer["told"]["plain"]
    assert row["rows"] > 0 and not row["exact"]


def test_a_query_over_hive_tables(answer: dict) -> None:
    assert answer["same"] and answer["jobs"] == 0
    assert answer["sources"].keys() == {"c", "v", "p"}
