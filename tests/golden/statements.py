"""SQL files by the conventions of Spark's own test inputs.

`;` ends a statement, unless it is in quotes, in a comment, or after a backslash. Lines that begin with `--` are
comments; some of them are instructions to the runner:

* `--SET key=value, key=value`: settings of the file;
* `--IMPORT name.sql`: the statements of that file come first;
* `--CONFIG_DIM1 ...`, `--ONLY_IF ...`, `--QUERY-DELIMITER-START`: not followed, and noted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_SET = re.compile(r"--\s?SET\s+(.*)")
_IMPORT = re.compile(r"--\s?IMPORT\s+(\S+)")
_IGNORED = re.compile(r"--\s?(CONFIG_DIM\d*|ONLY_IF|QUERY-DELIMITER-START)\b")
_TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*" | `(?:``|[^`])*` | \\; | ; | .""",
    re.VERBOSE | re.DOTALL,
)


@dataclass
class SqlFile:
    """The contents of a file: its statements, its settings, and the instructions that are not followed."""

    name: str
    statements: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


def read_file(path: Path, folder: Path, importing: tuple[Path, ...] = ()) -> SqlFile:
    """One file, with what it imports.

    Args:
        path: the file.
        folder: names in `--IMPORT` are relative to the file or to this folder.
        importing: the files that import this one.

    Raises:
        ValueError: an imported file is missing, or imports itself.
    """
    if path in importing:
        raise ValueError(f"{path} imports itself by way of {', '.join(p.name for p in importing)}")
    text = path.read_text(encoding="utf-8")
    found = SqlFile(path.relative_to(folder).as_posix())
    for line in text.splitlines():
        if match := _SET.match(line):
            found.settings.update(_settings(match[1]))
        elif match := _IGNORED.match(line):
            found.ignored.append(match[1])
        elif match := _IMPORT.match(line):
            other = next((p for p in (path.parent / match[1], folder / match[1]) if p.is_file()), None)
            if other is None:
                raise ValueError(f"{path} imports {match[1]}, which is neither beside it nor in {folder}")
            imported = read_file(other, folder, (*importing, path))
            found.statements += imported.statements
            found.settings = {**imported.settings, **found.settings}
            found.ignored += imported.ignored
    found.statements += statements(text)
    return found


def _settings(text: str) -> dict[str, str]:
    """Settings from a comma-separated list, whose values may contain commas.

    >>> _settings("a.b=1, c.d = x,y")
    {'a.b': '1', 'c.d': 'x,y'}
    """
    pairs = re.split(r",\s*(?=[\w.]+\s*=)", text)
    return {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}


def statements(text: str) -> list[str]:
    r"""The statements of a text, without comments and empty ones.

    >>> statements("-- first; not\nselect ';' as a; /* ; */ select 2 \\; 3;\n;select `x;y`")
    ["select ';' as a", 'select 2 ; 3', 'select `x;y`']
    >>> statements("select /*+ BROADCAST(a) */ 1")
    ['select /*+ BROADCAST(a) */ 1']
    """
    found, parts = [], list[str]()
    for token in (match[0] for match in _TOKEN.finditer(text + ";")):
        if token == ";":
            found.append("".join(parts).strip())
            parts = []
        elif token == "\\;":
            parts.append(";")
        elif not token.startswith("--") and not (token.startswith("/*") and not token.startswith("/*+")):
            parts.append(token)
    return [statement for statement in found if statement]
