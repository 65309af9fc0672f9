"""Writes the pages of the documentation that are made from something else, so that they cannot lag behind it.

    python docs/generate.py            # write them
    python docs/generate.py --check    # exit code 1 if one of them is not as it would be written

| page | made from |
|---|---|
| `architecture.md`, its table of rooms | `tests/support/rooms.py`, the docstrings of the rooms |
| `configuration.md` | the tables of `pyjoinopt/config.py` |
| `performance.md` | `benchmarks/README.md`, under every script's section what it printed: `benchmarks/results/` |
| `images/house.svg` | who imports whom in `pyjoinopt/` |
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable
from functools import cache
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
        "session. The keyword wins over the key, the key over the default. A wrong value raises at once and says what "
        "is allowed.\n\n",
        "```python\n",
        'df.optimize_joins(cost="c_out")                          # for this call\n',
        'spark.conf.set("spark.pyjoinopt.cost", "c_out")          # for the session\n',
        "```\n\n",
        "Some keys belong to the application: " + ", ".join(f"`{key}`" for key in STATIC_KEYS) + ". A session "
        "that sets them is warned and ignored, see [security](security.md); `enable` and `configure` take them as "
        "keywords, `startTimeout` as `start_timeout`. Calls on a DataFrame in the "
        "driver's own Python follow the session's keys all the same.\n\n",
        "| keyword | key | default | allowed | what it does |\n|---|---|---|---|---|\n",
    ]
    for option in OPTIONS:
        kind = {bool: "true, false", int: "a number from 1", str: "a path or word"}[type(option.default)]
        allowed = ", ".join(f"`{value}`" for value in option.allowed) if option.allowed else kind
        allowed = f"some of {allowed}" if option.several else allowed
        allowed = f"{allowed}, a number from 1" if option.numbers else allowed
        default = str(option.default).lower() if isinstance(option.default, bool) else option.default
        lines.append(f"| `{option.name}` | `{option.key}` | `{default}` | {allowed} | {_cell(option.help)} |\n")
    lines.append("\n## Keys of whole sessions\n\n")
    lines.append("They are read by the [extension](sessions.md) in the JVM and mean nothing to a single call.\n\n")
    lines.append("| key | default | what it does |\n|---|---|---|\n")
    lines += [f"| `{key}` | `{default}` | {_cell(about)} |\n" for key, default, about in SESSION_KEYS]
    lines.append(
        "\n## Environment variables\n\n| variable | what it does |\n|---|---|\n"
        "| `PYJOINOPT_ATTACH=off` | `import pyjoinopt` adds no methods to `DataFrame` and does not import pyspark |\n"
        "| `PYJOINOPT_STORE` | where the option `store=\"auto\"` keeps its file |\n"
    )
    return "".join(lines)


def performance() -> str:
    """The benchmarks' own page, for readers of the site, with what `benchmarks.keep` has kept."""
    body = (DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8")
    head, *sections = body.split("\n## ")
    title, _, about = head.partition("\n")
    assert title == "# Benchmarks"
    made = [_MADE.format("benchmarks/README.md and benchmarks/results/") + "# Performance\n" + about.rstrip()]
    kept = {path.stem: path.read_text(encoding="utf-8") for path in sorted(RESULTS.glob("*.txt"))}
    for section in sections:
        made.append("\n## " + section.rstrip())
        script = section.partition(".py")[0].strip("`")
        for name in [name for name in kept if name == script or name.startswith(f"{script}_")]:
            printed = f"```text\n{kept.pop(name).rstrip()}\n```"
            made.append(f"\n<details><summary>What it printed</summary>\n\n{printed}\n\n</details>")
    assert not kept, f"no section of benchmarks/README.md is about {', '.join(kept)}"
    return "\n".join(made) + "\n"


def _cell(about: str) -> str:
    return about.replace("|", "\\|")


# -- the house --------------------------------------------------------------------------------------------------------

_WIDE, _HIGH, _APART, _FLOOR, _EDGE = 118, 30, 14, 74, 20


@cache
def rooms() -> dict[str, set[str]]:
    """Room -> rooms that it imports; a module at the top level is a room of its own."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        here = inside.parts[0].removesuffix(".py")
        if here.startswith("_") or here == "jvm_shim":
            continue
        there = found.setdefault(here, set())
        if len(inside.parts) > 1 and inside.name == "__init__.py":
            continue  # front doors hand on to rooms above them
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pyjoinopt"):
                parts = node.module.split(".")
                names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
                there.update(name for name in names if not name.startswith("_"))
    return {room: {other for other in others if other in found and other != room} for room, others in found.items()}


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """Room -> how many floors of rooms are below it: a room stands above all that it imports."""
    floor: dict[str, int] = {}
    while len(floor) < len(arrows):
        ready = [room for room in arrows if room not in floor and all(other in floor for other in arrows[room])]
        assert ready, "the house has a circle of arrows"
        for room in ready:
            floor[room] = 1 + max((floor[other] for other in arrows[room]), default=-1)
    return floor


def direct(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Only the arrows that no longer way makes needless."""

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
    """Rooms on their floors, arrows down; what follows from two arrows has none."""
    arrows = rooms()
    floor, shown = floors(arrows), direct(arrows)
    levels: list[list[str]] = [[] for _ in range(1 + max(floor.values()))]
    for room in sorted(arrows):
        levels[floor[room]].append(room)
    at: dict[str, float] = {}
    widest = max(map(len, levels))
    width = widest * (_WIDE + _APART) - _APART + 2 * _EDGE
    for level in levels:  # from the ground: stand over the middle of what is below
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
    return document(width, height, "The rooms of pyjoinopt, and who imports whom", words, parts) + "\n"


_TABLE = re.compile(r"(?<=<!-- rooms: made by docs/generate.py -->\n).*?(?=<!-- end of rooms -->)", re.DOTALL)


def architecture() -> str:
    """The page with its table of rooms as the contract and the packages have it."""
    return _TABLE.sub(lambda _: table_of_rooms(), (DOCS / "architecture.md").read_text(encoding="utf-8"))


def table_of_rooms() -> str:
    """Rooms from the top floor down: what each is for, by the first paragraph of its docstring; what it may import."""
    floor, rows = floors(rooms()), ["| room | what it is for | may import |", "|---|---|---|"]
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
}


def main() -> int:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(description="Write the pages of the documentation that are made from something.")
    parser.add_argument("--check", action="store_true", help="only look whether they are as they should be")
    check = parser.parse_args().check
    stale = []
    for name, make in PAGES.items():
        path, content = DOCS / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
            if not check:
                path.write_text(content, encoding="utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
