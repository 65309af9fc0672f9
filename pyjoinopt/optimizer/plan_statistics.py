"""The statistics of one query: where they come from, and what has to be read before a plan is estimated.

Constructing `PlanStatistics` reads nothing. `prepare` does for one plan, in the right order, all that the sources need
to know of it: which filters prune partitions, which keys to prove, which filters to evaluate on samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Gateway
from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.config import Options
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.bound_limits import BoundLimits
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import ProvedKeys, ReadBudget
from pyjoinopt.estimation.sources.read_deadline import deadline_of
from pyjoinopt.estimation.sources.samples import Samples, SamplesOfPlan
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.learned_rows import LEARNED, LearnedRows
from pyjoinopt.hints.memory_limits import slack_of
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: Settings of `statistics` that use more than one source.
_SEVERAL_SOURCES = frozenset({"auto", "full"})
#: [bytes] Files of a query with one join for which samples are drawn: to read these takes Spark much longer than that.
_LARGE = 64 << 20


class PlanStatistics:
    """The statistics of one query.

    Args:
        export: the decoded plan.
        gateway: answers questions about it.
        options: of this call.
        watching: whether the groups of this call may be seen to run.
    """

    def __init__(self, export: Export, gateway: Gateway, options: Options, watching: bool) -> None:
        leaves = [node for node in export.nodes if not node.children or node.cached]
        store = open_store(options.store, options.store_folder) if options.statistics != "none" else None
        full = options.statistics == "full"
        self._bytes = sum(_file_bytes(leaf) for leaf in leaves)
        several_joins = sum(isinstance(node, Join) for node in export.nodes) > 1
        deadline = deadline_of(options.statistics_ms, self._bytes, several_joins, full)
        without = options.without
        known = LeafStatistics(gateway.statistics, leaves, options.statistics, export.nodes, store, deadline, without)
        # The reimplementations of Spark's strategies use neither samples nor proven keys.
        several = options.statistics in _SEVERAL_SOURCES and options.strategy in ("auto", "none")
        sampled, proved = several and "samples" not in without, several and "keys" not in without
        #: Statistics of leaves.
        self.leaves = known
        limits = _bound_limits(options, export.conf) if "bounds" not in without else None
        self._samples = Samples(gateway.samples, known.relation, store, full, deadline, limits) if sampled else None
        budget = ReadBudget(options.background_mb << 20, options.session_background_mb << 20)
        self._keys = ProvedKeys(known, known.relation, gateway.keys, store, deadline, budget) if proved else None
        self._estimates = PlanEstimates(self._keys or known, export.nodes, self._samples, known.applied)
        definitions = {n.info.get("cte"): n for n in export.nodes if n.kind == "CTERelationDef"}
        remembered = store if options.statistics in LEARNED and "feedback" not in without else None
        #: Row counts of join groups that ran before.
        self.memory = LearnedRows(known.identity, remembered, definitions, watching)

    @property
    def background_bytes(self) -> int:
        """Bytes that proofs of keys have read for the session, when this plan last requested one; 0 without."""
        return self._keys.read if self._keys is not None else 0

    def notes(self) -> list[str]:
        """What was declared without effect, and which keys are not proved because of their size."""
        return [*self.leaves.notes(), *(self._keys.notes if self._keys is not None else ())]

    def prepare(self, plan: LogicalPlan) -> PlanEstimates:
        """Estimates of a plan and of all its parts.

        Args:
            plan: with its predicates in their places.
        """
        nodes = list(post_order(plan))
        self._estimates.add_ctes(nodes)
        several = sum(isinstance(node, Join) for node in nodes) > 1
        first_draw = None
        if self._samples is not None:
            # One join has no other order, but may need a hint.
            self._samples.drawing = several or self._bytes >= _LARGE
            first_draw = SamplesOfPlan(self._samples, plan)
        self.leaves.use_partition_filters(nodes, first_draw)
        if self._keys is not None and several:  # keys bound the results of joins, of which a hint is for a join above
            self._keys.prove(nodes)
        self._estimates.prefetch_samples(plan)
        return self._estimates


def _file_bytes(leaf: LogicalPlan) -> float:
    relation = leaf.info.get("rel") or {}
    return float(relation.get("bytes") or 0) if relation.get("kind") == "file" else 0.0


def _bound_limits(options: Options, conf: Mapping[str, str]) -> BoundLimits | None:
    """Where a bound by a random sample may decide about a hint; None if there are no hints."""
    threshold = JoinConf.of(conf).threshold
    if not options.hints or threshold <= 0:
        return None
    return BoundLimits(threshold, threshold * slack_of(options.hint_slack, conf).broadcast)
