"""The long description: README.md for a page that is not part of the repository, such as that of a package index.

Its links and images are relative, so they lead nowhere on another page. If `project.ini` names the repository they
become absolute, to the files of the same release. Otherwise the links become plain text and the images are left out.
"""

from __future__ import annotations

import re

from release.project import ROOT, Project

_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
# Without an address: an image that is a paragraph of its own, with the colon that announces it; and a link that is all
# there is between two brackets.
_LONE_IMAGE = re.compile(r":?\n\n!\[[^\]]*\]\((?![a-z][a-z0-9+.-]*:)[^)\s]+\)(?=\n|$)", re.IGNORECASE)
_ASIDE = re.compile(r"\s\(\[[^\[\]]*\]\((?![a-z][a-z0-9+.-]*:)[^)\s]+\)\)", re.IGNORECASE)


def long_description(project: Project, version: str, text: str | None = None) -> str:
    """The text for a package index, as Markdown.

    >>> long_description(Project(), "1.0", "See [the page](docs/a.md).")
    'See the page.'
    >>> long_description(Project("https://example.org/a/b"), "1.0", "See [the page](docs/a.md#top).")
    'See [the page](https://example.org/a/b/blob/v1.0/docs/a.md#top).'
    """
    if text is None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = _FENCE.split(text)
    return "".join(part if number % 2 else _prose(part, project, version) for number, part in enumerate(parts))


def _prose(text: str, project: Project, version: str) -> str:
    if not project.repository:
        text = _ASIDE.sub("", text)
        text = _LONE_IMAGE.sub(lambda found: "." if found[0].startswith(":") else "", text)

    def replaced(found: re.Match[str]) -> str:
        is_image, label, target = found[1], found[2], found[3]
        if _ABSOLUTE.match(target):
            return found[0]
        if not project.repository:
            return "" if is_image else label
        path, hash_sign, anchor = target.partition("#")
        kind = "raw" if is_image else "tree" if (ROOT / path).is_dir() and path else "blob"
        return f"{is_image}[{label}]({project.page(path.rstrip('/') or 'README.md', version, kind)}{hash_sign}{anchor})"

    return _LINK.sub(replaced, text)
