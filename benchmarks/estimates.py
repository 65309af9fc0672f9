"""Measures q-errors of estimated rows over every connected sub-plan of the TPC-H and TPC-DS queries, for pyjoinopt and
Spark's CBO.

    python -m benchmarks.estimates
    python -m benchmarks.estimates --benchmarks tpch --queries 2,5 --worst 20

For each join group that the optimizer finds, and each connected set of its relations (at most 500 per group, single
relations included unless they are whole tables), it compares three estimates with the true count:

* `auto`: `statistics="auto"` over files that were never analysed, with footers and samples;
* `footers`: the footers of the files only, and so the formulas alone;
* Spark's CBO: the row count of the optimised sub-plan, over the same files as tables of a catalog, after
  `ANALYZE TABLE ... COMPUTE STATISTICS FOR ALL COLUMNS`, with its cost-based mode on.

The q-error of an estimate is max(estimate / truth, truth / estimate), both at least one row. DuckDB computes the true
counts. They are stored in the user's cache folder, like Spark's estimates; `--anew` computes them again. Sub-plans that
cannot be counted are listed. The first run takes long.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import threading
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from platformdirs import user_cache_dir
from tqdm import tqdm

# Replaces this folder, whose `statistics` would shadow Python's own.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.common import machine, session
from benchmarks.grading import percentile, q_error
from benchmarks.subplans import Group, as_plan, groups_of, is_correlated, normal_plans
from benchmarks.truth import Counter, Unprintable, as_frame, materialise
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.traversal import post_order
from tests.oracles.catalyst.oracle import Oracle
from tests.support import tpc

MOST = 500  # sub-plans of one group
PATIENCE = 30.0  # seconds for one count
PATIENT = ReadDeadline(3_600_000)  # statistics that a first query does not wait for are there for the next one
SHARES = (0.5, 0.9, 0.95, 1.0)
OURS, SPARK = ("auto", "footers"), "spark"


@dataclass
class SubPlan:
    """One set of relations of one group, its true rows and its estimates."""

    query: str
    names: tuple[str, ...]
    truth: float
    estimates: dict[str, float | None]

    def error(self, who: str) -> float | None:
        """The q-error; None without an estimate."""
        estimate = self.estimates.get(who)
        return None if estimate is None else q_error(estimate, self.truth)


def spark_rows(oracle: Oracle, group: Group, relations: int, spark: Any) -> float | None:
    """The row estimate of Spark's cost-based optimizer for a sub-plan; None if it has none."""
    df = as_frame(oracle, group.export, as_plan(group.graph, relations), spark)
    rows = df._jdf.queryExecution().optimizedPlan().stats().rowCount()
    return float(str(rows.get())) if rows.isDefined() else None


# -- stored results ----------------------------------------------------------------------------------------------


class Remembered:
    """Stored results of sub-plans by query text, group and set, in one file per query."""

    def __init__(self, folder: Path, text: str, anew: bool) -> None:
        self._path = folder / f"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.json"
        self._known: dict[str, Any] = {}
        if not anew and self._path.exists():
            self._known = json.loads(self._path.read_text())

    def missing(self, group: Group, what: str) -> bool:
        known = self._known.get(f"{group.key}/{what}", {})
        return any(str(relations) not in known for relations in group.sets)

    def __getitem__(self, key: tuple[Group, str]) -> dict[str, Any]:
        group, what = key
        found: dict[str, Any] = self._known.setdefault(f"{group.key}/{what}", {})
        return found

    def keep(self) -> None:
        """Store the results."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._known))


class Run:
    """One benchmark at one scale in one Spark session."""

    def __init__(self, spark: Any, benchmark: str, scale: float, anew: bool) -> None:
        self.spark = spark
        self.benchmark = benchmark
        self.folder = tpc.parquet_folder(benchmark, scale)
        self.anew = anew
        self.cache = Path(user_cache_dir("pyjoinopt")) / "estimates" / f"{benchmark}-sf{scale:g}-spark{spark.version}"
        self.skipped: Tally[str] = Tally()
        self._analysed = False
        spark.sql(f"CREATE DATABASE {benchmark}")
        spark.sql(f"CREATE DATABASE {benchmark}_analysed")
        for path in sorted(self.folder.glob("*.parquet")):
            for database in (benchmark, f"{benchmark}_analysed"):
                spark.sql(f"CREATE TABLE {database}.{path.stem} USING parquet LOCATION '{path}'")

    def query(self, number: int, text: str) -> list[SubPlan]:
        """All sub-plans of a query."""
        known = Remembered(self.cache, text, self.anew)
        self.spark.catalog.setCurrentDatabase(self.benchmark)
        df = self.spark.sql(text)
        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            normal = normal_plans(gateway.export)
            groups = self._uncorrelated(groups_of(gateway.export, normal, MOST))
            nodes = gateway.export.nodes
            leaves = [node for node in nodes if not node.children]
            for source in OURS:
                leaf = LeafStatistics(gateway.statistics, leaves, source, nodes, None, PATIENT)
                sampled = Samples(gateway.samples, leaf.relation, deadline=PATIENT) if source == "auto" else None
                estimates = PlanEstimates(leaf, nodes, sampled, leaf.applied)
                for plan in normal:
                    estimates.add_ctes(post_order(plan))
                    estimates.prefetch_samples(plan)
                for group in groups:
                    sizes = GraphEstimates(group.graph, [estimates(plan) for plan in group.graph.relations])
                    group.estimates[source] = [sizes.rows(relations) for relations in group.sets]
            for group in groups:
                if known.missing(group, "truth"):
                    self._count(group, known[group, "truth"])
                    known.keep()
        if any(known.missing(group, SPARK) for group in groups):
            self._ask_spark(text, groups, known)
            known.keep()
        return [plan for group in groups for plan in self._sub_plans(number, group, known)]

    def _uncorrelated(self, groups: Iterator[Group]) -> list[Group]:
        kept = []
        for group in groups:
            if is_correlated(group.graph):
                self.skipped["of a correlated subquery"] += len(group.sets)
            else:
                kept.append(group)
        return kept

    def _count(self, group: Group, truths: dict[str, Any]) -> None:
        limits = {"threads": 2, "memory_limit": "5GB", "temp_directory": tempfile.gettempdir()}
        with duckdb.connect(config=limits) as connection, Oracle(bridge_for(self.spark.range(1))) as oracle:
            materialise(oracle, group, connection, self.spark, self.folder)
            counter = Counter(group.graph, connection)
            for relations in group.sets:
                if str(relations) in truths:
                    continue
                timer = threading.Timer(PATIENCE, connection.interrupt)
                timer.start()
                try:
                    truths[str(relations)] = counter.count(relations)
                except Unprintable as error:
                    truths[str(relations)] = f"a predicate with {error} is not translated for DuckDB"
                except (duckdb.InterruptException, duckdb.OutOfMemoryException):
                    truths[str(relations)] = "too many rows to count"
                finally:
                    timer.cancel()

    def _ask_spark(self, text: str, groups: Sequence[Group], known: Remembered) -> None:
        self._analyse()
        self.spark.catalog.setCurrentDatabase(f"{self.benchmark}_analysed")
        df = self.spark.sql(text)
        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            found = groups_of(gateway.export, normal_plans(gateway.export), MOST)
            theirs = [group for group in found if not is_correlated(group.graph)]
            assert [group.key for group in theirs] == [group.key for group in groups], "both catalogs, the same groups"
            for group in theirs:
                answers = known[group, SPARK]
                for relations in group.sets:
                    if str(relations) not in answers:
                        with Oracle(bridge_for(df)) as oracle:
                            answers[str(relations)] = spark_rows(oracle, group, relations, self.spark)

    def _analyse(self) -> None:
        if not self._analysed:
            for path in tqdm(sorted(self.folder.glob("*.parquet")), "ANALYZE", leave=False):
                table = f"{self.benchmark}_analysed.{path.stem}"
                self.spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
            self._analysed = True

    def _sub_plans(self, number: int, group: Group, known: Remembered) -> Iterator[SubPlan]:
        truths, theirs = known[group, "truth"], known[group, SPARK]
        for i, relations in enumerate(group.sets):
            truth = truths[str(relations)]
            if isinstance(truth, str):
                self.skipped[truth] += 1
                continue
            estimates: dict[str, float | None] = {source: group.estimates[source][i] for source in OURS}
            estimates[SPARK] = theirs[str(relations)]
            names = group.graph.names_of(relations)
            yield SubPlan(f"{self.benchmark} {number}", names, truth, estimates)


# -- the table ---------------------------------------------------------------------------------------------------

LABELS = {
    "auto": "pyjoinopt, statistics=auto", "footers": "pyjoinopt, statistics=footers",
    SPARK: "Spark's CBO after ANALYZE",
}  # fmt: skip


def table(plans: Sequence[SubPlan]) -> list[str]:
    """The lines with the q-errors of each estimator over the sub-plans that it has an estimate for."""
    lines = []
    for who, label in LABELS.items():
        errors = sorted(error for plan in plans if (error := plan.error(who)) is not None)
        if errors:
            figures = "".join(_figure(percentile(errors, share), 18 if share == 1 else 12) for share in SHARES)
            missing = len(plans) - len(errors)
            lines.append(f"{label:<32}{figures}{f'   no estimate of {missing}' if missing else ''}")
    return lines


def _figure(x: float, width: int) -> str:
    return f"{x:>{width},.2f}" if x < 100 else f"{x:>{width},.0f}"


def report(benchmark: str, plans: Sequence[SubPlan], skipped: Tally[str], worst: int) -> None:
    """Print all results of one benchmark."""
    both = [plan for plan in plans if plan.estimates[SPARK] is not None]
    parts = {
        "all": plans,
        "of which Spark has an estimate": both if len(both) < len(plans) else [],
        "single relations": [plan for plan in plans if len(plan.names) == 1],
        "joins": [plan for plan in plans if len(plan.names) > 1],
    }
    for name, some in parts.items():
        if some:
            heading = f"{benchmark}: {name}, {len(some):,} sub-plans"
            print(f"\n{heading}\n{'':<32}{'median':>12}{'90 %':>12}{'95 %':>12}{'max':>18}")
            print(*table(some), sep="\n")
    for reason, count in skipped.most_common():
        print(f"left out: {count:,} {reason}")
    for who in LABELS if worst else ():
        listed = sorted(plans, key=lambda plan: -(plan.error(who) or 0.0))[:worst]
        print(f"\nworst of {LABELS[who]}:")
        for plan in listed:
            reported = f"{plan.estimates[who]:>14,.0f} for {plan.truth:>14,.0f}"
            print(f"  {plan.error(who):>12,.1f}  {plan.query:<9} {reported}  {' '.join(plan.names)}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", default="tpch,tpcds", help="separated by commas (default: both)")
    parser.add_argument("--queries", help="numbers, separated by commas (default: all)")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--worst", type=int, default=0, help="list this many of the worst sub-plans")
    parser.add_argument("--anew", action="store_true", help="count again, remembering nothing of earlier runs")
    options = parser.parse_args()
    spark = session(
        **{
            "spark.sql.cbo.enabled": "true",
            "spark.sql.cbo.joinReorder.enabled": "false",
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
        }
    )
    print(f"{machine()}, Spark {spark.version}, scale {options.scale:g}")
    wanted = {int(n) for n in options.queries.split(",")} if options.queries else None
    for benchmark in options.benchmarks.split(","):
        run = Run(spark, benchmark, options.scale, options.anew)
        texts = {n: text for n, text in sorted(tpc.spark_queries(benchmark).items()) if not wanted or n in wanted}
        plans: list[SubPlan] = []
        for number, text in tqdm(texts.items(), benchmark, disable=None):
            plans += run.query(number, text)
        report(benchmark, plans, run.skipped, options.worst)
    spark.stop()


if __name__ == "__main__":
    main()
