"""The statistics of one query: where they come from, and what has to be read before a plan is estimated.

Constructing `PlanStatistics` reads nothing. `prepare` does for one plan, in the right order, all that the sources need
to know of it: which filters prune partitions, which keys to prove, which filters to evaluate on samples.
"""

from __future__ import annotations

from pyjoinopt.bridge.decode import Export
from pyjoinopt.bridge.gateway import Gateway
from pyjoinopt.config import Options
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import ProvedKeys
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.samples import Samples, SamplesOfPlan
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback.learned_rows import LEARNED, LearnedRows
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: Settings of `statistics` that use more than one source.
_SEVERAL_SOURCES = frozenset({"auto", "full"})


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
        deadline = ReadDeadline(options.statistics_ms, full)
        without = options.without
        known = LeafStatistics(gateway.statistics, leaves, options.statistics, export.nodes, store, deadline, without)
        # The reimplementations of Spark's strategies use neither samples nor proven keys.
        several = options.statistics in _SEVERAL_SOURCES and options.strategy in ("auto", "none")
        sampled, proved = several and "samples" not in without, several and "keys" not in without
        #: Statistics of leaves.
        self.leaves = known
        self._samples = Samples(gateway.samples, known.relation, store, full, deadline) if sampled else None
        self._keys = ProvedKeys(known, known.relation, gateway.keys, store, deadline) if proved else None
        self._estimates = PlanEstimates(self._keys or known, export.nodes, self._samples, known.applied)
        definitions = {n.info.get("cte"): n for n in export.nodes if n.kind == "CTERelationDef"}
        remembered = store if options.statistics in LEARNED and "feedback" not in without else None
        #: Row counts of join groups that ran before.
        self.memory = LearnedRows(known.identity, remembered, definitions, watching)

    def prepare(self, plan: LogicalPlan) -> PlanEstimates:
        """Estimates of a plan and of all its parts.

        Args:
            plan: with its predicates in their places.
        """
        nodes = list(post_order(plan))
        self._estimates.add_ctes(nodes)
        several = sum(isinstance(node, Join) for node in nodes) > 1  # one join has no other order
        first_draw = None
        if self._samples is not None:
            self._samples.drawing, first_draw = several, SamplesOfPlan(self._samples, plan)
        self.leaves.use_partition_filters(nodes, first_draw)
        if self._keys is not None and several:
            self._keys.prove(nodes)
        self._estimates.prefetch_samples(plan)
        return self._estimates
