"""Finds the jar of the shim for a version of Spark, or compiles it.

A Scala jar works with one binary version of Scala, so there are two jars: one for Scala 2.12 (Spark 3.5) and one for
Scala 2.13 (Spark 4). The wheel contains both, and their source. ``META-INF/pyjoinopt-source-hash`` of a jar has the
hash of its source. If that is not the source of this installation (it was edited, or the jar was never built), the
source is compiled against the running Spark, once, into the user's cache folder. No build tool is needed: PySpark's own
jars include the Scala compiler.

If two processes start with an empty cache, a lock lets one of them compile while the other waits. A jar is moved into
place when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

import filelock

from pyjoinopt.bridge.install.compile_scala import COMPILE_SECONDS, SOURCE_HASH_ENTRY, compile_shim
from pyjoinopt.bridge.install.java import ensure_java, installed_spark_version, why_no_spark
from pyjoinopt.bridge.install.user_cache import cache_folder
from pyjoinopt.errors import JavaNotFoundError, ShimError, UnsupportedSparkError

OLDEST_SPARK = (3, 5)
FIRST_UNKNOWN_SPARK = (5, 0)

_PACKAGE = Path(__file__).resolve().parent.parent.parent
PACKAGED_JARS = _PACKAGE / "jars"


def find_jar(
    spark_version: str, scala_version: str, jars_dir: Path | None = None, java: str | Path | None = None
) -> Path:
    """The path of the jar for a Spark: packaged, from the cache, or compiled now.

    Args:
        spark_version: For example ``"4.0.1"``.
        scala_version: Full or binary, for example ``"2.13.16"`` or ``"2.13"``.
        jars_dir: The folder of Spark's own jars, to compile against; without it nothing can be compiled.
        java: The Java executable to run the compiler; by default the one that Spark would use.
    Raises:
        UnsupportedSparkError: Spark is older than 3.5 or is 5 or newer, or its Scala is neither 2.12 nor 2.13.
        ShimError: There is no suitable jar and none can be compiled; the message has the cause and what to do.
    """
    check_spark_version(spark_version)
    binary = scala_binary_version(scala_version)
    sources = shim_sources(binary)
    packaged = PACKAGED_JARS / jar_name(binary)
    if not sources and packaged.is_file():
        return packaged
    if not sources and (archive := archive_of(_PACKAGE)):
        raise ShimError(
            f"pyjoinopt was imported from the archive {archive}, as with --py-files and spark.submit.pyFiles, and "
            "Spark's JVM cannot load a jar from an archive. Install pyjoinopt where the driver runs (pip install "
            f"pyjoinopt), or start Spark with --jars JAR; `python -m pyjoinopt jar --spark-version {spark_version}` "
            "prints its path where pyjoinopt is installed."
        )
    if not sources:
        raise ShimError(
            f"This installation of pyjoinopt has neither the jar {packaged.name} nor the Scala source to compile it. "
            "Reinstall it: pip install --force-reinstall --no-deps pyjoinopt."
        )
    source_hash = shim_source_hash(binary)
    if jar_source_hash(packaged) == source_hash:
        return packaged
    return _cached_jar(spark_version, binary, source_hash, sources, jars_dir, java)


def jar_for_version(spark_version: str | None = None) -> Path:
    """The path of the jar for the installed pyspark, or for another version of Spark.

    Raises:
        ShimError: As `find_jar`; also if no version is named and no pyspark is installed.
    """
    home = spark_home()
    installed = installed_spark_version()
    version = spark_version or installed
    if version is None:
        raise ShimError(f"{why_no_spark()} For the jar of a Spark elsewhere name its --spark-version.")
    check_spark_version(version)
    scala = "2.12" if version.startswith("3.") else "2.13"
    jars_dir = home / "jars" if home else None
    # A jar may be compiled against the installed Spark for another one, but only within the same Scala.
    fits = jars_dir is not None and jars_dir.is_dir() and scala_version_of(jars_dir).startswith(scala)
    return find_jar(version, scala, jars_dir if fits else None)


def archive_of(folder: Path) -> Path | None:
    """The file that a folder is inside of, if it is none of the file system; the package may be imported from a zip."""
    return next((parent for parent in folder.parents if parent.is_file()), None)


def spark_home() -> Path | None:
    """The folder of the Spark that pyspark would start, found without importing pyspark; None if there is none."""
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    spec = find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def check_spark_version(spark_version: str) -> None:
    """Raise UnsupportedSparkError unless the shim supports this version of Spark.

    >>> check_spark_version("4.1.0-preview1")
    >>> check_spark_version("3.4.4")
    Traceback (most recent call last):
    pyjoinopt.errors.UnsupportedSparkError: Spark 3.4.4 is too old: pyjoinopt needs Spark 3.5 or 4.x.
    """
    numbers = spark_version.split(".")
    try:
        version = (int(numbers[0]), int(numbers[1]))
    except (IndexError, ValueError):
        message = f"{spark_version!r} is not a version of Spark: expected one such as 4.0.1."
        raise UnsupportedSparkError(message) from None
    if version < OLDEST_SPARK:
        raise UnsupportedSparkError(f"Spark {spark_version} is too old: pyjoinopt needs Spark 3.5 or 4.x.")
    if version >= FIRST_UNKNOWN_SPARK:
        raise UnsupportedSparkError(
            f"Spark {spark_version} is newer than this pyjoinopt, which supports Spark 3.5 and 4.x. "
            "Upgrade pyjoinopt: pip install --upgrade pyjoinopt."
        )


def scala_binary_version(scala_version: str) -> str:
    """The binary version of Scala, which must match that of the jar.

    >>> scala_binary_version("2.13.16"), scala_binary_version("version 2.12.18")
    ('2.13', '2.12')
    """
    binary = ".".join(scala_version.removeprefix("version ").split(".")[:2])
    if binary not in ("2.12", "2.13"):
        raise UnsupportedSparkError(
            f"This Spark was built with Scala {scala_version}; pyjoinopt has jars for 2.12 and 2.13."
        )
    return binary


def jar_name(scala_binary: str) -> str:
    """The file name of the jar for a binary version of Scala.

    >>> jar_name("2.13")
    'pyjoinopt-shim_2.13.jar'
    """
    return f"pyjoinopt-shim_{scala_binary}.jar"


def shim_sources(scala_binary: str) -> list[Path]:
    """The source files for a binary version of Scala, in a fixed order: the common ones, then its own.

    Empty if the installation has no source.
    """
    folder = _source_folder()
    if folder is None:
        return []
    parts = (folder / "common", folder / f"scala-{scala_binary}")
    return [file for part in parts for file in sorted(part.rglob("*.scala"))]


def shim_resources() -> Path | None:
    """The folder of the files that a jar contains besides classes, such as the names of Spark's plugins."""
    folder = _source_folder()
    return None if folder is None else folder / "resources"


def shim_source_hash(scala_binary: str) -> str:
    """The SHA-256 hash over the paths and contents of the source files and resources for a binary version of Scala."""
    folder = _source_folder()
    digest = hashlib.sha256()
    resources = shim_resources()
    packed = sorted(path for path in resources.rglob("*") if path.is_file()) if resources else []
    for file in [*shim_sources(scala_binary), *packed]:
        content = file.read_bytes().replace(b"\r\n", b"\n")
        name = file.relative_to(folder).as_posix() if folder else file.name
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def jar_source_hash(jar: Path) -> str | None:
    """The hash of the source of a jar; None if there is no such jar or it has no hash."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(SOURCE_HASH_ENTRY).decode().strip()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def scala_version_of(jars_dir: Path) -> str:
    """The Scala version of a Spark, from the name of ``scala-library`` among its jars.

    Raises:
        ShimError: The folder has no such jar, so it is not the folder of Spark's jars.
    """
    found = sorted(jars_dir.glob("scala-library-*.jar"))
    if not found:
        raise ShimError(f"{jars_dir} has no scala-library-*.jar: it is not the `jars` folder of a Spark.")
    return found[0].stem.removeprefix("scala-library-")


def _source_folder() -> Path | None:
    """The folder of the source: inside the package in a wheel, next to the package in a checkout."""
    candidates = (_PACKAGE / "jvm_shim" / "src", _PACKAGE.parent / "jvm_shim" / "src")
    return next((folder for folder in candidates if (folder / "common").is_dir()), None)


def _cached_jar(
    spark_version: str,
    scala_binary: str,
    source_hash: str,
    sources: list[Path],
    jars_dir: Path | None,
    java: str | Path | None,
) -> Path:
    folder = cache_folder() / f"{spark_version}-{source_hash[:16]}"
    jar = folder / jar_name(scala_binary)
    if jar_source_hash(jar) == source_hash:
        return jar
    if jars_dir is None:
        raise ShimError(
            f"There is no compiled jar for Spark {spark_version} (Scala {scala_binary}), and none can be compiled "
            "without the folder of Spark's own jars. Set SPARK_HOME, or install pyspark."
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder / "lock", timeout=COMPILE_SECONDS):
            if jar_source_hash(jar) != source_hash:
                compiler = java or _default_java(spark_version)
                compile_shim(jars_dir, compiler, sources, jar, source_hash, resources=shim_resources())
    except filelock.Timeout:
        raise ShimError(
            f"Another process has been compiling {jar.name} for {COMPILE_SECONDS} seconds. "
            f"If that process is no longer running, delete the folder {folder} and try again."
        ) from None
    return jar


def _default_java(spark_version: str) -> Path:
    try:
        return ensure_java(spark_version)
    except JavaNotFoundError as error:
        raise ShimError(
            f"The shim must be compiled for Spark {spark_version}, which needs Java. {error}"
        ) from error
