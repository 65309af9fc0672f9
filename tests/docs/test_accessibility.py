"""Pages of the built site and HTML reports in a headless Chromium, light and dark: axe finds no violation."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

from pyjoinopt._version import __version__
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.render.html import render_page
from release.site import publish
from tests.support.tpc import cache_folder

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "accessibility"
RECORDS = ROOT / "tests" / "unit" / "report" / "records"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NPM = shutil.which("npm")
#: Chromium's names of the colour schemes.
THEMES = {"light": "1", "dark": "0"}
#: The rules of axe; a colour scheme changes colours only.
RULES: dict[str, Any] = {
    "light": {
        "type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "dark": {"type": "rule", "values": ["color-contrast"]},
}  # fmt: skip
SECONDS = 900

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(CHROMIUM is None or NPM is None, reason="needs Chromium, Node and npm"),
    pytest.mark.timeout(SECONDS + 600),
]


@pytest.fixture(scope="module")
def axe() -> Path:
    """axe-core of the version in package.json, kept beside the test data."""
    needed = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]["axe-core"]
    folder = cache_folder() / f"axe-{needed}"
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    with FileLock(f"{folder}.lock"):
        if not script.exists():
            shutil.copy(HERE / "package.json", folder)
            command = [str(NPM), "install", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=folder, check=True, timeout=300)
    return script


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by `make docs`, published beside another version, and some HTML reports."""
    subprocess.run(["make", "docs"], cwd=ROOT, check=True, timeout=600)
    folder = tmp_path_factory.mktemp("site")
    publish(ROOT / "site", folder, "tag", "v0.0.1")
    publish(ROOT / "site", folder, "tag", f"v{__version__}")
    for path in sorted(RECORDS.glob("*.json")):
        report = JoinReport.from_dict(json.loads(path.read_text(encoding="utf-8")))
        (folder / f"report_{path.stem}.html").write_text(render_page(report), encoding="utf-8")
    return folder


class Handler(SimpleHTTPRequestHandler):
    """Serves the site, the script that runs axe, and takes its results."""

    def __init__(
        self, *given: Any, wanted: dict[str, Any], axe: Path, results: list[Any], done: threading.Event, **named: Any
    ) -> None:
        self.own = {
            "/run.html": ("text/html", (HERE / "run.html").read_bytes()),
            "/axe.js": ("text/javascript", axe.read_bytes()),
            "/pages.json": ("application/json", json.dumps(wanted).encode()),
        }
        self.results, self.done = results, done
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        kind, content = self.own.get(self.path, ("", b""))
        if not kind:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.results += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.done.set()

    def log_message(self, *given: Any) -> None:
        pass


def examined(folder: Path, axe: Path, pages: list[str], theme: str, profile: Path) -> list[dict[str, Any]]:
    """The violations that axe reports on each page."""
    results: list[dict[str, Any]] = []
    done = threading.Event()
    wanted = {"pages": pages, "rules": RULES[theme]}
    handler = partial(Handler, directory=str(folder), wanted=wanted, axe=axe, results=results, done=done)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
        f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={THEMES[theme]}",
        "--window-size=1400,1000", f"http://127.0.0.1:{server.server_address[1]}/run.html",
    ]  # fmt: skip
    with open(profile.with_suffix(".log"), "wb") as log:
        browser = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            assert done.wait(SECONDS), profile.with_suffix(".log").read_text(errors="replace")[-3000:]
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            browser.wait(60)
            server.shutdown()
    assert all(one["dark"] == (theme == "dark") for one in results if "error" not in one)
    return results


def pages_of(folder: Path) -> list[str]:
    """All pages of the newest version, and the reports."""
    inside = [path for path in sorted((folder / __version__).rglob("*.html")) if "_static" not in path.parts]
    return [f"/{path.relative_to(folder).as_posix()}" for path in [*inside, *sorted(folder.glob("*.html"))]]


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing(site: Path, axe: Path, theme: str, tmp_path: Path) -> None:
    pages = [page for page in pages_of(site) if page != "/index.html"]  # which only leads to the newest version
    results = examined(site, axe, pages, theme, tmp_path / "profile")
    assert [result["page"] for result in results] == pages and len(pages) > 45
    problems = [f"{one['page']}: {one['error']}" for one in results if "error" in one]
    for one in results:
        for rule in one.get("violations", ()):
            problems.append(f"{one['page']}: {rule['rule']} ({rule['help']})\n    " + "\n    ".join(rule["nodes"][:3]))
    assert not problems, "\n".join(problems)
    assert all(one["passes"] >= (5 if theme == "light" else 1) for one in results)
    ours = [one for one in results if one["page"].startswith(f"/{__version__}/")]
    menu = ["stable", __version__, "0.0.1"]
    assert all(one["versions"] == menu for one in ours), "each page has the menu of versions"


def test_axe_finds_what_is_wrong(axe: Path, tmp_path: Path) -> None:
    """A page without a language, with a picture without text and with grey on grey."""
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "bad.html").write_text(
        "<!doctype html><html><head><title>a</title></head><body><main><h1>a</h1><img src='x.png'>"
        "<p style='color:#999;background:#aaa'>grey</p></main></body></html>"
    )
    (one,) = examined(folder, axe, ["/bad.html"], "light", tmp_path / "profile")
    assert {"html-has-lang", "image-alt", "color-contrast"} <= {rule["rule"] for rule in one["violations"]}


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in {"href", "src"} and value:
                self.links.append(value)


def linked(folder: Path) -> Iterator[tuple[str, str, Path, str]]:
    """Page, link, file and anchor of each link to a page of the site."""
    for page in sorted((folder / __version__).rglob("*.html")):
        for link in Links(page.read_text(encoding="utf-8")).links:
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc and (parts.path or parts.fragment):
                target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
                yield page.name, link, target, unquote(parts.fragment)


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    anchors: dict[Path, set[str]] = {}
    broken = []
    count = 0
    for page, link, target, anchor in linked(site):
        count += 1
        if not target.exists():
            broken.append(f"{page}: {link}")
        elif anchor and target.suffix == ".html":
            if target not in anchors:
                anchors[target] = Links(target.read_text(encoding="utf-8")).anchors
            if anchor not in anchors[target]:
                broken.append(f"{page}: {link}")
    assert count > 1000 and not broken, "\n".join(broken[:40])
