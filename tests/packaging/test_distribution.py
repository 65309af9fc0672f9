"""The sdist and the wheel: what is in them, and that they work from an empty directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pyjoinopt import _version
from pyjoinopt.bridge.install import jars
from tests.packaging import checkouts

SCALA = jars.scala_binary_version(jars.scala_version_of(checkouts.spark_jars()))
JARS = {f"pyjoinopt/jars/{jars.jar_name(scala)}" for scala in ("2.12", "2.13")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist and the wheel made from it, of a checkout with a jar of each flavour."""
    checkout = tmp_path_factory.mktemp("checkout") / "pyjoinopt"
    shutil.copytree(
        checkouts.ROOT, checkout, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "data")
    )
    for jar in JARS:
        file = checkout / jar
        file.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def package_files() -> set[str]:
    return {
        file.relative_to(checkouts.ROOT).as_posix()
        for file in (checkouts.ROOT / "pyjoinopt").rglob("*.py")
        if "__pycache__" not in file.parts
    }


def scala_files() -> set[str]:
    return {
        file.relative_to(checkouts.ROOT).as_posix() for file in (checkouts.ROOT / "jvm_shim" / "src").rglob("*.scala")
    }


@pytest.mark.ci
def test_the_wheel_is_for_every_platform_and_holds_package_source_and_jars(built: Path) -> None:
    wheels = [file.name for file in built.glob("*.whl")]
    assert wheels == [f"pyjoinopt-{_version.__version__}-py3-none-any.whl"]
    with zipfile.ZipFile(built / wheels[0]) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"pyjoinopt-{_version.__version__}.dist-info/METADATA").decode()
    assert package_files() and package_files() <= names
    assert scala_files() and {f"pyjoinopt/{name}" for name in scala_files()} <= names
    assert names >= JARS
    assert "pyjoinopt/py.typed" in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if "oracle" in name.lower()], "tests alone need the oracle"
    info = f"pyjoinopt-{_version.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"pyjoinopt", "pyjoinopt_pytest.py", info}

    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert sorted(line.split()[1].rstrip(">=0123456789.") for line in needs) == ["filelock", "platformdirs"]


def test_the_sdist_holds_what_the_wheel_is_made_of(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert package_files() | scala_files() | JARS <= names
    assert {name for name in names if name.endswith(".jar")} == JARS
    assert {"setup.py", "setup.cfg", "pyproject.toml", "LICENSE", "pyjoinopt/py.typed", "jvm_shim/build.py"} <= names
    assert "pyjoinopt_pytest.py" in names


@pytest.mark.jvm
@pytest.mark.slow
def test_the_wheel_works_from_an_empty_directory(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    installed = {"PYTHONPATH": str(site), "PYJOINOPT_CACHE_DIR": str(tmp_path / "cache"), "SPARK_HOME": None}

    code, out, err = checkouts.run(["-c", "import pyjoinopt; print(pyjoinopt.__file__)"], empty, **installed)
    assert code == 0, err
    assert Path(out.strip()).is_relative_to(site)

    # Its jars hold nothing, so their hash does not fit: the source inside the wheel is compiled.
    code, out, err = checkouts.run(["-m", "pyjoinopt", "jar"], empty, **installed)
    assert code == 0, err
    jar = Path(out.strip())
    assert jar.is_relative_to(tmp_path / "cache")
    assert jars.jar_source_hash(jar) == jars.shim_source_hash(SCALA)
