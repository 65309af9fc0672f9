"""A machine with nothing but Python: from the wheel to the first notebook, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from release import dist

ROOT = Path(__file__).resolve().parents[2]
#: From `pip install` to the end of the notebook, with packages from the network.
SECONDS = 300


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.timeout(3 * SECONDS)
def test_the_first_five_minutes(tmp_path: Path) -> None:
    built, home, empty = (tmp_path / name for name in ("dist", "home", "empty"))
    for folder in (built, home, empty):
        folder.mkdir()
    _, wheel = dist.build(dist.export(tmp_path / "copy"), built, 1_700_000_000, isolated=False)
    # No Java, no Spark, no cache and no settings of this machine; pip's own cache would hide what a download takes.
    environment = {
        "HOME": str(home), "PATH": f"{tmp_path / 'venv' / 'bin'}:/usr/bin:/bin", "LANG": "C.UTF-8",
        "SPARK_LOCAL_IP": "127.0.0.1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")},
    }  # fmt: skip
    (hidden := tmp_path / "java").mkdir()
    environment["JAVA_HOME"] = str(hidden)

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=empty, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    started = time.monotonic()
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    run("python", "-m", "pip", "install", "-q", f"{wheel}[spark,java,demo]", "nbclient", "nbformat")
    assert "All is well" in run("python", "-m", "pyjoinopt", "doctor")
    demo = run("python", "-m", "pyjoinopt", "demo", "--rows", "500000", "--rounds", "1")
    assert demo.count("the same") >= 5 and "changed queries ran faster" in demo
    notebook = ROOT / "notebooks" / "01_getting_started.ipynb"
    run(
        "python", "-c",
        "import nbclient, nbformat, sys; nbclient.execute(nbformat.read(sys.argv[1], as_version=4), timeout=300)",
        str(notebook),
    )  # fmt: skip
    assert time.monotonic() - started < SECONDS
    assert not list(empty.iterdir()), "nothing is left where the user is"
