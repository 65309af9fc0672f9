"""The table and the sentences of a comparison: factors of significant times only, and queries that became slower."""

from __future__ import annotations

import pytest

from pyjoinopt import JoinReport
from pyjoinopt.demo.measure import MEANINGFUL_SECONDS, Measurement, Query
from pyjoinopt.demo.show import announcement, conclusion, factor_of, method, result, summary
from pyjoinopt.report.model import GroupReport, HintReport, JoinEstimate, RelationReport


def measured(
    name: str, before: float, after: float, *, changed: bool = True, same: bool = True, error: str | None = None
) -> Measurement:
    report = JoinReport(changed=changed, error=error)
    if changed:
        relations = tuple(RelationReport(letter, 1.0, "footers") for letter in "abc")
        joins = (JoinEstimate(("a", "c"), ("x",), 1.0), JoinEstimate(("a", "b", "c"), ("y",), 1.0))
        report.groups.append(
            GroupReport(relations, ("x", "y"), "((a ⋈ b) ⋈ c)", "((a ⋈ c) ⋈ b)", joins, 9, 3, "exact", 4, 0.1, True)
        )
        report.hints.append(HintReport("(x = y)", "BROADCAST", "left", "small"))
    return Measurement(Query(name, "SQL", "about it", lambda spark: spark), report, 0.0213, before, after, 17, same)


def test_a_query_a_line() -> None:
    lines = summary([measured("one", 4.0, 1.0), measured("two", 0.4, 0.1, changed=False, same=False)]).splitlines()
    assert lines[0].split()[:5] == ["query", "form", "reordered", "outer", "avoided"]
    assert lines[0].endswith("s before  s after  faster       rows")
    assert set(lines[1]) == {"─"} and len(lines[1]) == max(map(len, lines))
    assert lines[2].split() == ["one", "SQL", "2", "joins", "-", "-", "4.00", "1.00", "4.0x", "the", "same"]
    assert lines[3].split() == ["two", "SQL", "-", "-", "-", "0.40", "0.10", "-", "DIFFERENT"]


@pytest.mark.parametrize(
    ("before", "after", "factor"),
    [(4.0, 1.0, "4.0x"), (MEANINGFUL_SECONDS, 0.1, "5.0x"), (0.49, 0.01, "-"), (0.1, 0.6, "0.2x"), (0.01, 0.49, "-")],
)
def test_a_factor_needs_a_time_that_means_something(before: float, after: float, factor: str) -> None:
    assert factor_of(measured("q", before, after)) == factor


def test_everything_faster_needs_no_excuse() -> None:
    assert conclusion([measured("one", 4.0, 1.0), measured("two", 2.0, 1.0)]) == [
        "All together: 6.0 s before, 2.0 s after, planning included. 2 of 2 changed queries ran faster."
    ]


def test_what_became_slower_is_shown_with_its_ratio() -> None:
    said = conclusion([measured("one", 4.0, 1.0), measured("two", 1.0, 2.0), measured("three", 1.0, 0.95)])
    assert said[0].endswith("1 of 3 changed queries ran faster.")
    assert said[1] == "Changed, but within 10 % of the time before: three (1.05x)."
    assert said[2].startswith("Slower than before: two (0.50x). ")


def test_small_times_are_given_as_times_beside_the_threshold() -> None:
    three = measured("three", 0.2, 0.2, changed=False)
    said = conclusion([measured("one", 0.4, 0.1), measured("two", 0.1, 0.4), three])
    assert said[0].endswith("0 of 2 changed queries ran faster.")
    (sentence,) = said[1:]
    assert sentence.startswith(
        "No factor: one (0.40 s before, 0.10 s after), two (0.10 s before, 0.40 s after), "
        "three (0.20 s before, 0.20 s after, unchanged). A query of less than 0.5 s has none"
    )
    assert "x)" not in sentence


def test_unchanged_queries_show_the_noise() -> None:
    said = conclusion([measured("one", 1.0, 1.3, changed=False)])
    assert said[0].endswith("0 of 0 changed queries ran faster.")
    assert said[1].startswith("Unchanged: one (0.77x). The same plan ran before and after")


def test_wrong_rows_and_failures_are_shouted() -> None:
    two = measured("two", 1.0, 1.0, changed=False, error="KeyError: 1")
    said = conclusion([measured("one", 4.0, 1.0, same=False), two])
    assert said[-2].startswith("OPTIMIZER FAILED: two.") and said[-1].startswith("WRONG RESULT: one.")


def test_the_paragraph_of_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    one = measured("one", 4.0, 1.0)
    announcement(3, one.query)
    result(one)
    out = capsys.readouterr().out
    assert out.startswith("\n 3. one (SQL): about it\n")
    for line in (
        "    written  ((a ⋈ b) ⋈ c)", "    chosen   ((a ⋈ c) ⋈ b)", "    hint     BROADCAST left of (x = y): small",
        "    time     4.00 s before, 1.00 s after, 21 ms of it planning", "    rows     17, the same",
    ):  # fmt: skip
        assert line in out.splitlines()
    result(measured("two", 1.0, 1.0, changed=False, same=False, error="KeyError: 1"))
    out = capsys.readouterr().out
    assert "    order    kept as written" in out and "    error    KeyError: 1" in out and "17, DIFFERENT" in out


@pytest.mark.parametrize(("rounds", "times"), [(1, "runs once, in"), (3, "runs 3 times, in")])
def test_the_method_names_the_rounds(rounds: int, times: str, capsys: pytest.CaptureFixture[str]) -> None:
    method(rounds)
    assert times in capsys.readouterr().out.replace("\n", " ")
