"""Checks the permitted imports between the package's modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rooms import ALLOWED

PACKAGE = Path(__file__).resolve().parents[2] / "pyjoinopt"

MODULES = sorted(p for p in PACKAGE.rglob("*.py") if "jvm_shim" not in p.parts)


def room(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    first = inside.parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> list[tuple[str, bool]]:
    """(module, at top level) for each import of a file; imports for type checkers only do not count."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
            if node.module == "pyjoinopt":
                names = [f"pyjoinopt.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found += [(name, node in tree.body) for name in names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_arrows_point_down(path: Path) -> None:
    here = room(path)
    assert here in ALLOWED, f"{here} is a new room: give it a row in tests/support/rooms.py"
    for name, _ in imports(path):
        parts = name.split(".")
        if parts[0] != "pyjoinopt":
            continue
        there = parts[1] if len(parts) > 1 else ""
        assert there == here or there in ALLOWED[here], f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_bridge_knows_spark(path: Path) -> None:
    for name, top_level in imports(path):
        if name.split(".")[0] in ("pyspark", "py4j"):
            assert room(path) in ("bridge", "api"), f"{path.name} imports {name}"
            assert not top_level, f"{path.name} imports {name} at the top: the package must import without it"


def test_the_package_imports_without_pyspark_and_py4j() -> None:
    program = (
        "import sys\n"
        "sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
        "import pyjoinopt, pyjoinopt.optimizer.optimize\n"
        "print(pyjoinopt.__version__)\n"
    )
    root = str(PACKAGE.parent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("term", "files"),
    [
        ("dphyp", ["joins/search/dphyp.py", "joins/search/dphyp_enumerator.py"]),
        ("ikkbz", ["joins/search/ikkbz.py"]),
        ("linearized", ["joins/search/linearized_dp.py"]),
        ("total eligibility", ["joins/graph/eligibility.py"]),
        ("null-reject", ["plan/facts/null_rejection.py"]),
        ("probe side", ["catalyst/planner/build_side.py"]),
        ("build side", ["catalyst/planner/build_side.py"]),
    ],
)
def test_a_decision_is_found_by_its_name(term: str, files: list[str]) -> None:
    """The modules whose first paragraph names the term."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        essay = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if path.name != "__init__.py" and term in essay.split("\n\n")[0].lower():
            found.append(path.relative_to(PACKAGE).as_posix())
    assert found == files
