"""The states of a worker, and the transition that each event causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.shim import bridge_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

PACKAGE = "org.apache.spark.sql.pyjoinopt"


class States:
    """The Scala objects of `WorkerState`."""

    def __init__(self, session: SparkSession) -> None:
        bridge_of(session)
        self._jvm: Any = session.sparkContext._jvm
        self.starting, self.greeted, self.requested, self.report_read = (
            self._object(f"WorkerState${name}$") for name in ("Starting", "Greeted", "Requested", "ReportRead")
        )
        self.after = self._object("WorkerState$").after

    def _object(self, name: str) -> Any:
        return getattr(getattr(self._jvm, f"{PACKAGE}.{name}"), "MODULE$")

    def answered(self, request: int) -> Any:
        report = getattr(self._jvm, f"{PACKAGE}.DeferredReport")(None, request)
        return getattr(self._jvm, f"{PACKAGE}.WorkerState$Answered")(report)

    def killed(self, late: bool) -> Any:
        return getattr(self._jvm, f"{PACKAGE}.WorkerState$Killed")(late)

    def life(self) -> list[tuple[str, Any]]:
        """Two requests from the start on: each state by its name."""
        state, found = self.starting, [("Starting", self.starting)]
        for event in (self.greeted, self.requested, self.answered(1), self.report_read, self.requested):
            state = self.after(state, event)
            found.append((str(state.toString()).partition("(")[0], state))
        return found


@pytest.fixture
def states(spark: SparkSession) -> States:
    return States(spark)


def test_the_life_of_a_worker(states: States) -> None:
    seen = [(name, state.requests(), state.takesRequests(), state.hasGreeted()) for name, state in states.life()]
    assert seen == [
        ("Starting", 0, False, False),
        ("Idle", 0, True, True),
        ("Answering", 1, False, True),
        ("Owing", 1, True, True),
        ("Idle", 1, True, True),
        ("Answering", 2, False, True),
    ]


def test_dead_is_final(states: States) -> None:
    events = [states.greeted, states.requested, states.answered(7), states.report_read, states.killed(False)]
    for _, state in states.life():
        for late in (False, True):
            dead = states.after(state, states.killed(late))
            assert (dead.late(), dead.requests(), dead.hasGreeted()) == (late, state.requests(), state.hasGreeted())
            assert not dead.takesRequests()
            for event in events:
                assert states.after(dead, event) == dead
            assert states.after(dead, states.killed(True)).late()


def test_an_event_out_of_place_is_an_error(states: States) -> None:
    from py4j.protocol import Py4JJavaError

    for event in (states.requested, states.report_read, states.answered(1)):
        with pytest.raises(Py4JJavaError, match="cannot follow Starting"):
            states.after(states.starting, event)
