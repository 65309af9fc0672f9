"""Scans that were planned without statistics: what shows it in a log, and logs that do not show it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyjoinopt
from pyjoinopt.advice.missing_statistics import MissingStatistics, missing_statistics
from pyjoinopt.eventlog.planned_scans import PlannedScan, planned_scans
from tests.support.made_up_logs import LogWriter, Operator, op
from tests.unit.advice.plans import broadcast, merged, ran, scan, shuffled

COSTS = """== Optimized Logical Plan ==
Join Inner, (a#1 = b#2L), Statistics(sizeInBytes=8.0 EiB)
:- Filter isnotnull(a#1), Statistics(sizeInBytes=9.5 MiB)
:  +- Relation spark_catalog.default.facts[a#1,x#5] parquet, Statistics(sizeInBytes=9.5 MiB)
+- Relation spark_catalog.default.days[b#2L] parquet, Statistics(sizeInBytes=80.0 B, rowCount=10)

== Physical Plan ==
:  +- Relation [a#1] parquet, Statistics(sizeInBytes=1.0 B, rowCount=1)
"""
CBO = {"spark__sql__cbo__enabled": "true"}


def files(kind: str, rows: float, name: str = "facts") -> Operator:
    """A scan of files without a table."""
    text = f"FileScan {kind} [a#1,x#5] Batched: false, Location: InMemoryFileIndex(1 paths)[file:/data/{name}]"
    return op(f"Scan {kind} ", text, rows=rows)


def joined(left: Operator, rows: float = 5.0) -> Operator:
    return broadcast(left, scan("days", "b#2", 10), "[a#1], [b#2]", rows)


def found_in(folder: Path, plan: Operator, **more: object) -> list[MissingStatistics]:
    return list(missing_statistics(ran(folder, plan, **more)))


# -- costs in the plan's text ------------------------------------------------------------------------------------------


def test_the_text_of_a_plan_with_costs() -> None:
    facts = PlannedScan(frozenset({1, 5}), 9.5 * (1 << 20), None)
    assert planned_scans(COSTS) == (facts, PlannedScan(frozenset({2}), 80.0, 10.0))
    relations = "LogicalRDD [a#1, b#2], false", "RelationV2[a#1] parquet file:/x", "HiveTableRelation [`t`, a#1]"
    for relation in relations:
        (found,) = planned_scans(f"== Optimized Logical Plan ==\n{relation}, Statistics(sizeInBytes=8.0 EiB)\n")
        assert 1 in found.columns and found.bytes == 1 << 63 and found.rows is None
    assert planned_scans("== Optimized Logical Plan ==\nRelation [a#1] csv\n") == () == planned_scans("")


def test_a_table_without_a_row_count(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, joined(scan("facts", "a#1", 1e6)), text=COSTS, **CBO)
    assert (found.where, found.rows, found.rests_on, found.certainty) == ("facts", 1e6, "costs", 1.0)
    assert found.estimated_bytes == 9.5 * (1 << 20) and found.hours == found.seconds == 0.0
    assert "ANALYZE TABLE default.facts COMPUTE STATISTICS FOR ALL COLUMNS" in found.text
    assert "returned 1.00M rows" in found.text and "9.96 MB" in found.text and "cbo" not in found.text


def test_without_cbo_the_catalog_may_have_a_row_count(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, joined(scan("facts", "a#1", 1e6)), text=COSTS)
    assert found.certainty == 0.5 and "DESCRIBE EXTENDED" in found.surer and "spark.sql.cbo.enabled" in found.text
    for plan, remedy in (
        (files("parquet", 1e6), "row counts of its files"), (files("csv", 1e6), "store it as Parquet"),
        (op("BatchScan iceberg.db.facts", "BatchScan iceberg.db.facts[a#1]", rows=1e6), "statistics.register"),
    ):  # fmt: skip
        (found,) = found_in(tmp_path, joined(plan), text=COSTS)
        assert found.certainty == 1.0 and remedy in found.text and found.rests_on == "costs"


@pytest.mark.parametrize(("rows", "text"), [
    (1e6, ""), (9e4, COSTS), (1e6, COSTS.replace("MiB)\n+-", "MiB, rowCount=1.00E+6)\n+-")),
    (1e6, COSTS.replace("a#1,x#5", "a#7,x#8")),
], ids=["no costs", "few rows", "a row count", "another relation"])  # fmt: skip
def test_tables_that_no_text_shows_to_lack_a_row_count(tmp_path: Path, rows: float, text: str) -> None:
    assert not found_in(tmp_path, joined(scan("facts", "a#1", rows)), text=text, **CBO)


def test_scans_below_no_join(tmp_path: Path) -> None:
    assert not found_in(tmp_path, op("HashAggregate", "", files("csv", 1e6), rows=1), text=COSTS)


# -- formats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plan", "words", "remedy"), [
    (files("csv", 1e6), "CSV files have no row count", "store it as Parquet"),
    (files("json", 1e6), "JSON files have no row count", "pyjoinopt.analyze"),
    (files("text", 1e6), "TEXT files have no row count", "pyjoinopt.analyze"),
    (op("Scan JDBCRelation(facts) [numPartitions=1]", "Scan JDBCRelation(facts) [a#1]", rows=1e6),
     "a JDBC source has no row count", "pyjoinopt.statistics.register"),
])  # fmt: skip
def test_formats_without_row_counts(tmp_path: Path, plan: Operator, words: str, remedy: str) -> None:
    (found,) = found_in(tmp_path, joined(plan))
    assert words in found.text and remedy in found.text and found.rests_on == "format"
    assert found.certainty == 0.9 and "spark.sql.ui.explainMode=cost" in found.surer


def test_formats_that_prove_nothing(tmp_path: Path) -> None:
    table = op("Scan csv spark_catalog.default.facts", "FileScan csv spark_catalog.default.facts[a#1]", rows=1e6)
    for plan in (table, files("parquet", 1e6), files("csv", 9e4), op("Scan ExistingRDD", "[a#1]", rows=1e6)):
        assert not found_in(tmp_path, joined(plan))


def test_a_self_join_is_one_finding(tmp_path: Path) -> None:
    for left, right in ((1e6, 2e6), (2e6, 1e6)):
        (found,) = found_in(tmp_path, broadcast(files("csv", left), files("csv", right), "[a#1], [b#2]", 5))
        assert found.rows == 2e6


def test_at_most_ten_findings(tmp_path: Path) -> None:
    plan = files("csv", 1e6, "t0")
    for number in range(1, 15):
        plan = broadcast(plan, files("csv", 1e6 + number, f"t{number}"), "[a#1], [b#2]", 5)
    found = found_in(tmp_path, plan)
    assert [each.where for each in found] == [f"t{number}" for number in range(14, 4, -1)]


# -- reports of pyjoinopt ----------------------------------------------------------------------------------------------


def test_an_estimate_of_a_report_that_was_far_off(tmp_path: Path) -> None:
    for estimate, source in ((1e4, "size"), (1e9, "default"), (1e9, "size / row width, sample without a hit")):
        plan = joined(scan("facts", "a#1", 1e6))
        (found,) = found_in(tmp_path, plan, reported=[("spark_catalog.default.facts", estimate, source)])
        assert found.rests_on == "report" and found.estimated_rows == estimate and f'source "{source}"' in found.text
        assert "there were 1.00M" in found.text and found.certainty == 1.0


def test_the_estimate_of_a_report_is_after_filters(tmp_path: Path) -> None:
    read = op("Scan parquet default.facts", "FileScan parquet default.facts[a#1]", rows=1e6)
    plan = joined(op("Filter", "Filter (a#1 = 3)", read, rows=10))
    (found,) = found_in(tmp_path, plan, reported=[("facts", 1e6, "size")])
    assert found.rows == found.estimated_rows == 1e6 and "there were 10" in found.text


@pytest.mark.parametrize("reported", [
    [("facts", 2e5, "size")], [("facts", 1e9, "footers")], [("lines", 1e9, "size")],
    [("facts", 1e9, "size"), ("facts", 1e8, "size")], [],
], ids=["nearly right", "counted", "another table", "ambiguous", "none"])  # fmt: skip
def test_reports_that_prove_nothing(tmp_path: Path, reported: list[tuple[str, float, str]]) -> None:
    assert not found_in(tmp_path, joined(scan("facts", "a#1", 1e6)), reported=reported)


def test_a_report_of_one_run_replaces_what_is_less_certain(tmp_path: Path) -> None:
    """Runs of one query are one finding: the report is in the log of the second one only."""
    log = LogWriter().start().execution(1, joined(files("csv", 1e6)))
    log.execution(2, joined(files("csv", 1e6)), reported=[("facts", 1e9, "size")]).write(tmp_path / "app-1")
    (query,) = pyjoinopt.advise(tmp_path).queries
    (finding,) = query.findings
    assert query.runs == 2 and finding.certainty == 1.0 and finding.to_dict()["rests_on"] == "report, format"


def test_rows_that_more_than_filters_have_dropped(tmp_path: Path) -> None:
    """A limit, an aggregate or a filter made at run time: the estimate was not of what is left."""
    read = scan("facts", "a#1", 100)
    thinned = op("Filter", "Filter might_contain(x, a#1)", read, rows=100)
    bucketed = op("Scan parquet default.facts", "FileScan parquet default.facts[a#1] Bucketed: true", rows=100)
    for plan in (
        joined(thinned), joined(op("HashAggregate", "", read, rows=9)), op("GlobalLimit", "", joined(read)),
        joined(bucketed), merged(read, scan("facts", "b#2", 1e9), "[a#1], [b#2]", 5),
    ):  # fmt: skip
        assert not found_in(tmp_path, plan, reported=[("facts", 1e9, "size")])


def test_reports_that_come_before_their_execution_or_too_late(tmp_path: Path) -> None:
    def findings(early: bool) -> int:
        log = LogWriter().start()
        if early:
            log.report(1, [("facts", 1e9, "size")])
        log.execution(1, joined(scan("facts", "a#1", 1e6))).report(1, [("facts", 1e9, "size")])
        log.report(-1, [("facts", 1e9, "size")])
        log.events.append({"Event": log.events[-1]["Event"], "executionId": 1, "report": "{"})
        log.write(tmp_path / str(early) / "app-1")
        return len(pyjoinopt.advise(tmp_path / str(early)).queries)

    assert (findings(early=True), findings(early=False)) == (1, 0)


def test_few_reports_wait_for_their_executions(tmp_path: Path) -> None:
    for more, found in ((99, 1), (100, 0)):
        log = LogWriter().start()
        for number in range(1, 2 + more):
            log.report(number, [("facts", 1e9, "size")])
        log.execution(1, joined(scan("facts", "a#1", 1e6))).write(tmp_path / str(more) / "app-1")
        assert len(pyjoinopt.advise(tmp_path / str(more)).queries) == found


# -- adaptive execution ------------------------------------------------------------------------------------------------


def changed(size: float, text: str = "Filter isnotnull(b#2)", facts: float = 1e6) -> tuple[Operator, Operator]:
    """A join before adaptive execution, and after it has broadcast the right side."""
    left = scan("facts", "a#1", facts)
    small = op("Filter", text, op("Scan parquet default.days", "[b#2]", rows=300), rows=300)
    right = shuffled(small, 300, size)
    first = merged(shuffled(left, facts, 8e9), right, "[a#1], [b#2]", 9)
    return first, broadcast(left, right.children[0], "[a#1], [b#2]", 9)


def test_a_side_that_was_broadcast_after_its_shuffle(tmp_path: Path) -> None:
    first, last = changed(5e3)
    (found,) = found_in(tmp_path, last, first=first)
    assert (found.where, found.rests_on, found.certainty, found.rows) == ("days", "late broadcast", 0.5, 300)
    assert "more than 10.5 MB" in found.text and "5.00 kB" in found.text and "explainMode=cost" in found.surer


def test_broadcasts_that_prove_nothing(tmp_path: Path) -> None:
    first, last = changed(5e3)
    assert not found_in(tmp_path, last), "the first plan had the same broadcast"
    assert not found_in(tmp_path, last, first=op("Union", "", first, last)), "which of them it was is unknown"
    assert not found_in(tmp_path, last, first=first, spark__sql__autoBroadcastJoinThreshold="-1")
    for size, text, facts in ((2e7, "Filter", 1e6), (5e3, "Filter might_contain(x, b#2)", 1e6), (5e3, "Filter", 9e4)):
        first, last = changed(size, text, facts)
        assert not found_in(tmp_path, last, first=first)


# -- the ranking -------------------------------------------------------------------------------------------------------


def test_findings_with_nothing_to_win_do_not_come_before_others(tmp_path: Path) -> None:
    text = "Filter isnotnull(b#2)"
    outer = op("Filter", text, broadcast(files("csv", 1e6), scan("days", "b#2", 10), "[a#1], [b#2]", 9, "LeftOuter"))
    log = LogWriter().start()
    for number, name in enumerate(("t1", "t2", "t3", "t4")):
        log.execution(number, joined(files("csv", 1e6, name)), description="statistics")
    log.execution(9, outer, description="outer").write(tmp_path / "app-1")
    first, *others = pyjoinopt.advise(tmp_path).queries
    assert first.description == "outer" and {query.description for query in others} == {"statistics"}
    assert [finding.kind for finding in first.findings] == ["needless outer join", "missing statistics"]


def test_outputs(tmp_path: Path) -> None:
    LogWriter().start().execution(1, joined(files("csv", 1e6))).write(tmp_path / "app-1")
    advice = pyjoinopt.advise(tmp_path)
    assert "missing statistics, facts: not estimated" in advice.to_text() and "CSV files" in advice.to_html()
    (finding,) = advice.to_dict()["queries"][0]["findings"]
    assert finding["kind"] == "missing statistics" and finding["rests_on"] == "format" and finding["rows"] == 1e6
    assert list(advice.to_pandas()["kind"]) == ["missing statistics"]
