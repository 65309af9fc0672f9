"""Statistics of a plan's leaves, asked for once, in one question for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics.relation import RelationStatistics, from_json

Ask = Callable[[list[LogicalPlan], str], dict[int, dict[str, Any]]]


class LeafStatistics:
    """Callable: leaf -> its statistics. The JVM is asked on the first call, never before.

    Args:
        ask: gives the protocol's JSON entries by node number.
        leaves: every leaf that may be asked about.
        source: the `statistics` option; "none" asks nobody and goes by the sizes in the export.
    """

    def __init__(self, ask: Ask, leaves: Iterable[LogicalPlan], source: str) -> None:
        self._ask = ask
        self._leaves = list(leaves)
        self._source = source
        self._known: dict[int, RelationStatistics] | None = None

    def __call__(self, leaf: LogicalPlan) -> RelationStatistics:
        if self._known is None:
            answers = {} if self._source == "none" else self._ask(self._leaves, self._source)
            by_number = {leaf.number: leaf for leaf in self._leaves}
            self._known = {
                number: from_json(entry, by_number[number].output)
                for number, entry in answers.items()
                if number in by_number and "error" not in entry
            }
        number = leaf.number if leaf.number is not None else -1
        if number not in self._known:
            self._known[number] = from_json({"bytes": leaf.info.get("rel", {}).get("bytes")}, leaf.output)
        return self._known[number]
