"""What is known of a query when it is planned, so that its run can be recorded when it ends.

Spark plans each subquery separately, before the query that contains it. Nothing says which plan is the last one, so the
plans of one query are chained: after each of them, the shape so far is a hash of the shape before and its own. The
longest chain is the query; the shorter ones lead to it (`Entry.wholes`).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyjoinopt.feedback.match_metrics import Operator
from pyjoinopt.feedback.query_shape import QueryShape
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run
from pyjoinopt.plan.digest import digest

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
        bytes: what they read; 0 if unknown.
        cores: that Spark has.
        complete: False if another process planned some of them, so that the query cannot be recognised.
        plan: a hash of the plans that were chosen; `AS_WRITTEN` if none was changed.
        changes: what was changed, for people.
        reason_as_written: why the plans so far run as written although they could be changed; empty if they do not.
    """

    shape: str
    instance: str
    shorter: tuple[str, ...]
    conditions: str
    tables: tuple[str, ...]
    bytes: float
    cores: float
    complete: bool = True
    plan: str = AS_WRITTEN
    changes: tuple[str, ...] = ()
    reason_as_written: str = ""

    def with_plan(self, chosen: str, changes: Sequence[str] = ()) -> PlannedQuery:
        """The same with the plan that was chosen for its last part: the shape of that plan, or `AS_WRITTEN`."""
        whole = AS_WRITTEN if chosen == self.plan == AS_WRITTEN else digest(self.plan, chosen)
        return replace(self, plan=whole, changes=(*self.changes, *changes))

    def as_written(self, reason: str) -> PlannedQuery:
        """The same if its last part runs as written although it could be changed."""
        return replace(self.with_plan(AS_WRITTEN), reason_as_written=reason)

    def record(self, store: QueryStore, ended: Mapping[str, Any], driver: str, warm: bool = False) -> None:
        """Add a run to the store.

        Args:
            store: the query store.
            ended: what the JVM reports of the run.
            driver: names its process.
            warm: whether this driver has run the query before; if not, its runs in the store decide.
        """
        if not self.complete or ended.get("parts", 0) not in (0, len(self.shorter) + 1):
            return  # another process planned a part of it
        operators: Sequence[Operator] = ended.get("operators", ())
        ours = float(ended.get("ours", 0.0)) if self.plan == AS_WRITTEN else 0.0
        run = Run(
            self.instance,
            self.plan,
            "; ".join(self.changes),
            driver,
            warm,
            self.cores,
            self.bytes,
            float(ended["ended"]),
            max(0.0, float(ended["seconds"]) - ours),
            max(0.0, float(ended.get("planning", 0.0)) - ours),
            sum(float(o["m"].get("numOutputRows", 0)) for o in operators if not o["k"]),
            sum(float(o["m"].get("spillSize", 0)) for o in operators),
            str(ended.get("failed", "")),
            float(ended.get("taskSeconds", 0.0)),
            float(ended.get("skew", 0.0)),
        )
        store.add(self.shape, self.conditions, self.tables, run)
        for shape in self.shorter:
            store.lead(shape, self.conditions, self.shape)


def planned_query(
    own: QueryShape, conf: Mapping[str, str], spark: str, before: PlannedQuery | None, part: int = 1
) -> PlannedQuery:
    """A query of which one more plan arrived.

    Args:
        own: the shape of the plan.
        conf: the settings of its export.
        spark: the version of Spark.
        before: the same query with the plans that arrived before; None if there are none.
        part: how many of its plans were sent to any worker, this one included.
    """
    if before is None:
        cores = float(conf.get(_CORES, 0) or 0)
        conditions = _conditions(conf, spark)
        return PlannedQuery(own.shape, own.instance, (), conditions, own.tables, own.bytes, cores, part == 1)
    return replace(
        before,
        shape=digest(before.shape, own.shape),
        instance=digest(before.instance, own.instance),
        shorter=(*before.shorter, before.shape),
        tables=(*before.tables, *own.tables),
        bytes=before.bytes + own.bytes,
        complete=before.complete and part == len(before.shorter) + 2,
    )


def process_name(number: int) -> str:
    """Names a process of this host: by its number, and by when it started where that is known."""
    try:
        started = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        started = ""
    return f"{platform.node()} {number} {started}"


def _conditions(conf: Mapping[str, str], spark: str) -> str:
    """Running times of two clusters, or of two local machines, are not compared, nor those under other settings."""
    master = conf.get(_MASTER, "")
    place = platform.node() if master.startswith("local") else master
    return digest(spark, place, *(f"{key}={conf[key]}" for key in sorted(conf) if key.startswith(_OF_SPARK)))
