"""The options of the tests, the marker of tests that need a JVM, and the shared sample databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support import tpc
from tests.support.letters import Letters
from tests.support.no_jvm import NoJvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt.plan.nodes import LogicalPlan


UNIT = Path(__file__).parent / "unit"
#: Of a test that needs a JVM and has so many cases or more, the default run has one in six; the others are left to CI.
MANY, EVERY = 6, 6
#: Tests with one of these markers are no part of the default run.
ELSEWHERE = ("ci", "slow", "formats", "fuzz")
NO_JVM = pytest.StashKey[NoJvm]()
# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random queries (`--fuzz-n`), from which number on, from which seed, or just one of them."""
    group = parser.getgroup("fuzz", "random queries")
    group.addoption("--fuzz-n", type=int, default=60, help="how many random queries to compare (default 60)")
    group.addoption("--fuzz-from", type=int, default=0, help="leave out as many, which ran before (default 0)")
    group.addoption("--fuzz-seed", type=int, default=1, help="seed of the tables and of all queries (default 1)")
    group.addoption("--all-states", action="store_true", help="compare rules with Catalyst's on every plan state")
    group.addoption("--record-golden", action="store_true", help="write the expected texts of reports anew")
    group.addoption("--fuzz-only", type=int, default=None, help="run one query, by its number")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with the fixture `spark` need a JVM; tests that start one in another way have the marker written."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
        if item.get_closest_marker("jvm") and UNIT in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid} needs a JVM, which tests/unit is without")
    if sorted(Path(each).name for each in config.args) == sorted(config.getini("testpaths")):
        _leave_to_ci(items)


def _leave_to_ci(items: list[pytest.Item]) -> None:
    """Marks most cases of tests with many of them; not where a developer names files, who wants all cases."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("jvm") and not any(map(item.get_closest_marker, ELSEWHERE)):
            cases.setdefault((item.path, item.nodeid.partition("[")[0]), []).append(item)
    for found in cases.values():
        for number, item in enumerate(found):
            if len(found) >= MANY and number % EVERY:
                item.add_marker(pytest.mark.ci)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fails tests without the marker `jvm` that start a JVM, also in teardown, which may restore the environment."""
    if item.get_closest_marker("jvm"):
        return (yield)
    if NO_JVM not in item.config.stash:
        item.config.stash[NO_JVM] = NoJvm(Path(tempfile.mkdtemp(prefix="no-jvm-")))
    with item.config.stash[NO_JVM].kept():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield
    _check(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    _check(item)


def _check(item: pytest.Item) -> None:
    if NO_JVM in item.config.stash:
        item.config.stash[NO_JVM].check()


def pytest_unconfigure(config: pytest.Config) -> None:
    if NO_JVM in config.stash:
        config.stash[NO_JVM].remove()


@pytest.fixture
def w() -> Letters:
    """For plans in a short notation."""
    return Letters()


@pytest.fixture
def abcd(w: Letters) -> tuple[LogicalPlan, ...]:
    """Four relations of two columns each."""
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abcd")


@pytest.fixture
def abc(abcd: tuple[LogicalPlan, ...]) -> tuple[LogicalPlan, ...]:
    """Three relations of two columns each."""
    return abcd[:3]


@pytest.fixture(scope="session")
def tpch(spark: SparkSession) -> SparkSession:
    """A session of the same application with the TPC-H tables as temporary views."""
    session = spark.newSession()
    tpc.register(session, "tpch")
    return session


@pytest.fixture(scope="session")
def tpcds(spark: SparkSession) -> SparkSession:
    """A session of the same application with the TPC-DS tables as temporary views.

    Its queries are long and its tables tiny, so compiling a query would take longer than running it.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    tpc.register(session, "tpcds")
    return session
