"""The owner's values in `project.ini`, and what the metadata of a release takes from them.

`python -m release.project` prints them; with `--require` it fails if one that a release needs is empty. Only the
standard library is used, because `setup.py` runs this in an empty build environment.
"""

from __future__ import annotations

import argparse
import configparser
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "project.ini"

_KEYS = {
    "project": ("repository", "issues", "documentation"),
    "contact": ("name", "email", "security", "conduct"),
}
_ADDRESS = re.compile(r"[^@\s<>]+@[^@\s<>]+\.[^@\s<>]+")


class ProjectError(ValueError):
    """A value of `project.ini` is wrong or missing."""


@dataclass(frozen=True)
class Project:
    """The values of `project.ini`; an empty text where there is none."""

    repository: str = ""
    issues: str = ""
    documentation: str = ""
    name: str = ""
    email: str = ""
    security: str = ""
    conduct: str = ""

    def page(self, path: str, version: str, kind: str = "blob") -> str:
        """The address of a file in the repository, as it is in a release.

        >>> Project("https://example.org/a/b").page("docs/a b.md", "1.0")
        'https://example.org/a/b/blob/v1.0/docs/a%20b.md'
        """
        return f"{self.repository}/{kind}/v{version}/{quote(path)}"

    def urls(self, version: str) -> dict[str, str]:
        """The labelled links that a package index shows.

        >>> Project().urls("1.0")
        {}
        """
        found = {"Documentation": self.documentation, "Source": self.repository, "Issues": self.issues}
        if self.repository:
            found["Changelog"] = self.page("CHANGELOG.md", version)
        return {label: url for label, url in found.items() if url}

    def metadata(self, version: str) -> dict[str, object]:
        """The arguments of `setup()` that depend on the owner."""
        found: dict[str, object] = {
            "url": self.repository, "project_urls": self.urls(version), "maintainer": self.name,
            "maintainer_email": self.email,
        }  # fmt: skip
        return {key: value for key, value in found.items() if value}

    def maven(self) -> dict[str, str]:
        """The properties of `jvm_shim/pom.xml` that depend on the owner."""
        scm = f"scm:git:{self.repository}.git" if self.repository else ""
        return {
            "owner.repository": self.repository, "owner.scm": scm, "owner.name": self.name, "owner.email": self.email
        }  # fmt: skip

    def missing(self) -> list[str]:
        """The values that a release needs and the file does not have."""
        needed = {"repository": self.repository, "name": self.name, "email": self.email}
        return [key for key, value in needed.items() if not value]


def read(file: Path = FILE) -> Project:
    """Read and check the file.

    Raises:
        ProjectError: There is no such file, a key is unknown, or a value is not of the required form.
    """
    parser = configparser.ConfigParser(interpolation=None)
    if not parser.read(file, encoding="utf-8"):
        raise ProjectError(f"{file} does not exist")
    values: dict[str, str] = {}
    for section in parser.sections():
        for key, value in parser.items(section):
            if key not in _KEYS.get(section, ()):
                raise ProjectError(f"{file.name} has an unknown key: [{section}] {key}")
            values[key] = value.strip().rstrip("/")
    for key in ("repository", "issues", "documentation"):
        if values.get(key) and not re.fullmatch(r"https://[^\s/]+(/\S*)?", values[key]):
            raise ProjectError(f"{file.name}: {key} is {values[key]!r}, but must be an address that starts with https://")
    if values.get("email") and not _ADDRESS.fullmatch(values["email"]):
        raise ProjectError(f"{file.name}: email is {values['email']!r}, which is no e-mail address")
    for key in ("security", "conduct"):
        value = values.get(key, "")
        if value and not value.startswith("https://") and not _ADDRESS.fullmatch(value):
            raise ProjectError(f"{file.name}: {key} is {value!r}, but must be an e-mail address or start with https://")
    return Project(**values)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is 1 if a value is wrong or a required one is missing."""
    parser = argparse.ArgumentParser(prog="python -m release.project", description="Print the values of project.ini.")
    parser.add_argument("--require", action="store_true", help="fail if a value that a release needs is empty")
    chosen = parser.parse_args(arguments)
    try:
        project = read()
    except ProjectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if chosen.require and project.missing():
        print(f"error: a release needs these values of {FILE.name}: {', '.join(project.missing())}", file=sys.stderr)
        return 1
    print("\n".join(f"{key}: {value or '(empty)'}" for key, value in vars(project).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
