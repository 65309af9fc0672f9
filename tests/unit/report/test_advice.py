"""Every refusal message has advice on how to avoid it."""

from __future__ import annotations

import ast
from pathlib import Path

import pyjoinopt
from pyjoinopt import JoinReport
from pyjoinopt.report.advice import advice_on
from pyjoinopt.report.executed_run import OperatorReport, RunReport
from pyjoinopt.report.model import GroupReport, RelationReport

PACKAGE = Path(pyjoinopt.__file__).resolve().parent


def reasons() -> set[str]:
    """The texts with which the package refuses: those handed to `refuse`, and those that functions `why_...` return."""
    found: set[str] = set()
    for name in ("joins/groups/find_groups.py", "plan/fallible/fallibility.py", "optimizer/optimize.py",
                 "optimizer/spark_strategies.py"):  # fmt: skip
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        tables = [node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)]
        found |= {
            text.value for table in tables for text in table.values
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and " " in text.value
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "refuse":
                reason = node.args[1]
                if isinstance(reason, ast.Constant):
                    found.add(reason.value)
                elif isinstance(reason, ast.Name) and reason.id in constants:
                    found.add(constants[reason.id])
            if isinstance(node, ast.FunctionDef) and node.name.startswith("why_"):
                found |= {
                    e.value.value
                    for e in ast.walk(node)
                    if isinstance(e, ast.Return) and isinstance(e.value, ast.Constant) and e.value.value
                }
    return found


def test_there_is_advice_on_every_reason() -> None:
    assert len(reasons()) >= 12 and "the hint KEEP_JOIN_ORDER keeps it in place" in reasons()
    assert not [reason for reason in reasons() if not advice_on(reason)]


def test_guesses_and_what_misled() -> None:
    guessed = GroupReport(
        (RelationReport("a", 10, "size"), RelationReport("b", 5, "footers"), RelationReport("c", 9, "default")),
        (), "", "", (), 1.0, 1.0, "exact", 0, 0.0, False,
    )  # fmt: skip
    report = JoinReport(groups=[guessed])
    assert report.advice() == [
        'Rows of a are estimated from file sizes; run pyjoinopt.analyze(spark, ["a"]) to count them.',
        "Rows of c are a default, since Spark does not read them from files: cache() and count() the data first, or "
        "write it as Parquet.",
    ]
    one = OperatorReport("Scan", "b", (), 5000, 1.0, ("b",), 5)
    both = OperatorReport("Join", "", (0,), 90_000, None, ("a", "b"), 10)
    report.runs = [RunReport("as written", 1.0, 0.1, (one,))]
    assert report.advice()[2] == 'Run pyjoinopt.analyze(spark, ["b"]) for a better estimate of b.'
    right = OperatorReport("Scan", "b", (), 5, 1.0, ("b",), 5)
    report.runs = [RunReport("as written", 1.0, 0.1, (right, both))]
    assert "the join of a with b" in report.advice()[2] and "observe()" in report.advice()[2]
