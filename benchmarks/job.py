"""Grades the orders for the Join Order Benchmark by true row counts, without its data.

    python benchmarks/job.py --data DIR
    python benchmarks/job.py --data DIR --no-histograms --worst 10

Empty tables get the published statistics of the 2013 IMDB snapshot as catalog statistics. Each query is planned with
them, its join group is searched exactly for the least C_out by our estimates, and the order is graded by its true C_out
relative to that of the best order (see `grading`). A second run adds the true number of rows of each single table after
its filters, as a sample or feedback would. The remaining error is that of the join estimates.

The script also runs the default search, with its budget of pairs, once for C_out and once for the default cost model,
and grades both by C_out. The latter is what users get. With the true counts of all sets it shows by how many rows the
default model's preferences differ from those of C_out. Nothing is removed from the join graph for the comparison: an
order may join tables that only implied equalities connect, or tiny tables without any. The file has no counts of such
sets (`TrueRows` derives them). Then the script grades the orders of the default model and search by that model with
true counts. Sides of up to ten megabytes count as broadcast.

DIR contains two files. The query texts and all true counts are those of the Cardinality Estimation Benchmark (CEB; MIT
licence, https://github.com/learnedsystems/CEB), converted to this format:

`job.jsonl.gz`, one object per line:

    name, sql
    tables      {alias: table}
    joins       [[alias, alias, condition], ...]
    cards       {"a,b,c": rows of the join of these aliases after filters, aliases sorted}, for every set that is
                connected by `joins`, including single aliases
    pg_est      (optional) PostgreSQL's estimates of the same sets

`imdb_statistics.json`: {table: {"rows", "columns": {name: {"type", "distinct", "nulls", "min", "max", "deciles"}}}},
all but the type optional; deciles are eleven bounds of ten bins with equally many rows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from operator import or_
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import machine, session
from benchmarks.grading import as_written, c_out, cheapest, percentile, q_error, share_of_best, summary, times_worse
from benchmarks.injection import create_table
from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.cost import CostModel, COut, SparkCost
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, Size
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.plan.facts.never_null import never_null_above
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from pyjoinopt.util.bitset import singletons

#: Enough for an exact search of any of the queries.
BUDGET = 50_000_000
#: Bytes that Spark broadcasts.
THRESHOLD = 10 << 20
_FROM = re.compile(r"\bFROM\b(.*?)\bWHERE\b", re.S)


@dataclass(frozen=True)
class Query:
    """A query and its true rows: `cards` by set of FROM positions."""

    name: str
    sql: str
    aliases: tuple[str, ...]
    cards: dict[int, float]
    estimated: dict[int, float]

    @cached_property
    def least(self) -> float:
        """The C_out of the best order."""
        return cheapest(self.cards)


@dataclass(frozen=True)
class Resolved:
    """A query as Spark has resolved it, with the statistics of its tables. It can be planned again without Spark."""

    query: Query
    export: Export
    leaf: Any

    def planned(self) -> Planned:
        """Its join group, with estimates by the estimator as it is now."""
        return planned(self.query, self.export, self.leaf)


@dataclass(frozen=True)
class Planned:
    """The join group of a query in the optimizer.

    Attributes:
        query: the query.
        graph: its join graph.
        statistics: of its tables, with their filters.
        needed, never_null: what is read above its joins, and which columns are not NULL in the result; for estimates.
    """

    query: Query
    graph: JoinGraph
    statistics: list[RelationStatistics]
    needed: int | None = None
    never_null: int = 0

    def known_counts(self) -> list[RelationStatistics]:
        """The statistics of its tables, with the true number of rows after filters."""
        cards = self.query.cards
        return [s.with_rows(max(1.0, cards[1 << v])) for v, s in enumerate(self.statistics)]

    def estimates(self, statistics: Sequence[RelationStatistics]) -> GraphEstimates:
        """Estimates as the optimizer makes them; what can be broadcast is decided by the expected size."""
        return GraphEstimates(self.graph, statistics, self.needed, self.never_null, buildable=_built)


def read_queries(data: Path) -> list[Query]:
    """The queries of `job.jsonl.gz`."""
    with gzip.open(data / "job.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [query(json.loads(line)) for line in lines]


def query(entry: dict[str, Any]) -> Query:
    """One line of the file. The tables of FROM are numbered from left to right, as the join graph numbers them."""
    found = _FROM.search(entry["sql"])
    if found is None:
        raise ValueError(f"{entry['name']}: no FROM ... WHERE")
    aliases = tuple(part.split()[-1] for part in found[1].split(","))
    bit = {alias: 1 << i for i, alias in enumerate(aliases)}

    def numbered(counts: dict[str, float]) -> dict[int, float]:
        return {sum(bit[alias] for alias in key.split(",")): float(rows) for key, rows in counts.items()}

    return Query(entry["name"], entry["sql"], aliases, numbered(entry["cards"]), numbered(entry.get("pg_est", {})))


def resolve(spark: Any, requested: Query) -> Resolved:
    """Let Spark resolve a query, and take the statistics of its tables from the catalog."""
    df = spark.sql(requested.sql)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        leaves = [node for node in gateway.export.nodes if not node.children]
        leaf = LeafStatistics(gateway.statistics, leaves, "catalog")
        for node in leaves:
            leaf(node)
        return Resolved(requested, gateway.export, leaf)


def plan(spark: Any, requested: Query) -> Planned:
    """Let Spark resolve a query, and return its join group with the statistics of the catalog."""
    return resolve(spark, requested).planned()


def planned(requested: Query, export: Export, leaf: Any) -> Planned:
    """The join group of an export; `leaf` returns the statistics of its tables."""
    estimates = PlanEstimates(leaf, export.nodes)
    root: LogicalPlan = normalise(export.root, RewriteContext(export.filters_null)).plan
    (region,) = [r for r in find_groups(root).groups.values() if len(r.items) == len(requested.aliases)]
    graph, _ = build_graph(region, {})
    statistics = [estimates(relation) for relation in graph.relations]
    top = id(region.top)
    return Planned(requested, graph, statistics, needed_columns(root)[top], never_null_above(root)[top])


class TrueRows:
    """Callable: a set of tables -> its true rows, also for sets without a count.

    Written predicates connect the tables of a set with a count. Of other sets there are two kinds:

    * only implied equalities connect them, such as two tables that refer to the same films, without the films. The
      rows are those of the set with the hub (the films), divided by the selectivity of the hub's filters. Of several
      hubs the one is taken that gives the fewest rows;
    * nothing connects them: the rows are the product of those of the connected parts.
    """

    def __init__(self, found: Planned, counts: Mapping[int, float]) -> None:
        self._rows = dict(counts)
        self._graph = found.graph
        self._selectivity = [
            min(1.0, max(1.0, counts[1 << v]) / max(1.0, s.base_rows)) for v, s in enumerate(found.statistics)
        ]

    def __call__(self, tables: int) -> float:
        rows = self._rows.get(tables)
        if rows is None:
            parts = self._parts(tables)
            rows = math.prod(map(self, parts)) if len(parts) > 1 else self._with_hubs(tables)
            self._rows[tables] = rows
        return rows

    def _parts(self, tables: int) -> list[int]:
        parts: list[int] = []
        for table in singletons(tables):
            joined = [part for part in parts if self._graph.connected(part, table)]
            parts = [part for part in parts if part not in joined] + [reduce(or_, joined, table)]
        return parts

    def _with_hubs(self, tables: int) -> float:
        others = [v for v in range(len(self._graph)) if not tables >> v & 1]
        for count in range(1, len(others) + 1):
            found = []
            for hubs in combinations(others, count):
                rows = self._rows.get(tables | sum(1 << v for v in hubs))
                if rows is not None:
                    found.append(rows / math.prod(self._selectivity[v] for v in hubs))
            if found:
                return min(found)
        raise KeyError(f"no count of a set with these tables: {tables:b}")


class _Given:
    """Given row counts for the search; the width of a row is that of the estimates."""

    def __init__(self, estimates: GraphEstimates, counts: Callable[[int], float]) -> None:
        self._estimates, self._counts = estimates, counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimates, name)

    def size(self, relations: int, added: int = 0) -> Size:
        rows = max(1.0, self._counts(relations))
        bytes = rows * self._estimates.width(relations)
        return Size(rows, bytes, _built(relations, bytes))


def _built(relations: int, bytes: float, estimates: object = None) -> int:
    return BROADCAST_HASH if bytes <= THRESHOLD else NO_BUILD


def grade(found: Planned, statistics: Sequence[RelationStatistics]) -> float:
    """The true C_out of our order divided by the least, with these statistics of the single tables."""
    return _graded(found, found.estimates(statistics))


def grade_by_default(found: Planned, cost: CostModel, statistics: Sequence[RelationStatistics]) -> float:
    """The grade of the order of the default search, with these statistics of the single tables."""
    tree = search(found.graph, found.estimates(statistics), cost).tree
    return _worse_than_best(found, tree)


def grade_given(found: Planned, counts: dict[int, float]) -> float:
    """The grade with given row counts of all sets."""
    return _graded(found, _Given(found.estimates(found.statistics), TrueRows(found, counts)))


def grade_model(found: Planned) -> float:
    """The grade of the order that the default model prefers with the true counts of all sets."""
    return _worse_than_best(found, search(found.graph, _truth(found), SparkCost(), BUDGET).tree)


def grade_written(found: Planned) -> float:
    """The grade of the written order, which is that of Spark without its CBO."""
    return _worse_than_best(found, _written(found))


def _written(found: Planned) -> JoinTree:
    """In the order of FROM, as far as written predicates connect its tables."""
    return as_written(range(len(found.graph)), lambda joined, table: joined | table in found.query.cards)


def _worse_than_best(found: Planned, tree: JoinTree) -> float:
    return times_worse(c_out(tree, TrueRows(found, found.query.cards)), found.query.least)


def _graded(found: Planned, estimates: Any) -> float:
    result = search(found.graph, estimates, COut(), BUDGET)
    if result.strategy != "exact":
        raise RuntimeError(f"{found.query.name}: not searched exactly")
    return _worse_than_best(found, result.tree)


def grade_by_model(found: Planned, statistics: Sequence[RelationStatistics]) -> float:
    """The cost of the default search's order divided by the least cost, under the default model with true counts."""
    return _graded_by_model(found, search(found.graph, found.estimates(statistics), SparkCost()).tree)


def grade_written_by_model(found: Planned) -> float:
    """The same for the written order."""
    return _graded_by_model(found, _written(found))


def _graded_by_model(found: Planned, tree: JoinTree) -> float:
    truth = _truth(found)
    best = search(found.graph, truth, SparkCost(), BUDGET)
    return JoinCosts(found.graph, truth, SparkCost()).order(tree) / best.cost


def _truth(found: Planned) -> Any:
    return _Given(found.estimates(found.statistics), TrueRows(found, found.query.cards))


def q_errors(found: Planned, statistics: Sequence[RelationStatistics]) -> list[float]:
    """The q-errors of the estimates of all sets."""
    estimates = found.estimates(statistics)
    return [q_error(estimates.rows(tables), rows) for tables, rows in found.query.cards.items()]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with job.jsonl.gz and imdb_statistics.json")
    parser.add_argument("--no-histograms", action="store_true", help="inject no deciles")
    parser.add_argument("--worst", type=int, default=0, help="list this many of the worst queries")
    options = parser.parse_args()
    queries = read_queries(options.data)
    tables = json.loads((options.data / "imdb_statistics.json").read_text(encoding="utf-8"))
    spark = session()
    for name, known in tables.items():
        create_table(spark, name, known, histograms=not options.no_histograms)
    started = time.perf_counter()
    found = [plan(spark, requested) for requested in queries]
    print(f"{len(found)} queries; {machine()}; resolved and exported in {time.perf_counter() - started:.1f} s\n")
    report(found, options.worst)
    spark.stop()


def report(found: list[Planned], worst: int) -> None:
    """Plan, grade and print."""
    runs = {
        "as written": [grade_written(q) for q in found],
        "column statistics alone": [grade(q, q.statistics) for q in found],
        "the same, default search": [grade_by_default(q, COut(), q.statistics) for q in found],
        "the same, default search and model": [grade_by_default(q, SparkCost(), q.statistics) for q in found],
        "true counts of single tables added": [grade(q, q.known_counts()) for q in found],
        "true counts, default search and model": [grade_by_default(q, SparkCost(), q.known_counts()) for q in found],
        "true counts of all sets, default model": [grade_model(q) for q in found],
    }
    if all(q.query.estimated.keys() >= q.query.cards.keys() for q in found):
        runs["PostgreSQL's estimates"] = [grade_given(q, q.query.estimated) for q in found]
    _show("C_out / optimum", runs)
    by_model = {
        "as written": [grade_written_by_model(q) for q in found],
        "column statistics alone": [grade_by_model(q, q.statistics) for q in found],
        "true counts of single tables added": [grade_by_model(q, q.known_counts()) for q in found],
    }
    print()
    _show("default model's cost / least", by_model)
    print(f"\n{'q-error of all sets':<38}{'median':>10}{'p90':>10}{'p95':>12}{'max':>14}")
    for name, of in (
        ("column statistics alone", lambda q: q_errors(q, q.statistics)),
        ("true counts of single tables added", lambda q: q_errors(q, q.known_counts())),
        ("PostgreSQL's estimates", lambda q: [q_error(q.query.estimated[s], n) for s, n in q.query.cards.items()]),
    ):
        if name in runs:
            errors = sorted(error for q in found for error in of(q))
            figures = [percentile(errors, share) for share in (0.5, 0.9, 0.95, 1.0)]
            print(f"{name:<38}{''.join(_figure(x, w) for x, w in zip(figures, (10, 10, 12, 14)))}")
    for name, factors in runs.items() if worst else ():
        listed = sorted(zip(factors, (q.query.name for q in found)), reverse=True)[:worst]
        print(f"\nworst, {name}: " + ", ".join(f"{query} {factor:,.1f}" for factor, query in listed))


def _show(what: str, runs: dict[str, list[float]]) -> None:
    print(f"{what:<38}{'geo-mean':>10}{'median':>10}{'p90':>12}{'max':>14}{'optimal':>10}")
    for name, factors in runs.items():
        figures = "".join(_figure(x, w) for x, w in zip(summary(factors), (10, 10, 12, 14)))
        print(f"{name:<38}{figures}{share_of_best(factors):>10.0%}")


def _figure(x: float, width: int) -> str:
    return f"{x:>{width},.2f}" if x < 100 else f"{x:>{width},.0f}"


if __name__ == "__main__":
    main()
