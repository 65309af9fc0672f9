"""The commands that the Makefile runs."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.packaging import checkouts


def commands(target: str) -> str:
    """What `make TARGET` would run."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")
    run = [make, "-n", "-s", target]
    return subprocess.run(run, cwd=checkouts.ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("target", "options"), [("demo", "--if-stale"), ("test-ci", "--if-stale"), ("check", "--if-stale --lint")]
)
def test_the_jar_is_built_with_options_that_exist(target: str, options: str) -> None:
    """Make has variables of its own, LINT among them."""
    (built,) = set(re.findall(r"jvm_shim/build\.py(.*)", commands(target)))
    assert built.strip() == options
