"""Plans give the same rows before and after normalisation; joins, filters and NULLs are evaluated by definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.plan.nodes import INNER, OUTER, Filter
from pyjoinopt.rewrites.normalise import normalise
from tests.oracles.rewrites.definitions import Row, bag, rows, run
from tests.support.letters import Letters, join

ATOMS = ["a > 1", "b is null", "e is not null", "e = 2", "a <=> d", "coalesce(b, e) = 1", "c + f > 0", "f is null"]


def predicates() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            inner.map(lambda p: f"not ({p})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        ),
        max_leaves=6,
    )


def tables() -> st.SearchStrategy[dict[str, list[Row]]]:
    return st.fixed_dictionaries({"x": rows("abc"), "y": rows("def")})


@given(predicates(), predicates(), st.sampled_from(sorted(OUTER | {INNER})), tables())
def test_normalised_plans_give_the_same_rows(above: str, on: str, join_type: str, data: dict[str, list[Row]]) -> None:
    w = Letters()
    plan = Filter(w(above), join(w.relation("x", "a b c"), w.relation("y", "d e f"), w(on), join_type))
    result = normalise(plan).plan
    assert bag(run(result, data)) == bag(run(plan, data))
    assert normalise(result).plan is result
