"""`python -m pyjoinopt demo`, run as a user runs it after installing the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjoinopt.__main__ import main
from pyjoinopt.demo import shop
from pyjoinopt.demo.queries import QUERIES
from pyjoinopt.demo.run import data_folder
from tests.packaging import checkouts


@pytest.mark.ci
@pytest.mark.jvm
def test_it_runs_from_an_empty_directory_and_leaves_nothing(tmp_path: Path) -> None:
    empty, temporary, data = tmp_path / "empty", tmp_path / "temporary", tmp_path / "data"
    empty.mkdir()
    temporary.mkdir()
    arguments = ["-m", "pyjoinopt", "demo", "--rows", "60000", "--rounds", "1", "--keep", str(data)]
    code, out, err = checkouts.run(
        arguments, empty, PYTHONPATH=str(checkouts.ROOT), TMPDIR=str(temporary), SPARK_HOME=None
    )
    assert code == 0, out + err
    lines = out.splitlines()
    for number, query in enumerate(QUERIES, 1):
        assert f"{number:>2}. {query.name} ({query.form}): {query.about}" in lines
        (line,) = [line for line in lines if line.startswith(f"{query.name}  ")]
        assert line.endswith("the same") and " joins " in line, "every query is reordered"
    assert "    rows     0, the same" not in lines, "a query without rows compares nothing"
    assert "All together:" in out and "WRONG" not in out and "FAILED" not in out
    assert "generating" in err and "lines" in err
    assert sorted(folder.name for folder in data.iterdir()) == sorted(shop.rows_of_tables(60_000))
    assert not [*empty.iterdir(), *temporary.iterdir()]


def test_its_data_is_removed_unless_it_is_kept(tmp_path: Path) -> None:
    with data_folder(None) as folder:
        (folder / "lines").mkdir()
        (folder / "lines" / "part.parquet").touch()
    assert not folder.exists()
    with data_folder(tmp_path / "a" / "b") as folder:
        (folder / "lines").mkdir()
    assert folder == tmp_path / "a" / "b" and (folder / "lines").is_dir()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rows", "999"], "--rows is 999, but must be at least 1,000"),
        (["--rounds", "0"], "--rounds is 0, but must be at least 1"),
        (["--keep", "full"], "--keep needs an empty folder, but full has files in it"),
        (["--keep", "full/file"], "--keep needs a folder that can be written to"),
    ],
)
def test_bad_arguments_end_before_a_session_starts(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(["demo", *arguments]) == 1
    answer = capsys.readouterr()
    assert answer.out == "" and answer.err.startswith(f"error: {said}")


@pytest.mark.parametrize("arguments", [["--rows", "many"], ["--scale", "1"], ["--keep"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["demo", *arguments])
    assert stop.value.code == 2 and "usage:" in capsys.readouterr().err


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pyjoinopt.bridge.install.java.installed_spark_version", lambda: None)
    assert main(["demo"]) == 1
    answer = capsys.readouterr()
    assert answer.out == "" and "pip install" in answer.err


def test_five_queries_each_with_a_name_and_a_form() -> None:
    assert len(QUERIES) == 5 == len({query.name for query in QUERIES})
    assert {query.form for query in QUERIES} == {"SQL", "DataFrame"}


@pytest.mark.parametrize("lines", [0, 999, -5])
def test_too_few_lines_are_refused(lines: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lines is"):
        shop.generate(None, tmp_path, lines)
