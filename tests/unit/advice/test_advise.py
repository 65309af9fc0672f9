"""`pyjoinopt.advise` and its command: options, outputs, errors, and runs of one query counted together."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

import pyjoinopt
from pyjoinopt.__main__ import main
from pyjoinopt.errors import EventLogError
from tests.support.made_up_logs import LogWriter, Operator, compressed, op
from tests.unit.advice.test_better_order import bad, good

START = 1_767_225_600_000  # 2026-01-01


def log(*plans: Operator, description: str = "a query", app: str = "app-1") -> LogWriter:
    writer = LogWriter().start()
    writer.events[2]["App ID"] = app
    for number, plan in enumerate(plans):
        started = START + 86_400_000 * number
        writer.execution(number, plan, {0: [1000], 1: [3_600_000]}, description=description, started=started)
    return writer


def test_runs_of_one_query_count_together(tmp_path: Path) -> None:
    """They differ in rows, constants and column ids."""
    first, other = bad(), bad(2e5)
    first.children[1].text, other.children[1].text = "Filter (d#4 = 3)", "Filter (d#71 = 17)"
    log(first, other, good()).write(tmp_path / "app-1")
    advice = pyjoinopt.advise(tmp_path)
    (query,) = advice.queries
    assert (advice.logs, advice.applications, advice.executions, advice.unfinished) == (1, 1, 3, 0)
    assert query.runs == 2 and query.task_hours == pytest.approx(2.0, rel=0.01) and 0.6 < query.hours < 2.0
    assert [f.kind for f in query.findings] == ["better join order", "multiplied rows"]
    assert advice.kinds == {"better join order": 1, "multiplied rows": 1} and advice.hours == query.hours
    assert advice.found == 1 and "findings for 1 query" in advice.to_text(200)


def test_outputs(tmp_path: Path) -> None:
    log(bad(), description="<script>alert('x')</script> \x1b[31m &").write(tmp_path / "app-1")
    advice = pyjoinopt.advise([tmp_path])
    text, html = advice.to_text(80), advice.to_html()
    assert all(len(line) <= 80 for line in text.splitlines()) and "\x1b" not in text + html
    assert "<script" not in html and "&lt;script&gt;" in html and "http" not in html and "prefers-color-scheme" in html
    assert str(advice) == advice.to_text() and advice._repr_html_() in html
    assert json.loads(advice.to_json()) == json.loads(json.dumps(advice.to_dict()))
    frame = advice.to_pandas()
    assert list(frame["rank"]) == [1, 1] and frame["kind"][0] == "better join order"


def test_texts_that_are_no_unicode(tmp_path: Path) -> None:
    log(bad(), description="\ud800 lost").write(tmp_path / "app-1")
    advice = pyjoinopt.advise(tmp_path)
    for text in (advice.to_text(), advice.to_html(), advice.to_json()):
        assert "lost" in text and text.encode()


def test_top_since_and_app(tmp_path: Path) -> None:
    log(bad(), bad()).write(tmp_path / "app-1")
    log(bad(), app="app-2").write(tmp_path / "app-2")
    whole = pyjoinopt.advise(tmp_path)
    assert whole.executions == 3 and whole.applications == 2
    assert pyjoinopt.advise(tmp_path, since="2026-01-02").executions == 1
    assert pyjoinopt.advise(tmp_path, since=date(2026, 1, 3)).executions == 0
    assert pyjoinopt.advise(tmp_path, since="2199-01-01").logs == 0
    assert pyjoinopt.advise(tmp_path, app="app-2").executions == 1
    other = bad()
    other.children[1].children[0].text = "FileScan parquet spark_catalog.default.days[d#4,e#5]"
    log(other, app="app-3").write(tmp_path / "app-3")
    first = pyjoinopt.advise(tmp_path, top=1)
    assert len(first.queries) == 1 and first.found == 2 and "findings for 2 queries, 1 shown" in first.to_text(200)
    with pytest.raises(EventLogError, match="no log is of the application 'app-9'; there are app-1, app-2, app-3"):
        pyjoinopt.advise(tmp_path, app="app-9")


def test_wrong_arguments_of_the_function(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="top=0: allowed are whole numbers"):
        pyjoinopt.advise(tmp_path, top=0)
    with pytest.raises(ValueError, match="since='soon': allowed is a date"):
        pyjoinopt.advise(tmp_path, since="soon")
    with pytest.raises(EventLogError, match="does not exist. Name event logs"):
        pyjoinopt.advise(tmp_path / "gone")
    with pytest.raises(EventLogError, match="there is no event log in"):
        pyjoinopt.advise(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = compressed("zstd", log(bad()).text())
    (tmp_path / "app-1.zstd").write_bytes(packed)
    page, data = tmp_path / "a.html", tmp_path / "a.json"
    assert main(["advise", str(tmp_path / "app-1.zstd"), "--html", str(page), "--json", str(data)]) == 0
    printed = capsys.readouterr()
    assert re.search(r"1 run of SQL queries in 1 application.*could be won", " ".join(printed.out.split()))
    assert not printed.err
    assert page.read_text().startswith("<!DOCTYPE html>") and json.loads(data.read_text())["executions"] == 1


@pytest.mark.parametrize(("more", "code", "words"), [
    (["--top", "none"], 2, "'none' is not allowed: give a whole number"),
    (["--since", "soon"], 2, "'soon' is not allowed: give a date"),
    (["--app", "app-9"], 1, "no log is of the application 'app-9'"),
    (["--html", "/gone/a.html"], 1, "cannot be written to /gone/a.html"),
])  # fmt: skip
def test_wrong_arguments_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, words: str
) -> None:
    path = log(good()).write(tmp_path / "app-1")
    try:
        given = main(["advise", str(path), *more])
    except SystemExit as end:
        given = int(end.code or 0)
    assert given == code and words in " ".join(capsys.readouterr().err.split())


def test_a_good_workload_has_no_findings(tmp_path: Path) -> None:
    log(good(), op("Range", rows=5)).write(tmp_path / "app-1")
    advice = pyjoinopt.advise(tmp_path)
    assert not advice.queries and "no finding" in advice.to_text() and "no finding" in advice.to_html()
    assert advice.to_pandas().empty
