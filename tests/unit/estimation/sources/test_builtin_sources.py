"""The order in which sources are called, and the use of their results."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyjoinopt.config import resolve
from pyjoinopt.estimation.sources import registry
from pyjoinopt.estimation.sources.columns_of_interest import needed_columns
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.statistics import Column, Known, Relation, StatisticsSource, register, registered, unregister
from pyjoinopt.util.warn_once import forget_causes

A, B, C = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "string"), Attribute(2, 2, "C", "date")
T = LogicalPlan(
    "LogicalRelation", (), (A, B, C), (), 5, 5,
    {"rel": {"kind": "file", "format": "parquet", "name": "t", "bytes": 3600.0}},
)  # fmt: skip
FILES = {"id": "i", "schema": "s", "count": 1, "bytes": 3600, "newest": 5000}
FOOTERS = {
    "rows": 10, "bytes": 3600, "source": "footers", "exact": True, "files": FILES,
    "columns": {"0": {"min": 1, "max": 3}},
}  # fmt: skip
SIZE = {"rows": None, "bytes": 3600, "source": "size", "columns": {}, "files": FILES}


class Shim:
    """Returns prepared responses by request, and records the requests."""

    def __init__(self, first: dict[str, Any], **more: dict[str, Any]) -> None:
        self.answers = {"first": first, **more}
        self.requested: list[str] = []

    def __call__(self, leaves: list[LogicalPlan], option: str, **request: Any) -> dict[int, dict[str, Any]]:
        what = request["sources"][0] if request["sources"] in (["footers"], ["text"]) else "first"
        self.requested.append(what)
        return {leaf.number: self.answers[what] for leaf in leaves if leaf.number is not None}


class Catalogue:
    """A user's source."""

    def __init__(self, known: Any, name: str = "ours") -> None:
        self.known = known
        self.name = name
        self.requested: list[Relation] = []

    def lookup(self, relation: Relation) -> Known | None:
        self.requested.append(relation)
        if isinstance(self.known, Exception):
            raise self.known
        return self.known


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", [])
    forget_causes("source")
    yield


def known(shim: Shim, option: str = "auto", store: Store | None = None, nodes: tuple[LogicalPlan, ...] = ()) -> Known:
    ((_, one),) = LeafStatistics(shim, [T], option, nodes, store).known()
    return one


def test_footers_are_read_only_if_the_catalog_knows_nothing() -> None:
    counted = {"rows": 7, "bytes": 70, "source": "catalog", "columns": {"0": {"ndv": 2}}, "files": FILES}
    shim = Shim(counted, footers=FOOTERS)
    assert (known(shim).rows, known(shim).source, shim.requested) == (7, "catalog", ["first", "first"])
    shim = Shim(SIZE, footers=FOOTERS)
    assert (known(shim).rows, known(shim).exact, shim.requested[:2]) == (10, True, ["first", "footers"])


def test_of_a_table_that_was_only_counted_footers_have_the_columns() -> None:
    shim = Shim({"rows": 7, "source": "catalog", "columns": {}, "files": FILES}, footers=FOOTERS)
    assert (known(shim).rows, known(shim).source, known(shim).columns) == (7, "catalog", {"a": Column(min=1, max=3)})


@pytest.mark.parametrize(
    ("option", "source", "questions"),
    [
        ("auto", "size", 2), ("full", "size", 2), ("footers", "default", 2), ("catalog", "default", 1),
        ("none", "size", 0),
    ],
)  # fmt: skip
def test_each_option_has_its_source(option: str, source: str, questions: int) -> None:
    shim = Shim(SIZE, footers=SIZE)
    assert known(shim, option).source == source
    assert len(shim.requested) == questions
    answer = LeafStatistics(Shim(SIZE, footers=SIZE), [T], option)(T)
    assert answer.source == source
    if source == "size":
        assert answer.rows == 100, "3,600 bytes; a row has 8, and 4 + 20 + 4 for int, string and date"
    else:
        assert answer.rows == 1e6


@pytest.mark.parametrize(
    ("without", "source"),
    [
        ("", "catalog"), ("catalog", "footers"), ("catalog, footers", "size"), ("samples", "catalog"),
        ("memory,text,analyze,catalog", "footers"),
    ],
)  # fmt: skip
def test_each_rung_can_be_left_out(without: str, source: str) -> None:
    counted = {"rows": 7, "bytes": 70, "source": "catalog", "columns": {"0": {"ndv": 2}}, "files": FILES}
    options = resolve({"statistics_without": without}, {})
    leaves = LeafStatistics(Shim(counted, footers=FOOTERS), [T], "auto", without=options.without)
    assert leaves(T).source == source


def test_rows_of_the_plan_need_no_source() -> None:
    values = LogicalPlan("Range", (), (A,), (), 5, 5, {"rows": 12.0})
    statistics = LeafStatistics(Shim(SIZE), [values], "none")(values)
    assert (statistics.rows, statistics.exact, statistics.source) == (12, True, "local")


def test_old_catalog_counts_prove_nothing() -> None:
    counted = {"rows": 7, "source": "catalog", "columns": {"0": {"ndv": 2}}}
    assert LeafStatistics(Shim(counted), [T], "auto")(T).upper_bound == 7
    older = {**counted, "note": "older than the files"}
    statistics = LeafStatistics(Shim(older), [T], "auto")(T)
    assert (statistics.rows, statistics.upper_bound) == (7, float("inf"))
    assert known(Shim(older)).note == "older than the files"


# -- the store ---------------------------------------------------------------------------------------------------


def test_what_was_read_once_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    shim = Shim(SIZE, footers=FOOTERS)
    first = known(shim, store=Store(path))
    again = known(shim, store=Store(path))
    assert shim.requested == ["first", "footers", "first"]
    assert first.gathered is None and again.gathered is not None
    assert (again.rows, again.columns, again.exact, again.source) == (10, first.columns, True, "footers")


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    known(Shim(SIZE, footers=FOOTERS), store=store)
    changed = {**FILES, "id": "j"}
    shim = Shim({**SIZE, "files": changed}, footers={**FOOTERS, "rows": 20, "files": changed})
    assert known(shim, store=store).rows == 20


@pytest.mark.parametrize("answer", [{"note": "1 of 3 footers cannot be read"}, {"files": {**FILES, "id": "changed"}}])
def test_what_may_be_better_next_time_is_not_remembered(tmp_path: Path, answer: dict[str, Any]) -> None:
    store = Store(tmp_path / "s.sqlite")
    shim = Shim(SIZE, footers={**FOOTERS, **answer})
    assert known(shim, store=store).rows == 10
    assert known(shim, store=store).rows == 10
    assert shim.requested == ["first", "footers"] * 2


def test_of_a_wide_table_more_columns_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("builtin_sources", "jvm_questions"):
        monkeypatch.setattr(f"pyjoinopt.estimation.sources.{module}.WIDE", 2)
    store = Store(tmp_path / "s.sqlite")
    filters = [Filter(call("IsNotNull", reference(column)), T) for column in (A, C)]
    shim = Shim(SIZE, footers=FOOTERS)
    known(shim, store=store, nodes=(T, filters[0]))
    shim.answers["footers"] = {**FOOTERS, "columns": {"2": {"max": 9}}}
    known(shim, store=store, nodes=(T, filters[1]))
    assert shim.requested == ["first", "footers"] * 2
    both = known(shim, store=store, nodes=(T, *filters))
    assert both.columns == {"a": Column(min=1, max=3), "C": Column(max=9)}
    assert len(shim.requested) == 5, "the store knows both by now"


def test_needed_columns() -> None:
    handed_up = Project((reference(A), reference(B)), Filter(call("IsNotNull", reference(C)), T))
    nodes = [T, handed_up.child, handed_up]
    assert needed_columns(nodes) == C.mask
    assert needed_columns([*nodes, LogicalPlan("Distinct", (handed_up,), handed_up.output)]) == 0b111
    by_key = LogicalPlan("Deduplicate", (handed_up,), handed_up.output, info={"keys": [B.bit]})
    assert needed_columns([*nodes, by_key]) == B.mask | C.mask


# -- users' sources ----------------------------------------------------------------------------------------------


def test_a_users_source_comes_first() -> None:
    ours = Catalogue(Known(rows=3, columns={"c": Column(min=datetime.date(1970, 1, 3), ndv=2), "gone": Column(ndv=9)}))
    assert isinstance(ours, StatisticsSource)
    register(ours)
    statistics = LeafStatistics(Shim(SIZE, footers=FOOTERS), [T], "auto")(T)
    assert (statistics.rows, statistics.source, statistics.upper_bound) == (3, "ours", float("inf"))
    assert statistics.column(C.bit).min == 2, "names fit whatever their case"
    (relation,) = ours.requested
    assert (relation.name, relation.format, relation.bytes) == ("t", "parquet", 3600)
    assert relation.columns == {"a": "int", "b": "string", "C": "date"}
    assert relation.files is not None and (relation.files.id, relation.files.newest) == ("i", 5.0)


def test_an_exact_count_is_a_bound() -> None:
    register(Catalogue(Known(rows=3, exact=True)))
    assert LeafStatistics(Shim(SIZE), [T], "auto")(T).upper_bound == 3


def test_columns_alone_are_added_to_what_others_count() -> None:
    register(Catalogue(Known(columns={"a": Column(ndv=2)})))
    one = known(Shim(SIZE, footers=FOOTERS))
    assert (one.rows, one.source, one.columns["a"]) == (10, "footers", Column(ndv=2))


@pytest.mark.parametrize("option", ["auto", "catalog", "footers", "full"])
def test_declared_statistics_are_used_under_every_option_but_none(option: str) -> None:
    ours = Catalogue(Known(rows=3))
    register(ours)
    assert known(Shim(SIZE), option).rows == 3
    assert known(Shim(SIZE), "none").source == "size" and len(ours.requested) == 1


def test_the_last_registered_comes_first_and_names_are_unique() -> None:
    register(Catalogue(Known(rows=1), "one"))
    register(Catalogue(Known(rows=2), "two"))
    assert known(Shim(SIZE)).rows == 2
    register(Catalogue(Known(rows=4), "one"))
    assert [s.name for s in registered()] == ["one", "two"] and known(Shim(SIZE)).rows == 4
    assert unregister("one") and not unregister("one")
    assert unregister(registered()[0]) and registered() == ()


@pytest.mark.parametrize(
    "wrong",
    [
        KeyError("no such table"), 17, {"rows": 3}, Known(rows=-1), Known(rows=float("nan")), Known(rows="many"),
        Known(rows=1, bytes=float("inf")), Known(rows=1, columns={"a": 3}),
    ],
    ids=repr,
)  # fmt: skip
def test_a_wrong_source_costs_one_warning(wrong: Any) -> None:
    register(Catalogue(wrong))
    shim = Shim(SIZE, footers=FOOTERS)
    with pytest.warns(RuntimeWarning, match="'ours' failed") as reported:
        assert known(shim).rows == 10
        assert known(shim).rows == 10
    assert len(reported) == 1


def test_a_source_gets_the_list_of_requests_first() -> None:
    class Prepared(Catalogue):
        def prepare(self, relations: Any) -> None:
            self.prepared = [relation.name for relation in relations]

    ours = Prepared(None)
    register(ours)
    known(Shim(SIZE, footers=FOOTERS))
    assert ours.prepared == ["t"]

    class Failing(Catalogue):
        def prepare(self, relations: Any) -> None:
            raise OSError("away")

    register(Failing(None, "failing"))
    with pytest.warns(RuntimeWarning, match="away"):
        assert known(Shim(SIZE, footers=FOOTERS)).rows == 10


@pytest.mark.parametrize("thing", [object(), type("NoName", (), {"lookup": lambda self, r: None})(), "catalogue"])
def test_only_sources_can_be_registered(thing: Any) -> None:
    with pytest.raises(TypeError, match="name"):
        register(thing)


def test_an_interrupt_is_not_swallowed() -> None:
    class Slow(Catalogue):
        def lookup(self, relation: Relation) -> Known | None:
            raise KeyboardInterrupt

    register(Slow(None))
    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("error")
        known(Shim(SIZE))
