"""A left join of which only the unmatched rows are kept becomes an anti join with the same rows."""

from __future__ import annotations

import pytest

from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.left_join_to_anti_join import outer_join_as_anti_join
from tests.support.letters import Letters


def query(w: Letters, test: str, join_type: str = LEFT, on: str = "a1 = b1", read: str = "a1 a2") -> LogicalPlan:
    a, b = w.relation("a", "a1 a2"), w.relation("b", "b1 b2")
    return w.project(read, Filter(w(test), Join(a, b, join_type, w(on))))


def types(plan: LogicalPlan) -> list[str]:
    return [node.join_type for node in post_order(plan) if isinstance(node, Join)]


@pytest.mark.parametrize(
    ("test", "on", "changes"),
    [
        ("b1 is null", "a1 = b1", True), ("b1 is null and a2 > 1", "a1 = b1", True),
        ("b1 is null and b2 is null", "a1 = b1", True), ("b2 is null", "a1 = b1 and b2 > 3", True),
        ("b2 is null", "a1 = b1", False),  # there may be matches with a NULL
        ("b1 is null", "a1 <=> b1", False), ("b1 is null or a2 > 1", "a1 = b1", False),
        ("b1 is null and coalesce(b2, 1) = 1", "a1 = b1", False), ("b1 is not null", "a1 = b1", False),
        ("a1 is null", "a1 = b1", False), ("b1 is null and a2 = b2", "a1 = b1", False),
    ],
)  # fmt: skip
def test_which_tests_keep_only_padded_rows(w: Letters, test: str, on: str, changes: bool) -> None:
    plan = query(w, test, LEFT, on)
    result = outer_join_as_anti_join(plan).plan
    assert types(result) == [ANTI if changes else LEFT]
    assert (result is plan) is not changes


def test_filters_on_the_padded_side(w: Letters) -> None:
    a, b = w.relation("a", "a1 a2"), w.relation("b", "b1 b2")
    filtered = w.project("b1 b2", Filter(w("b2 > 3"), b))
    plan = w.project("a1", Filter(w("b2 is null"), Join(a, filtered, LEFT, w("a1 = b1"))))
    assert types(outer_join_as_anti_join(plan).plan) == [ANTI]


def test_the_other_side(w: Letters) -> None:
    plan, notes = outer_join_as_anti_join(query(w, "a1 is null", RIGHT, read="b1 b2"))
    (join,) = (node for node in post_order(plan) if isinstance(node, Join))
    assert join.join_type == ANTI and [a.name for a in join.left.output] == ["b1", "b2"]
    assert notes == ("right join of a and b became anti: (a1 IS NULL) keeps only rows of b without a partner",)
    assert types(outer_join_as_anti_join(query(w, "a1 is null", FULL, read="b1")).plan) == [FULL]


def test_not_if_somebody_reads_the_padded_side(w: Letters) -> None:
    for read in ("a1 b1", "b2"):
        plan = query(w, "b1 is null", read=read)
        assert outer_join_as_anti_join(plan).plan is plan
    whole = query(w, "b1 is null").children[0]
    assert outer_join_as_anti_join(whole).plan is whole, "all its columns are the result"
    hidden = query(w, "b1 is null")
    hidden.info["hidden"] = [next(a.bit for a in whole.output if a.name == "b2")]
    assert outer_join_as_anti_join(hidden).plan is hidden, "a USING join's column can still be asked for"


def test_what_is_computed_from_padded_columns_goes_with_them(w: Letters) -> None:
    """A projection above the join computes an unused column."""
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1")
    padded = Filter(w("b1 is null"), Join(a, b, LEFT, w("a1 = b1")))
    between = w.project("a1 a2", padded, w.alias("n", "b2 + 1"))
    plan = w.project("a2", Join(between, c, INNER, w("a2 = c1")))
    result = outer_join_as_anti_join(plan).plan
    assert types(result) == [ANTI, INNER]
    for node in post_order(result):
        below = sum({child.output_set for child in node.children})
        assert not node.children or not node.references & ~below, node


def test_through_joins_above(w: Letters) -> None:
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1")
    padded = Filter(w("b1 is null"), Join(a, b, LEFT, w("a1 = b1")))
    plan = w.project("a2", Join(padded, c, INNER, w("a2 = c1")))
    assert types(outer_join_as_anti_join(plan).plan) == [ANTI, INNER]
    plan = w.project("a2", Join(padded, c, LEFT, w("a2 = c1 and b2 is null")))
    assert types(outer_join_as_anti_join(plan).plan) == [LEFT, LEFT]


def test_not_if_the_condition_may_fail(w: Letters) -> None:
    """Spark would push the anti join down to `a`, to rows that the join with `c` removes."""
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1"), w.relation("c", "c1")
    joined = Join(a, c, INNER, w("a1 = c1"))
    for on in ("a1 = b1 and risky(a2) > 1", "risky(a1) = b1"):
        plan = w.project("a1", Filter(w("b1 is null"), Join(joined, b, LEFT, w(on))))
        assert outer_join_as_anti_join(plan).plan is plan
    computed = w.project("a1", joined, w.alias("x", "risky(a2)"))
    plan = w.project("a1", Filter(w("b1 is null"), Join(computed, b, LEFT, w("a1 = b1 and x > 1"))))
    assert outer_join_as_anti_join(plan).plan is plan
    plan = w.project("a1", Filter(w("b1 is null"), Join(computed, b, LEFT, w("a1 = b1"))))
    assert types(outer_join_as_anti_join(plan).plan) == [INNER, ANTI]
