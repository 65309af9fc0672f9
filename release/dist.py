"""Builds and checks what is published: `make dist`, or `python -m release.dist` where the jars are built.

It builds the sdist, and the wheel from the sdist, out of the files that Git tracks and the jars. Dates, owners, modes
and the order of entries are fixed, with SOURCE_DATE_EPOCH as the date (by default that of the last commit), so that
equal files give equal archives: everything is built twice and compared. `release/constraints.txt` pins the build back
end.


Beside the archives it writes a bill of materials (CycloneDX) and SHA256SUMS.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from pyjoinopt.bridge.install import jars
from release import project, versions
from release.project import ROOT

WHEEL_BYTES = 3_000_000
JARS = tuple(jars.jar_name(scala) for scala in ("2.12", "2.13"))
CONSTRAINTS = ROOT / "release" / "constraints.txt"
# The first date that a zip entry can have, 1980-01-01, and a day more for time zones.
_OLDEST = 315_532_800 + 86_400


class DistError(Exception):
    """An archive cannot be published as it is; the message says why."""


def epoch() -> int:
    """The date of all files: SOURCE_DATE_EPOCH, or that of the last commit; seconds since 1970."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return max(int(given), _OLDEST)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DistError("this is no Git checkout: set SOURCE_DATE_EPOCH to the date of the release")
    return int(done.stdout)


def export(target: Path, source: Path = ROOT) -> Path:
    """Copy the tracked files and the jars, so that nothing else of the working tree gets into an archive."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=source, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise DistError(f"{source} is no Git checkout: git ls-files failed")
    names = [name for name in listed.stdout.split("\0") if name and (source / name).is_file()]
    names += [f"pyjoinopt/jars/{jar}" for jar in JARS if (source / "pyjoinopt" / "jars" / jar).is_file()]
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
        (target / name).chmod(0o755 if os.access(source / name, os.X_OK) else 0o644)
    return target


def build(checkout: Path, out: Path, when: int, *, isolated: bool = True) -> tuple[Path, Path]:
    """Build the sdist and the wheel of a checkout.

    Args:
        checkout: The folder with `setup.py`; the build writes into it.
        out: The folder for the archives.
        when: The date of all entries, in seconds since 1970.
        isolated: Build with the back end of `constraints.txt`; otherwise with the installed one, for tests.
    Returns:
        The paths of the sdist and of the wheel.
    """
    flags = [] if isolated else ["--no-isolation"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(when), "PIP_CONSTRAINT": str(CONSTRAINTS)}

    def run(kind: str, folder: Path) -> None:
        command = [sys.executable, "-m", "build", *flags, kind, "--outdir", str(out), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise DistError(f"the build failed:\n{done.stdout}{done.stderr}")

    run("--sdist", checkout)
    (sdist,) = out.glob("*.tar.gz")
    normalise_sdist(sdist, when)
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        run("--wheel", Path(scratch) / sdist.name.removesuffix(".tar.gz"))
    (wheel,) = out.glob("*.whl")
    normalise_wheel(wheel, when)
    return sdist, wheel


def normalise_sdist(sdist: Path, when: int) -> None:
    """Write an sdist again with its entries in order, and with fixed dates, owners and modes."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as archive, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as ordered:
        for entry in sorted(archive.getmembers(), key=lambda member: member.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = when, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            entry.pax_headers = {}
            ordered.addfile(entry, archive.extractfile(entry) if entry.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=when) as compressed:
        compressed.write(packed.getvalue())


def normalise_wheel(wheel: Path, when: int) -> None:
    """Write a wheel again in the order of its entries, and with fixed dates and modes."""
    packed = io.BytesIO()
    date = time.gmtime(when)[:6]
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(packed, "w") as ordered:
        for entry in archive.infolist():
            fixed = zipfile.ZipInfo(entry.filename, (date[0], date[1], date[2], date[3], date[4], date[5]))
            fixed.compress_type = zipfile.ZIP_DEFLATED
            fixed.external_attr = (0o100644) << 16
            fixed.create_system = 3
            ordered.writestr(fixed, archive.read(entry), compresslevel=9)
    wheel.write_bytes(packed.getvalue())


def digest(file: Path) -> str:
    """The SHA-256 hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_wheel(wheel: Path) -> None:
    """Check size and jars.

    Raises:
        DistError: The wheel is too large, or a jar is missing or was not made from the source beside it.
    """
    size = wheel.stat().st_size
    if size > WHEEL_BYTES:
        raise DistError(f"{wheel.name} has {size:,} bytes; at most {WHEEL_BYTES:,} are allowed")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        names = set(archive.namelist())
        for scala, jar in zip(("2.12", "2.13"), JARS, strict=True):
            if f"pyjoinopt/jars/{jar}" not in names:
                raise DistError(f"{wheel.name} has no {jar}: `make dist` builds it")
            packed = Path(archive.extract(f"pyjoinopt/jars/{jar}", scratch))
            if jars.jar_source_hash(packed) != jars.shim_source_hash(scala):
                raise DistError(f"{jar} in {wheel.name} was not made from the present source: `make dist` builds it")


def check_description(archives: list[Path]) -> None:
    """Check metadata and long description as a package index would, warnings included."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DistError(f"twine check failed:\n{done.stdout}{done.stderr}")


def check_release() -> None:
    """Check what a published version needs beside the archives.

    Raises:
        DistError: A value of `project.ini` is missing, a file has another version, the changelog has no date for the
            version, or the working tree differs from the last commit.
    """
    version = versions.current()
    problems = [f"project.ini has no {key}" for key in project.read().missing()]
    problems += [f"{name} has another version" for name in versions.differences(version)]
    if version not in versions.released():
        problems.append(f"CHANGELOG.md has no line `## [{version}] - DATE`")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    if changed.stdout:
        problems.append(f"files differ from the last commit:\n{changed.stdout.rstrip()}")
    if problems:
        raise DistError(f"version {version} cannot be released: " + "; ".join(problems))


def make(out: Path, *, isolated: bool = True) -> list[Path]:
    """Build twice, compare, check, and write everything into a folder, which is emptied first."""
    from release import sbom

    when = epoch()
    with tempfile.TemporaryDirectory(prefix="pyjoinopt-dist-") as scratch:
        folder = Path(scratch)
        builds = []
        for number in ("1", "2"):
            target = folder / f"dist{number}"
            target.mkdir()
            builds.append(build(export(folder / f"checkout{number}"), target, when, isolated=isolated))
        for first, second in zip(*builds, strict=True):
            if digest(first) != digest(second):
                raise DistError(f"two builds of {first.name} differ: the build is not reproducible")
        sdist, wheel = builds[0]
        check_wheel(wheel)
        check_description([sdist, wheel])
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        made = [Path(shutil.copy(archive, out)) for archive in (sdist, wheel)]
    bill = out / f"pyjoinopt-{versions.current()}.cdx.json"
    bill.write_text(sbom.bill_of(made[1], when), encoding="utf-8")
    made.append(bill)
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{digest(file)}  {file.name}\n" for file in sorted(made)), encoding="utf-8")
    return [*made, sums]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is 1 if something cannot be published."""
    parser = argparse.ArgumentParser(prog="python -m release.dist", description="Build and check sdist and wheel.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder for the results")
    parser.add_argument("--release", action="store_true", help="check also what only a published version needs")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.release:
            check_release()
        for file in make(chosen.out):
            print(f"{file.stat().st_size:>10,}  {file}")
    except (DistError, project.ProjectError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
