"""What a rule may need to know beside the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan

#: Catalyst's statistics of a sub-plan; None if its row count is unknown.
Statistics = Callable[[LogicalPlan], "CatalystStatistics | None"]
#: A rule: the plan after it, the very same object if nothing changed.
CatalystRule = Callable[[LogicalPlan, "RuleContext"], LogicalPlan]


def _unknown(plan: LogicalPlan) -> CatalystStatistics | None:
    return None


@dataclass(frozen=True)
class RuleContext:
    """Everything that some rule needs; each rule takes only what it needs.

    Attributes:
        fresh: gives out columns that are in no plan yet.
        conf: Spark's settings, as strings.
        filters_null: see `eliminate_outer_join`.
        statistics: of the relations of a join group.
        spark: (major, minor) of the Spark whose habits are followed, where they differ.
    """

    fresh: ColumnFactory
    conf: Mapping[str, str] = field(default_factory=dict)
    filters_null: frozenset[int] = frozenset()
    statistics: Statistics = _unknown
    spark: tuple[int, int] = (4, 3)

    def flag(self, key: str, default: bool = True) -> bool:
        """A switch of Spark's SQL configuration, by its name without `spark.sql.`."""
        return str(self.conf.get(f"spark.sql.{key}", default)).lower() == "true"
