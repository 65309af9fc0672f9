"""A report describes the final plan, not the plan that a worker intended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sessions.conftest import BAD_ORDER, orders, planned, rows
from tests.sessions.fakes import GREETS, fake, give

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")


def test_edits_that_cannot_be_made_change_nothing(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    edits = "{'exprs': [], 'nodes': [['Copy', 10 ** 6, []]], 'root': -1}"
    answer = f"{{'edits': {edits}, 'summary': 'all is well', 'problem': None}}"
    report = "{'changed': True, 'error': None, 'groups': [], 'seconds': 0.0}"
    parts = {"answer": answer, "report": report}
    program = GREETS + "".join(f"write({{'id': request['id'], '{name}': {part}}})\n" for name, part in parts.items())
    expected = rows(session.sql(SQL))
    give(session, python=fake(tmp_path, program + "time.sleep(60)"))
    warnings()
    found = rows(session.sql(SQL))
    (row,) = session.sql(
        "SELECT changed, notes FROM joinopt_report() WHERE number = (SELECT max(number) FROM joinopt_report())"
    ).collect()
    assert found == expected
    (warning,) = warnings()
    assert "are not changed" in warning
    assert not row.changed and row.notes and row.notes in warning


def test_a_count_beside_the_joins_is_no_obstacle(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    """Spark's decorrelation declares such a count to be never NULL above the join that may pad it."""
    text = BAD_ORDER.format(hint="(SELECT count(*) FROM note WHERE note_k = fact_v) AS c,")
    session.conf.set("spark.pyjoinopt.enabled", "false")
    expected = rows(session.sql(text))
    session.conf.set("spark.pyjoinopt.enabled", "true")
    warnings()
    found, reports = planned(session, lambda: rows(session.sql(text)))
    assert found == expected and not [line for line in warnings() if line.startswith("WARN")]
    assert any("(mid ⋈ dim)" in order for order in orders(reports))
    assert all(report.changed and report.error is None for report in reports)
