"""Compiles the shim with the Scala compiler among Spark's own jars, and packs the classes into a jar."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pyjoinopt.errors import ShimError

SOURCE_HASH_ENTRY = "META-INF/pyjoinopt-source-hash"
COMPILE_SECONDS = 600

_COMPILER = "scala.tools.nsc.Main"
# Flags that the compilers of Scala 2.12 and 2.13 both have.
_LINT = ("-deprecation", "-feature", "-unchecked", "-Xlint", "-Xfatal-warnings")
# Zip entries need a date; a fixed one makes builds reproducible.
_ZIP_DATE = (2020, 1, 1, 0, 0, 0)


def compile_shim(
    spark_jars_dir: Path,
    java: str | Path,
    sources: list[Path],
    out_jar: Path,
    source_hash: str | None = None,
    *,
    class_path: Sequence[Path] = (),
    resources: Path | None = None,
    lint: bool = False,
) -> None:
    """Compile Scala sources against a Spark and pack the classes into a jar, which is moved into place when complete.

    Args:
        spark_jars_dir: Spark's own jars; the Scala compiler is one of them.
        java: The Java executable to run it with.
        sources: The files to compile.
        out_jar: The path of the jar; its folder is created if necessary.
        source_hash: Stored in the jar, to detect an outdated one.
        class_path: Jars that the sources need beside Spark's.
        resources: A folder whose files are packed, too.
        lint: Treat the compiler's warnings as errors. Only for development: another Spark may deprecate something.
    Raises:
        ShimError: The compiler is missing, or it reported errors, which the message contains.
    """
    if not any(spark_jars_dir.glob("scala-compiler-*.jar")):
        raise ShimError(
            f"{spark_jars_dir} has no scala-compiler-*.jar, so the shim cannot be compiled there. "
            "Install a wheel of pyjoinopt, which contains the compiled jar, or build one with `make dist`."
        )
    out_jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pyjoinopt-classes-") as scratch:
        classes = Path(scratch)
        _run_compiler([spark_jars_dir / "*", *class_path], java, sources, classes, lint)
        handle, draft = tempfile.mkstemp(prefix=f".{out_jar.name}-", dir=out_jar.parent)
        os.close(handle)
        try:
            _pack([classes, *([resources] if resources else [])], Path(draft), source_hash)
            os.chmod(draft, 0o644)
            os.replace(draft, out_jar)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def _run_compiler(
    class_path: Sequence[Path], java: str | Path, sources: list[Path], classes: Path, lint: bool
) -> None:
    command = [str(java), "-Xss8m", "-cp", os.pathsep.join(map(str, class_path)), _COMPILER, "-usejavacp"]
    command += [*(_LINT if lint else ["-nowarn"]), "-d", str(classes), *map(str, sources)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
    except OSError as error:
        raise ShimError(f"The Scala compiler could not be started with {java}: {error}.") from error
    except subprocess.TimeoutExpired:
        raise ShimError(f"The Scala compiler was stopped after {COMPILE_SECONDS} seconds.") from None
    if done.returncode != 0 or not any(classes.rglob("*.class")):
        output = (done.stdout + done.stderr).strip()
        raise ShimError(f"The Scala compiler could not compile the shim against {class_path[0].parent}:\n{output}")


def _pack(folders: Sequence[Path], jar: Path, source_hash: str | None) -> None:
    entries = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\nCreated-By: pyjoinopt\r\n\r\n"}
    if source_hash:
        entries[SOURCE_HASH_ENTRY] = f"{source_hash}\n".encode()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            # with entries for folders: the servlet of Spark's REST API finds resources by the folder of their package
            entries |= {f"{name}/": b""} if path.is_dir() else {name: path.read_bytes()}
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name, _ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o40755 << 16) | 0x10 if name.endswith("/") else 0o644 << 16
            archive.writestr(entry, content)
