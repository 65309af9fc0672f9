"""Catalyst's rules in Python, each in a module of its own, named as Catalyst names it.

    pyjoinopt.rules.names()                          # which there are
    pyjoinopt.rules.apply(df, "EliminateOuterJoin")  # one of them, to a fixed point
    pyjoinopt.rules.trace(df)                        # all of them in Spark's batches, step by step

The functions below are this room's front door for users. They cross to Spark and back, which no rule does, so they
only hand on to `pyjoinopt.api.rule_by_rule`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyjoinopt.report.rule_trace import RuleTrace

__all__ = ["apply", "names", "trace"]


def names() -> tuple[str, ...]:
    """Catalyst's names of the rules, in the order in which Spark would run them.

    >>> "EliminateOuterJoin" in names()
    True
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.names()


def apply(df: DataFrame, name: str) -> DataFrame:
    """The DataFrame after one rule, run to a fixed point; `df` itself if the rule changes nothing.

    The rows are the same. A column may come out as nullable that was not, where Catalyst's rule does so, too.

    Args:
        df: a classic DataFrame.
        name: one of `names()`.

    Raises:
        ValueError, TypeError: there is no such rule; the message has the closest name.
        PyJoinOptError: a streaming query, a command, a plan with unresolved parts, or no JVM behind it.

    Example:
        >>> pyjoinopt.rules.apply(df, "PushDownPredicates").explain(True)    # doctest: +SKIP
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.apply(df, name)


def trace(df: DataFrame, *rules: str) -> RuleTrace:
    """Run the rules in Spark's batches, one at a time, and show what each of them changed.

    Args:
        df: a classic DataFrame.
        *rules: names; without any, all rules are run.

    Returns:
        A `RuleTrace`: `steps` (batch, rule, plan before and after), `to_text()`, `to_html()`; HTML in a notebook.

    Raises:
        ValueError, TypeError: there is no such rule.
        PyJoinOptError: a streaming query, a command, a plan with unresolved parts, or no JVM behind it.

    Example:
        >>> print(pyjoinopt.rules.trace(df).to_text())                  # doctest: +SKIP
        >>> pyjoinopt.rules.trace(df, "EliminateOuterJoin")             # doctest: +SKIP
    """
    from pyjoinopt.api import rule_by_rule

    return rule_by_rule.trace(df, *rules)
