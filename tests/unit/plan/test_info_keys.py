"""Every key of `info` that the package reads or sets is explained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyjoinopt
from pyjoinopt.plan.info_keys import EXPORTED_OF_NODES, EXPRESSION_KEYS, NODE_KEYS, OF_EXPRESSIONS, SET_OF_NODES

PACKAGE = Path(pyjoinopt.__file__).parent
FILES = sorted(p for room in ("plan", "catalyst", "estimation", "rewrites", "hints", "joins", "optimizer", "bridge")
               for p in (PACKAGE / room).rglob("*.py"))  # fmt: skip
EXPORT = PACKAGE.parent / "jvm_shim" / "src" / "common" / "export"


def is_info(e: ast.AST) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "info" or isinstance(e, ast.Name) and e.id == "info"


def keys_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        key: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_info(node.func.value):
            key = node.args[0] if node.func.attr == "get" else None
        elif isinstance(node, ast.Subscript) and is_info(node.value):
            key = node.slice
        elif isinstance(node, ast.Compare) and is_info(node.comparators[0]):
            key = node.left
        elif isinstance(node, (ast.keyword, ast.Assign)) and isinstance(node.value, ast.Dict):
            if node.arg == "info" if isinstance(node, ast.keyword) else any(map(is_info, node.targets)):
                yield from (k.value for k in node.value.keys if isinstance(k, ast.Constant))
        if isinstance(key, ast.Constant):
            yield key.value


USED = {key: path for path in FILES for key in keys_of(ast.parse(path.read_text()))}


@pytest.mark.parametrize("key", sorted(USED))
def test_a_key_that_is_used_is_explained(key: str) -> None:
    assert key in NODE_KEYS | EXPRESSION_KEYS, USED[key]


def test_a_key_that_is_set_here_is_used() -> None:
    assert SET_OF_NODES.keys() <= USED.keys() and not SET_OF_NODES.keys() & EXPORTED_OF_NODES.keys()
    assert len(USED) > 40


@pytest.mark.skipif(not EXPORT.is_dir(), reason="the shim's sources are not here")
def test_what_the_shim_exports_is_explained() -> None:
    details = (EXPORT / "NodeDetails.scala").read_text() + (EXPORT / "ExpressionDetails.scala").read_text()
    fields = re.findall(r'(?:Field|FieldName|FieldStart|numbers|columns|counts)\("(\w+)"', details)
    assert len(fields) > 30
    assert set(fields) <= EXPORTED_OF_NODES.keys() | OF_EXPRESSIONS.keys() | {"d", "date", "ts"}
