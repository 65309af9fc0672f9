"""Reports as trees and pictures: complete, well-formed, nothing on top of anything else, small or large."""

from __future__ import annotations

import json
import random
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyjoinopt.report.outline import outline
from pyjoinopt.report.record import GroupReport, HintReport, JoinEstimate, JoinReport, RelationReport

Joins = list[tuple[int, int]]
SVG = "{http://www.w3.org/2000/svg}"


def left_deep(n: int) -> Joins:
    return [(0 if i == 0 else n + i - 1, i + 1) for i in range(n - 1)]


def bushy(n: int, rng: random.Random) -> Joins:
    parts, joins = list(range(n)), []
    while len(parts) > 1:
        left, right = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        parts.append(n + len(joins))
        joins.append((left, right))
    return joins


def estimates(n: int, joins: Joins) -> tuple[JoinEstimate, ...]:
    below: list[set[int]] = [{i} for i in range(n)]
    found = []
    for left, right in joins:
        below.append(below[left] | below[right])
        names = tuple(f"t{i}" for i in sorted(below[-1]))
        predicate = f"(t{left}.a_long_name < t{right}.\"another & one\")"
        found.append(JoinEstimate(names, (predicate,), 10.0 ** len(names), 1e3, 5e9, "footers", 7.0, "⋈", left, right))
    return tuple(found)


def group(n: int, seed: int = 1) -> GroupReport:
    relations = tuple(RelationReport(f"t{i}", 10.0 * i, "footers", 80.0, 10.0 * i) for i in range(n))
    after, before = estimates(n, bushy(n, random.Random(seed))), estimates(n, left_deep(n))
    return GroupReport(
        relations, ("(a = b)",), "before", "after", after, 4e6, 1e6, "exact", 9, 0.01, True, joins_before=before
    )


def report(n: int) -> JoinReport:
    made = JoinReport(changed=True, groups=[group(n)], seconds=0.012)
    made.hints.append(HintReport("(a < b)", "BROADCAST", "right", "at most 5 rows"))
    made.refuse("Filter f(x)", "a <UDF> is not moved")
    return made


@pytest.mark.parametrize("n", [2, 3, 12, 60])
@pytest.mark.parametrize("seed", range(5))
def test_the_outline_has_every_node_once_and_stays_narrow(n: int, seed: int) -> None:
    lines = outline(n, bushy(n, random.Random(seed)))
    assert sorted(line.node for line in lines) == list(range(2 * n - 1))
    assert max(line.depth for line in lines) <= n.bit_length()
    assert max(line.depth for line in outline(n, left_deep(n))) == 1


def test_a_tree_in_text() -> None:
    made = JoinReport(changed=True, groups=[group(3)], seconds=0.012)
    text = made.to_tree(width=60, ascii_only=True)
    assert text.isascii()
    assert "before" in text and "after" in text and "`- " in text
    assert all(len(line) <= 60 for line in text.splitlines()[3:])
    wide = made.to_tree(width=140)
    assert re.search(r"before +after", wide)
    assert max(map(len, wide.splitlines())) <= 140


def boxes(svg: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Every label and bar as (left, top, right, bottom), text by the width that it is laid out for."""
    found = []
    for text in svg.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        found.append((x, y - 9, x + 6.0 * len("".join(text.itertext())), y + 3))
    for bar in svg.iter(f"{SVG}rect"):
        if bar.attrib["class"] == "bar":
            x, y = float(bar.attrib["x"]), float(bar.attrib["y"])
            found.append((x, y, x + float(bar.attrib["width"]), y + 10))
    return found


@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_the_picture_is_well_formed_and_nothing_overlaps(n: int) -> None:
    svg = ElementTree.fromstring(report(n).to_svg())
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    drawn = boxes(svg)
    assert len(drawn) == 2 * (3 * (2 * n - 1) + 1)  # two orders: label, bar and figure a node, and a title
    for left, top, right, bottom in drawn:
        assert 0 <= left and right <= width and 0 <= top and bottom <= height
    for (a, b, c, d), (e, f, g, h) in combinations(drawn, 2):
        assert c <= e or g <= a or d <= f or h <= b, "two labels lie on top of each other"
    assert svg.find(f"{SVG}title") is not None
    words = svg.find(f"{SVG}desc")
    assert words is not None and "about" in "".join(words.itertext())


def test_what_changed_is_told_without_colour() -> None:
    assert "★" in report(4).to_svg()
    unchanged = JoinReport(groups=[GroupReport((), (), "", "", (), 1.0, 1.0, "exact", 0, 0.0, False)])
    assert "★" not in unchanged.groups[0].order_after


def test_html_is_well_formed_and_escaped() -> None:
    text = report(5).to_html()
    ElementTree.fromstring(text.replace("<br>", "<br/>").replace("<details open>", "<details open='open'>"))
    assert "<script" not in text and "a &lt;UDF&gt; is not moved" in text
    bundle = report(5)._repr_mimebundle_()
    assert bundle["text/html"] == text and "Group 1" in bundle["text/plain"]


def test_mermaid_and_dot() -> None:
    mermaid, dot = report(3).to_mermaid(), report(3).to_dot()
    assert mermaid.count("-->") == dot.count("->") == 4
    assert "&quot;another &amp; one&quot;" in mermaid and '\\"another & one\\"' in dot


def test_pandas() -> None:
    frame = report(4).to_pandas()
    assert list(frame["group"]) == [1, 1, 1] and list(frame["rows"])[-1] == 1e4
    assert list(JoinReport().to_pandas().columns) == list(frame.columns)


@pytest.mark.parametrize("ending", ["txt", "html", "svg", "json", "mmd", "dot"])
def test_save(tmp_path: Path, ending: str) -> None:
    path = report(3).save(tmp_path / f"report.{ending}")
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["changed"] if ending == "json" else "t1" in text


def test_wrong_arguments_say_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in .txt, .html"):
        report(3).save(tmp_path / "report.png")
    with pytest.raises(ValueError, match="there is no group 2: this report has 1"):
        report(3).to_svg(2)
