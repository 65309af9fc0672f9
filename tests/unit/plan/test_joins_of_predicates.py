"""A join that was an IN or EXISTS remains known as one, whatever is made of it."""

from __future__ import annotations

from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import NO_HINT, SEMI, Join, relation

A, B = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "int")


def test_with_other_inputs() -> None:
    condition = call("EqualTo", reference(A), reference(B))
    left, right = relation("s", [A]), relation("t", [B])
    early = Join(left, right, SEMI, condition, info={"early": 7, "early_reads": A.mask})
    assert early.with_inputs(left, right, condition, NO_HINT).early == 7
    again = early.as_subquery().with_inputs(left, right, condition, NO_HINT)
    assert (again.early, again.subquery, again.early_reads) == (None, 7, A.mask)
    plain = Join(left, right, SEMI, condition).with_inputs(left, right, condition, NO_HINT)
    assert plain.early is None and plain.subquery is None
