"""`make dist` is reproducible, and refuses to make an archive that must not be published."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from pyjoinopt import _version
from pyjoinopt.bridge.install import compile_scala, jars
from release import dist, project, versions
from tests.packaging import checkouts

VERSION = _version.__version__
WHEN = 1_700_000_000


def sdist_of(file: Path, names: list[str], when: int, mode: int) -> Path:
    with tarfile.open(file, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            content = name.encode()
            entry.size, entry.mtime, entry.mode, entry.uid, entry.uname = len(content), when, mode, mode, str(mode)
            archive.addfile(entry, io.BytesIO(content))
    return file


def wheel_of(file: Path, entries: dict[str, bytes], year: int = 2024) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return file


def test_sdists_with_the_same_files_become_the_same_bytes(tmp_path: Path) -> None:
    one = sdist_of(tmp_path / "one.tar.gz", ["a/x", "a/y"], 1_000_000_000, 0o644)
    other = sdist_of(tmp_path / "other.tar.gz", ["a/y", "a/x"], 1_600_000_000, 0o600)
    assert dist.digest(one) != dist.digest(other)
    for file in (one, other):
        dist.normalise_sdist(file, WHEN)
    assert dist.digest(one) == dist.digest(other)
    with tarfile.open(one) as archive:
        assert {(member.name, member.mtime, member.uid, member.mode) for member in archive} == {
            ("a/x", WHEN, 0, 0o644),
            ("a/y", WHEN, 0, 0o644),
        }
        content = archive.extractfile("a/y")
        assert content is not None and content.read() == b"a/y"


def test_wheels_with_the_same_files_become_the_same_bytes(tmp_path: Path) -> None:
    one = wheel_of(tmp_path / "one.whl", {"a.py": b"a = 1\n", "b.py": b"b = 1\n"}, 2001)
    other = wheel_of(tmp_path / "other.whl", {"a.py": b"a = 1\n", "b.py": b"b = 1\n"}, 2002)
    for file in (one, other):
        dist.normalise_wheel(file, WHEN)
    assert dist.digest(one) == dist.digest(other)
    with zipfile.ZipFile(one) as archive:
        assert archive.testzip() is None and archive.read("b.py") == b"b = 1\n"
        assert {entry.date_time for entry in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_the_date_is_that_of_the_environment_but_none_that_a_zip_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(WHEN))
    assert dist.epoch() == WHEN
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert dist.epoch() > 315_532_800


def jar(scala: str) -> bytes:
    """A jar with nothing but the hash of the present source."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(compile_scala.SOURCE_HASH_ENTRY, jars.shim_source_hash(scala))
    return packed.getvalue()


def with_jars(**changed: bytes | None) -> dict[str, bytes]:
    entries = {"2.12": jar("2.12"), "2.13": jar("2.13"), **{f"2.{name[1:]}": jar for name, jar in changed.items()}}
    return {f"pyjoinopt/jars/{jars.jar_name(scala)}": content for scala, content in entries.items() if content}


def test_a_wheel_with_both_jars_of_the_present_source_is_accepted(tmp_path: Path) -> None:
    dist.check_wheel(wheel_of(tmp_path / "a.whl", with_jars()))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (with_jars(_12=None), "has no pyjoinopt-shim_2.12.jar"),
        (with_jars(_13=jar("2.12")), r"pyjoinopt-shim_2\.13\.jar in a\.whl was not made from the present source"),
        ({**with_jars(), "large": os.urandom(3_000_000)}, "at most 3,000,000 are allowed"),
    ],
    ids=["no jar", "stale jar", "too large"],
)
def test_a_wheel_that_must_not_be_published_is_refused(
    tmp_path: Path, entries: dict[str, bytes], message: str
) -> None:
    with pytest.raises(dist.DistError, match=message):
        dist.check_wheel(wheel_of(tmp_path / "a.whl", entries))


def test_a_release_needs_owner_versions_date_and_a_clean_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "read", project.Project)
    monkeypatch.setattr(versions, "current", lambda: "9.9.9")
    with pytest.raises(dist.DistError) as error:
        dist.check_release()
    assert "9.9.9 cannot be released" in str(error.value)
    for part in ("project.ini has no repository", "pom.xml has another version", "no line `## [9.9.9] - DATE`"):
        assert part in str(error.value)


def test_every_file_that_repeats_the_version_has_the_version() -> None:
    assert versions.current() == VERSION
    assert versions.differences(VERSION) == []
    assert set(versions.differences("9.9.9")) == set(versions.PLACES)


def test_the_changelog_has_what_is_unreleased_first_and_dates_in_order() -> None:
    text = (checkouts.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "## [Unreleased]"
    dates = versions.released()
    assert len(headings) == len(dates) + 1, "every other heading is `## [VERSION] - YYYY-MM-DD`"
    assert dates["0.1.0"] == date(2026, 11, 26)
    assert list(dates.values()) == sorted(dates.values(), reverse=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Git checkout with one commit, an untracked file, and jars that hold nothing but their hash."""
    folder = tmp_path_factory.mktemp("checkout")
    dist.export(folder)
    for name, content in with_jars().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    (folder / "pyjoinopt" / "private_notes.py").write_text("secret = 1\n")
    yield folder


@pytest.fixture(scope="module")
def builds(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Two builds, the second with another umask, which decides the modes of files that a build writes."""
    made = []
    for umask in (0o022, 0o077):
        folder = tmp_path_factory.mktemp("build")
        (folder / "dist").mkdir()
        before = os.umask(umask)
        try:
            copy = dist.export(folder / "copy", checkout)
            made.append(dist.build(copy, folder / "dist", WHEN, isolated=False))
        finally:
            os.umask(before)
    return made


@pytest.mark.ci
def test_two_builds_give_the_same_archives_without_untracked_files(builds: list[tuple[Path, Path]]) -> None:
    first, second = ([dist.digest(file) for file in built] for built in builds)
    assert first == second
    sdist, wheel = builds[0]
    dist.check_wheel(wheel)
    dist.check_description([sdist, wheel])
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as source:
        names = {*archive.namelist(), *(name.partition("/")[2] for name in source.getnames())}
    assert "pyjoinopt/errors.py" in names and not [name for name in names if "private_notes" in name]


@pytest.mark.ci
def test_the_bill_of_materials_names_package_jars_and_requirements(builds: list[tuple[Path, Path]]) -> None:
    from release import sbom

    _, wheel = builds[0]
    text = sbom.bill_of(wheel, WHEN)
    assert text == sbom.bill_of(wheel, WHEN)
    bill = json.loads(text)
    package = bill["metadata"]["component"]
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["timestamp"].startswith("2023-11-14T22:13:20")
    assert package["purl"] == f"pkg:pypi/pyjoinopt@{VERSION}"
    assert package["hashes"] == [{"alg": "SHA-256", "content": dist.digest(wheel)}]
    assert {jar["name"] for jar in package["components"]} == {f"pyjoinopt/jars/{name}" for name in dist.JARS}
    scopes = {one["name"]: one["scope"] for one in bill["components"]}
    assert {name for name, scope in scopes.items() if scope == "required"} == {"filelock", "platformdirs"}
    assert scopes["pyspark"] == "optional" and "pyjoinopt" not in scopes
    (depends,) = (one for one in bill["dependencies"] if one["ref"] == f"pyjoinopt@{VERSION}")
    assert depends["dependsOn"] == ["filelock", "platformdirs"]


@pytest.mark.ci
def test_an_index_accepts_the_description_of_a_filled_project_file(checkout: Path, tmp_path: Path) -> None:
    """The file of the checkout may be empty."""
    copy = dist.export(tmp_path / "copy", checkout)
    values = {"repository": "https://example.org/a/b", "name": "A Group", "email": "group@example.org"}
    text = (copy / "project.ini").read_text()
    for key, value in values.items():
        assert f"\n{key} =\n" in text
        text = text.replace(f"\n{key} =\n", f"\n{key} = {value}\n")
    (copy / "project.ini").write_text(text)
    (tmp_path / "dist").mkdir()
    archives = dist.build(copy, tmp_path / "dist", WHEN, isolated=False)
    dist.check_description(list(archives))
    with zipfile.ZipFile(archives[1]) as archive:
        metadata = archive.read(f"pyjoinopt-{VERSION}.dist-info/METADATA").decode()
    assert "Project-URL: Source, https://example.org/a/b" in metadata
    assert "Maintainer-email: group@example.org" in metadata
    assert "](docs/" not in metadata and f"https://example.org/a/b/raw/v{VERSION}/docs/images/" in metadata
