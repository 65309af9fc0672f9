"""Reports as trees and pictures of any size: complete, well-formed, without overlaps."""

from __future__ import annotations

import gzip
import json
import random
import re
from base64 import b64decode
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import EdgeReport, GroupReport, HintReport, JoinEstimate, RelationReport
from pyjoinopt.report.render.orders_svg import AFTER, ARROW, BEFORE, EXPLODES, group_svg
from pyjoinopt.report.render.spark_ui import MOST_RELATIONS, packed_pictures
from pyjoinopt.report.render.spine_layout import outline

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
        relations, ("(a = b)",), "before", "after", after, 4e6, 1e6, "exact", 9, 0.01, True, joins_before=before,
        edges=edges(n),
    )  # fmt: skip


def edges(n: int) -> tuple[EdgeReport, ...]:
    """A left join, inner predicates of which one has to wait, one that all relations take part in, an implied one."""
    names = tuple(f"t{i}" for i in range(n))
    found = [EdgeReport("(a0 = a1)", names[:2], names[:2], "⟕", (names[:1], names[1:2]))]
    pairs = [names[i - 1 : i + 1] for i in range(2, n)]
    found += [EdgeReport(f"({one} = {other})", (one, other), (names[0], one, other)) for one, other in pairs]
    found += [EdgeReport("(sum < 1)", names, names), EdgeReport("(x = y)", names[-2:], names[-2:], implied=True)]
    return tuple(found)


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
    assert max(map(len, text.splitlines()[1:])) <= 60
    wide = made.to_tree(width=140)
    assert re.search(r"before +after", wide)
    assert max(map(len, wide.splitlines())) <= 140


@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_boxes_fit_the_terminal(width: int, ascii_only: bool) -> None:
    made = report(12)
    for text in (made.to_text(width, ascii_only), made.to_tree(width, ascii_only)):
        boxes = [line for line in text.splitlines() if line and line[0] in "╭│├╰+|"]
        assert boxes and {len(line) for line in boxes} == {width}
        assert text.isascii() == ascii_only


def boxes(svg: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Every label, badge and bar as (left, top, right, bottom), text as wide as it is in a common monospaced font."""
    found = []
    for text in svg.iter(f"{SVG}text"):
        x, y, size = float(text.attrib["x"]), float(text.attrib["y"]), float(text.attrib.get("font-size", 11))
        width = 0.602 * size * len("".join(text.itertext()))
        if text.attrib.get("text-anchor") == "middle":
            continue  # inside a badge, which is measured
        found.append((x, y - 0.8 * size, x + width, y + 0.25 * size))
    for bar in svg.iter(f"{SVG}rect"):
        if bar.attrib["class"] in ("bar", "badge"):
            x, y = float(bar.attrib["x"]), float(bar.attrib["y"])
            found.append((x, y, x + float(bar.attrib["width"]), y + 10))
    for badge in svg.iter(f"{SVG}circle"):
        x, y, r = (float(badge.attrib[name]) for name in ("cx", "cy", "r"))
        if badge.attrib["class"] != "ring":  # a ring is around its dot on purpose
            found.append((x - r, y - r, x + r, y + r))
    return found


def check_geometry(text: str) -> list[tuple[float, float, float, float]]:
    """Well-formed, within the page, without overlaps, and with a description in words."""
    svg = ElementTree.fromstring(text)
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    drawn = boxes(svg)
    for left, top, right, bottom in drawn:
        assert 0 <= left and right <= width and 0 <= top and bottom <= height
    for (a, b, c, d), (e, f, g, h) in combinations(drawn, 2):
        assert c <= e or g <= a or d <= f or h <= b, "two things lie on top of each other"
    assert svg.find(f"{SVG}title") is not None
    assert svg.find(f"{SVG}desc") is not None
    assert "script" not in text and "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    return drawn


@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_the_picture_is_well_formed_and_nothing_overlaps(n: int) -> None:
    drawn = check_geometry(report(n).to_svg())
    # Two orders: a dot, a label, a bar and a figure a node, operator and cost a join, and a title.
    assert len(drawn) == 2 * (4 * (2 * n - 1) + (n - 1) + 1)


def test_a_join_that_multiplies_rows_has_an_arrow() -> None:
    exploding = report(3)
    group = exploding.groups[0]
    first, *rest = group.estimated_rows
    least = max(group.relations[first.left].rows, group.relations[first.right].rows) * EXPLODES
    for rows, arrows in ((least, 0), (least * 1.01, 1)):
        joins = (replace(first, rows=rows), *(replace(join, rows=1.0) for join in rest))
        picture = group_svg(replace(group, estimated_rows=joins), orders=(AFTER,))
        check_geometry(picture)
        assert picture.count(ARROW) == arrows
    assert "row units" in picture


@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_the_join_graph_is_well_formed_and_nothing_overlaps(n: int) -> None:
    made = report(n)
    text = made.to_graph_svg()
    check_geometry(text)
    words = "".join(ElementTree.fromstring(text).itertext())
    for i in range(n):
        assert f"t{i} ~" in words
    for edge in made.groups[0].edges:
        assert edge.predicate in words
    assert ("requires t0 on its left and t1 on its right" in words) and (n < 3 or "; requires t0" in words)


def test_a_join_graph_with_edges_of_every_kind() -> None:
    text = report(4).to_graph_svg()
    assert text.count(">L</text>") == text.count(">R</text>") == 1
    assert 'class="leaf"' in text and "stroke-dasharray" in text, "what is waited for is hollow, what follows dashed"


def test_what_changed_is_shown_without_colour() -> None:
    assert "★" in report(4).to_svg()
    unchanged = JoinReport(groups=[GroupReport((), (), "", "", (), 1.0, 1.0, "exact", 0, 0.0, False)])
    assert "★" not in unchanged.groups[0].order_after


def test_html_is_well_formed_and_escaped() -> None:
    text = report(5).to_html()
    ElementTree.fromstring(text.replace("<br>", "<br/>").replace("<details open>", "<details open='open'>"))
    assert "<script" not in text and "a &lt;UDF&gt; is not moved" in text


def test_what_a_notebook_keeps_survives_a_viewer_that_takes_svg_out() -> None:
    """JupyterLab does with notebooks that it does not trust, GitHub with all: pictures are images, with words."""
    shown = report(5)
    bundle = shown._repr_mimebundle_()
    assert "Group 1" in bundle["text/plain"] and "<svg" not in bundle["text/html"]
    image = r'<img width="(\d+)" [^>]*alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"/>'
    images = re.findall(image, bundle["text/html"])
    drawn = re.findall(r"<svg.*?</svg>", shown.to_html(), re.DOTALL)
    assert [b64decode(data).decode() for _, _, data in images] == drawn
    assert all(f'width="{width}"' in svg for (width, _, _), svg in zip(images, drawn, strict=True))
    assert "before: cost" in images[0][1] and "<" not in images[0][1]


def test_mermaid_and_dot() -> None:
    mermaid, dot = report(3).to_mermaid(), report(3).to_dot()
    assert mermaid.count("-->") == dot.count("->") == 4
    assert "★" in report(4).to_mermaid() and "&quot;another &amp; one&quot;" in mermaid and '\\"another & one\\"' in dot


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
    with pytest.raises(ValueError, match=r"must have one of .txt, .html"):
        report(3).save(tmp_path / "report.png")
    with pytest.raises(ValueError, match="there is no group 2: this report has 1"):
        report(3).to_svg(2)


def test_what_the_spark_ui_shows() -> None:
    records = Path(__file__).parent / "records"
    shown_report = JoinReport.from_dict(json.loads((records / "outer_joins_kept.json").read_text()))
    packed = packed_pictures(shown_report)
    shown = json.loads(gzip.decompress(b64decode(packed)))
    (pictures,) = shown["groups"]
    assert pictures["graph"] == shown_report.to_graph_svg() and shown["advice"] == shown_report.advice()
    (first,) = shown_report.groups
    orders = (BEFORE, AFTER) if first.changed else (AFTER,)
    assert [pictures[which] for which in orders] == [group_svg(first, 1, (which,)) for which in orders]
    assert len(packed) < len(json.dumps(shown)) / 4
    assert packed_pictures(shown_report) == packed
    assert packed_pictures(JoinReport()) == ""


def test_large_groups_have_no_pictures_in_the_spark_ui() -> None:
    packed = packed_pictures(JoinReport(changed=True, groups=[group(MOST_RELATIONS + 1), group(4)]))
    large, small = json.loads(gzip.decompress(b64decode(packed)))["groups"]
    assert large == {} and small["after"].startswith("<svg")
