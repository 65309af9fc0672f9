"""One warning for each cause and process."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyjoinopt.util import warn_once as module
from pyjoinopt.util.warn_once import first_time, forget_causes, log_once, warn_once


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    forget_causes("test")
    yield
    forget_causes("test")


def test_a_cause_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        for cause in ("a", "b", "a"):
            warn_once("test", cause, f"about {cause}")
        forget_causes("test")
        warn_once("test", "a", "again")
    assert [str(w.message) for w in issued] == ["about a", "about b", "again"]
    assert {w.category for w in issued} == {RuntimeWarning} and {w.filename for w in issued} == {__file__}


def test_a_text_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("pyjoinopt")
    with caplog.at_level(logging.WARNING, "pyjoinopt"):
        for text in ("100 %s", "100 %s", "other"):
            log_once(log, "test", text, ValueError("cause"))
    assert [record.getMessage() for record in caplog.records] == ["100 %s", "other"]
    assert all(record.exc_info for record in caplog.records)


def test_kinds_are_apart() -> None:
    assert first_time("test", "a") and first_time("another test", "a")
    forget_causes("another test")
    assert not first_time("test", "a")


def test_the_oldest_cause_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 2)
    assert [first_time("test", c) for c in "abcbac"] == [True, True, True, False, True, False]


def test_threads_share_the_causes() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda n: first_time("test", n % 10), range(2000))) == 10
