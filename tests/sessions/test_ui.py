"""The tab "Join orders" in the UI of a real application, and in a real History Server from its event log."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.sessions import doors, fakes
from tests.sessions.conftest import BAD_ORDER, planned
from tests.support import history_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = Path(__file__).with_name("ui_program.py")
#: A column and a table of the program.
NAME = "<script>document.title='broken'</script>"
TABLE = "<img src=x onerror=document.title='broken'>"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
BAD, GOOD = "((fact ⋈ mid) ⋈ dim)", "(fact ⋈ (mid ⋈ dim))"
QUERIES = range(1, 10)
STATUS = ["finished", "finished", "failed", "finished", "finished", "failed", *["finished"] * 3]
#: The real worker, which waits while there is a file.
WAITING = """
import os, sys, time
from pyjoinopt.worker import serve
answer = serve.Planner.answer
def waiting(*parts):
    while os.path.exists({hold!r}):
        time.sleep(0.05)
    return answer(*parts)
serve.Planner.answer = waiting
sys.exit(serve.main())
"""
#: The real worker, which notes whether a request is for pictures.
RECORDING = """
import sys
from pyjoinopt.worker import serve
answer = serve.Planner.answer
def noted(planner, send, request, learned):
    print("pictures" in request, file=open({requests!r}, "a"))
    return answer(planner, send, request, learned)
serve.Planner.answer = noted
sys.exit(serve.main())
"""

pytestmark = [pytest.mark.ci, pytest.mark.jvm, pytest.mark.timeout(400)]


class Page(HTMLParser):
    """What a page shows and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.parts: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.parts.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(filter(None, self.parts))

    @property
    def own(self) -> str:
        """The text of the tab, without what Spark has above and below it."""
        return self.text.partition("application UI")[2].partition(" as JSON")[0]

    def values(self, tag: str, name: str) -> list[str]:
        return [value for one, attribute, value in self.attributes if (one, attribute) == (tag, name)]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the program has kept what the UI showed."""
    folder = tmp_path_factory.mktemp("ui")
    (folder / "events").mkdir()
    fakes.fake(folder, WAITING.format(hold=str(folder / "hold")))
    doors.run([sys.executable, str(PROGRAM), str(folder), str(doors.free_port())], folder)
    return folder


@dataclass(frozen=True)
class History:
    """A History Server, and the application of the program."""

    address: str
    application: str

    def url(self, path: str) -> str:
        return f"{self.address}{path.replace('APP', self.application)}"

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(self.url(path), timeout=60) as answer:
            return str(answer.read().decode("utf-8"))


@pytest.fixture(scope="module")
def history(live: Path) -> Iterator[History]:
    """A History Server over the log of the program, and over logs that are made from it."""
    log = live / "events" / (live / "application").read_text()
    history_logs.repeated(log, 1010, "many")
    history_logs.of_older_release(log, "older")
    history_logs.damaged(log, "damaged")
    with doors.history_server(live, live / "events", {log.name, "many", "older", "damaged"}) as address:
        yield History(address, log.name)


def page_of(live: Path, name: str) -> Page:
    return Page((live / f"{name}.html").read_text(encoding="utf-8"))


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT")


def json_of(live: Path, name: str) -> Any:
    return json.loads((live / f"{name}.json").read_text(encoding="utf-8"))


def test_the_list_has_every_query(live: Path) -> None:
    assert "No query with joins to order was planned yet." in page_of(live, "empty").text
    queries = json_of(live, "list")
    assert [query["number"] for query in queries] == list(QUERIES)
    assert [query["status"] for query in queries] == STATUS
    assert all(query["changed"] and query["outcome"] == "changed" for query in queries)
    assert all(query["costBefore"] > query["costAfter"] > 0 for query in queries)
    assert all(query["duration"] >= 0 and query["planningTime"] > 0 for query in queries)
    assert len({query["executionId"] for query in queries}) == len(queries)
    assert queries == json_of(live, "page")
    page = page_of(live, "list")
    assert "9 queries, 9 with changed joins." in page.text
    links = page.values("a", "href")
    assert all(f"/SQL/execution/?id={query['executionId']}" in links for query in queries)
    assert all(f"/joinorders/query/?id={number}" in links for number in QUERIES)


def test_estimated_times_are_those_of_the_other_queries(live: Path) -> None:
    queries = json_of(live, "list")
    ended = [query for query in queries if query["status"] == "finished"]
    for query in queries:
        others = sorted(
            (other["duration"] - other["planningTime"]) / other["costAfter"]
            for other in ended
            if other is not query and other["duration"] > other["planningTime"]
        )
        unit = others[len(others) // 2]
        expected = query["costAfter"] * unit + query["planningTime"]
        assert query["estimatedDuration"] == pytest.approx(expected, abs=1)
        assert query["estimatedDurationAsWritten"] == pytest.approx(query["costBefore"] * unit, abs=1)
    planning = json_of(live, "planning")
    assert "estimatedDuration" not in planning[5], "its cost is not known yet"
    page = page_of(live, "query1")
    assert "Estimated duration: " in page.text and " in the order as written" in page.text
    assert "Estimated duration" in page_of(live, "list").text


def test_states_of_a_query(live: Path) -> None:
    planning, running, ended = (json_of(live, name)[5] for name in ("planning", "running", "list"))
    assert (planning["status"], planning["outcome"], planning["changed"]) == ("planning", "", False)
    assert "costBefore" not in planning and "duration" not in planning
    assert "Status: planning" in page_of(live, "planning").text
    assert (running["status"], running["outcome"], running["changed"]) == ("running", "changed", True)
    assert "Status: running" in page_of(live, "running").text and GOOD in page_of(live, "running").text
    # which of its jobs was cancelled, or that several were
    assert ended["status"] == "failed" and ended["errorMessage"] and "\n" not in ended["errorMessage"]
    raised = json_of(live, "list")[2]
    assert NAME in raised["errorMessage"] and "\n" not in raised["errorMessage"]
    assert f"Error: {raised['errorMessage']}" in page_of(live, "query3").text


def test_the_page_of_a_query(live: Path) -> None:
    page = page_of(live, "query1")
    assert f"Before: {BAD} After: {GOOD}" in page.text
    pictures = page.values("img", "src")
    assert [source[:26] for source in pictures if source.startswith("data:")] == ["data:image/svg+xml;base64,"] * 3
    words = page.values("img", "alt")
    assert words[-3:] == [f"Order before: {BAD}", f"Order after: {GOOD}", "Join graph of group 1"]
    assert "Joins, innermost first" in page.text and "Error factor" in page.text and "BroadcastHashJoin" in page.text
    data = json_of(live, "query1")
    assert data["reports"][0]["groups"][0]["order_after"] == GOOD
    assert data == json_of(live, "page1")
    assert [join["relations"] for join in data["joins"]] == [["mid", "dim"], ["fact", "mid", "dim"]]
    assert [join["counted"] for join in data["joins"]] == [40, 400]
    assert "mid, dim (mid_f = dim_k) 40 40 1x" in page.text


def test_a_plan_that_was_made_by_explain_gets_its_execution(live: Path) -> None:
    query = json_of(live, "query4")
    executions = [query["executionId"] for query in json_of(live, "list")]
    assert query["status"] == "finished" and executions[2] + 1 == query["executionId"] == executions[4] - 2
    # 1.5 seconds after it was explained, which was after the query before it
    before, submitted = moment(json_of(live, "query3")["completionTime"]), moment(query["submissionTime"])
    assert (submitted - before).total_seconds() >= 1.5
    assert [join["counted"] for join in query["joins"]] == [40, 400]


def test_a_plan_from_the_cache_has_counted_rows(live: Path) -> None:
    planned, repeated = json_of(live, "query7"), json_of(live, "query8")
    assert planned["reports"][0]["groups"] == repeated["reports"][0]["groups"]  # with the time of the search
    assert [join["counted"] for join in repeated["joins"]] == [40, 400]
    assert page_of(live, "query7").values("img", "src") == page_of(live, "query8").values("img", "src")


def test_a_subquery_is_a_plan_of_its_query(live: Path) -> None:
    query = json_of(live, "query9")
    assert len(query["reports"]) == 2
    assert query["costBefore"] == pytest.approx(sum(report["cost_before"] for report in query["reports"]))
    page = page_of(live, "query9").text
    assert "Plan 1 of 2" in page and "Plan 2 of 2" in page and page.count(f"After: {GOOD}") == 2


def test_a_query_that_was_not_planned_in_time(live: Path) -> None:
    query = json_of(live, "late")[-1]
    assert (query["number"], query["outcome"], query["changed"]) == (10, "timedOut", False)


def test_reports_have_no_pictures(live: Path) -> None:
    reports = (live / "reports").read_text(encoding="utf-8")
    assert reports.count("order_after") >= len(QUERIES) and "svg" not in reports and "pictures" not in reports


def test_without_a_ui_and_a_log_nothing_is_drawn(session: SparkSession, tmp_path: Path) -> None:
    assert session.sparkContext.uiWebUrl is None
    requests = tmp_path / "requests"
    fakes.give(session, python=fakes.fake(tmp_path, RECORDING.format(requests=str(requests))))
    (report,) = planned(session, lambda: session.sql(BAD_ORDER.format(hint="")).collect())[1]
    assert report.changed and requests.read_text() == "False\n"


def test_rows_below_a_limit_are_left_out(live: Path) -> None:
    query = json_of(live, "query5")
    assert query["status"] == "finished" and all(join["relations"] != ["fact", "mid", "dim"] for join in query["joins"])


def test_names_are_text(live: Path) -> None:
    for name in ("list", *(f"query{number}" for number in QUERIES)):
        page = page_of(live, name)
        assert NAME not in page.source and TABLE not in page.source
        assert not [value for _, attribute, value in page.attributes if attribute.startswith("on")], name
    assert NAME in page_of(live, "query2").text and TABLE in page_of(live, "query2").text
    assert NAME in page_of(live, "query3").text and NAME in page_of(live, "list").text


def test_nothing_is_loaded_from_elsewhere(live: Path) -> None:
    for name in ("empty", "list", "query1", "query2"):
        page = page_of(live, name)
        loaded = [value for _, name, value in page.attributes if name == "src"] + page.values("link", "href")
        assert loaded and all(address.startswith(("/static/", "data:image/svg+xml;base64,")) for address in loaded)


def test_wrong_addresses(live: Path) -> None:
    codes = json_of(live, "codes")
    assert codes["/joinorders/99"] == codes["/joinorders/x"] == 404
    assert codes["/joinorders/query/?id=x"] == codes["/joinorders/?joinorders.sort=nothing"] == 400
    assert codes["/joinorders/query/json/?id=99"] == codes["/joinorders/query/?id=99"] == 200
    assert codes["/SQL/execution/?id=8"] == codes["/sql"] == 200


def test_a_history_server_shows_the_same(live: Path, history: History) -> None:
    assert json.loads(history.fetch("/api/v1/applications/APP/joinorders"))[:-1] == json_of(live, "list")
    for number in QUERIES:
        data = json.loads(history.fetch(f"/api/v1/applications/APP/joinorders/{number}"))
        assert data == json_of(live, f"query{number}")
        shown = Page(history.fetch(f"/history/APP/joinorders/query/?id={number}"))
        ours = page_of(live, f"query{number}")
        assert shown.own == ours.own and len(shown.own) > 300
        assert shown.values("img", "alt") == ours.values("img", "alt")
    page = Page(history.fetch("/history/APP/joinorders/"))
    assert page_of(live, "list").own.partition("Duration ")[2] in page.own  # the last query came later
    assert f"/history/{history.application}/joinorders/query/?id=1" in page.values("a", "href")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        history.fetch("/api/v1/applications/APP/joinorders/99")


def test_logs_of_older_releases_and_damaged_ones(live: Path, history: History) -> None:
    older = json.loads(history.fetch("/api/v1/applications/older/joinorders"))
    assert [query["status"] for query in older] == [*STATUS[:3], "planned", *STATUS[4:]]
    page = Page(history.fetch("/history/older/joinorders/query/?id=1"))
    assert f"Before: {BAD} After: {GOOD}" in page.text and "data:image" not in page.source
    damaged = json.loads(history.fetch("/api/v1/applications/damaged/joinorders"))
    assert [query["number"] for query in damaged] == [1, 2, 3, 4]
    for number in range(1, 5):
        page = Page(history.fetch(f"/history/damaged/joinorders/query/?id={number}"))
        assert f"Join orders of query {number}" in page.text
    assert GOOD in Page(history.fetch("/history/damaged/joinorders/query/?id=2")).text


def test_the_last_thousand_queries_have_pages(history: History) -> None:
    first = Page(history.fetch("/history/many/joinorders/"))
    assert "1000 queries, 500 with changed joins." in first.text
    assert "query number 1010" in first.text and "query number 911" in first.text and "number 910 " not in first.text
    started = time.perf_counter()
    last = Page(history.fetch("/history/many/joinorders/?&joinorders.page=10"))
    assert time.perf_counter() - started < 5  # benchmarks/ui.py has the figure
    assert "query number 110 " in last.text and "query number 11 " in last.text
    cheapest = "?&joinorders.sort=Cost+before&joinorders.desc=false&joinorders.pageSize=3"
    rows = Page(history.fetch(f"/history/many/joinorders/{cheapest}")).values("a", "href")
    assert [f"/history/many/joinorders/query/?id={n}" for n in (11, 12, 13)] == list(
        dict.fromkeys(row for row in rows if "/query/?id=" in row)
    )
    assert len(json.loads(history.fetch("/api/v1/applications/many/joinorders"))) == 1000


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_no_script_of_a_name_runs(history: History, tmp_path: Path) -> None:
    for path in ("", "query/?id=2", "query/?id=3"):
        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom",
            history.url(f"/history/APP/joinorders/{path}"),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        title = done.stdout.partition("<title>")[2].partition("</title>")[0].strip()
        assert "Join orders" in title and "broken" not in title
