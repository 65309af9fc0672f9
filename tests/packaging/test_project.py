"""The owner's file and the long description, with and without the owner's entries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyjoinopt import _version
from release import project, readme

VERSION = _version.__version__
FILLED = project.Project(
    repository="https://example.org/group/name",
    issues="https://example.org/group/name/issues",
    documentation="https://example.org/docs",
    name="A Group",
    email="group@example.org",
)


def written(folder: Path, text: str) -> Path:
    file = folder / "project.ini"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_file_can_be_read_and_names_every_value() -> None:
    owner = project.read()
    text = project.FILE.read_text(encoding="utf-8")
    assert set(re.findall(r"^(\w+) =", text, re.MULTILINE)) == set(vars(owner))


def test_an_empty_file_gives_no_metadata_and_a_release_names_what_is_missing(tmp_path: Path) -> None:
    owner = project.read(written(tmp_path, "[project]\nrepository =\n[contact]\nname =\nemail =\n"))
    assert owner == project.Project()
    assert owner.metadata(VERSION) == {}
    assert owner.missing() == ["repository", "name", "email"]


def test_a_filled_file_gives_links_and_contact(tmp_path: Path) -> None:
    owner = project.read(
        written(
            tmp_path,
            "[project]\nrepository = https://example.org/group/name/\nissues = https://example.org/group/name/issues\n"
            "documentation = https://example.org/docs\n[contact]\nname = A Group\nemail = group@example.org\n",
        )
    )
    assert owner == FILLED and owner.missing() == []
    metadata = owner.metadata(VERSION)
    assert metadata["url"] == "https://example.org/group/name"
    assert (metadata["maintainer"], metadata["maintainer_email"]) == ("A Group", "group@example.org")
    assert metadata["project_urls"] == {
        "Documentation": "https://example.org/docs",
        "Source": "https://example.org/group/name",
        "Issues": "https://example.org/group/name/issues",
        "Changelog": f"https://example.org/group/name/blob/v{VERSION}/CHANGELOG.md",
    }
    assert owner.maven() == {
        "owner.repository": "https://example.org/group/name",
        "owner.scm": "scm:git:https://example.org/group/name.git",
        "owner.name": "A Group",
        "owner.email": "group@example.org",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project]\nrepository = example.org/name\n", "repository is 'example.org/name'"),
        ("[project]\nissues = http://example.org\n", "issues is 'http://example.org'"),
        ("[contact]\nemail = nobody\n", "email is 'nobody'"),
        ("[contact]\nsecurity = ask us\n", "security is 'ask us'"),
        ("[project]\nhomepage = https://example.org\n", r"unknown key: \[project\] homepage"),
        ("[contact]\nrepository = https://example.org\n", r"unknown key: \[contact\] repository"),
    ],
)
def test_wrong_values_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(project.ProjectError, match=message):
        project.read(written(tmp_path, text))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(project.ProjectError, match="does not exist"):
        project.read(tmp_path / "project.ini")


def targets(text: str) -> list[str]:
    """Where the links and images of a Markdown text lead, outside of code blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def code(text: str) -> list[str]:
    return re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)


def test_without_a_repository_the_long_description_has_no_relative_link_and_no_image() -> None:
    source = (project.ROOT / "README.md").read_text(encoding="utf-8")
    text = readme.long_description(project.Project(), VERSION)
    assert len(targets(source)) > 20 and not [target for target in targets(text) if "://" not in target]
    assert "![" in source and "![" not in text
    assert ":\n\n\n" not in text and " ()" not in text
    assert code(text) == code(source)
    assert re.findall(r"^#.*", text, re.MULTILINE) == re.findall(r"^#.*", source, re.MULTILINE)


def test_with_a_repository_every_link_is_absolute_and_of_this_release() -> None:
    source = (project.ROOT / "README.md").read_text(encoding="utf-8")
    text = readme.long_description(FILLED, VERSION)
    assert len(targets(text)) == len(targets(source))
    for before, after in zip(targets(source), targets(text), strict=True):
        if "://" in before:
            assert after == before
            continue
        path = before.partition("#")[0]
        kind = "tree" if (project.ROOT / path).is_dir() else "raw" if path.endswith(".png") else "blob"
        assert (project.ROOT / path).exists()
        assert after == f"https://example.org/group/name/{kind}/v{VERSION}/{before}"
    assert code(text) == code(source)


@pytest.mark.parametrize(
    ("text", "plain", "absolute"),
    [
        ("[`a.py`](pyjoinopt/a.py)", "`a.py`", "[`a.py`](R/blob/v1/pyjoinopt/a.py)"),
        ("[docs](docs)", "docs", "[docs](R/tree/v1/docs)"),
        ("[top](#top)", "top", "[top](R/blob/v1/README.md#top)"),
        ("[out](https://example.com/x)", "[out](https://example.com/x)", "[out](https://example.com/x)"),
        ("![out](https://example.com/x.png)", "![out](https://example.com/x.png)", "![out](https://example.com/x.png)"),
        ("A picture:\n\n![p](a.png)\n\nMore", "A picture.\n\nMore", "A picture:\n\n![p](R/raw/v1/a.png)\n\nMore"),
        ("A report ([how](a.md)) is", "A report is", "A report ([how](R/blob/v1/a.md)) is"),
        ("```\n[x](a.md)\n```\n[x](a.md)", "```\n[x](a.md)\n```\nx", "```\n[x](a.md)\n```\n[x](R/blob/v1/a.md)"),
    ],
)
def test_kinds_of_links(text: str, plain: str, absolute: str) -> None:
    assert readme.long_description(project.Project(), "1", text) == plain
    address = "https://example.org/r"
    made = readme.long_description(project.Project(repository=address), "1", text)
    assert made == absolute.replace("(R/", f"({address}/")
