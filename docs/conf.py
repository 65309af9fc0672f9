"""Sphinx's settings for the documentation: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyjoinopt._version import __version__

project = "pyjoinopt"
version = release = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"pyjoinopt {__version__}"
html_theme_options = {"navigation_with_keys": True}
html_show_copyright = False
html_copy_source = False
exclude_patterns = ["README.md"]
suppress_warnings = ["misc.highlighting_failure"]

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def named(text: str) -> str:
    """What a page links to outside of the documentation (a notebook, a source file) is named on the site, not linked.

    >>> named("see [the notebook](../notebooks/a.ipynb)")
    'see the notebook (`notebooks/a.ipynb`)'
    """
    return _OUTSIDE.sub(lambda m: m[1] if m[1].strip("`").endswith(m[2]) else f"{m[1]} (`{m[2]}`)", text)


def setup(app: Any) -> None:
    """Called by Sphinx."""

    def read(_app: Any, _page: str, source: list[str]) -> None:
        source[0] = named(source[0])

    app.connect("source-read", read)
