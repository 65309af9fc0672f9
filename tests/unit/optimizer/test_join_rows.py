"""What the plan above a join group takes over from the group's estimator."""

from __future__ import annotations

from typing import Any

import pytest

from pyjoinopt.cost import cost_model
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import JoinRows, PlanEstimates
from pyjoinopt.estimation.sources.registry import Files, Relation
from pyjoinopt.estimation.sources.samples import Samples
from pyjoinopt.feedback.learned_rows import LearnedRows
from pyjoinopt.optimizer.join_rows import below_semi_joins
from pyjoinopt.optimizer.order_group import OrderingContext
from pyjoinopt.optimizer.reorder import reorder
from pyjoinopt.plan.expressions import Attribute, call, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project

PLANE, DESTINATION, AIRPORT, ZONE, OTHER, KIND = (Attribute(n, n, name, "int") for n, name in enumerate("pdazok"))
FLIGHTS = LogicalPlan("LogicalRelation", (), (PLANE, DESTINATION), number=0)
AIRPORTS = LogicalPlan("LogicalRelation", (), (AIRPORT, ZONE), number=1)
OTHERS = LogicalPlan("LogicalRelation", (), (OTHER, KIND), number=2)
#: Of 1,000 sampled flights by 50 planes, every tenth is one of planes 1 to 4 into the zone.
PLANES = [1 + i // 10 % 4 if i % 10 == 0 else 5 + i % 46 for i in range(1000)]
INTO_ZONE = sum(1 << i for i in range(0, 1000, 10))
#: Of 1,000 sampled others 300 are of one of these four planes.
OTHER_PLANES = [1 + i % 4 if i % 10 < 3 else 60 for i in range(1000)]


def hexed(bits: int) -> str:
    return bits.to_bytes(125, "little").hex()


def hashed(values: list[int]) -> str:
    return "".join(f"{v:02x}000000" for v in values)


def sampled(relations: list[dict[str, Any]], **_: object) -> list[dict[str, Any]]:
    """What the JVM would find of requests for stars and single relations, without a sample of the others."""
    everything = hexed((1 << 1000) - 1)
    found: list[dict[str, Any]] = []
    for one in relations:
        answer: dict[str, Any] = {"rows": 1000, "sample": one["node"] + 1, "complete": False, "hits": []}
        if one["node"] == 0:
            answer["keys"] = {"0": "".join(f"{v:02x}00" for v in PLANES)}
            answer["hashed"] = {"0": hashed(PLANES)} if "hashed" in one else {}
            if "dimensions" in one:
                answer["dimensions"] = [{"filled": everything, "matched": everything, "hits": [hexed(INTO_ZONE)]}]
        elif one["node"] == 1:
            answer |= {"rows": 10, "complete": True, "hits": ["0100" for _ in one["predicates"]]}
        else:
            answer = {"missing": True}
        found.append(answer)
    return found


def sampled_with_others(relations: list[dict[str, Any]], **_: object) -> list[dict[str, Any]]:
    """The same with a sample of the others."""
    found = sampled(relations)
    for i, one in enumerate(relations):
        if one["node"] == 2:
            assert one["hashed"] == [4]
            found[i] = {"rows": 1000, "sample": 3, "complete": False, "hits": [], "hashed": {"4": hashed(OTHER_PLANES)}}
    return found


def leaf(plan: LogicalPlan) -> RelationStatistics:
    if plan is AIRPORTS:
        columns = {2: ColumnStatistics(10.0, key_values=10.0), 3: ColumnStatistics(10.0)}
        return RelationStatistics(10.0, 80.0, "footers", True, columns, 10.0, 10.0)
    rows = 1e5 if plan is FLIGHTS else 5000.0
    bits = (0, 1) if plan is FLIGHTS else (4,)
    columns = {bit: ColumnStatistics(10.0 if bit == 1 else 50.0) for bit in bits}
    return RelationStatistics(rows, 8 * rows, "footers", True, columns, rows, rows)


def estimates_after(plan: LogicalPlan, request: Any = sampled) -> PlanEstimates:
    def relation(node: LogicalPlan) -> Relation | None:
        named = {0: "f", 1: "a", 2: "o"}.get(-1 if node.number is None else node.number)
        return Relation(named, files=Files(named, "s", 1, 1, 0.0), leaf=node) if named else None

    estimates = PlanEstimates(leaf, (), Samples(request, relation))
    estimates.prefetch_samples(plan)
    context = OrderingContext(estimates, cost_model("c_out"), 1000, LearnedRows(lambda node: None, None))
    assert reorder(plan, context).plan is plan
    return estimates


def in_zone() -> LogicalPlan:
    zone = Filter(call("EqualTo", reference(ZONE), literal(3, "int")), AIRPORTS)
    return Join(FLIGHTS, zone, "Inner", call("EqualTo", reference(DESTINATION), reference(AIRPORT)))


@pytest.mark.parametrize("kind", ["LeftSemi", "LeftAnti"])
def test_a_semi_join_knows_which_planes_are_left(kind: str) -> None:
    planes = Project((reference(PLANE),), in_zone())
    plan = Join(OTHERS, planes, kind, call("EqualTo", reference(OTHER), reference(PLANE)))
    estimates = estimates_after(plan)
    assert estimates(planes).rows == pytest.approx(10_000, rel=0.02)
    assert estimates(planes).column(0).ndv == 4.0
    assert estimates(plan).rows == pytest.approx(400 if kind == "LeftSemi" else 4600)


@pytest.mark.parametrize(("kind", "rows"), [("LeftSemi", 1500), ("LeftAnti", 3500)])
def test_samples_show_how_many_rows_have_one_of_these_planes(kind: str, rows: float) -> None:
    planes = Project((reference(PLANE),), in_zone())
    plan = Join(OTHERS, planes, kind, call("EqualTo", reference(OTHER), reference(PLANE)))
    assert estimates_after(plan, sampled_with_others)(plan).rows == pytest.approx(rows, rel=0.02)


def test_other_groups_of_two_take_over_their_rows_alone() -> None:
    joined = in_zone()
    known = estimates_after(joined)(joined)
    assert known.rows == pytest.approx(10_000, rel=0.02)
    assert known.column(0).ndv == 50.0, "nothing above looks for a partner"


def test_what_is_below_a_semi_join() -> None:
    inner = Join(FLIGHTS, AIRPORTS, "Inner", None)
    semi = Join(OTHERS, Project((reference(PLANE),), inner), "LeftSemi", None)
    nodes = [FLIGHTS, AIRPORTS, inner, semi.right, OTHERS, semi]
    assert below_semi_joins(nodes) == {id(node) for node in (FLIGHTS, AIRPORTS, inner, semi.right)}
    assert not below_semi_joins([FLIGHTS, AIRPORTS, inner])


def test_fewer_values_than_known_before_replace_these_alone() -> None:
    estimates = PlanEstimates(leaf)
    estimates.override_rows(FLIGHTS, JoinRows(1000.0, 1e9, distinct={0: 7.0, 1: 99.0}))
    known = estimates(FLIGHTS)
    assert known.rows == 1000.0 and known.upper_bound == 1e5
    assert (known.column(0).ndv, known.column(0).domain, known.column(1).ndv) == (7.0, 50.0, 10.0)
