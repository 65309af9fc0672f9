"""Fixtures of tests and doctests; and doctests that need a Spark session get one.

Examples marked `+SKIP` need a session, so a user's own doctest run skips them. Here they run over four small views, and
whatever they print is right: what they show is that they run.
"""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from tests.support.session import own_store, spark

__all__ = ["own_store", "spark"]

SESSION = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "dtest", None)
        if test is None:
            continue
        # One that configures the process's session would change that of all other tests.
        skipped = [e for e in test.examples if e.options.get(doctest.SKIP) and "getOrCreate" not in e.source]
        for example in skipped:
            example.options = {doctest.ELLIPSIS: True, doctest.NORMALIZE_WHITESPACE: True}
            example.want = "...\n"
        if skipped:
            item.stash[SESSION] = True
            item.add_marker(pytest.mark.jvm)


@pytest.fixture(autouse=True)
def _names_of_doctests(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """`spark`, a session of its own; `slow` and `df`, a query over its views; and `pyjoinopt`."""
    if SESSION not in request.node.stash:
        return
    import pyjoinopt
    from tests.support import shop

    session = request.getfixturevalue("spark").newSession()
    shop.write(request.getfixturevalue("tmp_path"))
    shop.register(session, request.getfixturevalue("tmp_path"))
    df = shop.slow(session)
    doctest_namespace.update(pyjoinopt=pyjoinopt, spark=session, slow=df, df=df)
