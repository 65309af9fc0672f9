"""Generates pages of the documentation, so that they agree with the code.

    python docs/generate.py            # write the pages
    python docs/generate.py --check    # exit code 1 if a page is out of date

| page | generated from |
|---|---|
| `architecture.md`, its table of packages | `tests/support/rooms.py`, the docstrings of the packages |
| `configuration.md` | the tables of `pyjoinopt/config.py` |
| `performance.md` | `benchmarks/README.md` |
| `performance/` | the outputs of the scripts in `benchmarks/results/` |
| `images/house.svg` | the imports in `pyjoinopt/` |
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "pyjoinopt"
RESULTS = DOCS.parent / "benchmarks" / "results"
sys.path.insert(0, str(DOCS.parent))

from pyjoinopt.config import OPTIONS, SESSION_KEYS, STATIC_KEYS  # noqa: E402
from pyjoinopt.report.render.svg_style import document, look, text  # noqa: E402
from tests.support.rooms import ALLOWED  # noqa: E402

_MADE = "<!-- Written by docs/generate.py from {}. Do not edit. -->\n\n"


def configuration() -> str:
    """The table of options."""
    lines = [
        _MADE.format("pyjoinopt/config.py"),
        "# Configuration\n\n",
        "Every option is a keyword of `optimize_joins`, `explain_joins`, `join_report` and `compare`, and a key of the "
        "session. A keyword takes precedence over the key, and the key over the default. A wrong value raises an error "
        "with the allowed values.\n\n",
        "```python\n",
        'df.optimize_joins(cost="c_out")                          # for this call\n',
        'spark.conf.set("spark.pyjoinopt.cost", "c_out")          # for the session\n',
        "```\n\n",
        "Some keys belong to the application: " + ", ".join(f"`{key}`" for key in STATIC_KEYS) + ". If a session sets "
        "one, the extension does not use the value and logs a warning; see [security](security.md). `enable` and "
        "`configure` take all but the last two as keywords (`startTimeout` as `start_timeout`). Calls on a DataFrame "
        "in the driver's own Python do follow the keys of its session.\n\n",
        "| keyword | key | default | allowed | meaning |\n|---|---|---|---|---|\n",
    ]
    for option in OPTIONS:
        kinds = {bool: "true, false", int: "a number from 1", float: "a number from 0 to 1", str: "a path or word"}
        kind = kinds[type(option.default)]
        allowed = ", ".join(f"`{value}`" for value in option.allowed) if option.allowed else kind
        allowed = f"{kind}, {allowed}" if option.allowed and isinstance(option.default, bool) else allowed
        allowed = f"some of {allowed}" if option.several else allowed
        allowed = f"{allowed}, a number from 1" if option.numbers else allowed
        default = str(option.default).lower() if isinstance(option.default, bool) else option.default
        lines.append(f"| `{option.name}` | `{option.key}` | `{default}` | {allowed} | {_cell(option.help)} |\n")
    lines.append("\n## Keys of whole sessions\n\n")
    lines.append("The [session extension](sessions.md) reads these keys. They have no effect on a single call.\n\n")
    lines.append("| key | default | meaning |\n|---|---|---|\n")
    lines += [f"| `{key}` | `{default}` | {_cell(about)} |\n" for key, default, about in SESSION_KEYS]
    lines.append(
        "\n## Environment variables\n\n| variable | effect |\n|---|---|\n"
        "| `PYJOINOPT_ATTACH=off` | `import pyjoinopt` adds no methods to `DataFrame` and does not import pyspark |\n"
        "| `PYJOINOPT_STORE` | the file of the option `store=\"auto\"` |\n"
        "| `PYJOINOPT_CACHE_DIR` | the folder of that file, of compiled jars and of a linked Java, instead of the "
        "user's cache folder |\n"
    )
    return "".join(lines)


def performance() -> str:
    """The page on benchmarks, with a link to the outputs of each script."""
    head, *sections = (DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8").split("\n## ")
    title, _, about = head.partition("\n")
    assert title == "# Benchmarks"
    made = [_MADE.format("benchmarks/README.md and benchmarks/results/") + "# Performance\n" + about.rstrip()]
    linked = []
    for section in sections:
        made.append("\n## " + section.rstrip())
        script = section.partition(".py")[0].strip("`")
        if script in outputs():
            linked.append(script)
            made.append(f"\n[Output of `{script}.py`](performance/{script}.md)")
    assert set(linked) == set(outputs()), "a script has no section"
    contents = "\n".join(f"performance/{script}" for script in linked)
    return "\n".join(made) + f"\n\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"


@cache
def outputs() -> dict[str, list[Path]]:
    """Script -> the files in `benchmarks/results/` with its outputs, whose names begin with that of the script."""
    found: dict[str, list[Path]] = {}
    for path in sorted(RESULTS.glob("*.txt")):
        words = path.stem.split("_")
        names = ("_".join(words[: i + 1]) for i in range(len(words)))
        script = next(name for name in names if (RESULTS.parent / f"{name}.py").exists())
        found.setdefault(script, []).append(path)
    return found


def output(script: str) -> str:
    """The page with the outputs of a script, as `benchmarks.keep` has stored them."""
    made = [_MADE.format("benchmarks/results/") + f"# Output of {script}.py\n"]
    made.append("Stored by `python -m benchmarks.keep`. [Performance](../performance.md) explains the figures.")
    for path in outputs()[script]:
        made.append(f"\n## {path.stem}\n\n```text\n{path.read_text(encoding='utf-8').rstrip()}\n```")
    return "\n".join(made) + "\n"


def _cell(about: str) -> str:
    return about.replace("|", "\\|")


# -- the packages ----------------------------------------------------------------------------------------------------

_WIDE, _HIGH, _APART, _FLOOR, _EDGE = 118, 30, 14, 74, 20


@cache
def rooms() -> dict[str, set[str]]:
    """Package -> packages that it imports; a module at the top level counts as a package."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        here = inside.parts[0].removesuffix(".py")
        if here.startswith("_") or here == "jvm_shim":
            continue
        there = found.setdefault(here, set())
        if len(inside.parts) > 1 and inside.name == "__init__.py":
            continue  # an __init__ may re-export names of packages above
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pyjoinopt"):
                parts = node.module.split(".")
                names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
                there.update(name for name in names if not name.startswith("_"))
    return {room: {other for other in others if other in found and other != room} for room, others in found.items()}


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """Package -> its level: one above the highest package that it imports."""
    floor: dict[str, int] = {}
    while len(floor) < len(arrows):
        ready = [room for room in arrows if room not in floor and all(other in floor for other in arrows[room])]
        assert ready, "the imports have a cycle"
        for room in ready:
            floor[room] = 1 + max((floor[other] for other in arrows[room]), default=-1)
    return floor


def direct(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that follow from others."""

    def reached(room: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(arrows[room])
        while waiting:
            other = waiting.pop()
            if other not in seen:
                seen.add(other)
                waiting += arrows[other]
        return seen

    below = {room: reached(room) for room in arrows}
    return {room: {o for o in others if not any(o in below[p] for p in others)} for room, others in arrows.items()}


def house() -> str:
    """The diagram: packages by level, with an arrow for each import that does not follow from others."""
    arrows = rooms()
    floor, shown = floors(arrows), direct(arrows)
    levels: list[list[str]] = [[] for _ in range(1 + max(floor.values()))]
    for room in sorted(arrows):
        levels[floor[room]].append(room)
    at: dict[str, float] = {}
    widest = max(map(len, levels))
    width = widest * (_WIDE + _APART) - _APART + 2 * _EDGE
    for level in levels:  # bottom up: centred over the packages below
        mean = {room: sum(at[o] for o in shown[room]) / len(shown[room]) if shown[room] else 0 for room in level}
        level.sort(key=lambda room: (mean[room], room))
        left = (width - len(level) * (_WIDE + _APART) + _APART) / 2
        for i, room in enumerate(level):
            at[room] = left + i * (_WIDE + _APART) + _WIDE / 2
    height = len(levels) * _FLOOR - (_FLOOR - _HIGH) + 2 * _EDGE

    def top(room: str) -> float:
        return _EDGE + (len(levels) - 1 - floor[room]) * _FLOOR

    parts = []
    for room, others in shown.items():
        for other in sorted(others):
            y, end = top(room) + _HIGH, top(other)
            bend = (y + end) / 2
            parts.append(
                f'<path {look("line")} fill="none" opacity=".8" d="M{at[room]:.0f} {y:.0f}'
                f'C{at[room]:.0f} {bend:.0f} {at[other]:.0f} {bend:.0f} {at[other]:.0f} {end - 5:.0f}"/>'
                f'<path {look("dot")} d="M{at[other] - 4:.0f} {end - 7:.0f}h8l-4 7z"/>'
            )
    for room in sorted(arrows):
        x, y = at[room] - _WIDE / 2, top(room)
        parts.append(f'<rect {look("badge")} x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="5"/>')
        parts.append(text(at[room], y + 19, room, "ink", ' text-anchor="middle" font-size="13"'))
    words = "; ".join(f"{room} imports {', '.join(sorted(others)) or 'nothing'}" for room, others in arrows.items())
    return document(width, height, "The packages of pyjoinopt and their imports", words, parts) + "\n"


_TABLE = re.compile(r"(?<=<!-- rooms: made by docs/generate.py -->\n).*?(?=<!-- end of rooms -->)", re.DOTALL)


def architecture() -> str:
    """The page with a current table of packages."""
    return _TABLE.sub(lambda _: table_of_rooms(), (DOCS / "architecture.md").read_text(encoding="utf-8"))


def table_of_rooms() -> str:
    """The packages from the top level down, each with the first paragraph of its docstring and its allowed imports."""
    floor, rows = floors(rooms()), ["| package | purpose | may import |", "|---|---|---|"]
    for room in sorted(floor, key=lambda room: (-floor[room], room)):
        path = PACKAGE / room / "__init__.py"
        name = f"{room}/" if path.exists() else room
        source = (path if path.exists() else PACKAGE / f"{room}.py").read_text(encoding="utf-8")
        about = ast.get_docstring(ast.parse(source))
        assert about, f"{room} has no docstring"
        paragraph = " ".join(about.partition("\n\n")[0].split())
        others = ", ".join(f"`{other}`" for other in sorted(ALLOWED[room]) if other) or "nothing"
        rows.append(f"| `{name}` | {_cell(paragraph)} | {others} |")
    return "\n".join(rows) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "architecture.md": architecture,
    "configuration.md": configuration,
    "performance.md": performance,
    "images/house.svg": house,
    **{f"performance/{script}.md": partial(output, script) for script in outputs()},
}


def main() -> int:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(description="Generate pages of the documentation.")
    parser.add_argument("--check", action="store_true", help="only check whether the pages are up to date")
    check = parser.parse_args().check
    stale = []
    for name, make in PAGES.items():
        path, content = DOCS / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(content, encoding="utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
