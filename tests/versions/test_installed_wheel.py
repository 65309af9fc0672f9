"""The wheel, installed in an empty folder, with the Spark that runs this test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from release import dist
from tests.packaging import checkouts


@pytest.mark.jvm
@pytest.mark.slow
def test_the_doctor_of_an_installed_wheel_finds_nothing(tmp_path: Path) -> None:
    built, site, empty = (tmp_path / name for name in ("dist", "site", "empty"))
    for folder in (built, site, empty):
        folder.mkdir()
    _, wheel = dist.build(dist.export(tmp_path / "copy"), built, 1_700_000_000, isolated=False)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, timeout=300)

    variables = {
        "PYTHONPATH": str(site), "PYJOINOPT_CACHE_DIR": str(tmp_path / "cache"), "SPARK_HOME": None,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    code, out, err = checkouts.run(["-m", "pyjoinopt", "doctor"], empty, **variables)
    assert code == 0, out + err
    assert str(site / "pyjoinopt" / "jars") in out, "the packaged jar is used, not one that was compiled now"
    assert not [file.name for file in empty.iterdir() if file.suffix == ".py"]
