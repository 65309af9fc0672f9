"""What is known of a query when it is planned, so that its run can be recorded when it ends.

Spark plans each subquery separately, before the query that contains it. Nothing says which plan is the last one, so the
plans of one query are chained: after each of them, the shape so far is a hash of the shape before and its own. The
longest chain is the query; the shorter ones lead to it (`Outlook.whole`).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyjoinopt.feedback.guard import outlook_after
from pyjoinopt.feedback.match_metrics import Operator
from pyjoinopt.feedback.query_shape import query_shape
from pyjoinopt.feedback.query_store import AS_WRITTEN, Outlook, QueryStore, Run
from pyjoinopt.plan.digest import digest
from pyjoinopt.plan.nodes import LogicalPlan

#: Settings that decide about a plan, and that this package does not decide about.
_OF_SPARK = "spark.sql."
_MASTER = "pyjoinopt.master"
_CORES = "pyjoinopt.parallelism"


@dataclass(frozen=True)
class PlannedQuery:
    """The plans of a query so far.

    Attributes:
        shape, instance: hashes of all of them.
        shorter: the shapes before.
        conditions: a hash of settings and cluster.
        tables: what they read.
        bytes: what they read.
        cores: that Spark has.
        plan: a hash of the plans that were chosen; `AS_WRITTEN` if none was changed.
        changes: what was changed, for people.
        held: whether one of them runs as written although it could be changed.
    """

    shape: str
    instance: str
    shorter: tuple[str, ...]
    conditions: str
    tables: tuple[str, ...]
    bytes: float
    cores: float
    plan: str = AS_WRITTEN
    changes: tuple[str, ...] = ()
    held: bool = False

    def with_plan(self, chosen: LogicalPlan, written: LogicalPlan, changes: Sequence[str]) -> PlannedQuery:
        """The same with the plan that was chosen for its last part."""
        if chosen is written:
            return replace(self, plan=self._followed_by(AS_WRITTEN))
        return replace(self, plan=self._followed_by(query_shape(chosen).shape), changes=(*self.changes, *changes))

    def as_written(self) -> PlannedQuery:
        """The same if its last part runs as written although it could be changed."""
        return replace(self, plan=self._followed_by(AS_WRITTEN), held=True)

    def _followed_by(self, plan: str) -> str:
        return AS_WRITTEN if plan == self.plan == AS_WRITTEN else digest(self.plan, plan)

    def outlook(self, store: QueryStore) -> tuple[Outlook | None, bool]:
        """What was decided about the query, and whether more of its parts follow after this one."""
        found = store.outlook(self.shape, self.conditions)
        if found is not None and found.whole:
            return store.outlook(found.whole, self.conditions), True
        return found, False

    def record(self, store: QueryStore, ended: Mapping[str, Any], warm: bool) -> None:
        """Add a run to the store, and decide what is to be done when the query comes again.

        Args:
            store: the query store.
            ended: what the JVM reports of the run.
            warm: whether this process had run the query before.
        """
        operators: Sequence[Operator] = ended.get("operators", ())
        run = Run(
            self.instance,
            self.plan,
            "; ".join(self.changes),
            warm,
            self.cores,
            self.bytes,
            float(ended["ended"]),
            float(ended["seconds"]),
            float(ended.get("planning", 0.0)),
            sum(float(o["m"].get("numOutputRows", 0)) for o in operators if not o["k"]),
            sum(float(o["m"].get("spillSize", 0)) for o in operators),
            str(ended.get("failed", "")),
        )
        store.add(self.shape, self.conditions, self.tables, run)
        store.set_outlook(self.shape, self.conditions, outlook_after(store.runs(self.shape, self.conditions)))
        for shape in self.shorter:
            store.set_outlook(shape, self.conditions, Outlook(whole=self.shape))


def planned_query(root: LogicalPlan, conf: Mapping[str, str], before: PlannedQuery | None) -> PlannedQuery:
    """A query of which one more plan arrived.

    Args:
        root: the plan as written.
        conf: the settings of its export.
        before: the same query with the plans that arrived before; None if this is the first one.
    """
    own = query_shape(root)
    if before is None:
        cores = float(conf.get(_CORES, 0) or 0)
        return PlannedQuery(own.shape, own.instance, (), _conditions(conf), own.tables, own.bytes, cores)
    return replace(
        before,
        shape=digest(before.shape, own.shape),
        instance=digest(before.instance, own.instance),
        shorter=(*before.shorter, before.shape),
        tables=(*before.tables, *own.tables),
        bytes=before.bytes + own.bytes,
    )


def _conditions(conf: Mapping[str, str]) -> str:
    """Running times of two clusters, or of two local machines, are not compared, nor those under other settings."""
    master = conf.get(_MASTER, "")
    place = platform.node() if master.startswith("local") else master
    return digest(place, *(f"{key}={conf[key]}" for key in sorted(conf) if key.startswith(_OF_SPARK)))
