"""TPC-H and TPC-DS give the same rows enabled and disabled in programs without a Python driver.

Every query runs twice in one spark-sql process, and twice in one session of a Connect client.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sessions import doors
from tests.support import tpc
from tests.support.compare import assert_same_rows

pytestmark = [pytest.mark.slow, pytest.mark.jvm]
#: How many queries have a join group that gets another order, at the least.
REORDERED = {"tpch": 7, "tpcds": 45}
SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.pyjoinopt.timeout": "60s"}


def views(benchmark: str) -> list[str]:
    """One statement a table."""
    files = sorted(tpc.parquet_folder(benchmark).glob("*.parquet"))
    return [f"CREATE TEMP VIEW {file.stem} USING parquet OPTIONS (path '{file}')" for file in files]


def value(text: str) -> object:
    """A printed value; fractions are compared with a tolerance."""
    if "." in text or "E" in text:
        try:
            return float(text)
        except ValueError:
            pass
    return text


def through_spark_sql(folder: Path, benchmark: str) -> None:
    """Run all queries by one script, disabled and enabled, and compare the output."""
    statements = [*(f"SET {key}={setting}" for key, setting in SETTINGS.items()), *views(benchmark)]
    for on in ("false", "true"):
        statements.append(f"SET spark.pyjoinopt.enabled={on}")
        for number, text in tpc.spark_queries(benchmark).items():
            statements += [f"SELECT '@@ {number} {on}'", text]
            if on == "true":
                statements += [
                    f"SELECT '@@ {number} told'",
                    "SELECT number, max(changed) FROM joinopt_report() GROUP BY number",
                ]
    (folder / "all.sql").write_text(";\n".join(statements) + ";\n")
    said = doors.run(["spark-sql", *doors.extended(), "-f", "all.sql"], folder, seconds=3000)
    found: dict[tuple[str, str], list[list[object]]] = {}
    for line in said.splitlines():
        if line.startswith("@@ "):
            _, number, on = line.split()
            into = found.setdefault((number, on), [])
        elif found and not line.startswith("spark.pyjoinopt.enabled\t"):  # the output of SET
            into.append([value(text) for text in line.split("\t")])
    reordered, before = 0, 0
    for number in map(str, tpc.spark_queries(benchmark)):
        assert_same_rows(found[number, "false"], found[number, "true"], label=("off", f"on, query {number}"))
        reported = {int(str(report)): changed for report, changed in found[number, "told"]}
        reordered += any(changed == "true" and report > before for report, changed in reported.items())
        before = max([before, *reported])
    assert reordered >= REORDERED[benchmark]


@pytest.mark.parametrize("benchmark", ["tpch", "tpcds"])
def test_spark_sql(tmp_path: Path, benchmark: str) -> None:
    through_spark_sql(tmp_path, benchmark)


CLIENT = """
import json
from tests.support.compare import assert_same_rows
queries, views, settings = (json.loads(line) for line in open('queries.json'))
for key, value in settings.items():
    spark.conf.set(key, value)
for view in views:
    spark.sql(view)
reordered, last = 0, 0
for number, text in queries.items():
    spark.conf.set('spark.pyjoinopt.enabled', 'false')
    off = spark.sql(text)
    expected, schema = off.collect(), off.schema
    spark.conf.set('spark.pyjoinopt.enabled', 'true')
    on = spark.sql(text)
    assert on.schema == schema, number
    assert_same_rows(expected, on.collect(), label=('off', f'on, query {number}'))
    told = spark.sql(f'SELECT number, changed FROM joinopt_report() WHERE number > {last}').collect()
    reordered += any(row.changed for row in told)
    last = max([last, *(row.number for row in told)])
print(json.dumps({'queries': len(queries), 'reordered': reordered}))
"""


def through_connect(folder: Path, benchmark: str) -> None:
    """Run all queries from a client without a JVM, switched off and on, and compare there."""
    parts = (tpc.spark_queries(benchmark), views(benchmark), SETTINGS)
    (folder / "queries.json").write_text("".join(json.dumps(part) + "\n" for part in parts))
    with doors.connect_server(folder, doors.extended()) as port:
        reported = json.loads(doors.client(port, CLIENT, folder, seconds=3000).splitlines()[-1])
    assert reported["queries"] == len(tpc.spark_queries(benchmark)) and reported["reordered"] >= REORDERED[benchmark]


@pytest.mark.skipif(not doors.has_jar("spark-connect_*.jar"), reason="this Spark comes without Connect")
@pytest.mark.parametrize("benchmark", ["tpch", "tpcds"])
def test_a_connect_client(tmp_path: Path, benchmark: str) -> None:
    through_connect(tmp_path, benchmark)
