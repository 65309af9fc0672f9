"""What a join costs: models behind one small protocol, found by name.

A search adds up the costs of joins, so a model has to obey the laws that `CostModel` states; nothing else is asked
of it. Costs are in "row units": 1 is a row handed through one operator.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.cost.c_out import COut
from pyjoinopt.cost.model import CostModel
from pyjoinopt.cost.spark import DEFAULT_THRESHOLD, SparkCost

__all__ = ["MODELS", "COut", "CostModel", "SparkCost", "cost_model"]

#: Names that `cost_model` knows, the default first.
MODELS = ("spark", "c_out")


def cost_model(name: str, conf: Mapping[str, str] | None = None) -> CostModel:
    """The cost model of that name.

    Args:
        name: one of `MODELS`.
        conf: Spark's configuration; the broadcast threshold is read from it.

    Raises:
        ValueError: if there is no such model.

    >>> cost_model("c_out").name
    'c_out'
    """
    if name == COut.name:
        return COut()
    if name == SparkCost.name:
        return SparkCost(_threshold(conf or {}))
    raise ValueError(f"cost={name!r}: allowed are {', '.join(map(repr, MODELS))}")


def _threshold(conf: Mapping[str, str]) -> float:
    try:
        return float(conf.get("spark.sql.autoBroadcastJoinThreshold", DEFAULT_THRESHOLD))
    except ValueError:
        return DEFAULT_THRESHOLD
