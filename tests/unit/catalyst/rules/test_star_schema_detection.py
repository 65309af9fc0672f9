"""Detection of stars, and the resulting join order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.rules.star_schema_detection import base_table, find_star_joins, reorder_star_joins
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics
from pyjoinopt.plan.expressions import conjuncts
from pyjoinopt.plan.nodes import CROSS, INNER, Filter, Join, LogicalPlan, Project, SubqueryAlias
from pyjoinopt.plan.traversal import post_order, to_fixed_point
from tests.oracles.catalyst.suites.support import Analysed, left_deep, shape
from tests.support.letters import join

STAR = {"spark.sql.cbo.starSchemaDetection": "true"}
PLAN_STATS = {**STAR, "spark.sql.cbo.planStats.enabled": "true"}


def small() -> Analysed:
    """A fact and three dimensions."""
    w = Analysed()
    w.analysed("f", 1000, 1, "f1:90 f2:50 f3:20 fv:900")
    w.analysed("a", 100, 1, "a1:100 a2:10")
    w.analysed("b", 50, 1, "b1:50 b2:10")
    w.analysed("c", 20, 1, "c1:20 c2:10")
    return w


JOINED = "f1 = a1 and f2 = b1 and f3 = c1"


def found(w: Analysed, names: str, where: str, conf: dict[str, str] | None = None) -> str:
    """The star among some tables, by their names."""
    plans = [w.by_name[name] for name in names.split()]
    star = find_star_joins(plans, conjuncts(w(where)), w.statistics, conf)
    return " ".join(next(name for name, plan in w.by_name.items() if plan is found) for found in star)


# -- what is a star ------------------------------------------------------------------------------------------------


def test_a_star_is_detected_by_sizes_and_keys() -> None:
    w = small()
    assert found(w, "a b f c", JOINED) == "f a b c"
    assert found(w, "a b f c", "f1 = a1 and b1 = f2 and f3 <=> c1") == "f a b c"
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 and f3 > c1") == "f a b"
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 and b2 = c1") == "f a b"
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 and f3 = c2") == "f a b"
    assert found(w, "a b f c", "f1 = a1 and f2 = b2 and f3 = c2") == ""
    assert found(w, "a f", "f1 = a1") == found(w, "f", "true") == found(w, "", "true") == ""


def test_conditions_that_join_nothing_to_the_fact() -> None:
    w = small()
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 and f3 + b2 = c1") == "f a b"
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 and c1 = 3 and f3 = 7") == "f a b"
    assert found(w, "a b f c", "f1 = a1 and f2 = b1 or f3 = c1") == ""


def test_the_second_largest_table_may_not_come_close() -> None:
    w = small()
    w.analysed("g", 900, 1, "g1:900")
    assert found(w, "a b f c g", JOINED) == "f a b c"
    w.analysed("h", 901, 1, "h1:901")
    assert found(w, "a b f c h", JOINED) == ""
    assert found(w, "a b f c h", JOINED, {"spark.sql.cbo.starJoinFTRatio": "0.95"}) == "f a b c"


@pytest.mark.parametrize(("distinct", "unique"), [(89, False), (90, True), (100, True), (109, True), (110, False)])
def test_a_key_has_about_as_many_values_as_rows(distinct: int, unique: bool) -> None:
    """As floats go, 110 / 100 - 1 is more than a tenth, here as in Spark."""
    w = small()
    w.analysed("d", 100, 1, f"d1:{distinct}")
    assert found(w, "f b d", "f1 = d1 and f2 = b1") == ("f d b" if unique else "")
    wide = {"spark.sql.statistics.ndv.maxError": "0.1"}
    assert found(w, "f b d", "f1 = d1 and f2 = b1", wide) == "f d b"


def test_a_key_without_counts_is_none() -> None:
    w = small()
    plan = w.by_name["a"]
    whole = w.known[id(plan)]
    bit = w.attribute("a1").bit
    for gone in ({"nulls": None}, {"ndv": None}, {"nulls": 1}):
        w.known[id(plan)] = replace(whole, columns={**whole.columns, bit: replace(whole.columns[bit], **gone)})
        assert found(w, "a b f c", JOINED) == "f b c"
    # A column without any statistics prevents star detection, since the effect of its join is unknown.
    w.known[id(plan)] = replace(whole, columns={})
    assert found(w, "a b f c", JOINED) == ""
    w.known[id(plan)] = replace(whole, rows=0)
    assert found(w, "a b f c", JOINED) == "f b c"


def test_unknown_row_counts() -> None:
    w = small()
    del w.known[id(w.by_name["c"])]
    assert found(w, "a b f c", JOINED) == ""
    assert found(w, "a b f", "f1 = a1 and f2 = b1") == "f a b"


def test_tables_of_a_catalog_keep_their_counts_to_themselves() -> None:
    w = small()
    for name, plan in w.by_name.items():
        table = w.by_name[name] = LogicalPlan("LogicalRelation", (), plan.output, info=plan.info)
        w.known[id(table)] = w.known[id(plan)]
    assert found(w, "a b f c", JOINED) == ""
    assert found(w, "a b f c", JOINED, PLAN_STATS) == "f a b c"
    assert found(w, "a b f c", JOINED, {"spark.sql.cbo.enabled": "true"}) == "f a b c"


def test_estimates_of_filtered_tables_count_if_costs_decide() -> None:
    w = small()
    fact = w.by_name["f"]
    filtered = w.by_name["f"] = Filter(w("fv = 1"), fact)
    assert found(w, "a b f c", JOINED) == "f a b c"
    w.known[id(filtered)] = CatalystStatistics(1, 1)
    assert found(w, "a b f c", JOINED) == "f a b c"
    # Then a is the largest table, and not one joins it on a key.
    assert found(w, "a b f c", JOINED, {"spark.sql.cbo.enabled": "true"}) == ""


# -- what is a table -----------------------------------------------------------------------------------------------


def test_projections_and_filters_over_a_leaf() -> None:
    w = small()
    leaf = w.by_name["f"]
    plan = Filter(w("f2 > 1"), SubqueryAlias("s", w.project("f1 f2", Filter(w("f1 > 1 and f3 is not null"), leaf))))
    table = base_table(plan)
    assert table is not None and table[0] is leaf
    assert [repr(p) for p in table[1]] == ["(f1 > 1)", "(f3 IS NOT NULL)", "(f2 > 1)"]
    assert base_table(leaf) == (leaf, [])
    assert base_table(w.group("f1", leaf)) is None
    assert base_table(join(leaf, w.by_name["a"])) is None
    cached = LogicalPlan("LocalRelation", (), leaf.output, info={**leaf.info, "cached": True})
    assert base_table(cached) is None
    assert base_table(Filter(w("f1 > 1"), leaf, info={"cached": True})) is None


def test_chains_that_could_not_be_one_projection_over_one_filter() -> None:
    w = small()
    leaf = w.by_name["f"]
    random = w.project("f1", leaf, w.alias("r", "rand()"))
    total = w.project("f1", leaf, w.alias("s", "f2 + 1"))
    assert base_table(random) is not None
    assert base_table(w.project("r", random)) is None
    assert base_table(w.project("f1", random)) is not None
    assert base_table(Filter(w("f1 > 1"), random)) is None
    assert base_table(Filter(w("f1 > 1"), w.project("f1", random))) is not None
    assert base_table(w.project("f1 s", total)) is not None
    assert base_table(w.project("", total, w.alias("s2", "s + s"))) is None
    assert base_table(Filter(w("s = f1"), total)) is not None
    assert base_table(Filter(w("s > 1 and s + 1 = 7"), total)) is None
    renamed = w.project("f1", leaf, w.alias("n", "f2"), w.alias("one", "1"))
    assert base_table(Filter(w("n > 1 and n + one = one"), renamed)) is not None
    assert base_table(Filter(w("rand() > 0"), leaf)) is not None
    assert base_table(Filter(w("f1 > 1"), Filter(w("rand() > 0"), leaf))) is None
    assert base_table(Filter(w("rand() > 0"), Filter(w("f1 > 1"), leaf))) is None


def test_a_renamed_key_is_no_key() -> None:
    w = small()
    pruned = w.by_name["a"] = w.project("a1", w.by_name["a"])
    assert found(w, "a b f c", JOINED) == "f a b c"
    w.by_name["a"] = w.project("", pruned, w.alias("n", "a1"))
    assert found(w, "a b f c", "f1 = n and f2 = b1 and f3 = c1") == ""


def test_a_tower_of_projections() -> None:
    w = small()
    plan: LogicalPlan = w.by_name["f"]
    for i in range(3000):
        plan = w.project("f1", plan, w.alias(f"n{i + 1}", f"n{i} + 1" if i else "f2 + 1"))
    assert base_table(plan) is not None


# -- the order -----------------------------------------------------------------------------------------------------


def order(w: Analysed, names: str, where: str, types: str = "") -> list[str]:
    kinds = {"x": CROSS, "i": INNER}
    items = [(w.by_name[n], kinds[t]) for n, t in zip(names.split(), types or "i" * 99)]
    conditions = conjuncts(w(where))
    named = {id(plan): name for name, plan in w.by_name.items()}
    return [named[id(plan)] for plan, _ in reorder_star_joins(items, conditions, w.statistics, STAR)]


def test_small_dimensions_first_if_any_is_selective() -> None:
    w = small()
    assert order(w, "a b f c", JOINED) == []
    assert order(w, "a b f c", f"{JOINED} and a2 = 1") == ["f", "c", "b", "a"]
    assert order(w, "a b f c", f"{JOINED} and a2 is not null") == []
    assert order(w, "a b f c", f"{JOINED} and fv = 1") == []
    w.by_name["b"] = Filter(w("b2 = 1"), w.by_name["b"])
    assert order(w, "a b f c", JOINED) == ["f", "c", "b", "a"]
    w.by_name["b"] = Filter(w("b2 is not null"), w.by_name["b"].children[0])
    assert order(w, "a b f c", JOINED) == []


def test_cross_joined_tables_take_no_part() -> None:
    w = small()
    assert order(w, "a b f c", f"{JOINED} and a2 = 1", "iiix") == ["f", "b", "a"]
    assert order(w, "a b f c", f"{JOINED} and a2 = 1", "iixi") == []


def test_the_star_first_then_the_rest_as_written() -> None:
    w = small()
    w.analysed("t", 5, 1, "t1:2 t2:2")
    w.analysed("u", 5, 1, "u1:2")
    query = w.query("t a b u f c", f"{JOINED} and a2 = 1 and t1 = a2 and u1 = t2")
    result = optimize(w, query)
    assert shape(result) == left_deep("f c b a t u")
    assert isinstance(result, Project) and result.output == query.output


def test_a_star_in_a_part_of_a_chain() -> None:
    w = small()
    w.by_name["g"] = w.group("g1", w.relation("rows", "g1"))
    query = Filter(
        w(f"{JOINED} and a2 = 1 and g1 = fv"),
        join(join(join(join(w.by_name["a"], w.by_name["b"]), w.by_name["f"]), w.by_name["c"]), w.by_name["g"]),
    )
    result = optimize(w, query)
    # g is no table, so the chain as a whole has no star; below g there is one.
    assert shape(result) == (left_deep("f c b a"), "rows")
    assert shape(optimize(Analysed(), query)) == (left_deep("a f b c"), "rows")


def optimize(w: Analysed, plan: LogicalPlan) -> LogicalPlan:
    def rules(p: LogicalPlan) -> LogicalPlan:
        return reorder_join(push_down_predicates(p), statistics=w.statistics, conf=STAR)

    return to_fixed_point(plan, rules)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_is_lost_and_nothing_swings(data: st.DataObject) -> None:
    w = Analysed()
    n = data.draw(st.integers(3, 6))
    for i in range(n):
        rows = data.draw(st.sampled_from([10, 50, 100, 1000, 2000]))
        w.analysed(f"r{i}", rows, 1, f"k{i}:{rows} v{i}:{max(1, rows // 2)}")
    fact = data.draw(st.integers(0, n - 1))
    parts = [f"v{fact} = k{i}" for i in range(n) if i != fact and data.draw(st.booleans())]
    extra = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3))
    pairs = {(min(i, j), max(i, j)) for i, j in extra if i != j}
    parts += [f"v{i} {'=<'[i % 2]} v{j}" for i, j in sorted(pairs)] + [f"v{data.draw(st.integers(0, n - 1))} = 1"]
    plan: LogicalPlan = w.by_name["r0"]
    for i in range(1, n):
        plan = join(plan, w.by_name[f"r{i}"], type=data.draw(st.sampled_from([INNER, INNER, CROSS])))
    query = Filter(w(" and ".join(parts)), plan)
    result = optimize(w, query)
    assert result.output == query.output
    assert sorted(id(x) for x in post_order(result) if not x.children) == sorted(map(id, w.by_name.values()))
    after = [
        p.key for x in post_order(result) if isinstance(x, (Join, Filter)) for e in x.expressions for p in conjuncts(e)
    ]
    assert set(after) == {p.key for p in conjuncts(query.condition)} and len(after) == len(set(after))
    rule = reorder_join(push_down_predicates(result), statistics=w.statistics, conf=STAR)
    assert rule is result
