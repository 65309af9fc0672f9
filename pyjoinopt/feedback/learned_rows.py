"""Learning from queries that ran: the true row counts of a join group are remembered for when it comes again.

What was counted of a single relation replaces its estimate; what was counted of a join of several becomes a factor,
the true count over the estimate, that every larger set inherits (as in the LEO optimizer, Stillger et al. 2001).
Counts are taken from small sets to large ones, so each counted set is estimated exactly, and all others consistently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from typing import Any

from pyjoinopt.estimation.model.relation_statistics import FEEDBACK, RelationStatistics
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.fingerprint import Fingerprint, fingerprint
from pyjoinopt.feedback.match_metrics import Observation, Operator, column_owners, leaf_counts, located, observed_rows
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.plan.digest import Identity
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.outer_references import joined_plans

#: The settings of the option `statistics` under which what was learnt is used.
LEARNED = frozenset({"auto", "full"})


@dataclass(frozen=True)
class ExpectedGroup:
    """A join group that was ordered and may be seen to run.

    Attributes:
        names: of its relations.
        owners: column id -> vertex.
        leaves: per vertex, how many there are.
        estimates: set of vertices -> rows, of the sets that the written and the chosen order make.
        recognise: gives the fingerprint; None if the group cannot be recognised later.
        probing: sets of vertices whose joins probe a subquery that Spark joins with them: rows counted below that
            join are those before the subquery drops any.
    """

    names: tuple[str, ...]
    owners: Mapping[int, int]
    leaves: tuple[int, ...]
    estimates: Mapping[int, float]
    recognise: Callable[[], Fingerprint | None]
    probing: tuple[int, ...] = ()

    @cached_property
    def fingerprint(self) -> Fingerprint | None:
        """What the store knows the group by; computed only for a group whose rows are counted."""
        return self.recognise()

    def observe(self, plan: Sequence[Operator]) -> dict[int, float]:
        """True rows of sets of vertices, from a plan that was run; nothing if it is another query's."""
        found = observed_rows(plan, self.owners, self.leaves)
        return {relations: rows for relations, rows in found.items() if not self._is_probed(relations)}

    def located(self, plan: Sequence[Operator]) -> dict[int, tuple[tuple[str, ...], float]]:
        """Operator of a plan that was run -> the relations that it joins, and the rows that were expected of it."""
        found = located(plan, self.owners, self.leaves)
        known = {i: s for s, i in found.items() if s in self.estimates and not self._is_probed(s)}
        return {i: (self.named(s), self.estimates[s]) for i, s in known.items()}

    def to_dict(self) -> dict[str, Any] | None:
        """The group for `ExpectedJoins.scala`, which compares its joins with what they count while they run.

        None if no join has an estimate. An estimate that is not finite cannot be exceeded, and is no JSON.
        """
        joins = [
            {"of": [v for v in range(len(self.names)) if relations >> v & 1], "rows": rows}
            for relations, rows in self.estimates.items()
            if relations.bit_count() > 1 and isfinite(rows) and not self._is_probed(relations)
        ]
        if not joins:
            return None
        columns, owners = list(self.owners), list(self.owners.values())
        return {"names": self.names, "columns": columns, "owners": owners, "leaves": self.leaves, "joins": joins}

    def observations(self, rows: Mapping[int, float]) -> list[Observation]:
        """The same for people, small sets first."""
        return [
            Observation(self.named(relations), self.estimates[relations], rows[relations])
            for relations in sorted(rows, key=lambda s: (s.bit_count(), s))
            if relations in self.estimates
        ]

    def remember(self, rows: Mapping[int, float], store: Store) -> None:
        """Put true rows into the store."""
        if self.fingerprint is not None and rows:
            canonical = {self.fingerprint.canonical(relations): n for relations, n in rows.items()}
            store.put_feedback(self.fingerprint.key, canonical)

    def _is_probed(self, relations: int) -> bool:
        return any(not probed & ~relations for probed in self.probing)

    def named(self, relations: int) -> tuple[str, ...]:
        """The names of a set of vertices."""
        return tuple(name for v, name in enumerate(self.names) if relations >> v & 1)


class LearnedRows:
    """What the store remembers of join groups, and the groups of this call.

    Args:
        identity: of leaves, see `fingerprint`.
        store: None remembers nothing.
        definitions: of common table expressions.
        watching: whether the groups of this call may be seen to run.
    """

    def __init__(
        self,
        identity: Identity,
        store: Store | None,
        definitions: Mapping[object, LogicalPlan] | None = None,
        watching: bool = True,
    ) -> None:
        self._definitions = definitions or {}
        self._identity = identity
        self._store = store
        self._watching = watching

    def recall(self, graph: JoinGraph, above: Sequence[Expression] | None = ()) -> dict[int, float]:
        """Set of vertices -> rows that were counted when this group ran.

        Args:
            graph: the group.
            above: see `fingerprint`; None if it is not known what Spark will push into the group, so that counts
                cannot be attributed.
        """
        if above is None or self._store is None or not self._store.has_feedback():
            return {}
        known = fingerprint(graph, self._identity, self._definitions, above)
        if known is None:
            return {}
        return {known.vertices(canonical): rows for canonical, rows in self._store.feedback(known.key).items()}

    def expected(
        self, graph: JoinGraph, rows: Mapping[int, float], above: Sequence[Expression] | None = ()
    ) -> ExpectedGroup | None:
        """The group, to be recognised when it has run; None if nobody watches, or if it could not be recognised.

        Args:
            graph: the group.
            rows: set of vertices -> estimated rows, of the sets that the written and the chosen order make.
            above: see `recall`.
        """
        if not self._watching or above is None:
            return None
        known = partial(fingerprint, graph, self._identity, self._definitions, above)
        owners = column_owners(graph.relations, self._definitions)
        leaves = leaf_counts(graph.relations, self._definitions)
        probing = tuple(edge.tes for edge in graph.edges if joined_plans(edge.predicate))
        recognise = known if self._store is not None else _unknown
        return ExpectedGroup(tuple(graph.names), owners, leaves, rows, recognise, probing)


def _unknown() -> None:
    """Without a store, no group is recognised later."""


def with_true_rows(statistics: Sequence[RelationStatistics], rows: Mapping[int, float]) -> list[RelationStatistics]:
    """Statistics of relations, where they were counted with the true rows.

    >>> [s.rows for s in with_true_rows([RelationStatistics(10.0, 80.0), RelationStatistics(5.0, 40.0)], {0b10: 7.0})]
    [10.0, 7.0]
    """
    result = list(statistics)
    for vertex, known in enumerate(result):
        counted = rows.get(1 << vertex)
        if counted is not None:
            result[vertex] = replace(known.with_rows(counted), source=FEEDBACK)
    return result
