"""Public assertions for the tests of your own queries.

    from pyjoinopt.testing import assert_max_rows, assert_no_cartesian, assert_plan, assert_reordered, assert_same_rows

    assert_reordered(df)                                   # the optimizer finds another join order
    assert_same_rows(df, df.optimize_joins())              # both return the same rows
    assert_no_cartesian(df)                                # the optimised plan has no Cartesian product
    assert_plan(df, baseline)                              # it has the orders and hints of a baseline
    assert_max_rows(df, ["orders", "customers"], 10_000)   # runs it; this join gives at most 10,000 rows

With pytest, the fixture `joinopt` has the same functions as methods. See docs/testing.md.

The implementation is `pyjoinopt.api.assertions`.
"""

from __future__ import annotations

from pyjoinopt.api.assertions import (
    JoinOpt,
    assert_max_rows,
    assert_no_cartesian,
    assert_plan,
    assert_reordered,
    assert_same_rows,
)

__all__ = ["JoinOpt", "assert_max_rows", "assert_no_cartesian", "assert_plan", "assert_reordered", "assert_same_rows"]
