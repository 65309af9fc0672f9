"""An application with a UI, which keeps what the tab "Join orders" shows: `ui_program.py FOLDER PORT`.

Its worker waits while there is a file `hold` in the folder. Pages and answers go to files of the folder.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import pyjoinopt

FOLDER, PORT = Path(sys.argv[1]), int(sys.argv[2])
HOLD = FOLDER / "hold"
QUERY = (
    "SELECT {0} c FROM fact f JOIN {1} ON fact_f = {2} JOIN dim d ON mid_f = dim_k WHERE dim_v = 1 AND fact_v < 4"
)
NAME = "<script>document.title='broken'</script>"
TABLE = "<img src=x onerror=document.title='broken'>"


def fetched(path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=60) as answer:
        return str(answer.read().decode("utf-8"))


def code(path: str) -> int:
    try:
        fetched(path)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def queries() -> list[dict[str, Any]]:
    return list(json.loads(fetched(f"{REST}/joinorders")))


def wait_for(status: str, number: int) -> list[dict[str, Any]]:
    """The list, as soon as a query has this status and, unless it is being planned, its report."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        found = queries()
        for query in found:
            if query["number"] == number and query["status"] == status and (HOLD.exists() or query["planningTime"] > 0):
                return found
        time.sleep(0.1)
    raise AssertionError((status, number, queries()))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def kept(name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (FOLDER / name).write_text(text, encoding="utf-8")


def attempt(text: str) -> None:
    try:
        spark.sql(text).collect()
    except Exception as error:
        print(type(error))


builder = (
    SparkSession.builder.config("spark.ui.enabled", "true").config("spark.ui.port", str(PORT))
    .config("spark.ui.showConsoleProgress", "false").config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", str(FOLDER / "events")).config("spark.eventLog.compress", "false")
    .config("spark.eventLog.rolling.enabled", "false")
)  # fmt: skip
builder = pyjoinopt.configure(builder).config("spark.pyjoinopt.python", str(FOLDER / "python"))
spark = builder.getOrCreate()
REST = f"/api/v1/applications/{spark.sparkContext.applicationId}"
kept("empty.html", fetched("/joinorders/"))
for name, rows, keys in (("fact", 2000, 200), ("mid", 200, 20), ("dim", 20, 10)):
    columns = f"CAST(id % {keys} AS int) {name}_f", f"CAST(id AS int) {name}_k", f"CAST(id % 5 AS int) {name}_v"
    spark.range(rows).selectExpr(*columns).coalesce(1).write.parquet(str(FOLDER / name))
    spark.read.parquet(str(FOLDER / name)).createOrReplaceTempView(name)

spark.sql(QUERY.format("fact_k", "mid", "mid_k")).collect()
wait_for("finished", 1)
spark.table("mid").coalesce(1).write.parquet(str(FOLDER / TABLE))
spark.read.parquet(str(FOLDER / TABLE)).selectExpr(f"mid_k `{NAME}`", "mid_f").createOrReplaceTempView("named")
spark.sql(QUERY.format(f"`{NAME}`", "named", f"`{NAME}`")).collect()
attempt(QUERY.format(f"raise_error(\"{NAME}\")", "mid", "mid_k"))
explained = spark.sql(QUERY.format("fact_v", "mid", "mid_k"))
explained.explain()
wait_for("planned", 4)
time.sleep(1.5)
explained.collect()
wait_until(lambda: bool(json.loads(fetched(f"{REST}/joinorders/4"))["joins"]))
explained.collect()  # sets its metrics to 0
spark.sql(f"{QUERY.format('fact_k + 1', 'mid', 'mid_k')} LIMIT 3").collect()

HOLD.touch()
slow = "java_method('java.lang.Thread', 'sleep', 100L)"
thread = threading.Thread(target=attempt, args=(QUERY.format(slow, "mid", "mid_k"),))
thread.start()
kept("planning.json", wait_for("planning", 6))
kept("planning.html", fetched("/joinorders/query/?id=6"))
HOLD.unlink()
kept("running.json", wait_for("running", 6))
kept("running.html", fetched("/joinorders/query/?id=6"))
while thread.is_alive():  # its last job may not have begun yet
    spark.sparkContext.cancelAllJobs()
    thread.join(0.5)
wait_for("failed", 6)
for number in (7, 8):  # the second plan comes from the worker's cache
    spark.sql(QUERY.format("fact_k", "mid", "mid_k")).collect()
    wait_for("finished", number)
INNER = QUERY.format("max(fact_k)", "mid", "mid_k")
spark.sql(f"{QUERY.format('fact_v', 'mid', 'mid_k')} AND fact_k > ({INNER}) - 99").collect()
wait_for("finished", 9)
kept("reports", str(spark.sql("SELECT report FROM joinopt_report()").collect()))
wait_until(lambda: all(json.loads(fetched(f"{REST}/joinorders/{n}"))["joins"] for n in (1, 2, 4, 7, 8)))
time.sleep(1)  # the rows of the last query come after its end, too

kept("list.html", fetched("/joinorders/"))
kept("list.json", fetched(f"{REST}/joinorders"))
kept("page.json", fetched("/joinorders/json/"))
for number in range(1, 10):
    kept(f"query{number}.html", fetched(f"/joinorders/query/?id={number}"))
    kept(f"query{number}.json", fetched(f"{REST}/joinorders/{number}"))
    kept(f"page{number}.json", fetched(f"/joinorders/query/json/?id={number}"))
codes = {path: code(path) for path in (
    f"{REST}/joinorders/99", f"{REST}/joinorders/x", "/joinorders/query/?id=99",
    "/joinorders/query/json/?id=99", "/joinorders/query/?id=x",
    "/joinorders/?joinorders.sort=nothing", "/SQL/execution/?id=8", f"{REST}/sql",
)}  # fmt: skip
kept("codes.json", {path.replace(REST, ""): code for path, code in codes.items()})
spark.conf.set("spark.pyjoinopt.timeout", "1ms")
spark.sql(QUERY.format("fact_v + 7", "mid", "mid_k")).collect()
wait_until(lambda: len(queries()) == 10 and bool(queries()[-1]["outcome"]))
kept("late.json", fetched(f"{REST}/joinorders"))
kept("application", spark.sparkContext.applicationId)
spark.stop()
