"""The pytest plugin, registered by the entry point of `setup.cfg`, in test suites of their own."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

import pytest

from tests.packaging import checkouts

pytestmark = pytest.mark.ci  # each test starts a suite of its own
UNTOUCHED = """
import sys

def test_nothing_is_imported():
    assert "pyjoinopt_pytest" in sys.modules
    assert not [name for name in sys.modules if name.split(".")[0] in ("pyjoinopt", "pyspark", "py4j")]
"""
USED = """
import pytest

def test_the_fixture_has_the_assertions(joinopt):
    joinopt.assert_same_rows([(1, "a")], [(1, "a")])
    assert joinopt.options["strict"] and joinopt.options["store"].endswith("statistics.sqlite")
    with pytest.raises(TypeError, match="got int"):
        joinopt.assert_reordered(3)

def test_that_fails(joinopt):
    joinopt.assert_same_rows([(1, "a")], [(1, "b")])
"""


def run(folder: Path, test: str, *options: str) -> tuple[int, str]:
    """Run a test file in a process in which the plugin is registered as an installation of the package does it."""
    setup = configparser.ConfigParser()
    setup.read(checkouts.ROOT / "setup.cfg")
    metadata = folder / "site" / "a_plugin-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[pytest11]{setup['options.entry_points']['pytest11']}\n")
    suite = folder / "suite"
    suite.mkdir()
    (suite / "test_it.py").write_text(test)
    path = os.pathsep.join([str(metadata.parent), str(checkouts.ROOT)])
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
    code, out, err = checkouts.run(command, suite, PYTHONPATH=path, PYTEST_DISABLE_PLUGIN_AUTOLOAD=None)
    return code, out + err


def test_a_suite_that_does_not_use_it_imports_nothing(tmp_path: Path) -> None:
    code, out = run(tmp_path, UNTOUCHED)
    assert code == 0 and "1 passed" in out, out


def test_the_fixture_needs_no_session(tmp_path: Path) -> None:
    code, out = run(tmp_path, USED)
    assert code == 1 and "1 failed, 1 passed" in out, out
    assert "AssertionError: the rows differ" in out and "only in the second (1):" in out


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    code, out = run(tmp_path, USED, "-p", "no:pyjoinopt")
    assert code == 1 and "fixture 'joinopt' not found" in out, out


def test_it_is_listed(tmp_path: Path) -> None:
    code, out = run(tmp_path, UNTOUCHED, "--fixtures", "-v")
    assert code == 0 and "joinopt [session scope]" in out and "make plans repeatable" in out, out


@pytest.mark.parametrize("name", ["pyspark", "py4j"])
def test_a_suite_without_spark_is_not_disturbed(tmp_path: Path, name: str) -> None:
    code, out = run(tmp_path, f"import sys\nsys.modules[{name!r}] = None\ndef test_it():\n    assert True\n")
    assert code == 0 and "1 passed" in out, out
