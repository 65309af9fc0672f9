"""Sphinx's settings for the documentation: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyjoinopt._version import __version__
from release import project as owners_file

project = "pyjoinopt"
version = release = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"pyjoinopt {__version__}"
html_theme_options = {"navigation_with_keys": True}
html_show_copyright = False
html_copy_source = False
html_baseurl = owners_file.read().documentation
exclude_patterns = ["README.md"]
suppress_warnings = ["misc.highlighting_failure"]

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def named(text: str, owner: owners_file.Project) -> str:
    """Resolve links out of the documentation (to a notebook, a source file), for the site.

    They lead to the repository if `project.ini` names it. Otherwise the file is named and not linked.

    >>> named("see [the notebook](../notebooks/a.ipynb)", owners_file.Project())
    'see the notebook (`notebooks/a.ipynb`)'
    """
    if owner.repository:
        return _OUTSIDE.sub(lambda m: f"[{m[1]}]({owner.page(m[2], __version__)})", text)
    return _OUTSIDE.sub(lambda m: m[1] if m[1].strip("`").endswith(m[2]) else f"{m[1]} (`{m[2]}`)", text)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    owner = owners_file.read()

    def read(_app: Any, _page: str, source: list[str]) -> None:
        source[0] = named(source[0], owner)

    app.connect("source-read", read)
