"""The runs of one recurring query: found by its number, as text, and as a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import pyjoinopt
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore, Run
from pyjoinopt.report.query_history import HistoryRun, QueryHistory

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('x')</script> & \"b\""


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "store.sqlite"
    queries = QueryStore(Store(path))

    def add(shape: str, conditions: str, plan: str, ended: float, seconds: float, failed: str = "") -> None:
        run = Run("x", plan, EVIL * bool(plan), "one", False, 2.0, 100.0, ended, seconds, failed=failed)
        queries.add(shape, conditions, ("b", "a"), run)

    for ended, seconds in ((1.7e9, 1.0), (1.7e9 + 1, 1.1), (1.7e9 + 2, 1.2)):
        add("0123456789ab", "local", AS_WRITTEN, ended, seconds)
        add("0123456789ab", "local", "e1f2a3b4c5d6", ended + 10, 4 * seconds)
    add("0123456789ab", "cluster", "e1f2a3b4c5d6", 1.7e9 + 5, 9.0, failed="memory")
    add("01ff", "local", AS_WRITTEN, 1.7e9, 1.0)
    return str(path)


def test_it_is_found_by_the_first_letters_of_its_number(store: str) -> None:
    history = pyjoinopt.query_history("012", store)
    assert history.query == "01234567" and history.tables == ("a", "b")
    assert [run.ended - 1.7e9 for run in history.runs] == [0, 1, 2, 5, 10, 11, 12], "of all clusters, by time"
    assert [run.plan for run in history.runs] == ["as written"] * 3 + ["e1f2a3b4"] * 4
    assert "revoked: this plan took 3.82 times as long" in history.states["e1f2a3b4"]


@pytest.mark.parametrize(
    ("query", "message"),
    [("01", "several queries begin with '01'"), ("77", "there is no query '77'"), ("", "there is no query ''")],
)
def test_other_numbers_are_refused_with_those_that_there_are(store: str, query: str, message: str) -> None:
    with pytest.raises(KeyError, match=f"{message}; there are 01234567, 01ff|{message}; there are 01ff, 01234567"):
        pyjoinopt.query_history(query, store)


def test_a_store_without_queries(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="there are none"):
        pyjoinopt.query_history("0", str(tmp_path / "none.sqlite"))
    with pytest.raises(TypeError, match="query is 7"):
        pyjoinopt.query_history(7)  # type: ignore[arg-type]


def test_the_text_has_a_line_for_each_change_of_the_plan(store: str) -> None:
    lines = str(pyjoinopt.query_history("0123", store)).splitlines()
    assert lines[0] == "query 01234567 over a, b: 7 runs"
    assert lines[1] == "2023-11-14 22:13:20  as written    3 runs  1 .. 1.2 s"
    assert lines[2].startswith("2023-11-14 22:13:25  e1f2a3b4      4 runs  4 .. 4.8 s  1 failed  revoked: this plan")


def test_the_picture_has_every_run_and_no_foreign_element(store: str) -> None:
    history = pyjoinopt.query_history("0123", store)
    root = ElementTree.fromstring(history.to_svg())
    assert not list(root.iter(f"{SVG}script"))
    circles = list(root.iter(f"{SVG}circle"))
    assert [circle.get("class") for circle in circles] == ["leaf"] * 3 + ["dot"] * 3
    heights = [float(circle.get("cy", "")) for circle in circles]
    assert heights[0] > heights[1] > heights[2] > heights[3] > heights[5], "longer runs are higher"
    assert [t.text for t in root.iter(f"{SVG}text")].count("✕") == 1
    assert sum(line.get("stroke-dasharray") is not None for line in root.iter(f"{SVG}line")) == 2, "two plans"
    described = [title.text for title in root.iter(f"{SVG}title")][1:]
    assert len(described) == 7 and EVIL in str(described[3])
    assert set(history._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.mark.parametrize(
    "runs", [(), (HistoryRun(0.0, 0.0, "as written"),), (HistoryRun(0.0, 1.0, "x", "", "memory"),)]
)
def test_pictures_of_little(runs: tuple[HistoryRun, ...]) -> None:
    history = QueryHistory("0", (), runs, {})
    assert ElementTree.fromstring(history.to_svg()).get("class") == "pjo"
    assert history.to_text().startswith("query 0 over")
