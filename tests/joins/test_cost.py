"""The laws that a search relies on, for every cost model."""

from __future__ import annotations

import itertools

import pytest

from pyjoinopt.cost import MODELS, SparkCost, cost_model
from pyjoinopt.statistics.relation import Size

SIZES = [Size(rows, rows * width) for rows in (1.0, 100.0, 1e5, 1e7) for width in (8.0, 105.0, 2000.0)]
SETTINGS = [("spark", {}), ("spark", {"spark.sql.autoBroadcastJoinThreshold": "-1"}), ("c_out", {})]


@pytest.mark.parametrize(("name", "conf"), SETTINGS)
def test_laws(name: str, conf: dict[str, str]) -> None:
    cost = cost_model(name, conf)
    for left, right, output in itertools.product(SIZES, SIZES, SIZES[::3]):
        price = cost.join(left, right, output)
        assert price > 0
        assert price == pytest.approx(cost.join(right, left, output))
        for more in (
            Size(left.rows * 2, left.bytes * 2),
            Size(left.rows, left.bytes * 50),
            Size(left.rows * 3, left.bytes),
        ):
            assert cost.join(more, right, output) >= price
        assert cost.join(left, right, Size(output.rows * 2, output.bytes * 2)) > price


def test_broadcast_is_what_spark_would_do() -> None:
    big, small, out = Size(1e7, 1e9), Size(1e4, 1e6), Size(1e7, 1e9)
    default, off, wide = SparkCost(), SparkCost(-1), SparkCost(1e12)
    assert default.join(big, small, out) == wide.join(big, small, out) < off.join(big, small, out)
    assert wide.join(big, big, out) < default.join(big, big, out) == off.join(big, big, out)


def test_models_by_name() -> None:
    assert {cost_model(name).name for name in MODELS} == set(MODELS)
    assert cost_model("spark", {"spark.sql.autoBroadcastJoinThreshold": "5"}).threshold == 5  # type: ignore[attr-defined]
    assert cost_model("spark", {"spark.sql.autoBroadcastJoinThreshold": "?"}).threshold > 5  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="cost='fast'.*'spark', 'c_out'"):
        cost_model("fast")
