"""Every message that a user can see in a log, a warning or an error has an entry in docs/troubleshooting.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pyjoinopt.errors

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sorted((ROOT / "pyjoinopt").rglob("*.py"))
SCALA = sorted((ROOT / "jvm_shim" / "src").rglob("*.scala"))

#: Functions that log or warn; the position of the message among their arguments.
LOGGING = {"log_once": 2, "warn_once": 2, "_log.warning": 0, "_log.error": 0, "_log.info": 0, "warnings.warn": 0}
ERRORS = {name for name, value in vars(pyjoinopt.errors).items() if isinstance(value, type)} | {
    "NotOurs", "ModuleNotFoundError",
}  # fmt: skip

#: Calls that pass on a text, and where this text is written.
PASSED_ON = {
    "pyjoinopt/api/dataframe.py: sentence": "pyjoinopt/api/unknown_keys.py: is unknown and has no effect; did you mean",
    "pyjoinopt/estimation/sources/declared_keys.py: note":
        "pyjoinopt/estimation/sources/declared_keys.py: match nothing",
    "pyjoinopt/estimation/sources/registry.py: text":
        "pyjoinopt/estimation/sources/registry.py: failed and is passed over",
    "pyjoinopt/util/warn_once.py: text": "",
    "pyjoinopt/bridge/install/jars.py: message": "pyjoinopt/bridge/install/jars.py: is not a version of Spark",
    "pyjoinopt/api/doctor.py: java.why_no_spark()":
        "pyjoinopt/bridge/install/java.py: pyspark is not installed here",
    "pyjoinopt/demo/run.py: java.why_no_spark()":
        "pyjoinopt/bridge/install/java.py: pyspark is not installed here",
    "pyjoinopt/bridge/install/java.py: _explain(found, version, needed, spark)":
        "pyjoinopt/bridge/install/java.py: No Java was found",
}  # fmt: skip

SCALA_CALL = re.compile(
    r"(?:OptimizeJoins\.log\.(?:warn|info)|Workers\.warn(?:Once)?|new WorkerFailure|(?<![\w.])warn)\("
)
#: Files whose errors are about what a user has written. Other errors are internal, and logged with a stack trace.
OF_USERS = ("WorkerSettings.scala", "SessionReports.scala")
SCALA_ERROR = re.compile(r"Support\.fail\(")
#: Calls of the Scala side that pass on a text, which is found where it is written.
SCALA_PASSED_ON = {
    's"The hint ${name(hint)} $text."',
    's"the worker of ${command.python} ended$code${errors.lastLine}. $advice", error',
    "String.valueOf(error.getMessage)", "String.valueOf(error.getMessage), error", "problem.asText", "error", "session",
    "env.conf.getAllWithPrefix(Prefix).map(Prefix + _._1)", "session.sessionState.conf.getAllConfs.keys",
}  # fmt: skip


@cache
def fragments() -> dict[str, list[str]]:
    """Section -> the parts of messages in the first column of its table."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    found = {}
    for section in page.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        cells = re.findall(r"^\| (`.*?) \|", body, re.MULTILINE)
        found[title] = [part for cell in cells for part in re.findall(r"`([^`]+)`", cell)]
    return found


def literals(node: ast.AST) -> str:
    """The literal text of an expression; a NUL where a value is inserted."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(literals(part) if isinstance(part, ast.Constant) else "\0" for part in parts)
        case ast.BinOp(left, ast.Add(), right):
            return literals(left) + literals(right)
        case _:
            return ""


def python_messages() -> Iterator[tuple[str, str]]:
    """Place and literal text of every message of the Python side."""
    for path in PYTHON:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            message: ast.AST | None = None
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                message = node.exc.args[0] if ast.unparse(node.exc.func) in ERRORS else None
            elif isinstance(node, ast.Call) and (at := LOGGING.get(ast.unparse(node.func))) is not None:
                message = node.args[at]
            if message is not None:
                yield f"{name}: {ast.unparse(message)}", literals(message)


def scala_messages() -> Iterator[tuple[str, str]]:
    """Place and literal text of every message of the Scala side."""
    for path in SCALA:
        source = path.read_text(encoding="utf-8")
        errors = SCALA_ERROR.finditer(source) if path.name in OF_USERS else ()
        for call in (*SCALA_CALL.finditer(source), *errors):
            if re.search(r"def \w*$", source[: call.start()] + call[0].rstrip("(")):
                continue
            arguments = source[call.end() : end_of(source, call.end())]
            texts = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', arguments))
            yield f"{path.name}: {' '.join(arguments.split())}", re.sub(r"\$\w+|\$\{.*?\}", "\0", texts)


def end_of(source: str, start: int) -> int:
    """The position of the bracket that closes the one before `start`; brackets in literals are balanced here."""
    depth = 1
    for position in range(start, len(source)):
        depth += {"(": 1, ")": -1}.get(source[position], 0)
        if depth == 0:
            return position
    raise AssertionError("a bracket is not closed")


@cache
def code() -> str:
    """All literal texts of both sides."""
    texts = []
    for path in PYTHON:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts += [literals(node) for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    for path in SCALA:
        source = re.sub(r'"\s*\+\s*s?"', "", path.read_text(encoding="utf-8"))
        texts.append(re.sub(r"\$\w+|\$\{.*?\}", "\0", source))
    return "\n".join(texts)


def has_entry(text: str) -> bool:
    return any(part in text for parts in fragments().values() for part in parts if len(part) > 6)


def test_messages_of_the_python_side_have_entries() -> None:
    missing, count = [], 0
    for place, text in python_messages():
        count += 1
        if place in PASSED_ON:
            path, _, part = PASSED_ON[place].partition(": ")
            if part:
                source = (ROOT / path).read_text(encoding="utf-8")
                assert part in source, f"{path} no longer has {part!r}"
            if part and not has_entry(part):
                missing.append(place)
        elif not has_entry(text):
            missing.append(place)
    assert count > 60 and not missing, "\n".join(missing)


def test_messages_of_the_scala_side_have_entries() -> None:
    missing, count = [], 0
    for place, text in scala_messages():
        count += 1
        if place.partition(": ")[2] not in SCALA_PASSED_ON and not has_entry(text):
            missing.append(place)
    assert count > 15 and not missing, "\n".join(missing)


@pytest.mark.parametrize("section", fragments())
def test_entries_are_messages_of_the_code(section: str) -> None:
    parts = fragments()[section]
    assert len(parts) >= 9
    assert not [part for part in parts if part not in code()]


def test_a_message_without_an_entry_is_found() -> None:
    assert not has_entry("the moon is too bright for this query")
    assert has_entry("\0 cannot be started (\0). Set spark.pyjoinopt.python")
