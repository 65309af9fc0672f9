"""Times each rule on the TPC-DS plans, and the default batch on the largest of them.

    python -m benchmarks.rules
    python -m benchmarks.rules --benchmark tpch --repeat 30

Each rule runs on the analysed plan of every query, after the rules before it in Spark's order have run to their fixed
point. The column "confirm" is the time of a run that changes nothing. Data is generated on the first run (scale 0.01,
since the size of a plan does not depend on the data).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import machine, measure, session, spread
from pyjoinopt.api.rule_by_rule import context_of, finished
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.catalyst.rules.rule_context import RuleContext
from pyjoinopt.catalyst.rules.spark_batches import SPARK_BATCHES
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from tests.support import tpc

#: One needs statistics of every relation and does nothing without ANALYZE, the other is not a Catalyst rule.
LEFT_OUT = frozenset({"CostBasedJoinReorder", "FinishAnalysis"})


def run_rules(plan: LogicalPlan, context: RuleContext, times: dict[str, list[float]], repeat: int) -> None:
    """Time every rule where it applies; `times` gets milliseconds by name, and by "name confirm"."""
    for batch in SPARK_BATCHES:
        for name, rule in batch.rules:
            if name in LEFT_OUT:
                continue
            for _ in range(batch.rounds):
                runs = []
                for _ in range(repeat):
                    started = perf_counter()
                    after = rule(plan, context)
                    runs.append(1000 * (perf_counter() - started))
                changed = after is not plan
                times[name if changed else f"{name} confirm"].append(min(runs))
                plan = after
                if not changed:
                    break


def row(name: str, times: dict[str, list[float]]) -> str:
    """One line of the table: how often the rule changed a plan, and milliseconds."""
    fired, idle = times.get(name, []), times.get(f"{name} confirm", [])
    cells = f"{len(fired):>7}"
    for values in (fired, idle):
        cells += f"{statistics.median(values):>10.2f}{max(values):>9.2f}" if values else f"{'-':>10}{'-':>9}"
    return f"{name:<36}{cells}"


def main() -> None:
    """Print the table and the figure that has a target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", choices=("tpch", "tpcds"), default="tpcds")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each rule on each plan; the best counts")
    options = parser.parse_args()
    spark = session()
    tpc.register(spark, options.benchmark)
    print(machine(), f"Spark {spark.version}")
    times: dict[str, list[float]] = defaultdict(list)
    largest: tuple[int, int, Any] = (0, 0, None)
    for number, text in tpc.spark_queries(options.benchmark).items():
        df = spark.sql(text)
        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            root = gateway.export.root
            nodes = sum(1 for _ in post_order(root))
            largest = max(largest, (nodes, number, gateway.export), key=lambda item: item[0])
            run_rules(finished(root), context_of(gateway), times, options.repeat)
    print(f"{'rule':<36}{'fired':>7}{'median':>10}{'max':>9}{'confirm':>10}{'max':>9}   (ms a plan)")
    for name in dict.fromkeys(name for batch in SPARK_BATCHES for name, _ in batch.rules if name not in LEFT_OUT):
        print(row(name, times))
    nodes, number, export = largest
    runs = measure(lambda: normalise(export.root, RewriteContext(export.filters_null)).plan, repeat=50)
    print(f"default batch, {options.benchmark} {number} ({nodes} nodes): {spread(runs)}   target 50 ms")


if __name__ == "__main__":
    main()
