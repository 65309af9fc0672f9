"""Whoever may not see an application's UI does not see its tab "Join orders": in a driver, and in a History Server."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pyjoinopt.bridge.install import compile_scala, java
from tests.sessions import doors

PROGRAM = Path(__file__).with_name("ui_users_program.py")
FILTER = Path(__file__).parent / "scala" / "ByHeader.scala"
PAGES = ("SQL/", "joinorders/", "joinorders/json/", "joinorders/query/?id=1", "joinorders/query/json/?id=1")

pytestmark = [pytest.mark.ci, pytest.mark.jvm, pytest.mark.timeout(300)]


def answers(address: str, below: str, application: str, user: str) -> dict[str, tuple[int, str]]:
    """Code and text of all pages and resources.

    Args:
        address: of the server.
        below: the path of the application's UI.
        application: its id.
        user: who requests them.
    """
    rest = f"/api/v1/applications/{application}/joinorders"
    paths = {page: f"{below}/{page}" for page in PAGES} | {"rest": rest, "rest/1": f"{rest}/1"}
    found = {name: _answer(address, path, user) for name, path in paths.items()}
    return {**found, "trace": _answer(address, paths["rest/1"], user, "TRACE")}


def _answer(address: str, path: str, user: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(address + path, headers={"user": user}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8", "replace")


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filter as clusters have one, for the servlets of this Spark."""
    folder = tmp_path_factory.mktemp("filter")
    source = folder / FILTER.name
    source.write_text(FILTER.read_text().replace("SERVLET", "javax" if doors.SPARK < (4, 0) else "jakarta"))
    made = folder / "filter.jar"
    compile_scala.compile_shim(doors.HOME / "jars", java.ensure_java(), [source], made)
    return made


@pytest.fixture(scope="module")
def live(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("users")
    (folder / "events").mkdir()
    doors.run([sys.executable, str(PROGRAM), str(folder), str(doors.free_port()), str(jar)], folder)
    return folder


def check(of_anna: dict[str, list[object]], of_mallory: dict[str, list[object]]) -> None:
    for name, (code, text) in of_anna.items():
        if name == "trace":
            assert code == 405
        else:
            assert code == 200 and (name == "SQL/" or "finished" in str(text)), name
    for name, (code, text) in of_mallory.items():
        assert code in ((403, 405) if name == "trace" else (403,)), (name, code)
        assert "finished" not in str(text) and "⋈" not in str(text)


def test_the_tab_of_a_driver(live: Path) -> None:
    found = json.loads((live / "answers.json").read_text(encoding="utf-8"))
    check(found["anna"], found["mallory"])


def test_the_tab_in_a_history_server(live: Path, jar: Path) -> None:
    application = (live / "application").read_text()
    options = "-Dspark.ui.filters=users.ByHeader -Dspark.history.ui.acls.enable=true"
    with doors.history_server(live, live / "events", {application}, options, [jar]) as address:
        found = [
            json.loads(json.dumps(answers(address, f"/history/{application}", application, user)))
            for user in ("anna", "mallory")
        ]
    check(*found)
