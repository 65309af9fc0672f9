"""Whether a rewrite makes a difference to the plan of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.format import show
from pyjoinopt.rewrites.normalise import RewriteContext, normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_changed_by(df: DataFrame, rewrite: str) -> bool:
    """Whether the plan is another one with a rewrite of `pyjoinopt.rewrites.normalise` than without it."""
    export = decode(bridge_for(df).export(df._jdf, "{}"))
    bridge_for(df).release(export.handle)

    def rewritten(*without: str) -> str:
        fresh = ColumnFactory(len(export.attributes))
        return show(normalise(export.root, RewriteContext(export.filters_null, fresh=fresh), without).plan)

    return rewritten() != rewritten(rewrite)
