"""The number of distinct values among the rows that a filter keeps."""

from __future__ import annotations

import random

import pytest

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.column_lineage import join_keys
from pyjoinopt.estimation.sources.registry import Files, Relation
from pyjoinopt.estimation.sources.sampled_distinct import codes, left_after
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.plan.expressions import Attribute, call, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan


def drawn(values: list[int], count: int = 4000) -> list[int]:
    """A sample, each value called by the place where it was met first, as the JVM does."""
    numbers: dict[int, int] = {}
    chosen = random.Random(1).sample(range(len(values)), count)
    return [numbers.setdefault(values[i], len(numbers) + 1) for i in chosen]


def test_a_filter_that_depends_on_the_column() -> None:
    # 100,000 rows, 1,000 customers with 100 rows each; a filter keeps customers 0 to 49: 5,000 rows.
    values = [i % 1000 for i in range(100_000)]
    chosen = random.Random(1).sample(range(len(values)), 4000)
    hits = sum(1 << bit for bit, i in enumerate(chosen) if values[i] < 50)
    found = left_after(drawn(values), hits, 1e5, 5000.0, 1000.0)
    assert found == pytest.approx(50, rel=0.1), "arithmetic would say all 1,000"


def test_a_filter_that_does_not() -> None:
    values = [i % 1000 for i in range(100_000)]
    hits = random.Random(2).getrandbits(4000)
    assert left_after(drawn(values), hits, 1e5, 5e4, 1000.0) is None, "the column has its values still"
    assert left_after(drawn(values), hits, 1e5, 5e4, None) == pytest.approx(1000, rel=0.15), "nobody counted them"


@pytest.mark.parametrize("hits", [20, 60, 200])
def test_few_rows_of_many_values_are_no_evidence_against_the_others(hits: int) -> None:
    # The jackknife takes 60 rows of 1,800 days for some 1,000 days, and a join on them for too few.
    rng = random.Random(hits)
    values = [rng.randrange(1800) + 1 for _ in range(4000)]
    filtered = sum(1 << i for i in rng.sample(range(4000), hits))
    assert left_after(values, filtered, 2.9e6, 700.0 * hits, 1800.0) is None


def test_rows_that_lie_together_are_not_believed() -> None:
    # 4,000 rows of a table sorted by the column show 4 of its 100 values: 25 times too few.
    values = [1 + i // 1000 for i in range(4000)]
    assert left_after(values, (1 << 4000) - 1, 1e5, 5e4, 100.0) is None


def test_nulls_and_few_hits() -> None:
    assert left_after([0] * 100, (1 << 50) - 1, 1000.0, 500.0, None) == 1.0
    assert left_after([1, 2] * 50, 0b111, 1000.0, 30.0, 2.0) is None, "three hits say nothing"
    # Half of the rows have no value: 500 of 1,000, and of each value that is met once there are ten in the whole.
    assert left_after([0, *range(1, 51)] + [0] * 49, (1 << 100) - 1, 1000.0, 1000.0, None) == pytest.approx(500)


def test_it_is_what_joins_get() -> None:
    key, kind, other = Attribute(0, 0, "key", "int"), Attribute(1, 1, "kind", "string"), Attribute(2, 2, "o", "int")
    t = LogicalPlan("LogicalRelation", (), (key, kind), number=0)
    u = LogicalPlan("LogicalRelation", (), (other,), number=1)
    rare = call("EqualTo", reference(kind), literal("rare", "string"))
    plan = Join(Filter(rare, t), u, "Inner", call("EqualTo", reference(key), reference(other)))
    assert join_keys([plan]) == 0b101
    base = RelationStatistics(1000.0, 8000.0, "footers", columns={0: ColumnStatistics(ndv=42.0)}, unfiltered=1000.0)

    def answer(relations: list[dict[str, object]], **_: object) -> list[dict[str, object]]:
        # 100 rows of 1,000 with all 42 values; the first 20 are rare, and have values 1 and 2.
        values = [1 + i % 2 for i in range(20)] + [3 + i % 40 for i in range(80)]
        assert relations[0]["keys"] == [0]
        text = "".join(f"{v:02x}00" for v in values)
        assert codes(text) == values
        hits = (0xFFFFF).to_bytes(13, "little").hex()
        return [{"rows": 100, "sample": 1, "complete": False, "hits": [hits], "keys": {"0": text}}]

    relation = Relation("t", files=Files("t", "s", 1, 1, 0.0), leaf=t)
    samples = Samples(answer, lambda leaf: relation if leaf is t else None)
    estimates = PlanEstimates(lambda leaf: base, (), samples)
    estimates.prefetch_samples(plan)
    known = estimates(plan.left)
    assert known.source == "footers, sample" and known.rows == pytest.approx(200, rel=0.05)
    assert known.column(0).ndv == 2
