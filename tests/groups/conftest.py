"""Relations of two columns each, which tests of join groups put together."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.nodes import LogicalPlan
from tests.support.letters import Letters


@pytest.fixture
def abcd(w: Letters) -> tuple[LogicalPlan, ...]:
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abcd")


@pytest.fixture
def abc(w: Letters) -> tuple[LogicalPlan, ...]:
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abc")
