"""Every default of the estimator has a unit, a source and a plausible value."""

from __future__ import annotations

import inspect
import re
from dataclasses import FrozenInstanceError, fields

import pytest

from pyjoinopt.estimation.model import assumptions
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS, Assumptions
from pyjoinopt.plan import limits, spark_defaults

SOURCE = inspect.getsource(assumptions)
NAMES = [field.name for field in fields(Assumptions)]


def comment_of(name: str) -> str:
    found = re.search(rf"((?:^    #:.*\n)+)    {name}: (?:float|int) = ", SOURCE, re.MULTILINE)
    return " ".join(line.strip(" #:") for line in found[1].splitlines()) if found else ""


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_unit_and_a_reason(name: str) -> None:
    comment = comment_of(name)
    unit, _, reason = comment.removeprefix("[").partition("]")
    assert comment.startswith("[") and unit and len(reason.split()) >= 6, comment


@pytest.mark.parametrize("name", [n for n in NAMES if "[share of" in comment_of(n)])
def test_shares_are_shares(name: str) -> None:
    assert 0 < getattr(ASSUMPTIONS, name) < 1


def test_predicates_are_in_a_sensible_order() -> None:
    a = ASSUMPTIONS
    assert a.equality < a.pattern_prefix < a.pattern_contains < a.between < a.ordering < a.boolean
    assert a.least_share_of_pairs < a.least_share <= a.empty_relation_rows < a.empty_result_rows


def test_nobody_changes_them() -> None:
    with pytest.raises(FrozenInstanceError):
        ASSUMPTIONS.equality = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("module", [limits, spark_defaults])
def test_each_limit_is_explained(module: object) -> None:
    lines = inspect.getsource(module).splitlines()  # type: ignore[arg-type]
    constants = [i for i, line in enumerate(lines) if re.match(r"[A-Z_]+ = ", line)]
    assert constants and all(lines[i - 1].startswith("#: ") for i in constants)
