"""A join of a physical plan: its type, its keys, and the side that it builds, from the operator's line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyjoinopt.advice.operators import JOINS, as_run, kind, result_rows
from pyjoinopt.eventlog.physical_plan import PlanNode

#: Lists that Spark cuts off end like this.
CUT_OFF = re.compile(r"\.\.\. \d+ more fields")
_TYPES = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
SIGNS = {
    "LeftOuter": "⟕", "RightOuter": "⟖", "FullOuter": "⟗", "LeftSemi": "⋉", "LeftAnti": "▷", "ExistenceJoin": "⋉",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PhysicalJoin:
    """One join that ran.

    Attributes:
        node: the operator.
        operator: such as `SortMergeJoin`.
        join_type: such as `Inner` or `LeftOuter`; "" if it cannot be read.
        left_keys, right_keys: equal expressions with column ids, as text; empty if there are none or not all are known.
        condition: the rest of its condition; "" if there is none.
        build: "left" or "right", the side that is built; "" for none.
    """

    node: PlanNode
    operator: str
    join_type: str
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    condition: str = ""
    build: str = ""

    @property
    def left(self) -> PlanNode:
        """The left input."""
        return self.node.children[0]

    @property
    def right(self) -> PlanNode:
        """The right input."""
        return self.node.children[1]

    @property
    def sign(self) -> str:
        """How to write the kind of join."""
        return SIGNS.get(self.join_type, "⋈")

    @property
    def rows(self) -> float | None:
        """Rows that it returned."""
        return self.node.rows

    @property
    def input_rows(self) -> tuple[float | None, float | None]:
        """Rows of its left and right input."""
        return result_rows(self.left), result_rows(self.right)


def joins_of(plan: PlanNode) -> Iterator[PhysicalJoin]:
    """The joins of a plan that ran once for themselves, from the top."""
    for node in as_run(plan):
        join = read_join(node)
        if join is not None:
            yield join


def read_join(node: PlanNode) -> PhysicalJoin | None:
    """The join that an operator is; None if it is none.

    An operator whose text was cut off (`spark.sql.debug.maxToStringFields`) has no keys.
    """
    operator = kind(node)
    if operator not in JOINS or len(node.children) != 2:
        return None
    text = node.text.removeprefix(operator).strip()
    if text.startswith("(skew=true)"):
        text = text.removeprefix("(skew=true)").strip()
    parts = split(text)
    found = next((i for i, part in enumerate(parts) if part.split("(")[0] in _TYPES), None)
    build = next((part.removeprefix("Build").lower() for part in parts if part in ("BuildLeft", "BuildRight")), "")
    if operator == "CartesianProduct":
        return PhysicalJoin(node, operator, "Inner", condition=text)
    if found is None:
        return PhysicalJoin(node, operator, "", build=build)
    rest = [p for p in parts[found + 1 :] if p not in ("BuildLeft", "BuildRight", "true", "false")]
    keys = [split(part[1:-1]) for part in parts[:found] if part.startswith("[") and part.endswith("]")]
    if len(keys) != 2 or len(keys[0]) != len(keys[1]) or CUT_OFF.search(node.text):
        keys = [[], []]
    join_type = parts[found].split("(")[0]
    return PhysicalJoin(
        node, operator, join_type, tuple(keys[0]), tuple(keys[1]), ", ".join(rest), build
    )  # fmt: skip


def split(text: str) -> list[str]:
    """The parts of a text between commas that are inside no brackets.

    >>> split("[a#1, b#2], f(c#3, d#4), Inner")
    ['[a#1, b#2]', 'f(c#3, d#4)', 'Inner']
    """
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
