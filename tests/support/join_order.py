"""The join order of the plan that Spark will execute, as text, independent of the entrance.

Names of relations depend on the entrance: an analysed plan has aliases, an optimised one has none. So relations are
named by what they read, and whatever stands between two joins is left out unless it changes the rows. A semi or anti
join counts as one, be it written as an existence join with a filter on its mark or not. Hints and the plans inside
expressions are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import EXISTENCE, Filter, Join, LogicalPlan
from pyjoinopt.plan.relation_names import source_names
from pyjoinopt.plan.traversal import post_order
from tests.support.oracle_bridge import oracle_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = frozenset("Aggregate Union Window Expand Generate".split())


def join_order(df: DataFrame) -> str:
    """The joins of a frame's optimised plan."""
    export = decode(oracle_for(df).exportStage(df._jdf, '{"stage":"optimized"}'))
    bridge_for(df).release(export.handle)
    return _shown(export.root)


def orders_of_both(session: SparkSession, query: str) -> tuple[str, str, str]:
    """(as plain Spark has it, by a call of `optimize_joins`, by the extension) of one query in an enabled session.

    Samples and proved keys are deleted before each, so that both use only what planning the query itself collects.
    """
    session.conf.set("spark.pyjoinopt.enabled", "false")
    plain = session.sql(query)
    bridge_for(plain).forgetSamples()
    called = plain.optimize_joins(strict=True)
    written, by_call = join_order(plain), join_order(called)
    bridge_for(plain).forgetSamples()
    session.conf.set("spark.pyjoinopt.enabled", "true")
    by_extension = join_order(session.sql(query))
    session.conf.set("spark.pyjoinopt.enabled", "false")
    return written, by_call, by_extension


def _shown(root: LogicalPlan) -> str:
    done: dict[int, str] = {}
    for node in post_order(root):
        below = [done[id(child)] for child in node.children]
        if isinstance(node, Join):
            mark = f"Exists{node.info['exists']}" if node.join_type == EXISTENCE else node.join_type
            text = f"({below[0]} {mark} {below[1]})"
        elif not below:
            text = "+".join(source_names(node))
        elif node.kind in _SHOWN or len(below) > 1:
            text = f"{node.kind}<{', '.join(below)}>"
        else:
            text = below[0]
        for tested in conjuncts(node.condition) if isinstance(node, Filter) else ():
            text = _as_semi_join(text, tested)
        done[id(node)] = text
    return done[id(root)]


def _as_semi_join(text: str, tested: Expression) -> str:
    """A filter on the mark of an existence join makes it a semi or an anti join."""
    column = tested.children[0] if tested.kind == "Not" else tested
    if column.kind != "AttributeReference" or column.attribute is None:
        return text
    kind = "LeftAnti" if tested.kind == "Not" else "LeftSemi"
    return text.replace(f" Exists{column.attribute.bit} ", f" {kind} ")
