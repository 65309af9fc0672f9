"""Filters evaluated over samples: the arithmetic, and the requests. No JVM; `test_sampled_files` has one."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.model.sample_bounds import share_bound
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.estimation.sources.bound_limits import BoundLimits
from pyjoinopt.estimation.sources.registry import Files, Relation
from pyjoinopt.estimation.sources.sampled_selectivity import Share, is_weak
from pyjoinopt.estimation.sources.samples import BLOB, Samples
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project

A, B, C = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "string"), Attribute(2, 2, "c", "string")
D = Attribute(3, 3, "d", "date")
T = LogicalPlan("LogicalRelation", (), (A, B, D), (), 5, 5, {"rel": {"kind": "file", "name": "t"}})
FILES = Files("i", "s", 1, 100, 5.0)
KNOWN = RelationStatistics(
    1000.0, 28000.0, "footers", True,
    {0: ColumnStatistics(ndv=100.0, min=1, max=100), 3: ColumnStatistics(ndv=100.0, min=1, max=100)}, 1000.0, 1000.0,
)  # fmt: skip
LARGE = KNOWN.with_rows(1e6, 1e6)


def like(column: Attribute, pattern: str) -> Expression:
    return Expression("Like", (reference(column), literal(pattern, "string")), origin=len(pattern))


SMALL = call("LessThan", reference(A), literal(51, "int"))
#: What arithmetic judges well.
EARLY = call("LessThan", reference(D), literal(51, "int"))
P, Q = like(B, "p%"), like(B, "qq%")


class Shim:
    """Returns prepared bits of eight rows, by predicate; records the requests."""

    def __init__(
        self,
        bits: dict[Any, int | None],
        *,
        rows: int = 8,
        complete: bool = False,
        here: bool = True,
        pieces: int = 0,
    ) -> None:
        self.bits = {e.key: b for e, b in bits.items()}
        self.rows, self.complete, self.here, self.pieces = rows, complete, here, pieces
        self.requested: list[list[dict[str, Any]]] = []

    def __call__(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        self.requested.append(relations)
        answers = []
        for one in relations:
            if not (self.here or one.get("read") or one.get("blob")):
                answers.append({"missing": True})
                continue
            found = [self.bits.get(e.key) for e in one["predicates"]]
            hits = [None if b is None else b.to_bytes((self.rows + 7) // 8, "little").hex() for b in found]
            answer: dict[str, Any] = {"rows": self.rows, "sample": 1, "complete": self.complete, "hits": hits}
            answer["pieces"] = self.pieces
            if one.get("read") and request.get("give"):
                answer["blob"] = base64.b64encode(b"rows").decode()
            answers.append(answer)
        return answers


def estimate(
    shim: Any, plan: LogicalPlan, store: Store | None = None, known: RelationStatistics = KNOWN, look: bool = True
) -> RelationStatistics:
    relation = Relation("t", "file", "parquet", files=FILES, leaf=T)
    samples = Samples(shim, lambda leaf: relation if leaf is T else None, store)
    estimates = PlanEstimates(lambda leaf: known, (), samples)
    if look:
        estimates.prefetch_samples(plan)
    return estimates(plan)


def test_the_share_of_a_conjunction_is_the_and_of_its_bits() -> None:
    shim = Shim({P: 0b11110000, Q: 0b10110001, SMALL: 0b11111100})
    both = Filter(call("And", P, Q), T)
    # Bits 4, 5 and 7: 3 of 8 rows. Two patterns, by arithmetic: 0.01 ** 2 and their factors, far below one row of 9.
    assert estimate(shim, both).rows == pytest.approx(1000 * 3 / 9, rel=0.01)
    assert estimate(shim, both).source == "footers, sample"
    # One above the other, with a third: bits 4, 5 and 7 again.
    stacked = Filter(Q, Filter(call("And", P, SMALL), T))
    assert estimate(shim, stacked).rows == pytest.approx(1000 * 3 / 9, rel=0.01)
    assert estimate(shim, stacked.child).rows == pytest.approx(1000 * 4 / 9, rel=0.01)
    assert estimate(shim, stacked).upper_bound == 1000


def test_what_cannot_be_evaluated_is_left_to_arithmetic() -> None:
    shim = Shim({P: 0b11110000, SMALL: None})
    # SMALL keeps 50 of 100 values; P 4 of 8 rows, mixed with 1 row of P's own arithmetic.
    rows = estimate(shim, Filter(call("And", P, SMALL), T)).rows
    assert 1000 * 4 / 9 * 0.5 <= rows <= 1000 * 5 / 9 * 0.5
    alone = estimate(Shim({P: None}), Filter(P, T))
    assert alone.source == "footers" and alone.rows == PlanEstimates(lambda leaf: KNOWN)(Filter(P, T)).rows


def test_no_hit_is_not_nothing() -> None:
    none = estimate(Shim({P: 0}), Filter(P, T))
    assert 0 < none.rows <= 1000 * 0.5 / 9
    assert none.source == "footers, sample without a hit"
    assert Share(0, 8, False).bound == 3 / 8 and Share(2, 8, False).bound == 1


def test_rows_that_lie_together_may_be_alike() -> None:
    everywhere, few = Share(0, 4999, False), Share(0, 4999, False, places=49)
    assert everywhere.estimate(0.5) == 0.5 / 5000
    assert few.estimate(0.5) == pytest.approx(0.001), "half-way between 0.5 / 5,000 and 0.5 / 50"
    assert few.estimate(0.0004) == 0.0004, "what arithmetic says of a range may well be true"
    assert Share(50, 4999, False, places=49).estimate(0.0) == 0.01


def test_arithmetic_knows_all_partitions() -> None:
    info = {"rel": {"kind": "file", "name": "t", "partitionCols": [A.bit]}}
    parted = LogicalPlan("LogicalRelation", (), T.output, (), 6, 6, info)
    relation = Relation("t", "file", "parquet", files=FILES, leaf=parted)

    def known(pieces: int, condition: Expression) -> RelationStatistics:
        shim = Shim({P: 0b11110000, SMALL: 0}, pieces=pieces)
        return PlanEstimates(lambda leaf: KNOWN, (), Samples(shim, lambda leaf: relation))(Filter(condition, parted))

    both = call("And", P, SMALL)
    assert known(0, both).source.endswith("without a hit"), "from all partitions"
    assert known(4, both).rows == pytest.approx(1000 * 4 / 9 * 0.5, rel=0.02), "4 of 8 rows, and half of the partitions"
    assert known(4, SMALL).source == "footers"


def test_a_whole_relation_is_counted() -> None:
    whole = Shim({P: (1 << 375) - 1, Q: None, SMALL: 0}, rows=1000, complete=True)
    counted = estimate(whole, Filter(P, T))
    assert (counted.rows, counted.exact, counted.upper_bound) == (375, True, 375)
    empty = estimate(whole, Filter(call("And", P, SMALL), T))
    assert (empty.rows, empty.exact, empty.source) == (0, True, "footers, sample")
    partly = estimate(whole, Filter(call("And", P, Q), T))
    assert not partly.exact and partly.upper_bound == 1000
    other = estimate(Shim({P: 0b111}, complete=True), Filter(P, T))
    assert (other.rows, other.exact) == (375, False), "8 rows are not the 1,000 that footers count"


def test_a_sample_of_no_rows_gives_no_estimate() -> None:
    assert estimate(Shim({P: 0}, rows=0), Filter(P, T)).source == "footers"


def test_projections_are_looked_through() -> None:
    named = Expression("Alias", (reference(B),), "string", attribute=C)
    above = Filter(like(C, "p%"), Project((reference(A), named), T))
    shim = Shim({P: 0b11110000})
    assert estimate(shim, above).source == "footers, sample"
    assert [e.key for e in shim.requested[0][0]["predicates"]] == [P.key]
    assert shim.requested[0][0]["columns"] == [B.bit]


def test_one_question_for_a_whole_plan_and_one_more_for_what_comes_later() -> None:
    shim = Shim({P: 0b11110000, Q: 0b1})
    relation = Relation("t", "file", "parquet", files=FILES, leaf=T)
    estimates = PlanEstimates(lambda leaf: KNOWN, (), Samples(shim, lambda leaf: relation))
    estimates.prefetch_samples(Filter(call("And", P, SMALL), T))
    assert estimates(Filter(P, T)).source == "footers, sample"
    assert len(shim.requested) == 1
    assert estimates(Filter(Q, T)).source == "footers, sample"
    assert len(shim.requested) == 2


def test_limits_and_aggregates_are_walls() -> None:
    limited = LogicalPlan("GlobalLimit", (T,), T.output, info={"limit": 3})
    assert "sample" not in estimate(Shim({P: 0b1}), Filter(P, limited)).source


def test_files_are_opened_only_where_arithmetic_is_weak() -> None:
    shim = Shim({P: 0b1, EARLY: 0b1}, here=False)
    assert estimate(shim, Filter(EARLY, T), known=LARGE).source == "footers"
    assert [one.get("read") for requested in shim.requested for one in requested] == [None]
    assert estimate(shim, Filter(P, T), known=LARGE).source == "footers, sample"
    assert shim.requested[-1][0]["read"] is True


def test_files_of_small_relations_are_opened_for_every_filter() -> None:
    shim = Shim({EARLY: 0b1}, here=False)
    assert estimate(shim, Filter(EARLY, T)).source == "footers, sample"


def test_to_be_thorough_is_to_open_files_for_every_filter() -> None:
    shim = Shim({SMALL: 0b1}, here=False)
    relation = Relation("t", "file", "parquet", files=FILES, leaf=T)
    estimates = PlanEstimates(lambda leaf: KNOWN, (), Samples(shim, lambda leaf: relation, thorough=True))
    assert estimates(Filter(SMALL, T)).source == "footers, sample"


def test_not_null_alone_is_no_question() -> None:
    shim = Shim({})
    assert estimate(shim, Filter(call("IsNotNull", reference(A)), T)).source == "footers"
    assert shim.requested == []


def test_a_new_sample_is_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    estimate(Shim({P: 0b1}, here=False), Filter(P, T), store)
    assert store.blob(FILES, BLOB) == b"rows"
    shim = Shim({P: 0b1}, here=False)
    estimate(shim, Filter(P, T), store)
    assert base64.b64decode(shim.requested[-1][0]["blob"]) == b"rows"


def test_a_stored_sample_that_the_jvm_has_already_is_not_offered_again(tmp_path: Path) -> None:
    """It lacks a column. The store is read again only if files would have to be opened otherwise."""
    store = Store(tmp_path / "s.sqlite")
    store.put_blob(FILES, BLOB, b"rows")
    requested: list[list[dict[str, Any]]] = []

    def narrow(relations: list[dict[str, Any]], **_: Any) -> list[dict[str, Any]]:
        requested.append(relations)
        return [{"missing": True, "columns": ["other"]} for _ in relations]

    estimate(narrow, Filter(EARLY, T), store, LARGE)
    assert [[("blob" in one, one.get("read")) for one in relations] for relations in requested] == [[(False, None)]]
    requested.clear()
    estimate(narrow, Filter(P, T), store)
    assert [[("blob" in one, one.get("read")) for one in relations] for relations in requested][-1] == [(True, True)]


def test_a_failing_jvm_costs_nothing_but_the_sample(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any, **__: Any) -> list[dict[str, Any]]:
        raise OSError("gone")

    assert estimate(fail, Filter(P, T)).source == "footers"
    assert "gone" in caplog.text


def test_without_a_first_pass_it_requests_when_needed() -> None:
    assert estimate(Shim({P: 0b1}), Filter(P, T), look=False).source == "footers, sample"


@pytest.mark.parametrize(
    ("predicate", "weak"),
    [
        (SMALL, True),
        (EARLY, False),
        (call("EqualTo", reference(A), literal(3, "int")), False),
        (P, True),
        (call("Or", SMALL, SMALL), True),
        (call("EqualTo", reference(B), literal("x", "string")), True),
        (call("LessThan", reference(A), reference(A)), True),
        (call("LessThan", reference(Attribute(7, 7, "unbounded", "int")), literal(3, "int")), True),
    ],
    ids=repr,
)  # fmt: skip
def test_where_arithmetic_is_weak(predicate: Expression, weak: bool) -> None:
    assert is_weak([predicate], KNOWN) is weak


def test_two_columns_may_depend_on_each_other() -> None:
    columns = {**KNOWN.columns, 7: ColumnStatistics(min=0, max=9)}
    both = RelationStatistics(9.0, 9.0, columns=columns)
    other = call("LessThan", reference(Attribute(7, 7, "d", "date")), literal(3, "int"))
    assert not is_weak([other], both) and is_weak([EARLY, other], both)


@pytest.mark.parametrize(
    ("draws", "limits", "most"),
    [(0, BoundLimits(1e6, 1e7), 25_000), (0, None, None), (None, BoundLimits(1e6, 1e7), None)],
)
def test_a_random_sample_bounds_the_rows_that_share_a_key(
    draws: int | None, limits: BoundLimits | None, most: float | None
) -> None:
    """1,000 rows out of a million: of the 500 that the filter keeps two have the same key, of the others all have."""
    keys = [1 + max(i, 1) if i < 500 else 7 for i in range(1000)]
    half = (1 << 500) - 1

    def shim(relations: list[dict[str, Any]], **_: Any) -> list[dict[str, Any]]:
        codes = {str(bit): b"".join(k.to_bytes(2, "little") for k in keys).hex() for bit in relations[0]["keys"]}
        drawn = {} if draws is None else {"draws": draws, "stretch": 1.0}
        hits = half.to_bytes(125, "little").hex()
        return [{"rows": 1000, "sample": 1, "complete": False, "hits": [hits], "keys": codes, **drawn}]

    relation = Relation("t", "file", "parquet", files=FILES, leaf=T)
    other = LogicalPlan("LogicalRelation", (), (C,), (), 6, 6, {"rel": {"kind": "memory", "name": "u"}})
    kept = Filter(P, T)
    plan = Join(kept, other, "Inner", call("EqualTo", reference(B), reference(C)))
    samples = Samples(shim, lambda leaf: relation if leaf is T else None, limits=limits)
    estimates = PlanEstimates(lambda leaf: LARGE if leaf is T else KNOWN, (), samples)
    estimates.prefetch_samples(plan)
    found = estimates(kept).frequency_bounds
    if most is None:
        assert found == {}
    else:
        assert found.keys() == {B.bit} and found[B.bit].most <= most and not found[B.bit].sketched
        assert found[B.bit].most >= 1e6 * share_bound(2, 1000, 0, 1.0, 1e-6)
    assert estimates(kept).max_rows_per_value == {} and estimates(kept).keys == frozenset()
