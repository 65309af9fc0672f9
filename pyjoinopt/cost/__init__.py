"""What a join costs: models behind one small protocol, found by name, or a user's own.

A search adds up the costs of joins, so a model has to obey the laws that `CostModel` states; nothing else is required
of it. Costs are in "row units": 1 is the cost of passing one row through one operator.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.cost.c_out import COut
from pyjoinopt.cost.constants import DEFAULT, Constants, read_constants
from pyjoinopt.cost.model import CostModel, PartitionedModel, Parts, Side, SidedModel, TypedSidedModel
from pyjoinopt.cost.spark import SparkCost
from pyjoinopt.cost.weighted import CARD_WEIGHT, WEIGHT, Weighted

__all__ = [
    "MODELS", "COut", "Constants", "CostModel", "PartitionedModel", "Parts", "Side", "SidedModel", "SparkCost",
    "TypedSidedModel", "Weighted", "cost_model",
]  # fmt: skip

#: Names that `cost_model` knows, the default first.
MODELS = ("spark", "c_out", "weighted")
#: Keys of the export: executors that can be reached, and the memory of all of them.
EXECUTORS, MEMORY = "pyjoinopt.executors", "pyjoinopt.memory"


def cost_model(name: str | CostModel, conf: Mapping[str, str] | None = None, constants: str = "") -> CostModel:
    """The cost model of that name; a model itself is returned.

    Args:
        name: one of `MODELS`, or a model.
        conf: Spark's configuration, and keys of the export.
        constants: a file that `benchmarks/calibrate.py` wrote, for the model "spark"; "" for the defaults.

    Raises:
        ValueError: there is no such model, or the file has no constants.

    >>> cost_model("c_out").name
    'c_out'
    """
    if not isinstance(name, str):
        return name
    if name == COut.name:
        return COut()
    conf = conf or {}
    if name == Weighted.name:
        return Weighted(_number(conf.get(CARD_WEIGHT), WEIGHT))
    if name == SparkCost.name:
        executors, memory = _number(conf.get(EXECUTORS), 1.0), _number(conf.get(MEMORY), float("inf"))
        return SparkCost(read_constants(constants) if constants else DEFAULT, max(1, int(executors)), memory)
    raise ValueError(f"cost={name!r}: allowed are {', '.join(map(repr, MODELS))}, or a model of your own")


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default
