"""The runner of SQL folders, on a generated folder in which some statements differ on purpose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden.__main__ import main
from tests.golden.runner import run_file
from tests.golden.statements import read_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
-- setup of all files; its statements run in each session
CREATE TEMPORARY VIEW facts AS SELECT id AS f, id % 20 AS m, id % 5 AS v FROM range(400);
CREATE TABLE mids (m BIGINT, d BIGINT) USING parquet;
INSERT INTO mids SELECT id, id % 4 FROM range(20);
CREATE TEMPORARY VIEW dims AS SELECT * FROM VALUES (1L, 'a;b'), (2L, "c") AS dims(d, name);
"""
QUERIES = """--SET spark.sql.ansi.enabled=true, spark.sql.shuffle.partitions=2
--IMPORT tables.sql
--CONFIG_DIM1 spark.sql.codegen.wholeStage=false
SELECT count(*), sum(v / 3.0D) FROM facts JOIN mids USING (m) JOIN dims USING (d) WHERE name = 'a;b'; -- a comment; more
/* nothing; here */
SELECT * FROM facts WHERE 1 / (v - v) > 0;
SELECT rand() AS r;
EXPLAIN SELECT * FROM facts JOIN mids USING (m) JOIN dims USING (d);
SELECT d, count(f) FROM facts NATURAL JOIN mids GROUP BY d;
"""
DIFFERING = """
SELECT current_schema() AS here;
SELECT if(current_schema() = 'golden_extension', raise_error('not in this session'), 1) AS one;
SELECT 1 AS one;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "tables.sql").write_text(TABLES)
    (tmp_path / "inputs" / "queries.sql").write_text(QUERIES)
    return tmp_path


def test_what_is_the_same(spark: SparkSession, folder: Path) -> None:
    file = read_file(folder / "inputs" / "queries.sql", folder)
    assert file.settings == {"spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "2"}
    assert file.ignored == ["CONFIG_DIM1"] and len(file.statements) == 9
    result = run_file(spark, file, {})
    assert result.differences == []
    assert result.counts["plain fails"] == 1 and result.counts["unstable"] == 1 and result.counts["same"] == 7
    assert result.counts["changed"] >= 1, "no order was changed, so nothing was compared"
    assert not [d.name for d in spark.catalog.listDatabases() if d.name.startswith("golden")]


def test_what_differs_is_found(spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each session has its own database, so output that contains its name differs by design."""
    (folder / "differing.sql").write_text(DIFFERING)
    assert main([str(folder), "--match", "differing"], spark) == 1
    out = capsys.readouterr().out
    for entrance in ("call", "extension"):
        assert f"differing.sql, statement 1, {entrance}: results differ" in out
    assert "statement 2, extension: plain Spark runs it, and here" in out and "not in this session" in out
    assert "statement 2, call" not in out and "statement 3" not in out


@pytest.mark.ci
def test_a_folder_without_differences(spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--conf", "spark.sql.shuffle.partitions=1"], spark) == 0
    out = capsys.readouterr().out
    assert "inputs/queries.sql" in out and "2 files" in out and "not followed: CONFIG_DIM1" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["nowhere"], "is no folder"), (["."], "has no .sql file"), ([".", "--match", "x"], "'x' in its path")],
)
def test_wrong_arguments(arguments: list[str], text: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent
    (tmp_path / "empty").mkdir()
    arguments = [str(tmp_path / "empty") if a == "." else a for a in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", *arguments], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 2 and text in done.stderr, done.stderr


def test_imports(folder: Path) -> None:
    (folder / "inputs" / "a.sql").write_text("--IMPORT b.sql\nselect 1;")
    with pytest.raises(ValueError, match=r"imports b.sql, which is neither"):
        read_file(folder / "inputs" / "a.sql", folder)
    (folder / "b.sql").write_text("--IMPORT inputs/a.sql\nselect 2;")
    with pytest.raises(ValueError, match="imports itself"):
        read_file(folder / "inputs" / "a.sql", folder)
