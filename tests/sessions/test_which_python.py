"""The Python of the workers if no key names one: the order of docs/sessions.md, in a driver without Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sessions import doors
from tests.sessions.fakes import fake

QUERY = "SELECT count(*) FROM range(9) a JOIN range(8) b ON a.id = b.id JOIN range({}) c ON b.id = c.id"


def python(folder: Path, name: str, executable: str = "python") -> str:
    """A Python that signs when it starts as a worker."""
    (folder / name).mkdir()
    signs = f"open({str(folder / 'signed')!r}, 'a').write({name + chr(10)!r})"
    made = Path(fake(folder / name, f"{signs}\nimport sys\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())"))
    return str(made.rename(made.with_name(executable)))


def signed(folder: Path, settings: list[str], **variables: str) -> list[str]:
    """Which Pythons plan a query, of an application without these settings and with one more of them each."""
    found = []
    for count in range(len(settings) + 1):
        conf = [word for setting in settings[:count] for word in ("--conf", setting)]
        found += planned_by(folder, conf, [QUERY.format(7)], **variables)
    return found


def planned_by(folder: Path, conf: list[str], steps: list[str], **variables: str) -> list[str]:
    """Which Pythons plan the queries of one application."""
    (folder / "steps.sql").write_text(";\n".join(steps))
    (folder / "signed").unlink(missing_ok=True)
    unnamed = doors.extended()[:-2]
    assert not any("python=" in argument for argument in unnamed)
    doors.run(["spark-sql", *unnamed, *conf, "-f", "steps.sql"], folder, **variables)
    return (folder / "signed").read_text().split()


@pytest.mark.jvm
@pytest.mark.slow
def test_the_later_one_is_taken_where_the_earlier_is_not_there(tmp_path: Path) -> None:
    names = ("ours", "driver", "executors", "variable")
    made = {name: python(tmp_path, name) for name in names}
    notebook = python(tmp_path, "notebook", "jupyter")
    settings = [
        f"spark.pyspark.python={made['executors']}",
        f"spark.pyspark.driver.python={made['driver']}",
        f"spark.pyjoinopt.python={made['ours']}",
    ]
    variables = {"PYSPARK_PYTHON": made["variable"], "PYSPARK_DRIVER_PYTHON": notebook}
    assert signed(tmp_path, settings, **variables) == ["variable", "executors", "driver", "ours"]


@pytest.mark.jvm
@pytest.mark.slow
def test_a_session_names_none(tmp_path: Path) -> None:
    """Spark itself lets a session set what its core reads, once the session has switched that check off."""
    variable, evil = python(tmp_path, "variable"), python(tmp_path, "evil")
    steps = ["SET spark.sql.legacy.setCommandRejectsSparkCoreConfs=false"]
    for number, key in enumerate(("spark.pyspark.python", "spark.pyspark.driver.python", "spark.pyjoinopt.python")):
        steps += [f"SET {key}={evil}", QUERY.format(6 - number)]
    assert planned_by(tmp_path, [], steps, PYSPARK_DRIVER_PYTHON=variable) == ["variable"]


@pytest.mark.jvm
@pytest.mark.slow
def test_the_drivers_variable_comes_before_what_executors_run(tmp_path: Path) -> None:
    variable, executors = python(tmp_path, "variable"), python(tmp_path, "executors")
    settings = [f"spark.pyspark.python={executors}"]
    named = signed(tmp_path, settings, PYSPARK_DRIVER_PYTHON=variable, PYSPARK_PYTHON=executors)
    assert named == ["variable", "variable"]


@pytest.mark.jvm
@pytest.mark.slow
def test_without_anything_it_is_the_python_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = python(tmp_path, "path", "python3")
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    path = os.pathsep.join([str(Path(found).parent), doors.environment(tmp_path)["PATH"]])
    assert signed(tmp_path, [], PATH=path) == ["path"]
