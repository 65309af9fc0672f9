"""The version is in `pyjoinopt/_version.py`. A few files that other tools read repeat it: `python -m release.versions`.

Without an argument the command lists the files that differ; with `--write` it changes them.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import date

from release.project import ROOT

#: File and pattern of the places; the first group of the pattern is what precedes the version.
PLACES = {
    "jvm_shim/pom.xml": r"(<revision>)[^<]+(?=</revision>)",
    "CITATION.cff": r"(^version: ).+$",
    "docs/doors.md": r"(io\.github\.pyjoinopt:pyjoinopt-shim_2\.13:)\S+",
}
_RELEASED = re.compile(r"^## \[(?P<version>[^\]]+)\] - (?P<date>\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def current() -> str:
    """The version in `pyjoinopt/_version.py`, read without importing the package."""
    text = (ROOT / "pyjoinopt" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found is not None, "_version.py has no version"
    return found[1]


def differences(version: str) -> list[str]:
    """The places that have another version than this one."""
    found = []
    for name, pattern in PLACES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        changed, count = re.subn(pattern, rf"\g<1>{version}", text, flags=re.MULTILINE)
        if count != 1 or changed != text:
            found.append(name)
    return found


def write(version: str) -> None:
    """Put the version into all places."""
    for name, pattern in PLACES.items():
        file = ROOT / name
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(pattern, rf"\g<1>{version}", text, flags=re.MULTILINE), encoding="utf-8")


def released() -> dict[str, date]:
    """The versions of the changelog that have a date, newest first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return {found["version"]: date.fromisoformat(found["date"]) for found in _RELEASED.finditer(text)}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is 1 if a file has another version."""
    parser = argparse.ArgumentParser(prog="python -m release.versions", description="Compare the repeated versions.")
    parser.add_argument("--write", action="store_true", help="put the version into the files that differ")
    if parser.parse_args(arguments).write:
        write(current())
    wrong = differences(current())
    for name in wrong:
        print(f"{name}: not version {current()}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
