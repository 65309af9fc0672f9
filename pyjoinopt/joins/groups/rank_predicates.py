"""Predicates on ranks in a form that cannot throw, so that every order may apply them.

`a.rn = b.rn + 1`, each row with the one before it, throws in ANSI mode if some rank is the largest INT.
`a.rn - 1 = b.rn` is equivalent and cannot throw, as ranks count from one (`plan.fallible.window_ranks`).
"""

from __future__ import annotations

from dataclasses import replace

from pyjoinopt.joins.groups.join_group import Conjunct, JoinGroup
from pyjoinopt.plan.constructors import constant
from pyjoinopt.plan.expressions import Expression, rewrite
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.fallible.value_ranges import at_least
from pyjoinopt.plan.fallible.window_ranks import LEAST

_LARGEST = 2**31 - 1


def with_ranks(group: JoinGroup, ranks: int) -> JoinGroup:
    """The group with predicates that know which columns are ranks; the same one if that makes no difference.

    Args:
        group: a join group; it is left as it is.
        ranks: attributes that are never below `LEAST`, nor is any column that Spark may substitute for them.
    """
    conjuncts = tuple(_with_ranks(conjunct, ranks) for conjunct in group.conjuncts)
    return group if all(a is b for a, b in zip(conjuncts, group.conjuncts)) else replace(group, conjuncts=conjuncts)


def _with_ranks(conjunct: Conjunct, ranks: int) -> Conjunct:
    predicate = conjunct.predicate
    if not predicate.references & ranks or not may_throw(predicate):
        return conjunct

    def bounded(e: Expression) -> Expression:
        return at_least(e, LEAST) if e.kind == "AttributeReference" and e.references & ranks else e

    rewritten = rewrite(rewrite(predicate, bounded), _turned)
    return conjunct if may_throw(rewritten) else replace(conjunct, predicate=rewritten)


def _turned(e: Expression) -> Expression:
    """`a = b + n`, with a positive constant, as `a + (-n) = b`; any other expression as it is."""
    if e.kind != "EqualTo" or not may_throw(e):
        return e
    for one, sum in (e.children, e.children[::-1]):
        if sum.kind != "Add" or not one.type == sum.type == "int":
            continue
        for other, step in (sum.children, sum.children[::-1]):
            if step.kind == "Literal" and isinstance(step.value, int) and 0 < step.value <= _LARGEST:
                less = sum.with_children((one, constant(-step.value, "int")))
                return e.with_children((less, other))
    return e
