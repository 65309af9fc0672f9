"""Public functions that run Catalyst's rules, reimplemented in Python, on a DataFrame.

    pyjoinopt.rules.names()                          # the names of the rules
    pyjoinopt.rules.apply(df, "EliminateOuterJoin")  # applies one rule to a fixed point
    pyjoinopt.rules.trace(df)                        # applies all rules in Spark's batches, step by step

The implementation is `pyjoinopt.api.rule_by_rule`; the rules are in `pyjoinopt.catalyst.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyjoinopt.report.rule_trace import RuleTrace

__all__ = ["apply", "names", "trace"]


def names() -> tuple[str, ...]:
    """Catalyst's names of the rules, in the order in which Spark runs them.

    >>> "EliminateOuterJoin" in names()
    True
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.names()


def apply(df: DataFrame, name: str) -> DataFrame:
    """The DataFrame after one rule, run to a fixed point; `df` itself if the rule changes nothing.

    The rows are the same. A column may become nullable if it does so by Catalyst's rule, too.

    Args:
        df: a classic DataFrame.
        name: one of `names()`.

    Raises:
        ValueError, TypeError: there is no such rule; the message has the closest name.
        PyJoinOptError: a streaming query, a command, a plan with unresolved parts, or a DataFrame without a JVM.

    Example:
        >>> pyjoinopt.rules.apply(df, "PushDownPredicates").explain(True)    # doctest: +SKIP
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.apply(df, name)


def trace(df: DataFrame, *rules: str) -> RuleTrace:
    """Run the rules in Spark's batches, one at a time, and record the changes of each.

    Args:
        df: a classic DataFrame.
        *rules: names of the rules to run; by default all.

    Returns:
        A `RuleTrace`: `steps` (batch, rule, plan before and after), `to_text()`, `to_html()`; HTML in a notebook.

    Raises:
        ValueError, TypeError: there is no such rule.
        PyJoinOptError: a streaming query, a command, a plan with unresolved parts, or a DataFrame without a JVM.

    Example:
        >>> print(pyjoinopt.rules.trace(df).to_text())                  # doctest: +SKIP
        >>> pyjoinopt.rules.trace(df, "EliminateOuterJoin")             # doctest: +SKIP
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.trace(df, *rules)
