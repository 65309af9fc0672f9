"""`python -m pyjoinopt explain`: statements of SQL files, of which queries are planned and nothing else is run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.__main__ import main
from pyjoinopt.api import explain_files
from pyjoinopt.api.explain_files import explained
from pyjoinopt.errors import PyJoinOptError
from pyjoinopt.util.sql_statements import statements
from tests.packaging import checkouts
from tests.support.small_session import session_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "fact": "SELECT id % 200 f_mid, id f_id FROM range(4000)",
    "mid": "SELECT id m_id, id % 20 m_dim FROM range(200)",
    "dim": "SELECT id d_id, id % 10 d_v FROM range(20)",
}
SLOW = "SELECT count(*) FROM fact JOIN mid ON f_mid = m_id JOIN dim ON m_dim = d_id WHERE d_v = 1"


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_over(spark, tmp_path_factory.mktemp("explained"), TABLES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;\n-- nothing;\n/* ; */;", []),
        ("SELECT 1", [(1, "SELECT 1")]),
        ("SELECT 1;SELECT 2;", [(1, "SELECT 1"), (1, "SELECT 2")]),
        ("\n\nSELECT ';'; \n SELECT \";\"", [(3, "SELECT ';'"), (4, 'SELECT ";"')]),
        ("SELECT 'it\\'s; ', 'it''s;'; SELECT 2", [(1, "SELECT 'it\\'s; ', 'it''s;'"), (1, "SELECT 2")]),
        ("SELECT `a;``b`; x", [(1, "SELECT `a;``b`"), (1, "x")]),
        ("-- one; two\nSELECT 1 -- three; 'four\n; x", [(1, "-- one; two\nSELECT 1 -- three; 'four"), (3, "x")]),
        ("SELECT 1 /* a; /* b; */ c; */ + 1; x", [(1, "SELECT 1 /* a; /* b; */ c; */ + 1"), (1, "x")]),
        ("SELECT 1 /* never; ends", [(1, "SELECT 1 /* never; ends")]),
        ("SELECT 'never; ends", [(1, "SELECT 'never"), (1, "ends")]),
    ],
)
def test_statements_end_at_semicolons_that_are_not_quoted(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(statements(text)) == expected


def run(session: SparkSession, folder: Path, text: str) -> list[tuple[int, str, str]]:
    file = folder / "queries.sql"
    file.write_text(text)
    return [(each.line, each.state, each.about) for each in explained(session, [file])]


def test_a_query_is_planned_and_not_run(session: SparkSession, tmp_path: Path) -> None:
    ((_, state, _),) = run(session, tmp_path, "SELECT raise_error('it ran')")
    assert state == "as written"
    ((line, state, about),) = run(session, tmp_path, f"\n{SLOW}")
    assert (line, state) == (2, "changed")
    assert about.startswith("((fact ⋈ mid) ⋈ dim) -> ")


def test_what_cannot_change_has_a_reason(session: SparkSession, tmp_path: Path) -> None:
    found = run(session, tmp_path, "SELECT 1; SELECT * FROM fact JOIN mid ON f_mid = m_id")
    assert [state for _, state, _ in found] == ["as written"] * 2
    assert "no join" in found[0][2] and "two relations" in found[1][2]


@pytest.mark.parametrize(
    "command",
    [
        "DROP VIEW dim",
        "CREATE TABLE t USING parquet AS SELECT 1 a",
        "CREATE VIEW v AS SELECT 1 a",
        "INSERT INTO fact SELECT 1, 2",
        "WITH x AS (SELECT 1 a, 2 b) INSERT INTO fact SELECT * FROM x",
        "FROM dim INSERT INTO fact SELECT d_id, d_v",
        "INSERT OVERWRITE DIRECTORY '{folder}/out' USING parquet SELECT * FROM dim",
        "CACHE TABLE dim",
        "ANALYZE TABLE dim COMPUTE STATISTICS",
        "EXPLAIN SELECT 1",
        "/* SET */ DROP VIEW dim",
        "TRUNCATE TABLE dim",
        "DELETE FROM dim",
        "ADD JAR '/x.jar'",
        "RESET",
    ],
)
def test_commands_are_not_run(session: SparkSession, tmp_path: Path, command: str) -> None:
    before = {table.name for table in session.catalog.listTables()}
    found = run(session, tmp_path, command.format(folder=tmp_path))
    assert [(state, about) for _, state, about in found] == [("not run", "it is a command")]
    assert {table.name for table in session.catalog.listTables()} == before
    assert not (tmp_path / "out").exists()
    assert session.table("fact").count() == 4000


def test_statements_that_prepare_the_session_are_run(session: SparkSession, tmp_path: Path) -> None:
    text = f"""
        SET spark.sql.autoBroadcastJoinThreshold = 1000;
        -- a view
        CREATE OR REPLACE TEMPORARY VIEW slow AS {SLOW};
        SELECT * FROM slow"""
    try:
        assert [state for _, state, _ in run(session, tmp_path, text)] == ["run", "run", "changed"]
        assert session.conf.get("spark.sql.autoBroadcastJoinThreshold") == "1000"
    finally:
        session.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        session.catalog.dropTempView("slow")


def test_errors_are_those_of_one_statement(session: SparkSession, tmp_path: Path) -> None:
    found = run(session, tmp_path, "SELECT nothing FROM fact;\nSELEC 1;\nSELECT 1")
    assert [state for _, state, _ in found] == ["failed", "failed", "as written"]
    assert "nothing" in found[0][2] and "SELEC" in found[1][2]
    (tmp_path / "bytes.sql").write_bytes(b"\xff\xfe")
    (unreadable,) = explained(session, [tmp_path / "bytes.sql"])
    assert unreadable.state == "failed" and "cannot be read" in unreadable.about


def test_report_mode_of_the_session_does_not_matter(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.pyjoinopt.mode", "report")
    try:
        assert [state for _, state, _ in run(session, tmp_path, SLOW)] == ["changed"]
    finally:
        session.conf.unset("spark.pyjoinopt.mode")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/none.sql"], "does not exist: give SQL files"),
        (["{folder}"], "has no files *.sql"),
        (["{folder}/a.txt", "--conf", "x"], "--conf is 'x', but must be KEY=VALUE"),
        (["{folder}/a.txt", "--views", "{folder}/none"], "is no folder"),
    ],
)
def test_wrong_arguments_have_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (tmp_path / "a.txt").write_text("SELECT 1")
    assert main(["explain", *(argument.format(folder=tmp_path) for argument in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_without_files_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(PyJoinOptError):
        explain_files.explain([tmp_path], io.StringIO())


@pytest.mark.ci
def test_from_the_command_line(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in TABLES.items():
        spark.sql(text).coalesce(1).write.parquet(str(tmp_path / "tables" / name))
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "b.sql").write_text(f"{SLOW};")
    (folder / "a.sql").write_text("SELECT count(*) FROM dim")
    arguments = ["-m", "pyjoinopt", "explain", str(folder), "--views", str(tmp_path / "tables")]
    options = ["--conf", "spark.pyjoinopt.store=off", "--json", str(tmp_path / "all.json")]
    code, out, err = checkouts.run([*arguments, *options], tmp_path, SPARK_HOME=None)
    assert code == 0, err
    first, second, last = out.splitlines()
    assert first == f"{folder}/a.sql:1  as written: it has no join" and last == "1 changed, 1 as written, 0 failed"
    assert second.startswith(f"{folder}/b.sql:1  changed: ((fact ⋈ mid) ⋈ dim) -> ")
    listed = json.loads((tmp_path / "all.json").read_text())
    assert [each["state"] for each in listed] == ["as written", "changed"] and listed[1]["report"]["changed"]
    (folder / "a.sql").unlink()
    code, out, err = checkouts.run([*arguments, "--fail-on", "changed", "--reports"], tmp_path, SPARK_HOME=None)
    assert code == 1 and "Group 1: 3 relations" in out
