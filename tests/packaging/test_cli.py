"""``python -m pyjoinopt``, run as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjoinopt import _version
from pyjoinopt.__main__ import main
from pyjoinopt.bridge.install import jars
from tests.packaging import checkouts


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"pyjoinopt {_version.__version__}\n"


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "python -m pyjoinopt doctor" in out and "spark-submit --jars" in out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["jar", "--spark"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_jar_prints_one_path_of_a_jar_with_the_extension(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    jar = Path(capsys.readouterr().out.strip())
    scala = jars.scala_binary_version(jars.scala_version_of(checkouts.spark_jars()))
    assert jar.name == jars.jar_name(scala)
    assert jars.jar_source_hash(jar) == jars.shim_source_hash(scala)


def test_jar_for_a_spark_that_is_not_supported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar", "--spark-version", "3.3.0"]) == 1
    answer = capsys.readouterr()
    assert answer.out == "" and "Spark 3.5 or 4.x" in answer.err


@pytest.mark.jvm
def test_java_prints_a_home(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["java"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "bin" / "java").is_file()


@pytest.mark.ci
@pytest.mark.jvm
def test_doctor_finds_this_installation_well() -> None:
    code, out, err = checkouts.run(["-m", "pyjoinopt", "doctor"], checkouts.ROOT, SPARK_HOME=None)
    assert code == 0, out + err
    lines = out.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["Python", "Spark", "Java", "Scala", "Jar", "Session"]
    assert all(line.startswith("✓ ") for line in lines[:-1])
    assert "joins were reordered" in lines[-2]


def test_doctor_stops_at_the_first_trouble_and_says_what_to_do(tmp_path: Path) -> None:
    code, out, _ = checkouts.run(["-m", "pyjoinopt", "doctor"], checkouts.ROOT, SPARK_HOME=str(tmp_path))
    assert code == 1
    assert out.splitlines()[-1].startswith("✗ Spark")
    assert "SPARK_HOME" in out
