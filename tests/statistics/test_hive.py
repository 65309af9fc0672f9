"""Tables of a Hive metastore: partitions chosen there, counts of ANALYZE, in a session of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.slow  # a JVM and a metastore of their own

SESSION = """
import json, sys
from pyspark.sql import SparkSession
import pyjoinopt
folder = sys.argv[1]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1").config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}/derby")
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={folder}/db;create=true")
    .enableHiveSupport().getOrCreate())
spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
spark.sql("CREATE TABLE parted (n BIGINT) PARTITIONED BY (day INT) STORED AS PARQUET")
spark.sql("INSERT INTO parted SELECT id, CAST(id % 10 AS INT) FROM range(1000)")
spark.sql("CREATE TABLE lines (n BIGINT, text STRING) STORED AS TEXTFILE")
spark.sql("INSERT INTO lines SELECT id, 'x' FROM range(300)")
def shown(df):
    (row,) = pyjoinopt.statistics.show(df, store="off").to_dict("records")
    return row["rows"], row["source"], row["distinct"].get("day")
out = {}
tracker = spark.sparkContext.statusTracker()
before = len(tracker.getJobIdsForGroup(None))
out["some"] = shown(spark.table("parted").where("day in (3, 4)"))
out["all"] = shown(spark.table("parted"))
out["lines"] = shown(spark.table("lines"))
out["jobs"] = len(tracker.getJobIdsForGroup(None)) - before
spark.sql("ANALYZE TABLE lines COMPUTE STATISTICS")
out["counted"] = shown(spark.table("lines"))
print("OUT" + json.dumps(out))
"""


def test_tables_of_hive(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path)], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("OUT")]
    out = json.loads(line[3:])
    assert out["some"] == [200, "footers", 2] and out["all"] == [1000, "footers", 10]
    assert out["lines"][1] == "size" and out["jobs"] == 0
    assert out["counted"] == [300, "catalog", None]
