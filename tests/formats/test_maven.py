"""The jar for Maven: `--packages` from a repository, with a Python in which pyjoinopt is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyjoinopt import _version
from pyjoinopt.bridge.extension import EXTENSION
from pyjoinopt.bridge.install import jars
from tests.sessions import doors

pytestmark = [pytest.mark.formats, pytest.mark.jvm]

SCALA = jars.scala_binary_version(jars.scala_version_of(doors.HOME / "jars"))
ARTIFACT = f"pyjoinopt-shim_{SCALA}"
VERSION = _version.__version__

QUERY = """SELECT count(*) AS orders
FROM range(3000000) f JOIN range(2000000) m ON f.id % 2000000 = m.id JOIN range(40) d ON m.id = d.id"""
REPORT = "SELECT changed, order_before, order_after FROM joinopt_report()"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Maven repository with the artifact for this Spark's Scala, built and tested now."""
    folder = tmp_path_factory.mktemp("maven")
    command = [sys.executable, "-m", "release.maven", "--repository", str(folder), "--scala", SCALA]
    done = subprocess.run(command, cwd=doors.ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Tests run: 3, Failures: 0" in done.stdout
    return folder / "io" / "github" / "pyjoinopt" / ARTIFACT / VERSION


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the two packages that pyjoinopt requires, and nothing else."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=True)
    executable = folder / "bin" / "python"
    install = [str(executable), "-m", "pip", "install", "-q", "--disable-pip-version-check", "filelock", "platformdirs"]
    subprocess.run(install, check=True, timeout=600)
    found = subprocess.run([str(executable), "-c", "import pyjoinopt"], capture_output=True, text=True, cwd=folder,
                           env={**os.environ, "PYTHONPATH": ""}, check=False)  # fmt: skip
    assert "No module named 'pyjoinopt'" in found.stderr
    return str(executable)


def jar_of(repository: Path) -> Path:
    return repository / f"{ARTIFACT}-{VERSION}.jar"


def test_the_jar_has_the_classes_of_the_wheels_jar_and_the_python_sources(repository: Path) -> None:
    with zipfile.ZipFile(jar_of(repository)) as archive, zipfile.ZipFile(jars.jar_for_version()) as packaged:
        names, ours = set(archive.namelist()), set(packaged.namelist())
        dates = {entry.date_time for entry in archive.infolist()}
    classes = {name for name in ours if name.endswith(".class")}
    assert classes and {name for name in names if name.endswith(".class")} == classes
    package = doors.ROOT / "pyjoinopt"
    sources = {f"python/pyjoinopt/{file.relative_to(package).as_posix()}" for file in package.rglob("*.py")}
    assert {name for name in names if name.startswith("python/") and not name.endswith("/")} == sources
    assert "META-INF/LICENSE" in names
    assert {date[0] for date in dates} == {2020}, "dates of entries are fixed"


def test_the_pom_stands_alone_and_brings_nothing_along(repository: Path) -> None:
    tree = ElementTree.parse(repository / f"{ARTIFACT}-{VERSION}.pom").getroot()
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    assert tree.find("m:parent", space) is None
    assert [tree.findtext(f"m:{key}", None, space) for key in ("groupId", "artifactId", "version")] == [
        "io.github.pyjoinopt", ARTIFACT, VERSION,
    ]  # fmt: skip
    assert tree.findtext("m:licenses/m:license/m:name", None, space) == "Apache-2.0"
    scopes = [one.findtext("m:scope", "compile", space) for one in tree.iterfind("m:dependencies/m:dependency", space)]
    assert set(scopes) <= {"provided"}, "Spark must not be downloaded again"
    assert (repository / f"{ARTIFACT}-{VERSION}-sources.jar").is_file()


def settings(repository: Path, python: str, folder: Path) -> list[str]:
    """The arguments of docs/doors.md, and an Ivy folder of this test."""
    return [
        "--packages", f"io.github.pyjoinopt:{ARTIFACT}:{VERSION}",
        "--repositories", repository.parents[4].as_uri(),
        "--conf", f"spark.sql.extensions={EXTENSION}",
        "--conf", f"spark.pyjoinopt.python={python}",
        "--conf", f"spark.jars.ivy={folder / 'ivy'}",
    ]  # fmt: skip


def test_spark_sql_with_packages(repository: Path, python: str, tmp_path: Path) -> None:
    (tmp_path / "report.sql").write_text(f"{QUERY};\n{REPORT};\n")
    command = ["spark-sql", *settings(repository, python, tmp_path), "-f", "report.sql"]
    said = doors.run(command, tmp_path, PYTHONPATH="")
    assert "80" in said.splitlines()
    assert "true\t((range ⋈ range_2) ⋈ range_3)\t(range ⋈ (range_2 ⋈ range_3))" in said


def test_a_pyspark_job_with_packages(repository: Path, python: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import importlib.util\n"
        "from pyspark.sql import SparkSession\n"
        "assert importlib.util.find_spec('pyjoinopt') is None\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        f"print('orders', spark.sql('''{QUERY}''').first().orders)\n"
        f"print(*spark.sql('''{REPORT}''').first())\n"
    )
    command = ["spark-submit", *settings(repository, python, tmp_path), "job.py"]
    said = doors.run(command, tmp_path, PYTHONPATH="", PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python)
    assert "orders 80" in said
    assert "True ((range ⋈ range_2) ⋈ range_3) (range ⋈ (range_2 ⋈ range_3))" in said


def test_a_python_without_the_required_packages_is_named(repository: Path, python: str, tmp_path: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": f"{jar_of(repository)}/python"}
    done = subprocess.run([python, "-S", "-m", "pyjoinopt.worker"], capture_output=True, text=True, cwd=tmp_path,
                          env=variables, stdin=subprocess.DEVNULL, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "pyjoinopt needs filelock and platformdirs" in done.stderr and "--packages" in done.stderr
