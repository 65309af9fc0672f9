"""Reads of a first query: one deadline, samples and footers read concurrently, dictionaries only where they matter."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.read_deadline import ReadDeadline
from pyjoinopt.estimation.sources.registry import Files, Relation
from pyjoinopt.estimation.sources.samples import BLOB, Samples, SamplesOfPlan
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan

A, B, C = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "string"), Attribute(2, 2, "c", "int")
REL = {"rel": {"kind": "file", "format": "parquet", "name": "t", "bytes": 3600.0}}
T = LogicalPlan("LogicalRelation", (), (A, B, C), (), 5, 5, REL)
TOLD = {"id": "i", "schema": "s", "count": 1, "bytes": 3600, "newest": 5000}
LIKE = Filter(Expression("Like", (reference(B), literal("p%", "string"))), T)


class Shim:
    """Responds to requests of both kinds, and records them in order."""

    def __init__(self) -> None:
        self.requested: list[tuple[str, dict[str, Any]]] = []

    def statistics(self, leaves: list[LogicalPlan], option: str, **request: Any) -> dict[int, dict[str, Any]]:
        self.requested.append((",".join(request["sources"]), request))
        rows = 10 if request["sources"] == ["footers"] else None
        columns = {"0": {"ndv": 3}} if rows and "5" in request["distinct"] and 0 in request["distinct"]["5"] else {}
        known = {"rows": rows, "bytes": 3600, "source": "footers" if rows else "size", "columns": columns}
        return {leaf.number: {**known, "files": TOLD} for leaf in leaves if leaf.number is not None}

    def samples(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        self.requested.append(("samples", {**request, "relations": relations}))
        return [{"missing": True} for _ in relations]


def test_one_deadline_for_everything() -> None:
    deadline = ReadDeadline(1000)
    assert deadline.left() > 990 and deadline.for_samples() == 250
    time.sleep(0.05)
    assert deadline.left() <= 950
    spent = ReadDeadline(20)
    spent.left()
    time.sleep(0.03)
    assert spent.left() == spent.for_samples() == 1, "whoever is late still asks for what is there"
    assert ReadDeadline(1000, thorough=True).for_samples() > 4900


def requested(
    plan: LogicalPlan, store: Store | None = None, drawing: bool = True, deadline: int = 1000
) -> list[tuple[str, dict[str, Any]]]:
    shim, nodes = Shim(), [T, plan]
    known = LeafStatistics(shim.statistics, [T], "auto", nodes, store, ReadDeadline(1000))
    samples = Samples(shim.samples, known.relation, store, deadline=ReadDeadline(deadline))
    samples.drawing = drawing
    known.use_partition_filters(nodes, SamplesOfPlan(samples, plan))
    samples.prefetch(plan, known)
    return shim.requested


def test_samples_are_begun_before_footers_are_waited_for() -> None:
    what = requested(LIKE)
    assert [name for name, _ in what] == ["catalog,memory,database", "samples", "footers", "samples", "samples"]
    begun, footers, first, second = (request for _, request in what[1:])
    assert begun["deadlineMs"] == 0 and begun["relations"][0]["read"], "nobody waits for it"
    assert footers["deadlineMs"] == footers["totalMs"] <= 1000
    assert "read" not in first["relations"][0] and second["relations"][0]["read"] and second["deadlineMs"] == 250
    assert [one["evaluateMs"] for one in (begun, first, second)] == [0, 500, 500]


def test_predicates_are_evaluated_as_long_as_samples_are_waited_for() -> None:
    for milliseconds, evaluated in ((1000, 500), (8000, 2000), (3_600_000, 10_000)):
        *_, last = requested(LIKE, deadline=milliseconds)
        assert last[1]["evaluateMs"] in range(evaluated - 20, evaluated + 1)


def test_what_arithmetic_may_judge_is_not_begun() -> None:
    simple = Filter(call("EqualTo", reference(A), literal(3, "int")), T)
    assert not any(one["relations"][0].get("read") for name, one in requested(simple)[:2] if name == "samples")


def test_where_nothing_is_to_be_chosen_none_is_drawn() -> None:
    what = requested(LIKE, drawing=False)
    assert not any(one["relations"] and one["relations"][0].get("read") for name, one in what if name == "samples")


def test_what_the_store_has_is_not_begun(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")
    store.put_blob(Files("i", "s", 1, 3600, 5.0), BLOB, b"rows")
    begun = [one for name, one in requested(LIKE, store) if name == "samples" and one.get("deadlineMs") == 0]
    assert begun == []


@pytest.mark.parametrize(
    ("plan", "counted"),
    [
        (Filter(call("LessThan", reference(A), literal(3, "int")), T), [0]),
        (Join(T, T, "Inner", call("EqualTo", reference(A), reference(C))), [0, 2]),
        (Aggregate((reference(B),), (call("Sum", reference(A)),), T, (B,)), [1]),
        (LogicalPlan("Sort", (T,), (A, B, C), (reference(A),)), []),
    ],
)
def test_dictionaries_only_of_columns_that_are_compared(plan: LogicalPlan, counted: list[int]) -> None:
    shim = Shim()
    LeafStatistics(shim.statistics, [T], "auto", [T, plan])(T)
    (footers,) = (request for name, request in shim.requested if name == "footers")
    assert footers["distinct"] == {"5": counted}


def test_a_later_query_counts_more_and_forgets_nothing(tmp_path: Path) -> None:
    """The store records the columns whose dictionaries were read, and keeps its values for the others."""
    store = Store(tmp_path / "store.sqlite")

    def columns(attribute: Attribute) -> tuple[dict[str, Any], int]:
        shim, nodes = Shim(), [T, Filter(call("LessThan", reference(attribute), literal(3, "int")), T)]
        ((_, known),) = LeafStatistics(shim.statistics, [T], "auto", nodes, store).known()
        return {name: c.ndv for name, c in known.columns.items()}, sum(name == "footers" for name, _ in shim.requested)

    assert columns(A) == ({"a": 3}, 1)
    assert columns(A) == ({"a": 3}, 0)
    assert columns(C) == ({"a": 3}, 1)
    assert columns(C) == ({"a": 3}, 0)


def test_a_relation_that_is_described_before_it_is_known() -> None:
    shim = Shim()
    known = LeafStatistics(shim.statistics, [T], "auto", [T])
    seen: list[Relation | None] = []

    class Sees:
        def begin(self) -> None:
            seen.append(known.relation(T))

    known.use_partition_filters([T], Sees())
    assert known(T).rows == 10
    assert seen[0] is not None and seen[0].files == Files("i", "s", 1, 3600, 5.0)
