"""Every reason of a refusal has a short key of its own, by which it is counted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import pyjoinopt
from pyjoinopt.report import reason_keys
from pyjoinopt.report.reason_keys import KEYS, OTHER, key_of, keys_of

PACKAGE = Path(pyjoinopt.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[3]

#: Rooms that refuse calls of a driver's own Python: a worker, which counts, does not have their reasons.
WITHOUT_WORKER = ("api/", "demo/")

#: Calls and their positions of a reason.
REFUSALS = {"refuse": 1, "Refusal": 1, "left_as_written": 2}

#: Reasons that are passed on, and the functions or tables in which their texts are.
PASSED_ON: dict[str, tuple[str, ...]] = {
    "hints/apply_hints.py: found.reason": ("hints/choose_hint.py: why_unsafe",),
    "joins/groups/find_groups.py: reason": (),
    "joins/groups/find_groups.py: _WHY_KEPT.get(node.hint[0] or '', yours)": (
        "joins/groups/find_groups.py: _WHY_KEPT", "joins/groups/find_groups.py: yours",
    ),
    "joins/groups/find_groups.py: fallibility.why_not_movable(predicate)": (
        "plan/fallible/fallibility.py: why_not_movable",
    ),
    "joins/groups/find_groups.py: fallibility.why_not_movable(e)": (),
    "optimizer/optimize.py: refusal": ("optimizer/optimize.py: why_not_at_all",),
    "optimizer/optimize.py: refusal.reason": (),
    "optimizer/optimize.py: why_separate(between)": ("joins/groups/barriers.py: why_separate",),
    "optimizer/optimize.py: why_unchanged(root, report.strategy)": (
        "joins/emit/unchanged_order.py: why_unchanged",
    ),
    "optimizer/reorder.py: ordered.why_not": ("optimizer/order_group.py: why_not",),
    "optimizer/reorder.py: ordered.why_not_pinned": ("optimizer/order_group.py: why_not_pinned",),
    "optimizer/use_baselines.py: reason": (
        "optimizer/use_baselines.py: _OTHER_JOINS", "feedback/baseline_store.py: read_baselines",
    ),
    "worker/planning.py: reason": (
        "config.py: refused_keys", "worker/guarded_planning.py: _EXPLORING", "feedback/guard.py: why_slower",
        "optimizer/rollout.py: _by_description", "optimizer/rollout.py: _by_tables", "optimizer/rollout.py: _by_share",
    ),
}  # fmt: skip


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))


def literal(node: ast.AST) -> str | None:
    """The text of a constant or an f-string, with a 7 where a value is inserted; None for other expressions."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(literal(part) or "7" for part in parts)
    return None


def constants(name: str) -> dict[str, ast.expr]:
    """The names that a module assigns at its top level."""
    return {
        target.id: node.value
        for node in parsed(name).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def texts(node: ast.AST, name: str) -> Iterator[str]:
    """The sentences in an expression, and in the constants of the module that it names."""
    text = literal(node)
    if text is not None:
        if text.count(" ") >= 3:
            yield text
    elif isinstance(node, ast.Name):
        if node.id in constants(name):
            yield from texts(constants(name)[node.id], name)
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child, name)


def source(place: str) -> set[str]:
    """What a function returns, or appends to a list, or the values of a variable."""
    name, _, wanted = place.partition(": ")
    found: set[str] = set()
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == wanted for t in node.targets):
            found |= set(texts(node.value, name))
        elif isinstance(node, ast.FunctionDef) and node.name == wanted:
            for inner in ast.walk(node):
                is_append = isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith(".append")
                if isinstance(inner, (ast.Return, ast.Dict)) or is_append:
                    found |= set(texts(inner, name))
    assert found, f"{place} has no text"
    return found


@cache
def written() -> tuple[frozenset[str], frozenset[str]]:
    """The reasons that the package has as texts where it refuses, and where it passes on others."""
    reasons, passed = set(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(WITHOUT_WORKER):
            continue
        for call in (node for node in ast.walk(parsed(name)) if isinstance(node, ast.Call)):
            function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if function not in REFUSALS or len(call.args) <= REFUSALS[function]:
                continue
            reason = call.args[REFUSALS[function]]
            text = literal(constants(name).get(getattr(reason, "id", ""), reason))
            if text is None:
                passed.add(f"{name}: {ast.unparse(reason)}")
            else:
                reasons.add(text)
    return frozenset(reasons), frozenset(passed)


def reasons() -> set[str]:
    return set(written()[0]).union(*(source(place) for places in PASSED_ON.values() for place in places))


def test_it_is_known_where_all_reasons_come_from() -> None:
    assert written()[1] == PASSED_ON.keys(), "add the function that writes the texts to PASSED_ON"


def test_every_reason_has_a_key() -> None:
    assert len(reasons()) >= 40
    assert not [reason for reason in sorted(reasons()) if key_of(reason) == OTHER], "add it to reason_keys"


@pytest.mark.parametrize("key", sorted(reason_keys._BEGINNINGS))
def test_no_key_is_for_a_reason_that_does_not_exist(key: str) -> None:
    for beginning in reason_keys._BEGINNINGS[key]:
        found = [reason for reason in reasons() if re.match(beginning, reason)]
        assert found and {key_of(reason) for reason in found} == {key}, beginning


def test_the_keys_of_a_plan_are_few_and_names() -> None:
    assert keys_of(["it is a command, not a query", "new", "it is a command, not a query", "newer"]) == [
        "command", OTHER,
    ]  # fmt: skip
    assert keys_of([]) == [] and len(KEYS) == len(set(KEYS)) <= 40
    assert all(re.fullmatch("[a-z][a-zA-Z]{2,19}", key) for key in KEYS)


def test_the_page_has_a_row_for_each_key() -> None:
    page = (ROOT / "docs" / "rollout.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| key of `refusals.` |")
    rows = re.findall(r"^\| (`[a-zA-Z`, ]+`) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == list(KEYS)
