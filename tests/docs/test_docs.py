"""The documentation: generated parts are up to date, and no link is broken."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

from pyjoinopt._version import __version__
from release.project import Project

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
ALL_PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def loaded(name: str) -> ModuleType:
    """A script of the documentation as a module; what it sets in the environment is not for other tests."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch.dict(os.environ):
        spec.loader.exec_module(module)
    return module


def without_code(text: str) -> str:
    """A page without fenced blocks and spans of code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE))


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's titles, as GitHub and MyST derive them; a repeated title gets a number."""
    found: dict[str, int] = {}
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")
        found[slug] = found.get(slug, 0) + 1
    return {f"{slug}-{i}" if i else slug for slug, times in found.items() for i in range(times)}


def test_made_pages_are_as_they_would_be_made() -> None:
    stale = [
        name for name, make in loaded("generate").PAGES.items() if (DOCS / name).read_text(encoding="utf-8") != make()
    ]
    assert not stale, "python docs/generate.py writes them"


def test_every_option_is_on_the_page_of_options() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    generate = loaded("generate")
    for option in generate.OPTIONS:
        assert f"| `{option.name}` | `{option.key}` |" in text


def test_every_environment_variable_is_on_the_page_of_options() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "pyjoinopt").rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"environ\.get\(\"(PYJOINOPT_\w+)\"", source)}
    assert len(used) >= 3 and not [name for name in used if f"| `{name}" not in text]


def test_the_house_has_all_rooms_and_no_circle() -> None:
    generate = loaded("generate")
    arrows = generate.rooms()
    assert {"api", "bridge", "catalyst", "estimation", "joins", "plan", "rewrites"} <= set(arrows)
    floor = generate.floors(arrows)
    assert all(floor[room] > floor[other] for room, others in arrows.items() for other in others)
    drawing = generate.house()
    assert all(f">{room}</text>" in drawing for room in arrows)


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {link}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {link}"


@pytest.mark.parametrize("script", loaded("generate").outputs())
def test_outputs_of_a_benchmark_are_on_its_page(script: str) -> None:
    page = (DOCS / "performance" / f"{script}.md").read_text(encoding="utf-8")
    for path in loaded("generate").outputs()[script]:
        assert path.read_text(encoding="utf-8").rstrip() in page
    assert f"](performance/{script}.md)" in (DOCS / "performance.md").read_text(encoding="utf-8")


def test_the_summary_of_the_measurements_agrees_with_their_outputs() -> None:
    rows = {
        cells[1].strip(" *"): [cell.strip(" *") for cell in cells[2:-1]]
        for line in (DOCS / "performance.md").read_text(encoding="utf-8").split("## The scripts")[0].splitlines()
        if len(cells := line.split("|")) == 5
    }
    for column, benchmark in enumerate(("tpch", "tpcds")):
        stored = (ROOT / "benchmarks" / "results" / f"tpc_{benchmark}.txt").read_text(encoding="utf-8")
        wall = stored.split("seconds           total s")[1].split("processor time")[0]
        lines = re.findall(r"^(\D+?)  +(.*)$", wall, re.MULTILINE)
        figures = {name: re.findall(r"[\d.]+", rest) for name, rest in lines}
        plain, ours, cbo = figures["as it comes"], figures["pyjoinopt"], figures["ANALYZE + CBO"]
        assert rows["total time: pyjoinopt, plain Spark"][column] == f"{ours[0]} s, {plain[0]} s ({ours[1]})"
        assert rows["geometric mean over the queries"][column] == ours[2]
        assert rows["geometric mean of ANALYZE + CBO, without the time of ANALYZE"][column] == cbo[2]
        again = figures["the same again"][2]
        assert rows["noise: geometric mean of plain Spark, measured a second time"][column] == again


def exists(dotted: str) -> bool:
    """Whether a name below `pyjoinopt` is a module, or something that a module defines."""
    name, _, rest = f"pyjoinopt.{dotted}".rpartition(".")
    try:
        return importlib.util.find_spec(f"{name}.{rest}") is not None or hasattr(importlib.import_module(name), rest)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(name), rest)


@pytest.mark.parametrize("page", ["glossary.md", "bibliography.md"])
def test_names_of_code_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    names = [name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text) if not name.startswith("spark.")]
    assert len(names) >= 10 and not [name for name in names if not exists(name)]


def test_files_and_functions_of_the_architecture_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    package, shim = ROOT / "pyjoinopt", ROOT / "jvm_shim" / "src"
    files = set(re.findall(r"`([\w/]+\.py)`", text))
    missing = {name for name in files if not (package / name).exists() and not (ROOT / name).exists()}
    scala = set(re.findall(r"`([\w/]+\.scala)`", text))
    missing |= {name for name in scala if not any(shim.rglob(Path(name).name))}
    for file, name in re.findall(r"`([\w/]+\.py)`,\s+`(\w+(?:\.\w+)?)`", text):
        source = (package / file).read_text(encoding="utf-8")
        defined = all(re.search(rf"\b(def|class) {part}\b", source) for part in name.split("."))
        missing |= set() if defined else {f"{file}: {name}"}
    assert len(files) >= 40 and len(scala) >= 8 and not missing


def test_every_page_is_in_the_contents() -> None:
    contents = "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL))
    assert {page.stem for page in PAGES} - {"index"} == set(re.findall(r"^[\w-]+$", contents, re.MULTILINE))


def test_links_out_of_the_documentation_are_named_on_the_site() -> None:
    named = loaded("conf").named
    assert named("see [the notebook](../notebooks/a.ipynb)") == "see [the notebook](notebooks/a.ipynb)"
    assert named("[a/b.py](../a/b.py) and [a page](faq.md)") == "a/b.py and [a page](faq.md)"
    assert named("[a page](../faq.md), [code](../../a/b.py)", "doors/x") == "[a page](../faq.md), code (`a/b.py`)"
    assert named("[n](../../notebooks/a.ipynb)", "doors/x") == "[n](../notebooks/a.ipynb)"


def test_links_out_of_the_documentation_lead_to_the_repository_if_it_is_known() -> None:
    owner = Project(repository="https://example.org/r")
    made = loaded("conf").named("[a/b.py](../a/b.py) and [a page](faq.md)", owner=owner)
    assert made == f"[a/b.py](https://example.org/r/blob/v{__version__}/a/b.py) and [a page](faq.md)"


def test_public_names_are_in_the_reference() -> None:
    """The package can be imported without pyspark, as the build of the reference does, and adds nothing to pyspark."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    whole = set(re.findall(r"automodule:: pyjoinopt\.(\w+)", text))
    errors = set(vars(importlib.import_module("pyjoinopt.errors")))
    single = set(re.findall(r"auto(?:function|class):: (\w+)", text))
    public = set(importlib.import_module("pyjoinopt").__all__)
    assert {"rules", "statistics", "cost", "errors"} <= whole
    assert public - single - whole - errors == {"__version__"} and single <= public


def test_indented_blocks_of_module_docstrings_are_code() -> None:
    lines = loaded("conf").code_blocks(["Errors:", "", "    A", "    └── B", "", "Wrong options."])
    assert lines == ["Errors:", "", "::", "", "    A", "    └── B", "", "Wrong options."]


def test_examples_in_the_configuration() -> None:
    result = doctest.testmod(loaded("conf"))
    assert result.attempted and not result.failed
