"""Sphinx's settings for the documentation: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("PYJOINOPT_ATTACH", "off")  # the API reference imports the package where pyspark is not installed

from pyjoinopt._version import __version__  # noqa: E402
from release import project as owners_file  # noqa: E402

project = "pyjoinopt"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks have the outputs of a run; tests/notebooks checks that
autodoc_member_order = "bysource"
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "code"
html_theme = "furo"
html_title = f"pyjoinopt {__version__}"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_js_files = ["versions.js"]
html_css_files = ["pyjoinopt.css"]
html_show_copyright = False
html_copy_source = False
html_baseurl = owners_file.read().documentation
exclude_patterns = ["README.md"]
suppress_warnings = ["misc.highlighting_failure"]


def named(text: str, page: str = "", owner: owners_file.Project | None = None) -> str:
    """Links out of the documentation lead to a notebook's page, or to a file of the repository.

    If `project.ini` names no repository, the file is named and not linked.

    Args:
        text: the source of a page.
        page: its name, with the folders below `docs/`.
        owner: the owner's values.

    >>> named("see [the source](../pyjoinopt/rules.py)")
    'see the source (`pyjoinopt/rules.py`)'
    >>> named("see [the notebook](../notebooks/a.ipynb)")
    'see [the notebook](notebooks/a.ipynb)'
    >>> named("see [security](../security.md)", "doors/connect")
    'see [security](../security.md)'
    """
    depth = page.count("/")
    outside = re.compile(rf"\[([^\]]+)\]\((?:\.\./){{{depth + 1}}}(?!\.\./)([^)#]+)(?:#[^)]*)?\)")

    def written(link: re.Match[str]) -> str:
        if link[2].startswith("notebooks/"):
            return f"[{link[1]}]({'../' * depth}{link[2]})"
        if owner is not None and owner.repository:
            return f"[{link[1]}]({owner.page(link[2], __version__)})"
        return link[1] if link[1].strip("`").endswith(link[2]) else f"{link[1]} (`{link[2]}`)"

    return outside.sub(written, text)


def copy_notebooks() -> None:
    """Copy the notebooks into the folder of the documentation, since Sphinx reads no files outside of it."""
    copies = DOCS / "notebooks"
    copies.mkdir(exist_ok=True)
    sources = {path.name: path for path in (ROOT / "notebooks").glob("*.ipynb")}
    for copy in copies.glob("*.ipynb"):
        if copy.name not in sources:
            copy.unlink()
    for name, path in sources.items():
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        copy = copies / name
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")


def code_blocks(lines: list[str]) -> list[str]:
    """The docstring of a module with its indented blocks marked as code; in docstrings they are not.

    >>> code_blocks(["Rules:", "", "    names()"])
    ['Rules:', '', '::', '', '    names()']
    """
    made: list[str] = []
    inside = False
    for line in lines:
        if line.strip() and line.startswith("    ") != inside:
            inside = not inside
            made += ["::", ""] if inside else []
        made.append(line)
    return made


#: What the theme leaves out for keyboards and screen readers: a pattern and what replaces it.
_ACCESSIBLE = (
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Contents">'),
    (r'<aside class="(toc-drawer[^"]*)">', r'<aside class="\1" aria-label="On this page">'),
    (r"<pre>", '<pre tabindex="0">'),
    (r'<div class="(table-wrapper[^"]*)">', r'<div class="\1" tabindex="0">'),
    (r"<div style='(overflow-x:auto[^']*)'>", r"<div tabindex='0' style='\1'>"),  # in outputs of older notebooks
    (r"<th([^>]*)>((?:<p></p>)?)</th>", r"<td\1>\2</td>"),
    (r'(<article role="main"[^>]*>)(?=\s*<noscript>)', r"\1<h1>Search</h1>"),
)


def accessible(html: str) -> str:
    """A page of the site whose scrolling blocks can be reached by keyboard, and whose landmarks have names.

    >>> accessible("<pre>code</pre><table><tr><th></th><th>rows</th></tr></table>")
    '<pre tabindex="0">code</pre><table><tr><td></td><th>rows</th></tr></table>'
    """
    for pattern, better in _ACCESSIBLE:
        html = re.sub(pattern, better, html)
    return html


def setup(app: Any) -> None:
    """Called by Sphinx."""
    owner = owners_file.read()

    def read(_app: Any, page: str, source: list[str]) -> None:
        source[0] = named(source[0], page, owner)

    def mark(_app: Any, kind: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
        if kind == "module":
            lines[:] = code_blocks(lines)

    def finish(app: Any, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            for path in Path(app.outdir).rglob("*.html"):
                path.write_text(accessible(path.read_text(encoding="utf-8")), encoding="utf-8")

    copy_notebooks()
    app.connect("build-finished", finish)
    app.connect("autodoc-process-docstring", mark)
    app.connect("source-read", read)
