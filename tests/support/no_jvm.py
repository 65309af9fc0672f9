"""Ensures that tests without the marker `jvm` start no JVM: a script replaces Java, and a test that runs it fails.

While such a test runs, `JAVA_HOME` and the PATH lead to a script that leaves a note and ends. Processes that the test
starts inherit both, so a JVM at any distance is noticed. A test that needs one has the marker, and `make test-unit`
leaves it out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MESSAGE = "this test starts a JVM: give it @pytest.mark.jvm"


class NoJvm:
    """The script, and whether it ran."""

    def __init__(self, folder: Path) -> None:
        self._home = folder
        self._note = folder / "started"
        java = folder / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho \"$*\" >> '{self._note}'\necho '{MESSAGE}' >&2\nexit 97\n")
        java.chmod(0o755)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Context in which no JVM can start."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_HOME", str(self._home))
            patch.setenv("PATH", str(self._home / "bin"), prepend=os.pathsep)
            yield

    def check(self) -> None:
        """Check whether one would have started.

        Raises:
            pytest.fail.Exception: One would have.
        """
        if self._note.exists():
            self._note.unlink()
            pytest.fail(MESSAGE, pytrace=False)

    def remove(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
