"""The properties of every cost model that the search relies on, and costs of the model of Spark."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace

import pytest

from pyjoinopt.catalyst.rules.join_reorder_dp import better_than
from pyjoinopt.cost import MODELS, CostModel, COut, PartitionedModel, SidedModel, SparkCost, cost_model
from pyjoinopt.cost.constants import DEFAULT, read_constants
from pyjoinopt.cost.model import join_cost_of_sides
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, SHUFFLE_HASH, Size
from pyjoinopt.cost.weighted import CARD_WEIGHT
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.search.choose_order import search
from tests.support.graphs import random_builder

SIZES = [
    Size(rows, rows * width, table)
    for rows in (1.0, 100.0, 1e5, 1e7)
    for width in (8.0, 105.0, 2000.0)
    for table in (NO_BUILD, SHUFFLE_HASH, BROADCAST_HASH)
]
ALL: list[CostModel] = [*map(cost_model, MODELS), SparkCost(executors=50, memory=1e6)]


@pytest.mark.parametrize("cost", ALL, ids=lambda cost: cost.name)
def test_laws(cost: CostModel) -> None:
    for left, right, output in itertools.product(SIZES, SIZES, SIZES[::11]):
        price = cost.join(left, right, output)
        assert price > 0
        assert price == pytest.approx(cost.join(right, left, output))
        for rows, bytes in ((2, 2), (1, 50), (3, 1)):
            more = Size(left.rows * rows, left.bytes * bytes, left.table)
            assert cost.join(more, right, output) >= price
        assert cost.join(left, right, Size(output.rows * 2, output.bytes * 2)) > price


@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "FullOuter", "LeftSemi", "LeftAnti"])
def test_the_parts_are_the_whole(kind: str) -> None:
    for model in ALL:
        if isinstance(model, PartitionedModel):
            for left, right, output in itertools.product(SIZES, SIZES, SIZES[::11]):
                parts = model.parts(left, right, output, kind)
                assert parts.work + parts.left + parts.right == pytest.approx(model.join(left, right, output, kind))
                assert min(parts.work, parts.left, parts.right) >= 0
    assert isinstance(ALL[0], PartitionedModel) and not isinstance(ALL[1], PartitionedModel)


def test_two_sides_are_a_join() -> None:
    """The searches compute the same costs from sides as the model."""
    sided = [model for model in ALL if isinstance(model, SidedModel)]
    assert len(sided) == 2
    for model, left, right, output in itertools.product(sided, SIZES, SIZES, SIZES[::11]):
        work = join_cost_of_sides(model.side(left), model.side(right))
        assert work + output.rows == pytest.approx(model.join(left, right, output))


def test_a_join_of_ones_own_is_what_counts() -> None:
    """A model that inherits from Spark's and changes `join` alone is not priced by what it inherits."""

    class Mine(SparkCost):
        def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
            return output.rows

    for seed in range(40):
        builder = random_builder(seed, connected=True)
        graph = builder.graph()
        estimates = GraphEstimates(graph, builder.statistics())
        for budget in (100_000, 0):
            mine, same = (search(graph, estimates, model, budget) for model in (Mine(), COut()))
            assert mine.tree.sets == same.tree.sets and mine.cost == same.cost


def test_what_may_be_built_decides() -> None:
    model, big, out = SparkCost(), Size(1e7, 1e9, NO_BUILD), Size(1e7, 1e9)
    merged, hashed, broadcast = (model.join(big, Size(1e5, 1e7, table), out) for table in range(3))
    assert broadcast < hashed < merged
    assert model.parts(big, Size(1e5, 1e7, BROADCAST_HASH), out).streamed == 0
    assert model.parts(big, Size(1e5, 1e7, SHUFFLE_HASH), out).streamed is None


def test_outer_joins_build_one_side_only() -> None:
    model, big, small, out = SparkCost(), Size(1e7, 1e9, NO_BUILD), Size(1e3, 1e5), Size(1e7, 1e9)
    for kind in ("LeftOuter", "LeftSemi", "LeftAnti"):
        assert model.join(big, small, out, kind) == model.join(big, small, out)
        assert model.join(small, big, out, kind) > 3 * model.join(small, big, out)
    assert model.join(big, small, out, "FullOuter") == model.join(big, small._replace(build=NO_BUILD), out)


def test_executors_and_memory() -> None:
    big, small, out = Size(1e7, 1e9, NO_BUILD), Size(1e5, 1e7), Size(1e7, 1e9)
    assert SparkCost(executors=50).join(big, small, out) > SparkCost().join(big, small, out)
    large = small._replace(build=NO_BUILD)
    spilling = SparkCost(memory=1e8).join(big, large, out) - SparkCost().join(big, large, out)
    assert spilling == pytest.approx(9e8 * DEFAULT.shuffled_byte)


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_of_two_results_the_weighted_model_prefers_the_one_that_spark_prefers(weight: float) -> None:
    model, side = cost_model("weighted", {"spark.sql.cbo.joinReorder.card.weight": str(weight)}), Size(10, 100)
    preferred = 0
    for one, other in itertools.permutations(SIZES, 2):
        spark = better_than(int(one.rows), int(one.bytes), int(other.rows), int(other.bytes), weight)
        costs = model.join(side, side, one), model.join(side, side, other)
        assert spark == (costs[0] < costs[1] * (1 - 1e-9))
        preferred += spark
    assert preferred > 100


def test_models_by_name() -> None:
    assert cost_model("weighted").weight == cost_model("weighted", {CARD_WEIGHT: "x"}).weight == 0.7  # type: ignore[attr-defined]
    assert {cost_model(name).name for name in MODELS} == set(MODELS)
    assert cost_model("spark", {"pyjoinopt.executors": "7"}).executors == 7  # type: ignore[attr-defined]
    assert cost_model("spark", {"pyjoinopt.memory": "?"}).memory == float("inf")  # type: ignore[attr-defined]
    own = SparkCost(executors=3)
    assert cost_model(own) is own
    with pytest.raises(ValueError, match="cost='fast'.*'spark', 'c_out'.*of your own"):
        cost_model("fast")


def test_constants_of_a_file(tmp_path) -> None:
    file = tmp_path / "constants.json"
    file.write_text(json.dumps(asdict(replace(DEFAULT, sorted_row=77.0))))
    assert cost_model("spark", {}, str(file)).constants.sorted_row == 77.0  # type: ignore[attr-defined]
    for name, text in (("no.json", None), ("half.json", '{"shuffle": 1}'), ("text.json", "hello")):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match="benchmarks.calibrate.*shuffled_row"):
            read_constants(str(tmp_path / name))
    (tmp_path / "below.json").write_text(json.dumps(asdict(replace(DEFAULT, shuffle=-1.0))))
    with pytest.raises(ValueError, match="below 0"):
        read_constants(str(tmp_path / "below.json"))
