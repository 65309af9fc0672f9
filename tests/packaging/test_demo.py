"""What ``make demo`` runs on TPC-H, on little data; the other half is ``python -m pyjoinopt demo``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.queries import QUERIES
from pyjoinopt.demo import tpch
from tests.packaging import checkouts


@pytest.mark.slow
def test_data_is_made_once_and_what_is_half_made_is_made_again(tmp_path: Path) -> None:
    folder = tpch.generate(0.001, tmp_path, progress=False)
    assert sorted(entry.name for entry in folder.iterdir()) == sorted([*tpch.ROWS, "complete.json"])
    assert json.loads((folder / "complete.json").read_text())["scale"] == 0.001
    written = {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}
    assert tpch.generate(0.001, tmp_path, progress=False) == folder
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")} == written

    (folder / "complete.json").unlink()
    (folder / "lineitem" / "lineitem.1.parquet").unlink()
    tpch.generate(0.001, tmp_path, progress=False)
    assert (folder / "lineitem" / "lineitem.1.parquet").is_file()
    assert [entry.name for entry in tmp_path.iterdir()] == [folder.name]


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_scale_that_makes_no_sense_is_refused(tmp_path: Path, scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        tpch.generate(scale, tmp_path, progress=False)


def test_half_of_the_queries_are_sql_and_half_are_dataframe_code() -> None:
    forms = [query.form for query in QUERIES]
    assert len(forms) >= 8
    assert forms.count("SQL") == forms.count("DataFrame") == len(forms) / 2
    assert len({query.name for query in QUERIES}) == len(QUERIES)


@pytest.mark.ci
@pytest.mark.jvm
def test_the_demo_runs_to_its_table_with_equal_rows() -> None:
    arguments = ["-m", "demo.run", "--scale", "0.01", "--rounds", "1", "--only", "outer"]
    code, out, err = checkouts.run(arguments, checkouts.ROOT, SPARK_HOME=None)
    assert code == 0, out + err
    (line,) = [line for line in out.splitlines() if line.startswith("careful outer joins")]
    assert line.endswith("same")
    name, form, joins, _, outer = line.split("  ")[0], *line.removeprefix("careful outer joins").split()[:4]
    assert (name, form) == ("careful outer joins", "SQL")
    assert int(joins) >= 3 and int(outer) >= 2
    assert "All together:" in out
