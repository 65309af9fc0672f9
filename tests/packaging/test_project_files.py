"""The workflows and other files that a repository's host reads: valid, safe, and consistent with the repository."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release import project, site, versions
from tests.packaging import checkouts

ROOT = checkouts.ROOT
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))

#: Schema of check-jsonschema, and the files that must follow it.
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": [file for file in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml"],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "dependabot": [GITHUB / "dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}


def program(name: str) -> str:
    """A linter, beside this Python or on the PATH."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def passes(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schema(schema: str) -> None:
    assert SCHEMAS[schema]
    command = [program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}"]
    passes([*command, *map(str, SCHEMAS[schema])])


def test_workflows_are_safe() -> None:
    """Zizmor finds, for instance, actions without a hash, credentials that stay, and inputs that become code."""
    passes([program("zizmor"), "--offline", "--no-progress", str(GITHUB)])


def test_workflows_are_correct() -> None:
    """Actionlint also checks expressions and, with shellcheck, scripts."""
    passes([program("actionlint"), *map(str, WORKFLOWS)])


def makefile() -> tuple[set[str], list[str]]:
    """The targets of the Makefile, and the patterns among them."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = {name for line in re.findall(r"^([\w%-][\w %-]*):(?!=)", text, re.MULTILINE) for name in line.split()}
    return {name for name in names if "%" not in name}, [name for name in names if "%" in name]


def test_workflows_run_targets_that_exist() -> None:
    plain, patterns = makefile()
    used = [name for file in WORKFLOWS for name in re.findall(r"\bmake \"?([\w${}-]+)", file.read_text())]
    assert {"test", "dist", "docs", "maven"} <= set(used)
    for name in used:
        fits = any(name.startswith(pattern.removesuffix("%")) for pattern in patterns)
        assert name in plain or fits, f"there is no target {name}"


def test_the_local_ci_script_and_the_workflow_run_the_same_targets() -> None:
    local = set(re.findall(r"^make ([\w-]+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    remote = set(re.findall(r"run: make ([\w-]+)$", (GITHUB / "workflows" / "ci.yml").read_text(), re.MULTILINE))
    assert local - {"test-versions"} <= remote, "test-versions are the jobs `spark`"


def test_every_supported_python_and_spark_is_in_the_matrix() -> None:
    text = (GITHUB / "workflows" / "ci.yml").read_text()
    classifiers = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text())
    (pythons,) = re.findall(r"^        python: \[(.*)\]$", text, re.MULTILINE)
    assert re.findall(r"3\.\d+", pythons) == classifiers
    assert re.findall(r'spark: "(\d+)"', text) == ["35", "40", "41", "42", "43"]
    release = (GITHUB / "workflows" / "release.yml").read_text()
    assert re.findall(r'spark: "([\d.]+)"', release) == ["3.5", "4.0", "4.1", "4.2", "4.3"]


def test_the_citation_has_the_date_of_its_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (released,) = re.findall(r'^date-released: "(.*)"$', text, re.MULTILINE)
    latest = next(iter(versions.released().values()))
    assert released == latest.isoformat()


@pytest.mark.parametrize("name", ["SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"])
def test_links_lead_somewhere_and_keys_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link.partition("#")[0]).exists(), f"{name} links to {link}"
    for key in re.findall(r"`(\w+)`(?: in \[project\.ini\]|,? (?:there )?if)", text):
        assert hasattr(project.Project(), key), f"{name} names the key {key}"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("new")
    return folder


def test_the_documentation_of_each_version_has_its_folder(built: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    assert site.publish(built, pages, "branch", "main") == ["dev"]
    assert "url=dev/" in (pages / "index.html").read_text()
    assert site.publish(built, pages, "tag", "v0.9.0") == ["0.9.0", "stable"]
    assert site.publish(built, pages, "tag", "v0.10.0") == ["0.10.0", "stable"]
    start = (pages / "index.html").read_text()
    assert "url=stable/" in start
    assert re.findall(r'<li><a href="(.*?)/">', start) == ["stable", "dev", "0.10.0", "0.9.0"]
    assert json.loads((pages / "versions.json").read_text()) == ["stable", "dev", "0.10.0", "0.9.0"]


def test_a_fix_of_an_older_version_does_not_become_the_stable_one(built: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    for name in ("0.10.0", "stable"):
        (pages / name).mkdir(parents=True)
        (pages / name / "index.html").write_text("old")
        (pages / name / "gone.html").write_text("old")
    assert site.publish(built, pages, "tag", "v0.9.1") == ["0.9.1"]
    assert (pages / "stable" / "index.html").read_text() == "old"
    assert site.publish(built, pages, "tag", "v0.10.0") == ["0.10.0", "stable"]
    assert sorted(file.name for file in (pages / "stable").iterdir()) == ["index.html"]


@pytest.mark.parametrize(("kind", "name"), [("tag", "0.1.0"), ("tag", "v1"), ("tag", "vdev"), ("commit", "v0.1.0")])
def test_other_tags_are_refused(built: Path, tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(name if kind == "tag" else kind)):
        site.publish(built, tmp_path, kind, name)
