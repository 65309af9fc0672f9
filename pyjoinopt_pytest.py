"""The pytest plugin of pyjoinopt: the fixture `joinopt`.

It is a module outside the package because pytest imports every installed plugin at its start, and importing the package
imports pyspark. The fixture imports the package when a test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyjoinopt.testing import JoinOpt


@pytest.fixture(scope="session")
def joinopt(tmp_path_factory: pytest.TempPathFactory) -> JoinOpt:
    """The assertions of `pyjoinopt.testing`, with options that make plans repeatable.

    Errors of the optimizer are raised (`strict`). Statistics are stored in a file of this test run, so that neither
    earlier runs nor the user's own store change a plan, and a query waits up to a minute for them.
    """
    from pyjoinopt.testing import JoinOpt

    store = tmp_path_factory.mktemp("joinopt") / "statistics.sqlite"
    return JoinOpt({"strict": True, "store": str(store), "statistics_ms": 60_000})
