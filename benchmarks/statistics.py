"""Measures the cost of row counts: seconds and bytes for the TPC-DS tables, by source, in a first and a second session.

    python -m benchmarks.statistics [--scale 0.1] [--repeat 5] [--formats parquet,orc,csv] [--analyze]

Each source gets one request for all tables, as for a query that reads all of them. "First" has an empty store and a JVM
that has opened no file yet. "Again" is the same session. "Second" is another session, which opens the store and no
file. The target is 5 ms per table in a second session. Spark's own listing of the files is not included; it was made
when the DataFrame was created.

Samples are drawn for a plan that filters each table by a pattern on its first text column (or by a sum of two of its
numbers), without a time limit. "One" is the largest table alone, in a JVM that has drawn no sample before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

# Replaces this folder, whose `statistics` would shadow Python's own.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import pyjoinopt
from benchmarks.common import machine, session
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import normalise
from tests.support import tpc


class Asked:
    """Passes requests to the JVM, and adds up the bytes that were read for them."""

    def __init__(self, gateway: Py4jGateway) -> None:
        self._gateway = gateway
        self.bytes = 0
        self.questions = 0

    def __call__(self, leaves: Any, option: str, **request: Any) -> dict[int, dict[str, Any]]:
        answers = self._gateway.statistics(leaves, option, **request)
        self.bytes += sum(int(answer.get("read", 0)) for answer in answers.values())
        self.questions += 1
        return answers


def gather(df: Any, option: str, store: Store | None) -> tuple[float, int, int, list[Any]]:
    """Milliseconds, bytes and requests to get the statistics of all leaves of a plan, and the statistics."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        ask = Asked(gateway)
        started = perf_counter()
        leaves = [node for node in gateway.export.nodes if not node.children]
        known = LeafStatistics(ask, leaves, option, gateway.export.nodes, store).known()
        return (perf_counter() - started) * 1000, ask.bytes, ask.questions, known


class AskedSamples:
    """The same for samples, without a time limit."""

    def __init__(self, gateway: Py4jGateway) -> None:
        self._gateway = gateway
        self.bytes = 0
        self.kept = 0

    def __call__(self, relations: Any, **request: Any) -> list[dict[str, Any]]:
        answers = self._gateway.samples(relations, **request, deadlineMs=120_000)
        self.bytes += sum(int(answer.get("read", 0)) for answer in answers)
        self.kept += sum(len(answer.get("blob", "")) * 3 // 4 for answer in answers)
        return answers


def draw(df: Any, store: Store) -> tuple[float, int, int, int]:
    """Milliseconds to evaluate the filters of a plan over samples, bytes read, bytes stored, and number of tables."""
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        nodes = gateway.export.nodes
        known = LeafStatistics(gateway.statistics, [n for n in nodes if not n.children], "auto", nodes, store)
        known.known()
        ask = AskedSamples(gateway)
        estimates = PlanEstimates(known, nodes, Samples(ask, known.relation, store))
        plan = normalise(gateway.export.root).plan
        started = perf_counter()
        estimates.prefetch_samples(plan)
        milliseconds = (perf_counter() - started) * 1000
        sampled = sum("sample" in estimates(node).source for node in post_order(plan) if node.kind == "Filter")
        return milliseconds, ask.bytes, ask.kept, sampled


def filtered(spark: Any, path: Path, format: str) -> Any:
    """A table with a filter for which formulas are unreliable."""
    table = spark.read.format(format).load(str(path))
    text = next((name for name, kind in table.dtypes if kind == "string"), None)
    numbers = [name for name, kind in table.dtypes if kind.startswith(("int", "bigint", "decimal", "double"))]
    return table.where(f"{text} like '%a%'" if text else f"{numbers[0]} + {numbers[-1]} > 10").selectExpr("1 as one")


def show_samples(name: str, df: Any, path: Path, repeat: int) -> None:
    """One line of the table of samples."""
    bridge_for(df).forgetSamples()
    first, read, kept, sampled = draw(df, Store(path))
    again = min(draw(df, Store(path))[0] for _ in range(repeat))
    second = []
    for _ in range(repeat):
        bridge_for(df).forgetSamples()
        milliseconds, reread, _, _ = draw(df, Store(path))
        second.append(milliseconds)
        assert reread == 0, "a second session reads no file"
    middle = sorted(second)[len(second) // 2]
    print(f"{name:<19} {sampled:6d} {first:9.1f} {read:10d} {kept:9d} {again:9.1f} {middle:10.1f}")


def all_filtered(spark: Any, folder: Path, format: str) -> Any:
    one, *others = [filtered(spark, path, format) for path in sorted(folder.iterdir())]
    for other in others:
        one = one.unionAll(other)
    return one


def all_tables(spark: Any, folder: Path, format: str) -> Any:
    """One plan that reads every table once."""
    counted = None
    for path in sorted(folder.iterdir()):
        one = spark.read.format(format).load(str(path)).selectExpr("count(*) as rows")
        counted = one if counted is None else counted.unionAll(one)
    return counted


def as_format(spark: Any, folder: Path, format: str, target: Path) -> Path:
    for path in sorted(folder.glob("*.parquet")):
        spark.read.parquet(str(path)).write.format(format).save(str(target / format / path.stem))
    return target / format


def as_catalog(spark: Any, folder: Path) -> Any:
    """Analysed catalog tables over the same files."""
    counted = None
    for path in sorted(folder.glob("*.parquet")):
        spark.sql(f"CREATE TABLE known_{path.stem} USING parquet LOCATION '{path}'")
        spark.sql(f"ANALYZE TABLE known_{path.stem} COMPUTE STATISTICS FOR ALL COLUMNS")
        one = spark.table(f"known_{path.stem}").selectExpr("count(*) as rows")
        counted = one if counted is None else counted.unionAll(one)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--formats", default="parquet,orc,csv", help="the tables are first written as these, if more")
    parser.add_argument("--analyze", action="store_true", help="ANALYZE all columns too, which takes much longer")
    arguments = parser.parse_args()
    source = tpc.parquet_folder("tpcds", arguments.scale)
    with tempfile.TemporaryDirectory() as scratch:
        spark = session()
        parquet = Path(scratch, "parquet")
        parquet.mkdir()
        for path in source.glob("*.parquet"):
            (parquet / path.name).symlink_to(path)
        count = len(list(parquet.iterdir()))
        size = sum(path.stat().st_size for path in parquet.iterdir())
        print(f"{machine()}, Spark {spark.version}, TPC-DS at scale {arguments.scale:g}")
        print(f"{count} tables, {size / 1e6:.1f} MB as Parquet")
        bridge_for(spark.range(1))
        spark.range(1).optimize_joins()
        largest = max(parquet.iterdir(), key=lambda path: path.stat().st_size)
        plans = [("footers", "parquet", "footers", all_tables(spark, parquet, "parquet"))]
        formats = arguments.formats.split(",")
        for format, name in (("orc", "footers"), ("csv", "auto")):
            if format not in formats:
                continue
            folder = as_format(spark, parquet, format, Path(scratch))
            label = "footers" if name == "footers" else "row width"
            plans.append((label, format, name, all_tables(spark, folder, format)))
        if arguments.analyze:
            started = perf_counter()
            plans.append(("catalog", "parquet", "catalog", as_catalog(spark, parquet)))
            print(f"ANALYZE ... FOR ALL COLUMNS took {perf_counter() - started:.1f} s")
        plans.append(("size", "parquet", "none", plans[0][3]))
        print("source     format    first ms     bytes  again ms  second ms  a table   provenance")
        for source_name, format, option, df in plans:
            path = Path(scratch, f"{source_name}-{format}.sqlite")
            first, read, _, known = gather(df, option, Store(path))
            names = {one.source for _, one in known}
            kept = Store(path)
            again = min(gather(df, option, kept)[0] for _ in range(arguments.repeat))
            second = []
            for _ in range(arguments.repeat):
                milliseconds, reread, _, _ = gather(df, option, Store(path))
                second.append(milliseconds)
                assert reread == 0, "a second session reads no file"
            middle = sorted(second)[len(second) // 2]
            figures = f"{first:9.1f} {read:9d} {again:9.1f} {middle:10.1f} {middle / count:8.2f}"
            print(f"{source_name:<10} {format:<8} {figures}   {', '.join(sorted(names))}")
        print("samples             tables  first ms      bytes      kept  again ms  second ms")
        for name, df in (
            (f"one, {largest.stem}", filtered(spark, largest, "parquet")),
            *((f"all, {format}", all_filtered(spark, Path(scratch, format), format)) for format in formats),
        ):
            show_samples(name, df, Path(scratch, f"samples-{name}.sqlite"), arguments.repeat)
        if arguments.analyze:
            path = Path(scratch, "analyze.sqlite")
            started = perf_counter()
            for file in parquet.iterdir():
                spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)
            names = sorted(file.stem for file in parquet.iterdir())
            done = pyjoinopt.analyze(spark, names, store=str(path), progress=False)
            kept = path.stat().st_size / 1e6
            seconds = perf_counter() - started
            print(f"pyjoinopt.analyze: {len(done)} tables, all columns, {seconds:.1f} s, a store of {kept:.1f} MB")
        spark.stop()


if __name__ == "__main__":
    main()
