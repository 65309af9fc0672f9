"""The record of a run, as text and as data."""

from __future__ import annotations

import json
from dataclasses import replace

from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.model import GroupReport, HintReport, JoinEstimate, RelationReport
from pyjoinopt.report.render.html import render_page

GROUP = GroupReport(
    relations=(
        RelationReport("orders", 1_500_000, "size", 6e7),
        RelationReport("region", 5, "footers", 200.0, 5.0),
    ),
    predicates=("(a = b)",),
    order_before="(orders ⋈ region)",
    order_after="(region ⋈ orders)",
    estimated_rows=(
        JoinEstimate(
            ("orders", "region"), ("(a = b)",), 1234, source="size", cost=1e6, left=1, right=0,
            operator="BroadcastHashJoin", build="left",
        ),
    ),  # fmt: skip
    cost_before=4e6,
    cost_after=1e6,
    strategy="exact",
    pairs=1,
    seconds=0.001,
    changed=True,
)

TEXT = """\
Joins: 1 group of 2 relations reordered, 1 hint given, planned in 12 ms

╭─ Group 1: 2 relations, cost 4.00M -> 1.00M (4.0x cheaper), exact search, 1 pair ─────╮
│ before  (orders ⋈ region)                                                            │
│ after   (region ⋈ orders)                                                            │
├─ relations ──────────────────────────────────────────────────────────────────────────┤
│ relation                          rows  at most    bytes   source                    │
│ orders                          ~1.50M           60.0 MB   size                      │
│ region                              ~5        5    200 B   footers                   │
├─ joins in the chosen order, * not in the written order ──────────────────────────────┤
│ join                 rows  at most    bytes  cost   Spark will choose                │
│ * #1 region ⋈ o…   ~1.23k                   100 %   BroadcastHashJoin, builds region │
│      on (a = b)  [size]                                                              │
╰──────────────────────────────────────────────────────────────────────────────────────╯

Hints:
  BROADCAST right of (a = b): at most 5 rows

Left as written:
  Filter f(x): it calls a Python UDF. What would change it: use Spark's built-in
    functions instead; or compute the UDF as a column of one relation before the joins,
    and do not use it in join conditions or in filters between the joins

How to improve the estimates:
  Rows of orders are estimated from file sizes; run pyjoinopt.analyze(spark, ["orders"])
    to count them."""


def report() -> JoinReport:
    made = JoinReport(changed=True, groups=[GROUP], seconds=0.012)
    made.hints.append(HintReport("(a = b)", "BROADCAST", "right", "at most 5 rows"))
    made.refuse("Filter f(x)", "it calls a Python UDF")
    made.refuse("Filter f(x)", "it calls a Python UDF")
    return made


def test_text() -> None:
    assert report().to_text(88) == TEXT
    assert str(report()) == report().to_text()


def test_nothing_changed() -> None:
    assert JoinReport(seconds=0.003).to_text() == "Joins: nothing changed, planned in 3 ms"


def test_a_failure_is_reported() -> None:
    assert "the original plan is used: ValueError: no" in JoinReport(error="ValueError: no").to_text()


def test_data() -> None:
    data = json.loads(report().to_json())
    assert data["groups"][0]["order_after"] == "(region ⋈ orders)"
    assert (data["cost_before"], data["cost_after"]) == (4e6, 1e6)
    assert [(r["where"], r["reason"]) for r in data["refusals"]] == [("Filter f(x)", "it calls a Python UDF")]
    assert JoinReport.from_dict(data).to_dict() == report().to_dict()
    assert report().joins_reordered == 1


def test_a_group_of_two_relations_is_in_texts_and_data() -> None:
    pair = replace(GROUP, strategy="", changed=False, pairs=0, order_after=GROUP.order_before)
    made = JoinReport(pairs=[pair])
    assert made.groups == [] and made.all_groups == [pair]
    assert JoinReport.from_dict(json.loads(made.to_json())) == made
    old = {name: value for name, value in made.to_dict().items() if name != "pairs"}
    assert JoinReport.from_dict(old).pairs == [], "reports that were written before"
    text = made.to_text()
    assert "Group 1: 2 relations, cost 4.00M, one order" in text and "order   (orders ⋈ region)" in text
    assert "reordered" not in text and "search" not in text and "pyjoinopt.analyze" in text
    pictures = made.to_svg(1), made.to_graph_svg(1), made.to_mermaid(), made.to_dot()
    assert all("region" in rendered for rendered in (made.to_html(), made.to_tree(), *pictures))


def test_early_aggregates_are_in_texts_pages_and_data() -> None:
    made = JoinReport(eager_aggregations=["the aggregate by n reads f grouped by k"])
    assert JoinReport.from_dict(json.loads(made.to_json())) == made
    old = {name: value for name, value in made.to_dict().items() if name != "eager_aggregations"}
    assert JoinReport.from_dict(old).eager_aggregations == [], "reports that were written before"
    text = made.to_text()
    assert "1 input grouped early" in text and "Rows grouped before they are joined" in text
    assert "grouped by k" in text and "grouped by k" in render_page(made)
