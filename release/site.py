"""Puts a built site into the folder of its version: `python -m release.site SITE PAGES branch|tag NAME`.

A tag vX.Y.Z goes to the folder X.Y.Z, and to `stable` if no later version is there; a branch goes to `dev`. The start
page leads to `stable`, or to `dev` before the first release, and lists all versions. The menu of each page reads them
from `versions.json`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_START = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>pyjoinopt: documentation by version</title>
<meta http-equiv="refresh" content="3; url={target}/">
</head>
<body>
<p>The documentation of <a href="{target}/">{target}</a> opens in three seconds.</p>
<ul>
{items}
</ul>
</body>
</html>
"""


def publish(site: Path, pages: Path, kind: str, name: str) -> list[str]:
    """Put a site into its folders, and write the start page.

    Args:
        site: The built site.
        pages: The folder with one folder for each version; others are not changed.
        kind: `tag` or `branch`.
        name: The name of the tag or branch.
    Returns:
        The names of the folders that were written.
    Raises:
        ValueError: `kind` is neither word, or a tag is not of the form vX.Y.Z.
    """
    if kind not in ("branch", "tag"):
        raise ValueError(f"{kind!r} is neither branch nor tag")
    folders = ["dev"]
    if kind == "tag":
        version = name.removeprefix("v")
        if not name.startswith("v") or not _VERSION.fullmatch(version):
            raise ValueError(f"the tag {name!r} is not of the form vX.Y.Z")
        is_latest = all(_numbers(version) >= _numbers(other) for other in versions(pages))
        folders = [version, "stable"] if is_latest else [version]
    for folder in folders:
        shutil.rmtree(pages / folder, ignore_errors=True)
        shutil.copytree(site, pages / folder)
    (pages / ".nojekyll").touch()
    there = [folder for folder in ("stable", "dev") if (pages / folder).is_dir()]
    listed = [*there, *versions(pages)]
    (pages / "versions.json").write_text(json.dumps(listed) + "\n", encoding="utf-8")
    items = [f'<li><a href="{folder}/">{folder}</a></li>' for folder in listed]
    (pages / "index.html").write_text(_START.format(target=there[0], items="\n".join(items)), encoding="utf-8")
    return folders


def versions(pages: Path) -> list[str]:
    """The versions that have a folder, latest first."""
    found = [folder.name for folder in pages.iterdir() if folder.is_dir() and _VERSION.fullmatch(folder.name)]
    return sorted(found, key=_numbers, reverse=True)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    print("\n".join(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])))
