"""Random queries with a single rule: the rule does not change the rows."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.oracles.catalyst import generated
from tests.support.compare import assert_same_rows
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: One in this many of the `--fuzz-n` queries; each is run once for every rule that changes it.
SHARE = 30


@pytest.mark.ci
def test_each_rule_alone_keeps_the_rows(request: pytest.FixtureRequest, spark: SparkSession) -> None:
    total, start = (request.config.getoption(name) // SHARE for name in ("--fuzz-n", "--fuzz-from"))
    session = session_for_tiny_tables(spark)
    generated.create_tables(session)
    fired: Counter[str] = Counter()
    texts = generated.queries(max(1, total), request.config.getoption("--fuzz-seed"), limits=False)
    for text in itertools.islice(texts, start, None):
        df, expected = session.sql(text), None
        for name in pyjoinopt.rules.names():
            once = pyjoinopt.rules.apply(df, name)
            if once is not df:
                fired[name] += 1
                expected = df.collect() if expected is None else expected
                assert_same_rows(expected, once, label=("plain Spark", f"{name} on {text}"))
    assert sum(fired.values()) >= total - start, fired
