"""Rendered reports compared with stored texts: a dozen real reports, recorded once as data.

`pytest tests/unit/report --record-golden` rewrites the texts; review the difference before you commit it. The records
in `records/` are results of `JoinReport.to_dict()` for queries of TPC-H and TPC-DS at scale 0.01.
"""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyjoinopt import JoinReport
from pyjoinopt.report.render.html import render_page
from tests.unit.report.test_pictures import check_geometry

HERE = Path(__file__).resolve().parent
RECORDS = sorted((HERE / "records").glob("*.json"))
#: In addition to the text of 110 columns: some as trees, some as in a narrow terminal without Unicode.
TREES = {"tpch_08", "tpch_21_semi_anti", "outer_joins_kept", "nothing"}
NARROW = {"tpch_05_as_it_is", "refusals", "outer_joins_kept"}


def report(path: Path) -> JoinReport:
    return JoinReport.from_dict(json.loads(path.read_text(encoding="utf-8")))


def shown(path: Path) -> str:
    made = report(path)
    parts = [made.to_text(110)]
    if path.stem in TREES:
        parts.append(made.to_tree(130))
    if path.stem in NARROW:
        parts.append(made.to_text(72, ascii_only=True))
    return f"\n{'=' * 110}\n".join(parts) + "\n"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_report_looks_as_it_did(path: Path, request: pytest.FixtureRequest) -> None:
    golden = HERE / "golden" / f"{path.stem}.txt"
    if request.config.getoption("--record-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown(path), encoding="utf-8")
    assert shown(path) == golden.read_text(encoding="utf-8"), "if meant: pytest tests/unit/report --record-golden"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_real_report_draws_well(path: Path) -> None:
    made = report(path)
    assert json.loads(made.to_json()) == json.loads(path.read_text(encoding="utf-8"))
    for number in range(1, len(made.groups) + 1):
        check_geometry(made.to_svg(number))
        check_geometry(made.to_graph_svg(number))
    page = render_page(made).removeprefix("<!DOCTYPE html>").replace("<details open>", "<details open='open'>")
    root = ElementTree.fromstring(page)
    for picture in root.iter("{http://www.w3.org/2000/svg}svg"):
        assert picture.attrib["role"] == "img" and picture.attrib["aria-label"]
    for table in root.iter("table"):
        assert table.find("caption") is not None and all(cell.attrib["scope"] == "col" for cell in table.iter("th"))
    assert not list(root.iter("script"))
