"""The record of a run, as text and as data."""

from __future__ import annotations

import json

from pyjoinopt.report.record import GroupReport, HintReport, JoinEstimate, JoinReport, RelationReport

GROUP = GroupReport(
    relations=(
        RelationReport("orders", 1_500_000, "size", 6e7),
        RelationReport("region", 5, "footers", 200.0, 5.0),
    ),
    predicates=("(a = b)",),
    order_before="(orders ⋈ region)",
    order_after="(region ⋈ orders)",
    estimated_rows=(JoinEstimate(("orders", "region"), ("(a = b)",), 1234),),
    cost_before=4e6,
    cost_after=1e6,
    strategy="exact",
    pairs=1,
    seconds=0.001,
    changed=True,
)

TEXT = """\
Joins: 1 group of 2 relations reordered, 1 hint given, planned in 12 ms

Group 1: 2 relations, cost 4.00M -> 1.00M (4.0x cheaper), exact search, 1 pair
  before  (orders ⋈ region)
  after   (region ⋈ orders)
  relation                rows   at most  source
    orders              ~1.50M            size
    region                  ~5         5  footers
  join                                                rows   at most  on
    orders ⋈ region                                 ~1.23k            (a = b)

Hints:
  BROADCAST right of (a = b): at most 5 rows

Left as written:
  Filter f(x): a Python UDF is not moved"""


def report() -> JoinReport:
    made = JoinReport(changed=True, groups=[GROUP], seconds=0.012)
    made.hints.append(HintReport("(a = b)", "BROADCAST", "right", "at most 5 rows"))
    made.refuse("Filter f(x)", "a Python UDF is not moved")
    made.refuse("Filter f(x)", "a Python UDF is not moved")
    return made


def test_text() -> None:
    assert report().to_text() == str(report()) == TEXT


def test_nothing_changed() -> None:
    assert JoinReport(seconds=0.003).to_text() == "Joins: nothing changed, planned in 3 ms"


def test_a_failure_is_told() -> None:
    assert "the original plan is used: ValueError: no" in JoinReport(error="ValueError: no").to_text()


def test_data() -> None:
    data = json.loads(report().to_json())
    assert data["groups"][0]["order_after"] == "(region ⋈ orders)"
    assert (data["cost_before"], data["cost_after"]) == (4e6, 1e6)
    assert data["refusals"] == [{"where": "Filter f(x)", "reason": "a Python UDF is not moved"}]
    assert report().joins_reordered == 1
