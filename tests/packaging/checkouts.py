"""Small checkouts of the package, made from the real one, that tests may build, break and install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: A shim that compiles in seconds, with one file of each kind of folder.
SMALL_SHIM = {
    "common/Numbers.scala": "package shim\nobject Numbers { def twice(number: Int): Int = 2 * number }\n",
    "scala-2.12/Flavour.scala": 'package shim\nobject Flavour { def name: String = "2.12" + Numbers.twice(1) }\n',
    "scala-2.13/Flavour.scala": 'package shim\nobject Flavour { def name: String = "2.13" + Numbers.twice(2) }\n',
}


def spark_jars() -> Path:
    """The jars of the installed pyspark."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark is not installed"
    return Path(spec.origin).parent / "jars"


def copy_package(target: Path) -> Path:
    """A checkout that holds the real package without its jars, and the small shim."""
    ignored = shutil.ignore_patterns("jars", "__pycache__")
    shutil.copytree(ROOT / "pyjoinopt", target / "pyjoinopt", ignore=ignored)
    for name, text in SMALL_SHIM.items():
        file = target / "jvm_shim" / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return target


def counting_java(folder: Path, real: Path) -> tuple[Path, Path]:
    """A JAVA_HOME whose java logs each start and then runs a real one. Returns the home and the log."""
    notes = folder / "starts.txt"
    script = folder / "home" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho "$*" >> "{notes}"\nexec "{real}" "$@"\n')
    script.chmod(0o755)
    return folder / "home", notes


def start(arguments: list[str], path: Path, **environment: str | None) -> subprocess.Popen[str]:
    """Start this Python with `path` as the only place to find pyjoinopt; None removes a variable."""
    variables: dict[str, str | None] = {**os.environ, "PYTHONPATH": str(path), **environment}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=path,
        env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(arguments: list[str], path: Path, **environment: str | None) -> tuple[int, str, str]:
    """Run it to its end: exit code, output, error output."""
    process = start(arguments, path, **environment)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err
