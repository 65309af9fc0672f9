"""Semi joins for inner ones and limits below joins give the same rows, over all kinds of tables of a few rows."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from pyjoinopt.plan.constructors import distinct
from pyjoinopt.plan.expressions import DETERMINISTIC, Expression, literal
from pyjoinopt.plan.nodes import INNER, LEFT, RIGHT, SEMI, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.inner_to_semi_joins import existence_regions, with_semi_joins
from pyjoinopt.rewrites.top_k_through_joins import places_for_top_k, with_top_k
from tests.oracles.rewrites.definitions import Row, bag, rows, run
from tests.support.letters import Letters, join

TABLES = {"x": "a b", "y": "c d", "z": "e f", "u": "g h"}
DATA = st.fixed_dictionaries({name: rows(columns.replace(" ", "")) for name, columns in TABLES.items()})
#: By the table that is joined last: all columns before it, and its own, are there.
ON = {
    "y": ["a = c", "b = d", "a = d", "c > b", "a <=> c", "d is not null", "b = c"],
    "z": ["a = e", "c = e", "b = f", "d = f", "f > a", "c <=> e", "coalesce(b, e) = 1", "e = f"],
    "u": ["a = g", "c = g", "e = g", "f = h", "b = h", "h is not null", "d > h"],
}
READ = ["a", "b", "a b", "c", "b d", "a e", "f", "g"]


@given(
    st.fixed_dictionaries({name: st.lists(st.sampled_from(some), min_size=1, max_size=3) for name, some in ON.items()}),
    st.sampled_from(READ),
    st.sets(st.integers(0, 2)),
    DATA,
)
def test_semi_joins_keep_the_distinct_rows(
    on: dict[str, list[str]], read: str, which: set[int], data: dict[str, list[Row]]
) -> None:
    w = Letters()
    plan = w.relation("x", TABLES["x"])
    for name in ON:
        plan = join(plan, w.relation(name, TABLES[name]), w(" and ".join(on[name])))
    whole = distinct(w.project(read, plan))
    regions = existence_regions(whole, 0)
    assume(regions)
    (region,) = regions
    chosen = [branch for i, branch in enumerate(region.branches) if i in which] or list(region.branches)
    result = with_semi_joins(whole, [(region, chosen)]).plan
    assert sum(isinstance(n, Join) and n.join_type == SEMI for n in post_order(result)) == len(chosen)
    assert bag(run(result, data)) == bag(run(whole, data))
    for node in post_order(result):
        below = 0
        for child in node.children:
            below |= child.output_set
        assert not node.children or not node.references & ~below


def _ordered(keys: list[Expression], rows: int, child: LogicalPlan) -> LogicalPlan:
    order = tuple(Expression("SortOrder", (key,), key.type, DETERMINISTIC) for key in keys)
    sort = LogicalPlan("Sort", (child,), child.output, order, info={"global": True})
    for kind in ("LocalLimit", "GlobalLimit"):
        sort = LogicalPlan(kind, (sort,), sort.output, (literal(rows, "int"),), info={"limit": rows})
    return sort


@given(
    st.lists(
        st.tuples(st.sampled_from(["y", "z"]), st.sampled_from([LEFT, LEFT, RIGHT, INNER])), min_size=1, max_size=2
    ),
    st.sampled_from(["a", "b a", "a b", "r", "r a"]),
    st.integers(0, 4),
    DATA,
)
def test_the_first_rows_are_the_same(
    joins: list[tuple[str, str]], order: str, most: int, data: dict[str, list[Row]]
) -> None:
    w = Letters()
    plan = w.relation("x", TABLES["x"])
    joined = set()
    for name, join_type in joins:
        if name not in joined:
            joined.add(name)
            other, on = w.relation(name, TABLES[name]), w("a = c" if name == "y" else "a = e")
            plan = join(other, plan, on, RIGHT) if join_type == RIGHT else join(plan, other, on, join_type)
    names = [a.name for a in plan.output]
    computed: Project = w.project(" ".join(names), plan, w.alias("r", "b + 1"))
    keys = [w(name) for name in order.split()]
    whole = _ordered(keys, most, computed)
    places = places_for_top_k(whole)
    assume(places)
    (place,) = places
    result = with_top_k(whole, place).plan
    assert result is not whole and not places_for_top_k(result)
    found, expected, all_rows = run(result, data), run(whole, data), bag(run(computed, data))
    assert [[row[name] for name in order.split()] for row in found] == [
        [row[name] for name in order.split()] for row in expected
    ]
    for row in bag(found):
        all_rows.remove(row)  # each is a row of the join
