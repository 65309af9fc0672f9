"""The package as an archive in `--py-files`, and in a client without a JVM: error messages name the missing parts."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging import checkouts
from tests.sessions import doors


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `zip -r pyjoinopt.zip pyjoinopt` makes."""
    path = tmp_path_factory.mktemp("archive") / "pyjoinopt.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for file in (checkouts.ROOT / "pyjoinopt").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, file.relative_to(checkouts.ROOT))
    return path


def failed(archive: Path, code: str, *flags: str) -> str:
    """The last line that a program with the archive on its path ends with."""
    program = f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"
    done = subprocess.run(
        [sys.executable, *flags, "-c", program], capture_output=True, text=True, cwd=archive.parent, timeout=120,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_an_archive_without_what_the_package_needs(archive: Path) -> None:
    said = failed(archive, "import pyjoinopt", "-S")  # without site-packages
    assert said.startswith("ModuleNotFoundError: pyjoinopt needs filelock and platformdirs, not installed in")
    assert f"imported from the archive {archive}: --py-files" in said and "pip install pyjoinopt" in said


def test_no_jar_is_loaded_out_of_an_archive(archive: Path) -> None:
    said = failed(archive, "from pyjoinopt.bridge.install.jars import jar_for_version; jar_for_version()")
    assert "ShimError: pyjoinopt was imported from the archive" in said and str(archive) in said
    assert "Spark's JVM cannot load a jar from an archive" in said and "--jars JAR" in said


@pytest.mark.jvm
@pytest.mark.slow
def test_a_client_without_a_jvm_and_without_a_server(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "SPARK_REMOTE", "JAVA_HOME")}
    environment.update(PYTHONPATH=str(checkouts.ROOT), SPARK_HOME=str(tmp_path))

    def said(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [doors.client_python(), "-m", "pyjoinopt", *arguments], capture_output=True, text=True, env=environment,
            timeout=120, cwd=tmp_path,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    code, text = said("doctor")
    assert code == 0 and "Spark Connect without a JVM" in text and "set SPARK_REMOTE=sc://" in text, text
    code, text = said("jar")
    assert code == 1 and "Only pyspark-client" in text and "--spark-version" in text, text
