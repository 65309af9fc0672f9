"""Finding the matching jar, and compiling it if there is none."""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path

import pytest

from pyjoinopt.bridge.install import jars, user_cache
from pyjoinopt.bridge.install.compile_scala import compile_shim
from pyjoinopt.bridge.install.java import ensure_java, installed_spark_version
from pyjoinopt.errors import ShimError, UnsupportedSparkError
from tests.packaging import checkouts

SCALA = jars.scala_binary_version(jars.scala_version_of(checkouts.spark_jars()))
SPARK = str(installed_spark_version())


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the small shim and no jars, in use instead of the real one, and an empty cache."""
    folder = checkouts.copy_package(tmp_path / "checkout")
    monkeypatch.setattr(jars, "_PACKAGE", folder / "pyjoinopt")
    monkeypatch.setattr(jars, "PACKAGED_JARS", folder / "pyjoinopt" / "jars")
    monkeypatch.setenv("PYJOINOPT_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def packaged_jar(checkout: Path) -> Path:
    """Build the jar that the wheel would carry."""
    jar = checkout / "pyjoinopt" / "jars" / jars.jar_name(SCALA)
    sources = jars.shim_sources(SCALA)
    compile_shim(checkouts.spark_jars(), ensure_java(), sources, jar, jars.shim_source_hash(SCALA))
    return jar


@pytest.mark.jvm
def test_the_jar_names_its_plugins() -> None:
    resources = jars.shim_resources()
    assert resources is not None
    names = [file.relative_to(resources).as_posix() for file in resources.rglob("*") if file.is_file()]
    with zipfile.ZipFile(jars.jar_for_version()) as archive:
        entries = archive.namelist()
        assert {"META-INF/services/org.apache.spark.status.AppHistoryServerPlugin"} == {*names} <= {*entries}
        for name in names:
            for line in archive.read(name).decode().split():
                assert f"{line.replace('.', '/')}.class" in entries
    assert "org/apache/spark/status/api/v1/" in entries  # the servlet of the REST API looks for this folder


@pytest.mark.ci
@pytest.mark.jvm
def test_two_processes_with_an_empty_cache_compile_once_and_both_get_the_jar(tmp_path: Path) -> None:
    checkout = checkouts.copy_package(tmp_path / "checkout")
    home, notes = checkouts.counting_java(tmp_path / "java", ensure_java().resolve())
    variables = {"JAVA_HOME": str(home), "PYJOINOPT_CACHE_DIR": str(tmp_path / "cache"), "SPARK_HOME": None}
    processes = [checkouts.start(["-m", "pyjoinopt", "jar"], checkout, **variables) for _ in range(2)]
    answers = [process.communicate(timeout=300) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], answers
    paths = {out.strip() for out, _ in answers}
    assert len(paths) == 1
    jar = Path(paths.pop())
    assert jar.is_relative_to(tmp_path / "cache")
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
        assert "shim/Flavour.class" in archive.namelist()
    compilations = [line for line in notes.read_text().splitlines() if "scala.tools.nsc.Main" in line]
    assert len(compilations) == 1
    assert sorted(file.name for file in jar.parent.iterdir()) in ([jar.name], ["lock", jar.name])


@pytest.mark.jvm
@pytest.mark.slow
def test_a_packaged_jar_of_the_present_source_is_taken_and_a_stale_one_is_not(checkout: Path) -> None:
    packaged = packaged_jar(checkout)
    assert jars.find_jar(SPARK, SCALA, checkouts.spark_jars()) == packaged

    (checkout / "jvm_shim/src/common/Numbers.scala").write_text(
        "package shim\nobject Numbers { def twice(number: Int): Int = number + number }\n"
    )
    compiled = jars.find_jar(SPARK, SCALA, checkouts.spark_jars())
    assert compiled != packaged
    assert jars.jar_source_hash(compiled) == jars.shim_source_hash(SCALA) != jars.jar_source_hash(packaged)


@pytest.mark.ci
@pytest.mark.jvm
def test_without_source_the_packaged_jar_is_trusted(checkout: Path) -> None:
    packaged = packaged_jar(checkout)
    (checkout / "jvm_shim/src/common").rename(checkout / "elsewhere")
    assert jars.shim_sources(SCALA) == []
    assert jars.find_jar(SPARK, SCALA) == packaged

    packaged.unlink()
    with pytest.raises(ShimError, match="Reinstall it"):
        jars.find_jar(SPARK, SCALA, checkouts.spark_jars())


@pytest.mark.jvm
@pytest.mark.slow
def test_a_damaged_jar_in_the_cache_is_compiled_again(checkout: Path) -> None:
    jar = jars.find_jar(SPARK, SCALA, checkouts.spark_jars())
    whole = jar.read_bytes()
    jar.write_bytes(whole[: len(whole) // 2])
    assert jars.find_jar(SPARK, SCALA, checkouts.spark_jars()) == jar
    assert jar.read_bytes() == whole


def test_each_flavour_has_the_common_source_and_its_own(checkout: Path) -> None:
    for scala in ("2.12", "2.13"):
        names = [file.relative_to(checkout / "jvm_shim/src").as_posix() for file in jars.shim_sources(scala)]
        assert names == ["common/Numbers.scala", f"scala-{scala}/Flavour.scala"]
    assert jars.shim_source_hash("2.12") != jars.shim_source_hash("2.13")


@pytest.mark.jvm
@pytest.mark.slow
def test_equal_source_gives_equal_jars(checkout: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jar", tmp_path / "second.jar"
    for jar in (first, second):
        compile_shim(checkouts.spark_jars(), ensure_java(), jars.shim_sources(SCALA), jar, "hash")
    assert first.read_bytes() == second.read_bytes()
    assert jars.jar_source_hash(first) == "hash"


def test_the_jar_that_is_shipped_has_no_code_for_tests() -> None:
    with zipfile.ZipFile(jars.find_jar(SPARK, SCALA, checkouts.spark_jars())) as archive:
        assert not [name for name in archive.namelist() if "Oracle" in name]
        bridge = archive.read("org/apache/spark/sql/pyjoinopt/PyJoinOptBridge.class")
    assert b"openHandles" in bridge
    oracle = (checkouts.ROOT / "jvm_shim" / "oracle" / "OracleBridge.scala").read_text()
    methods = re.findall(r"^  def (\w+)\(", oracle, re.MULTILINE)
    assert len(methods) >= 4 and not [method for method in methods if method.encode() in bridge]


@pytest.mark.slow
@pytest.mark.jvm
def test_a_warning_is_an_error_only_with_lint(tmp_path: Path) -> None:
    source = tmp_path / "Unused.scala"
    source.write_text("object Unused { private val number: Int = 1 }\n")
    compile_shim(checkouts.spark_jars(), ensure_java(), [source], tmp_path / "quiet.jar")
    with pytest.raises(ShimError, match="never used"):
        compile_shim(checkouts.spark_jars(), ensure_java(), [source], tmp_path / "strict.jar", lint=True)


@pytest.mark.ci
@pytest.mark.jvm
def test_an_error_in_the_source_is_shown_and_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "Wrong.scala"
    source.write_text("object Wrong { val number: Int = nowhere }\n")
    with pytest.raises(ShimError, match="nowhere"):
        compile_shim(checkouts.spark_jars(), ensure_java(), [source], tmp_path / "out" / "wrong.jar")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.jvm
def test_a_spark_without_compiler_says_what_to_do(checkout: Path, tmp_path: Path) -> None:
    empty = tmp_path / "jars"
    empty.mkdir()
    with pytest.raises(ShimError, match="scala-compiler"):
        jars.find_jar(SPARK, SCALA, empty)
    with pytest.raises(ShimError, match="SPARK_HOME"):
        jars.find_jar(SPARK, SCALA, None)


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8", "5.0.0", "5.1.0-preview1", "newest", ""])
def test_other_sparks_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedSparkError):
        jars.find_jar(version, SCALA, checkouts.spark_jars())


def test_other_scalas_are_refused() -> None:
    with pytest.raises(UnsupportedSparkError, match=r"3\.3\.1"):
        jars.find_jar("4.0.0", "3.3.1", checkouts.spark_jars())


def test_a_cache_that_cannot_be_written_is_replaced_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("PYJOINOPT_CACHE_DIR", str(blocked / "cache"))
    with pytest.warns(RuntimeWarning, match="PYJOINOPT_CACHE_DIR"):
        folder = user_cache.cache_folder()
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert user_cache.cache_folder() == folder
