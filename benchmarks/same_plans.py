"""Compares two checkouts: plans, hints, estimates and reports, query by query, and planning time.

    python -m benchmarks.same_plans OLD NEW
    python -m benchmarks.same_plans OLD NEW --job DIR --generated 300

OLD and NEW are folders with a `pyjoinopt` package and its jar. The queries are those of TPC-H and TPC-DS, random ones,
and, with `--job`, those of the Join Order Benchmark over empty tables with published statistics (see `benchmarks.job`).
Each is planned by `optimize_joins` and in an enabled session. Statistics are those of file footers or of the catalog,
so the result does not depend on samples or their timing.

With `--ignore-wording` sentences for people are left out: reasons and advice, and of the joins that were avoided only
their number is compared.

A refactoring must not change plans, so the exit code is 1 if anything differs, and the first differences are printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Entries of a report that are times, or name a query of this run.
UNSTABLE = frozenset({
    "seconds", "planning_seconds", "search_seconds", "number", "handle", "milliseconds", "background_bytes",
})  # fmt: skip
SETTINGS = {
    "spark.pyjoinopt.statistics": "footers",
    "spark.pyjoinopt.statisticsMs": "60000",
    "spark.pyjoinopt.store": "off",
    "spark.pyjoinopt.timeout": "60s",
    "spark.pyjoinopt.searchSeconds": "60",
}
#: Entries of a report that are sentences, and those that are lists of sentences.
_WORDING = frozenset({"reason", "advice", "hint"})
_SENTENCES = frozenset({"eliminated_outer_joins", "spared_joins", "notes"})
#: Differences that are printed.
_SHOWN = 5
#: The number of plannings, of which the fastest counts.
_REPEATED = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("--job", type=Path, help="the folder that benchmarks/job.py describes")
    parser.add_argument("--ignore-wording", action="store_true", help="do not compare sentences for people")
    parser.add_argument("--generated", type=int, default=200, help="how many random queries of each kind (200)")
    parser.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect is not None:
        _collect(options.new.resolve(), options.collect, options.generated, options.job)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = [
            _of_checkout(path, Path(folder) / f"{number}.jsonl", options)
            for number, path in enumerate((options.old, options.new))
        ]
    if options.ignore_wording:
        found = [{name: _without_wording(row) for name, row in rows.items()} for rows in found]
    return _compare(*found)


def _without_wording(value: Any) -> Any:
    """A result without the sentences for people; of a list of sentences only the number is left."""
    if isinstance(value, dict):
        return {
            key: len(part) if key in _SENTENCES else _without_wording(part)
            for key, part in value.items()
            if key not in _WORDING
        }
    return [_without_wording(part) for part in value] if isinstance(value, list) else value


def _of_checkout(checkout: Path, out: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The results of a process that runs the package of one checkout."""
    if not (checkout / "pyjoinopt" / "__init__.py").exists():
        raise SystemExit(f"{checkout} holds no pyjoinopt package; give the folder of a checkout")
    command = [sys.executable, "-m", "benchmarks.same_plans", str(checkout), str(checkout), "--collect", str(out)]
    command += ["--generated", str(options.generated)] + (["--job", str(options.job.resolve())] if options.job else [])
    subprocess.run(command, check=True, cwd=ROOT)
    return {row["query"]: row for row in map(json.loads, out.read_text().splitlines())}


def _compare(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> int:
    different = [name for name in old if _lines(old[name]) != _lines(new.get(name, {}))]
    different += [name for name in new if name not in old]
    for name in different[:_SHOWN]:
        print(f"== {name}")
        lines = unified_diff(_lines(old.get(name, {})), _lines(new.get(name, {})), "old", "new", lineterm="", n=1)
        print("\n".join(list(lines)[:40]))
    times = [[row["ms"] for row in rows.values() if row.get("ms") is not None] for rows in (old, new)]
    print(f"{len(old)} queries, {len(different)} planned in another way")
    print("planning: median {:.1f} -> {:.1f} ms, in all {:.1f} -> {:.1f} s".format(
        *(statistics.median(t) for t in times), *(sum(t) / 1000 for t in times)))  # fmt: skip
    return int(bool(different))


def _lines(row: dict[str, Any]) -> list[str]:
    return json.dumps({key: value for key, value in row.items() if key != "ms"}, indent=1, sort_keys=True).splitlines()


# -- one checkout --------------------------------------------------------------------------------------------------


def _collect(checkout: Path, out: Path, generated: int, job: Path | None) -> None:
    sys.path.insert(0, str(checkout))
    import pyjoinopt

    assert pyjoinopt.__file__ is not None and Path(pyjoinopt.__file__).is_relative_to(checkout), pyjoinopt.__file__
    sys.path.pop(0)  # the module that runs the queries is from this checkout, and imports no other part of the package
    spark = _spark(checkout)
    with out.open("w") as lines:
        for name, plain, text in _queries(spark, generated, job):
            lines.write(json.dumps({"query": name, **_planned(plain, text)}) + "\n")
    spark.stop()


def _spark(checkout: Path) -> Any:
    java = subprocess.run(
        [sys.executable, "-m", "pyjoinopt", "java"], cwd=checkout, check=True, capture_output=True, text=True
    )
    os.environ["JAVA_HOME"] = java.stdout.strip()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4", "spark.sql.adaptive.enabled": "false", "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(), "spark.log.level": "ERROR",
    }  # fmt: skip
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def _queries(spark: Any, generated: int, job: Path | None) -> Iterator[tuple[str, Any, str]]:
    """(name, session, SQL) of all queries."""
    from tests.support import tpc

    for benchmark in ("tpch", "tpcds"):
        own = _session(spark)
        tpc.register(own, benchmark)
        for number, text in sorted(tpc.spark_queries(benchmark).items()):
            yield f"{benchmark} {number}", own, text
    yield from _random_queries(_session(spark), generated)
    if job is not None:
        yield from _job_queries(_session(spark), job)


def _random_queries(own: Any, count: int) -> Iterator[tuple[str, Any, str]]:
    from tests.support import sampledata
    from tests.support.generator import Generator, row_counter
    from tests.support.hazard_queries import HazardGenerator
    from tests.support.hazards import create_hazards, duckdb_hazards, hazard_tables
    from tests.support.render_sql import to_sql

    folder = Path(tempfile.gettempdir()) / "pyjoinopt-same-plans"  # one for both checkouts, since reports contain paths
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tables = sampledata.sample_tables(1)
    sampledata.write_parquet(tables, folder)
    sampledata.register(own, tables, folder)
    usual = Generator(1, row_counter(sampledata.duckdb_database(tables)))
    hazards = hazard_tables(1)
    create_hazards(own, hazards, str(folder / "hazards"))
    hazardous = HazardGenerator(1, row_counter(duckdb_hazards(hazards)))
    for number in range(count):
        yield f"random {number}", own, to_sql(usual.query(number))
    from tests.support.hazards import DATABASE

    own.sql(f"USE {DATABASE}")
    for number in range(count):
        yield f"hazard {number}", own, to_sql(hazardous.query(number))


def _job_queries(own: Any, folder: Path) -> Iterator[tuple[str, Any, str]]:
    from benchmarks.injection import create_table

    for table, known in json.loads((folder / "imdb_statistics.json").read_text()).items():
        create_table(own, table, known)
    own.conf.set("spark.pyjoinopt.statistics", "catalog")
    with gzip.open(folder / "job.jsonl.gz", "rt") as lines:
        for query in map(json.loads, lines):
            yield f"job {query['name']}", own, query["sql"]


def _session(spark: Any) -> Any:
    own = spark.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own


def _planned(own: Any, text: str) -> dict[str, Any]:
    """Plans and reports of one query, from a call and from an enabled session."""
    import pyjoinopt

    try:
        own.conf.set("spark.pyjoinopt.enabled", "false")
        called = own.sql(text).optimize_joins()
        report = called.join_report()
        again = [pyjoinopt.join_report(own.sql(text)).seconds for _ in range(_REPEATED)]
        by_call = [_plan(called), _stable(report.to_dict())]
        pyjoinopt.enable(own)
        before = len(pyjoinopt.last_reports(own))
        by_session = _plan(own.sql(text))
        reports = [_stable(one.to_dict()) for one in pyjoinopt.last_reports(own)[before:]]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    return {"call": by_call, "session": [by_session, reports], "ms": 1000 * min(again)}


def _plan(df: Any) -> list[str]:
    """The optimised plan with its hints; identifiers are numbered by their first use."""
    numbers: dict[str, str] = {}
    text = df._jdf.queryExecution().optimizedPlan().toString()
    found = re.sub(r"#\d+", lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), text)
    return [re.sub(r"plan_id=\d+", "plan_id", line) for line in found.splitlines()]


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(item) for key, item in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return [_stable(item) for item in value]
    return re.sub(r"#\d+", "#", value) if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
