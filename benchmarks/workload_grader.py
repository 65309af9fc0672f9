"""Estimates and true counts of every sub-plan of the queries of a workload."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir
from tqdm import tqdm

from benchmarks.grading import q_error
from benchmarks.subplans import Group, as_plan, groups_of, is_correlated, normal_plans
from benchmarks.truth import as_frame, count_group
from benchmarks.workloads import Workload
from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Gateway, Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import ProvedKeys
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples, SamplesOfPlan
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.optimizer.group_synopses import synopses_of
from pyjoinopt.optimizer.join_rows import join_rows
from pyjoinopt.optimizer.semi_join_samples import own_rows
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.oracles.catalyst.oracle import Oracle

#: Statistics that a first query does not wait for are there for the next one.
PATIENT = ReadDeadline(3_600_000)
#: The estimators: two settings of `statistics`, and Spark's CBO.
OURS, SPARK = ("auto", "footers"), "spark"
_CORRELATED = "it belongs to a correlated subquery"


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class NotCounted:
    """A sub-plan without a true count, and the reason."""

    query: str
    names: tuple[str, ...]
    reason: str


@dataclass
class Grades:
    """The sub-plans of a workload.

    Attributes:
        plans: those with a true count.
        not_counted: the others.
        without_joins: queries in which no join group was found.
    """

    plans: list[SubPlan] = field(default_factory=list)
    not_counted: list[NotCounted] = field(default_factory=list)
    without_joins: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CountedQuery:
    """A query and the true counts of its sub-plans, whose estimates by footers can be made again without Spark.

    Attributes:
        name: of the query.
        export: its plan.
        plans: it and its subqueries, in the form in which the optimizer looks for join groups.
        groups: their join groups.
        leaf: statistics of the leaves by the footers of the files; all are known.
        truths: of each group, as `StoredResults` has them.
    """

    name: str
    export: Export
    plans: Sequence[LogicalPlan]
    groups: Sequence[Group]
    leaf: LeafStatistics
    truths: Sequence[dict[str, Any]]

    def errors(self) -> list[float]:
        """The q-errors of the sub-plans with a true count, by the estimator as it is now."""
        estimates = PlanEstimates(self.leaf, self.export.nodes, None, self.leaf.applied)
        for plan in self.plans:
            estimates.add_ctes(post_order(plan))
        return [
            q_error(rows, truths[str(relations)])
            for group, truths in zip(self.groups, self.truths)
            for relations, rows in zip(group.sets, _rows(group, estimates))
            if not isinstance(truths[str(relations)], str)
        ]


class StoredResults:
    """Stored results of sub-plans by query text, group and set, in one file per query."""

    def __init__(self, folder: Path, text: str, anew: bool) -> None:
        self._path = folder / f"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.json"
        self._known: dict[str, Any] = {}
        if not anew and self._path.exists():
            self._known = json.loads(self._path.read_text())

    def __getitem__(self, key: tuple[Group, str]) -> dict[str, Any]:
        """Set as text -> result; results may be added."""
        group, what = key
        found: dict[str, Any] = self._known.setdefault(f"{group.key}/{what}", {})
        return found

    def save(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._known))


class WorkloadGrader:
    """Grades the queries of a workload in one Spark session.

    Args:
        spark: the active session; gets two databases with the tables.
        workload: tables and queries.
        most: sub-plans of one group.
        seconds: at most for one count, and for one relation that Spark computes.
        anew: whether to ignore stored results.
        cache: folder for true counts and Spark's estimates; by default in the user's cache folder.

    Raises:
        WorkloadError: a query does not parse, or does not fit the tables.
    """

    def __init__(
        self,
        spark: Any,
        workload: Workload,
        most: int = 500,
        seconds: float = 30.0,
        anew: bool = False,
        cache: Path | None = None,
    ) -> None:
        self._spark = spark
        self._workload = workload
        self._most = most
        self._seconds = seconds
        self._anew = anew
        cache = cache or Path(user_cache_dir("pyjoinopt")) / "estimates"
        self._cache = cache / f"{workload.name}-{workload.fingerprint()}-spark{spark.version}"
        self._analysed = False
        workload.register(spark, workload.name)
        workload.register(spark, self._with_statistics)
        spark.catalog.setCurrentDatabase(workload.name)
        workload.check_queries(spark)

    @property
    def _with_statistics(self) -> str:
        return f"{self._workload.name}_analysed"

    def grades(self) -> Grades:
        """The grades of all queries."""
        found = Grades()
        for name, text in tqdm(self._workload.queries.items(), self._workload.name, disable=None):
            self._add_query(name, text, found)
        return found

    def by_footers(self) -> Iterator[CountedQuery]:
        """The queries whose sub-plans have true counts; what no earlier run has counted is counted now."""
        for name, text in tqdm(self._workload.queries.items(), self._workload.name, disable=None):
            known = StoredResults(self._cache, text, self._anew)
            self._spark.catalog.setCurrentDatabase(self._workload.name)
            df = self._spark.sql(text)
            with Py4jGateway(bridge_for(df), df._jdf, optimizing=True) as gateway:
                export, normal = gateway.export, normal_plans(gateway.export)
                groups = [g for g in groups_of(export, normal, self._most) if not is_correlated(g.graph)]
                self._count(groups, known)
                leaf = LeafStatistics(gateway.statistics, _leaves(export), "footers", export.nodes, None, PATIENT)
                for plan in normal:
                    leaf.use_partition_filters(list(post_order(plan)))
                counted = CountedQuery(name, export, normal, groups, leaf, [known[g, "truth"] for g in groups])
                counted.errors()  # requests the statistics of the leaves
            yield counted

    def _count(self, groups: Iterable[Group], known: StoredResults) -> None:
        for group in groups:
            truths = known[group, "truth"]
            if any(str(relations) not in truths for relations in group.sets):
                count_group(group, self._spark, self._workload.files(), truths, self._seconds)
                known.save()

    def _add_query(self, name: str, text: str, grades: Grades) -> None:
        known = StoredResults(self._cache, text, self._anew)
        self._spark.catalog.setCurrentDatabase(self._workload.name)
        df = self._spark.sql(text)
        with Py4jGateway(bridge_for(df), df._jdf, optimizing=True) as gateway:
            normal = normal_plans(gateway.export)
            found = list(groups_of(gateway.export, normal, self._most))
            groups = [group for group in found if not is_correlated(group.graph)]
            for source in OURS:
                _estimate(gateway, gateway.export, normal, groups, source)
            self._count(groups, known)
        if any(_without_result(group, known) for group in groups):
            self._add_spark(text, groups, known)
            known.save()
        if not found:
            grades.without_joins.append(name)
        for group in found:
            if group in groups:
                _add(name, group, known, grades)
            else:
                names = map(group.graph.names_of, group.sets)
                grades.not_counted += [NotCounted(name, each, _CORRELATED) for each in names]

    def _add_spark(self, text: str, groups: Sequence[Group], known: StoredResults) -> None:
        """Add the estimates of Spark's cost-based optimizer for all sets that have a true count."""
        self._analyse()
        self._spark.catalog.setCurrentDatabase(self._with_statistics)
        df = self._spark.sql(text)
        with Py4jGateway(bridge_for(df), df._jdf, optimizing=True) as gateway:
            found = groups_of(gateway.export, normal_plans(gateway.export), self._most)
            theirs = [group for group in found if not is_correlated(group.graph)]
            assert [group.key for group in theirs] == [group.key for group in groups], "both catalogs, the same groups"
            for group in theirs:
                for relations in _without_result(group, known):
                    with Oracle(self._spark) as oracle:
                        known[group, SPARK][str(relations)] = _spark_rows(oracle, group, relations, self._spark)

    def _analyse(self) -> None:
        if not self._analysed:
            for table in tqdm(self._workload.tables, "ANALYZE", leave=False, disable=None):
                name = f"{self._with_statistics}.`{table}`"
                self._spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
            self._analysed = True


def _estimate(
    gateway: Gateway, export: Export, plans: Iterable[LogicalPlan], groups: Iterable[Group], source: str
) -> None:
    """Add the estimates by one setting of `statistics` to groups."""
    leaf = LeafStatistics(gateway.statistics, _leaves(export), source, export.nodes, None, PATIENT)
    several = source == "auto"
    samples = Samples(partial(gateway.samples, evaluateMs=60_000), leaf.relation, deadline=PATIENT) if several else None
    keys = ProvedKeys(leaf, leaf.relation, gateway.keys, deadline=PATIENT) if several else None
    estimates = PlanEstimates(keys or leaf, export.nodes, samples, leaf.applied)
    for plan in plans:
        nodes = list(post_order(plan))
        estimates.add_ctes(nodes)
        leaf.use_partition_filters(nodes, SamplesOfPlan(samples, plan) if samples else None)
        if keys is not None:
            keys.prove(nodes)
        estimates.prefetch_samples(plan)
    for group in groups:
        group.estimates[source] = _rows(group, estimates)


def _leaves(export: Export) -> list[LogicalPlan]:
    return [node for node in export.nodes if not node.children or node.cached]


def _rows(group: Group, estimates: PlanEstimates) -> list[float]:
    """The estimated rows of the sets of a group, which groups above it take over."""
    statistics = [estimates(plan) for plan in group.graph.relations]
    synopses = synopses_of(group.graph, statistics, estimates)
    own = own_rows(group.graph, estimates)
    sizes = GraphEstimates(group.graph, statistics, synopses=synopses, own_rows=own)
    for plan, rows in join_rows(group.joins, group.graph, sizes, synopses, estimates, group.below_semi):
        estimates.override_rows(plan, rows)
    return [sizes.rows(relations) for relations in group.sets]


def _spark_rows(oracle: Oracle, group: Group, relations: int, spark: Any) -> float | None:
    """The row estimate of Spark's cost-based optimizer for a sub-plan; None if it has none."""
    df = as_frame(oracle, group.export, as_plan(group.graph, relations), spark)
    rows = df._jdf.queryExecution().optimizedPlan().stats().rowCount()
    return float(str(rows.get())) if rows.isDefined() else None


def _without_result(group: Group, known: StoredResults) -> list[int]:
    """The sets with a true count and without a stored result of Spark."""
    truths, theirs = known[group, "truth"], known[group, SPARK]
    return [s for s in group.sets if str(s) not in theirs and not isinstance(truths[str(s)], str)]


def _add(query: str, group: Group, known: StoredResults, grades: Grades) -> None:
    truths, theirs = known[group, "truth"], known[group, SPARK]
    for i, relations in enumerate(group.sets):
        names, truth = group.graph.names_of(relations), truths[str(relations)]
        if isinstance(truth, str):
            grades.not_counted.append(NotCounted(query, names, truth))
            continue
        estimates: dict[str, float | None] = {source: group.estimates[source][i] for source in OURS}
        estimates[SPARK] = theirs[str(relations)]
        grades.plans.append(SubPlan(query, names, truth, estimates))
