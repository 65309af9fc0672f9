"""Row estimates of plans from table statistics."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import (
    ColumnStatistics,
    RelationStatistics,
    from_json,
    row_width,
    unknown,
)
from pyjoinopt.estimation.plans.join import combined_columns, share_kept
from pyjoinopt.estimation.plans.operators import default_leaf, estimate_operator, estimate_plan
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias, relation
from pyjoinopt.plan.traversal import post_order
from tests.support.estimated_tables import COLUMNS, ROWS, TABLES, col, eq, leaf, lit

NEW = Attribute(100, 100, "new", "bigint")


def rows(plan: LogicalPlan) -> float:
    return estimate_plan(plan, leaf).rows


def bound(plan: LogicalPlan) -> float:
    return estimate_plan(plan, leaf).upper_bound


def node(kind: str, *children: LogicalPlan, output: tuple[Attribute, ...] | None = None, **info: Any) -> LogicalPlan:
    return LogicalPlan(kind, children, children[0].output if output is None else output, info=info)


def group(child: LogicalPlan, *keys: str) -> Aggregate:
    grouping = tuple(col(k) for k in keys)
    count = Expression("Alias", (Expression("Count", type="bigint"),), "bigint", attribute=NEW)
    return Aggregate(grouping, (*grouping, count), child, (*(COLUMNS[k] for k in keys), NEW))


def test_tables_are_exact() -> None:
    known = estimate_plan(TABLES["orders"], leaf)
    assert known.rows == known.upper_bound == ROWS["orders"]
    assert known.exact and known.source == "footers"
    assert known.column(COLUMNS["o_cust"].bit).guessed


def test_what_keeps_rows() -> None:
    plan: LogicalPlan = TABLES["orders"]
    plan = SubqueryAlias("o", Project((col("o_key"), col("o_cust")), plan))
    for kind in ("Sort", "Repartition", "ResolvedHint", "Window"):
        plan = node(kind, plan)
    known = estimate_plan(plan, leaf)
    assert known.rows == ROWS["orders"] == known.upper_bound
    assert known.exact
    assert known.column(COLUMNS["o_cust"].bit).max == 149_999
    assert known.bytes == ROWS["orders"] * 24


def test_renamed_columns_keep_statistics() -> None:
    alias = Expression("Alias", (col("o_cust"),), "bigint", attribute=NEW)
    known = estimate_plan(Project((alias,), TABLES["orders"]), leaf)
    assert known.column(NEW.bit).max == 149_999
    year = Expression("Alias", (Expression("Year", (col("o_date"),), "int"),), "int", attribute=NEW)
    known = estimate_plan(Project((year,), TABLES["orders"]), leaf)
    assert known.column(NEW.bit).ndv == 10440 - 8035 + 1
    years_of_keys = Expression("Alias", (Expression("Year", (col("o_key"),), "int"),), "int", attribute=NEW)
    known = estimate_plan(Project((years_of_keys,), TABLES["orders"]), leaf)
    assert known.column(NEW.bit).key_values is None


def test_filter() -> None:
    assert rows(Filter(call("LessThan", col("o_cust"), lit(75_000)), TABLES["orders"])) == pytest.approx(
        750_000, rel=0.01
    )
    assert bound(Filter(call("LessThan", col("o_cust"), lit(75_000)), TABLES["orders"])) == ROWS["orders"]


def test_aggregates() -> None:
    by_nation = estimate_plan(group(TABLES["customers"], "c_nation"), leaf)
    assert by_nation.rows == 25
    assert by_nation.upper_bound == 26  # the range holds 25 numbers, and there may be NULLs
    assert by_nation.column(COLUMNS["c_nation"].bit).key_values == 25
    pair = estimate_plan(group(TABLES["supplies"], "s_part", "s_supp"), leaf)
    assert pair.rows == pair.upper_bound == ROWS["supplies"]
    total = estimate_plan(group(TABLES["orders"]), leaf)
    assert total.rows == total.upper_bound == 1 and total.exact
    text = estimate_plan(group(TABLES["orders"], "o_status"), leaf)
    assert 1 <= text.rows <= ROWS["orders"] and text.upper_bound == ROWS["orders"]


def test_distinct_and_deduplicate() -> None:
    nation = Project((col("c_nation"),), TABLES["customers"])
    assert rows(node("Distinct", nation)) == 25
    assert bound(node("Distinct", nation)) == 26
    assert rows(node("Deduplicate", TABLES["customers"], keys=[COLUMNS["c_nation"].bit])) == 25


@pytest.mark.parametrize(
    ("kind", "expected", "most"),
    [
        ("Inner", 1_500_000, math.inf),
        ("LeftOuter", 1_500_000, math.inf),
        ("RightOuter", 1_500_000, math.inf),
        ("FullOuter", 1_500_000, math.inf),
        ("LeftSemi", 1_500_000, 1_500_000),
        ("LeftAnti", 75_000, 1_500_000),
        ("ExistenceJoin", 1_500_000, 1_500_000),
        ("LeftSingle", 1_500_000, 1_500_000),
    ],
)
def test_joins_of_every_type(kind: str, expected: float, most: float) -> None:
    plan = Join(TABLES["orders"], TABLES["customers"], kind, eq("o_cust", "c_key"))
    known = estimate_plan(plan, leaf)
    assert known.rows == pytest.approx(expected, rel=0.01)
    assert known.upper_bound <= max(most, ROWS["orders"] * (ROWS["customers"] + 1) + ROWS["customers"])


def test_semi_join_with_few_keys() -> None:
    few = Filter(call("LessThan", col("c_key"), lit(15_000)), TABLES["customers"])
    semi = Join(TABLES["orders"], few, "LeftSemi", eq("o_cust", "c_key"))
    anti = Join(TABLES["orders"], few, "LeftAnti", eq("o_cust", "c_key"))
    assert rows(semi) == pytest.approx(150_000, rel=0.01)
    assert rows(anti) == pytest.approx(1_350_000, rel=0.01)


def kept(left: RelationStatistics, right: RelationStatistics, kind: str = "LeftSemi") -> float:
    """Share of the left rows that a semi join on columns 0 and 1 keeps."""
    one, other = (reference(Attribute(n, n, f"k{n}", "int")) for n in (0, 1))
    return share_kept(kind, call("EqualTo", one, other), left, right, 0b10)


def side(bit: int, rows: float, unfiltered: float, **column: Any) -> RelationStatistics:
    return RelationStatistics(rows, 8 * rows, columns={bit: ColumnStatistics(**column)}, unfiltered=unfiltered)


@pytest.mark.parametrize(("days", "share"), [(365.0, 0.2), (36_500.0, 1.0), (73_000.0, 1.0)])
def test_days_that_are_kept_are_taken_to_be_of_the_years_that_sales_fill(days: float, share: float) -> None:
    """Sales of five years, and a year of a calendar of two centuries, half of it, and all of it."""
    calendar = side(1, days, 73_000.0, ndv=73_000.0, key_values=73_000.0, min=1, max=73_000)
    sales = side(0, 1e6, 1e6, ndv=1825.0, min=36_001, max=37_825)
    assert kept(sales, calendar) == pytest.approx(share)
    assert kept(sales, calendar, "LeftAnti") == pytest.approx(max(1.0 - share, ASSUMPTIONS.anti_join_least))
    few = side(0, 1e6, 1e6, ndv=5.0, min=1, max=73_000)  # these are not known to lie in any part
    assert kept(few, calendar) == pytest.approx(days / 73_000)


@pytest.mark.parametrize(("warehouses", "share"), [(1.0, 0.0), (2.0, 1.0 - 0.5**8), (1000.0, 1.0)])
def test_a_partner_has_to_fulfil_the_rest_of_the_condition(warehouses: float, share: float) -> None:
    """Lines of orders of eight lines, for which there is another one from another warehouse."""
    one, other = (
        RelationStatistics(
            8000.0, 64_000.0, columns={bit: ColumnStatistics(1000.0), bit + 1: ColumnStatistics(warehouses)},
            unfiltered=8000.0,
        )
        for bit in (0, 2)
    )  # fmt: skip
    order, warehouse, order2, warehouse2 = (reference(Attribute(n, n, f"k{n}", "int", False)) for n in range(4))
    another = call("Not", call("EqualTo", warehouse, warehouse2))
    condition = call("And", call("EqualTo", order, order2), another)
    assert share_kept("LeftSemi", condition, one, other, 0b1100) == pytest.approx(share)
    assert share_kept("LeftSemi", call("EqualTo", order, order2), one, other, 0b1100) == 1.0
    # What reads the left side alone is the same for all partners.
    condition = call("And", condition, call("EqualTo", warehouse, lit(1)))
    assert share_kept("LeftSemi", condition, one, other, 0b1100) == pytest.approx(share / warehouses)


def test_a_calendar_has_few_days_of_which_there_are_sales() -> None:
    calendar = side(0, 73_000.0, 73_000.0, ndv=73_000.0, key_values=73_000.0, min=1, max=73_000)
    sales = side(1, 1e6, 1e6, ndv=1825.0, min=36_001, max=37_825)
    assert kept(calendar, sales) == pytest.approx(1825 / 73_000)


def test_a_filter_of_the_left_side_finds_a_semi_join_no_more_partners() -> None:
    seen = side(1, 20_000.0, 1e6, ndv=500.0, domain=2000.0)
    assert kept(side(0, 1e6, 1e6, ndv=2000.0), seen) == 0.25
    counted = side(0, 1000.0, 1e6, ndv=300.0, domain=2000.0)
    assert kept(counted, seen) == kept(combined_columns([counted], unfiltered=True), seen) == 0.25
    key = side(0, 100.0, 2000.0, ndv=2000.0, key_values=2000.0)
    assert kept(key, seen) == kept(combined_columns([key], unfiltered=True), seen) == 0.25
    assert kept(key, seen, "LeftAnti") == 0.75


def test_without_a_count_before_filters_that_after_them_has_to_do() -> None:
    seen = side(1, 20_000.0, 1e6, ndv=500.0, domain=2000.0)
    assert kept(side(0, 1000.0, 1e6, ndv=4000.0, domain=math.inf), seen) == 0.125
    seen = side(1, 20_000.0, 1e6, ndv=500.0, domain=math.inf)
    assert kept(side(0, 1e6, 1e6, ndv=4000.0), seen) == 0.125


def test_a_semi_join_with_a_filtered_key_keeps_what_an_inner_join_would() -> None:
    kinds = side(1, 10.0, 100.0, ndv=100.0, key_values=100.0)
    assert kept(side(0, 1e6, 1e6, ndv=5.0), kinds) == 0.1
    assert kept(side(0, 1e6, 1e6, ndv=5.0), side(1, 10.0, 100.0, ndv=100.0, key_values=100.0, guessed=True)) == 1.0


@pytest.mark.parametrize(
    ("rows", "values"), [(1e6, 1000.0), (1e4, 1000.0), (1000.0, 632.5), (100.0, 95.2), (1.0, 1.0), (0.0, 1.0)]
)
def test_values_that_chance_leaves(rows: float, values: float) -> None:
    share = kept(side(0, 1e6, 1e6, ndv=1000.0), side(1, rows, 1e6, ndv=1000.0))
    assert 1000.0 * share == pytest.approx(values, rel=0.001)


def test_groups_of_which_few_are_left() -> None:
    """The customers of the orders of a day, once each."""
    day = Filter(eq("o_date", lit(9000)), TABLES["orders"])
    semi = Join(TABLES["customers"], group(day, "o_cust"), "LeftSemi", eq("c_key", "o_cust"))
    assert 500 < rows(semi) < 650


def test_mark_of_an_existence_join_keeps_what_a_semi_join_would() -> None:
    mark = Attribute(900, 900, "exists", "boolean", False)
    few = Filter(call("LessThan", col("c_key"), lit(15_000)), TABLES["customers"])
    marked = Join(TABLES["orders"], few, "ExistenceJoin", eq("o_cust", "c_key"), exists=mark)
    found = reference(mark)
    assert rows(Filter(found, marked)) == pytest.approx(150_000, rel=0.01)
    assert rows(Filter(call("Not", found), marked)) == pytest.approx(1_350_000, rel=0.01)
    either = Filter(call("Or", found, eq("o_cust", "o_cust")), marked)
    assert 150_000 < rows(either) <= bound(either) == ROWS["orders"]


def test_foreign_key_with_gaps() -> None:
    """Both ranges hold six million numbers, but there are only as many keys as orders."""
    assert rows(Join(TABLES["lines"], TABLES["orders"], "Inner", eq("l_order", "o_key"))) == pytest.approx(
        ROWS["lines"]
    )


def test_filtered_key() -> None:
    """The first tenth of the order keys has a tenth of the lines."""
    early = Filter(call("LessThan", col("o_key"), lit(600_000)), TABLES["orders"])
    joined = Join(TABLES["lines"], early, "Inner", eq("l_order", "o_key"))
    assert rows(joined) == pytest.approx(ROWS["lines"] / 10, rel=0.01)


def test_composite_key() -> None:
    both = call("And", eq("l_part", "s_part"), eq("l_supp", "s_supp"))
    assert rows(Join(TABLES["lines"], TABLES["supplies"], "Inner", both)) == pytest.approx(ROWS["lines"])


def test_joins_without_equalities() -> None:
    product = ROWS["nations"] * ROWS["customers"]
    assert rows(Join(TABLES["nations"], TABLES["customers"], "Cross")) == product
    ordering = call("LessThan", col("n_key"), col("c_nation"))
    assert rows(Join(TABLES["nations"], TABLES["customers"], "Inner", ordering)) == pytest.approx(product / 2)
    assert bound(Join(TABLES["nations"], TABLES["customers"], "Inner", ordering)) == product
    assert rows(Join(TABLES["customers"], TABLES["nations"], "LeftOuter", lit(False))) == ROWS["customers"]
    one_sided = eq("n_key", lit(3))
    assert rows(Join(TABLES["nations"], TABLES["customers"], "Inner", one_sided)) == pytest.approx(product / 25)


def test_limits_samples_and_sets() -> None:
    orders = TABLES["orders"]
    limited = node("GlobalLimit", node("LocalLimit", orders, limit=10), limit=10)
    assert rows(limited) == bound(limited) == 10
    assert rows(node("LocalLimit", orders, limit=10)) == 10
    assert bound(node("LocalLimit", orders, limit=10)) == ROWS["orders"]  # of every partition
    assert rows(node("GlobalLimit", orders, limit=None)) == ROWS["orders"]
    assert rows(node("Sample", orders, fraction=0.1)) == pytest.approx(150_000)
    assert rows(node("Union", orders, orders)) == 3_000_000
    assert bound(node("Union", orders, orders)) == 3_000_000
    nations = TABLES["nations"]
    assert rows(node("Intersect", orders, nations)) == bound(node("Intersect", orders, nations)) == 25
    assert rows(node("Except", orders, nations)) == bound(node("Except", orders, nations)) == ROWS["orders"]
    assert rows(node("Generate", nations, output=(*nations.output, NEW))) > 25
    assert bound(node("Generate", nations, output=(*nations.output, NEW))) == math.inf


def test_expand_multiplies() -> None:
    nations = TABLES["nations"]
    lists = tuple(reference(a) for _ in range(3) for a in nations.output) + tuple(map(reference, nations.output))
    plan = LogicalPlan("Expand", (nations,), nations.output, lists)
    assert rows(plan) == bound(plan) == 75


def test_copies_for_rollup_have_the_values_of_their_columns() -> None:
    """ROLLUP (nation): a copy of each row with its nation, and one with NULL, which a number distinguishes."""
    customers = TABLES["customers"]
    nation = COLUMNS["c_nation"]
    null = Expression("Literal", type=nation.type, value=None)
    numbers = [Expression("Literal", type="bigint", value=n, text=str(n)) for n in range(2)]
    group, set_number = Attribute(301, 301, "nation", nation.type), Attribute(302, 302, "set", "bigint")
    lists = [(reference(nation), numbers[0]), (null, numbers[1])]
    plan = LogicalPlan("Expand", (customers,), (group, set_number), info={"lists": lists})
    known = estimate_plan(plan, leaf)
    assert known.rows == 2 * ROWS["customers"]
    assert known.column(301).ndv == 25 and known.column(301).nulls == pytest.approx(0.5)
    assert known.column(302).ndv == 2
    keys = [reference(group), reference(set_number)]
    assert rows(aggregate(keys, keys, plan)) <= 2 * 26


def test_unknown_operators_take_the_largest_input() -> None:
    plan = node("SomethingNew", TABLES["nations"], TABLES["orders"])
    known = estimate_plan(plan, leaf)
    assert known.rows == ROWS["orders"] and known.upper_bound == math.inf and not known.exact


def test_common_table_expressions() -> None:
    output = tuple(Attribute(200 + i, 200 + i, a.name, a.type) for i, a in enumerate(TABLES["customers"].output))
    definition = node("CTERelationDef", TABLES["customers"], cte=7)
    ref = LogicalPlan("CTERelationRef", (), output, info={"cte": 7})
    plan = node("WithCTE", definition, ref, output=output)
    known = PlanEstimates(leaf, post_order(plan))(plan)
    assert known.rows == ROWS["customers"]
    assert known.column(200).max == 150_000  # its columns have new identities


def test_sources() -> None:
    def mixed(plan: LogicalPlan) -> RelationStatistics:
        return leaf(plan) if plan is TABLES["nations"] else unknown(plan.output, 1e6)

    joined = Join(TABLES["nations"], TABLES["customers"], "Inner", eq("n_key", "c_nation"))
    assert estimate_plan(joined, mixed).source == "size"
    assert estimate_plan(joined, leaf).source == "footers"


def test_from_nothing_there_is_still_an_estimate() -> None:
    t = relation("t", [Attribute(0, 0, "a")])
    known = estimate_plan(t, default_leaf)
    assert known.source == "default" and known.rows > 0 and known.upper_bound == math.inf
    sized = LogicalPlan("LogicalRelation", (), (NEW,), info={"rel": {"bytes": 16_000}})
    assert estimate_plan(sized, default_leaf).rows == 1000
    enormous = LogicalPlan("LogicalRelation", (), (NEW,), info={"rel": {"bytes": 2**63 - 1}})
    assert estimate_plan(enormous, default_leaf).source == "default"
    counted = LogicalPlan("Range", (), (NEW,), info={"rows": 50})
    assert estimate_plan(counted, default_leaf).upper_bound == 50


def test_reading_the_protocol() -> None:
    a, b, c = Attribute(0, 0, "a", "bigint"), Attribute(1, 1, "b", "string"), Attribute(2, 2, "c", "boolean")
    entry = {
        "rows": 1000,
        "bytes": 50_000,
        "source": "catalog",
        "exact": False,
        "columns": {"0": {"ndv": 900, "nulls": 100}},
    }
    known = from_json(entry, (a, b, c))
    assert known.upper_bound == 1000  # the catalog is trusted
    assert known.column(0).nulls == pytest.approx(0.1) and not known.column(0).guessed
    assert known.column(0).key_values == 900
    assert known.column(2).ndv_bound == 2
    assert known.column(1).avg_len == 150  # all bytes of the file, and files are compressed
    assert from_json({**entry, "source": "footers"}, (a, b, c)).upper_bound == math.inf  # extrapolated
    for broken in (None, {}, {"error": "no such file"}, {"rows": None, "bytes": None, "columns": None}):
        assert from_json(broken).rows > 0
    empty = from_json({"rows": 0, "bytes": 0, "source": "footers", "exact": True, "columns": {}}, (a,))
    assert empty.rows == 0 and empty.upper_bound == 0


def test_widths_are_sparks() -> None:
    types = {"int": 12, "bigint": 16, "string": 28, "decimal(20,0)": 24, "array<int>": 12, "timestamp": 16}
    assert {t: row_width([Attribute(0, 0, "a", t)]) for t in types} == types


def test_deep_plans() -> None:
    plan: LogicalPlan = TABLES["nations"]
    for _ in range(2500):
        plan = Project(tuple(map(reference, plan.output)), plan)
    assert rows(plan) == 25


# -- aggregates over joins ---------------------------------------------------------------------------------------

NAMES = ("day", "moy", "year", "week")
DAY, MONTH, YEAR, WEEK = (Attribute(300 + i, 300 + i, name, "bigint") for i, name in enumerate(NAMES))
SOLD, ITEM = Attribute(310, 310, "sold", "bigint"), Attribute(311, 311, "item", "bigint")
CALENDAR, SALES = relation("calendar", [DAY, MONTH, YEAR, WEEK]), relation("sales", [SOLD, ITEM])
_KNOWN = {
    "calendar": from_json(
        {"rows": 73_000, "source": "footers", "exact": True, "columns": {
            "300": {"min": 1, "max": 73_000, "nulls": 0}, "301": {"ndv": 12, "min": 1, "max": 12, "nulls": 0},
            "302": {"ndv": 200, "min": 1900, "max": 2099, "nulls": 0}, "303": {"ndv": 10_430, "nulls": 0},
        }}, CALENDAR.output,
    ),
    "sales": from_json(
        {"rows": 280_000, "source": "footers", "exact": True, "columns": {
            "310": {"ndv": 1825, "min": 36_001, "max": 37_825, "nulls": 0}, "311": {"nulls": 0},
        }}, SALES.output,
    ),
}  # fmt: skip
SOLD_ON = Join(SALES, CALENDAR, "Inner", call("EqualTo", reference(SOLD), reference(DAY)))


def known_of(plan: LogicalPlan) -> RelationStatistics:
    return estimate_plan(plan, lambda node: _KNOWN[node.info["rel"]["name"]])


def counted(child: LogicalPlan, *keys: Attribute) -> Aggregate:
    count = Expression("AggregateExpression", (Expression("Count", type="bigint"),), "bigint")
    number = Expression("Alias", (count,), "bigint", attribute=NEW)
    return Aggregate(tuple(map(reference, keys)), (*map(reference, keys), number), child, (*keys, NEW))


def test_columns_numbered_along_with_a_key_lose_values_where_only_a_part_of_it_is_met() -> None:
    """1,825 of 73,000 days are sold on: 1/40. So are 200/40 years and 10,430/40 weeks, but all twelve months."""
    known = known_of(SOLD_ON)
    assert known.rows == pytest.approx(280_000)
    found = [known.column(a.bit).ndv for a in (YEAR, WEEK, MONTH)]
    assert found == [pytest.approx(5), pytest.approx(260.75), pytest.approx(12)]
    kept = known_of(Join(CALENDAR, SALES, "LeftOuter", call("EqualTo", reference(DAY), reference(SOLD))))
    assert kept.column(YEAR.bit).ndv == 200  # the calendar is kept whole


def test_columns_of_one_relation_have_no_more_combinations_than_it_has_rows() -> None:
    # Of the calendar 12 * 260.75 * 1,825 combinations of month, week and day would be 5.7 million, it has 73,000 rows;
    # of the item nothing is known, so one value for ten rows.
    assert known_of(counted(SOLD_ON, MONTH, WEEK, DAY)).rows == pytest.approx(73_000)
    assert known_of(counted(SOLD_ON, ITEM)).rows == pytest.approx(28_000)
    assert known_of(counted(SOLD_ON, ITEM, MONTH)).rows == pytest.approx(280_000)  # 28,000 * 12, but no more than rows


def test_an_unknown_column_of_a_dimension_has_a_tenth_of_its_rows() -> None:
    name = Attribute(320, 320, "name", "string")
    items = relation("items", [ITEM_KEY := Attribute(321, 321, "key", "bigint"), name])
    small = from_json({"rows": 1800, "source": "footers", "exact": True, "columns": {"321": {"min": 1, "max": 1800}}})
    joined = Join(SALES, items, "Inner", call("EqualTo", reference(ITEM), reference(ITEM_KEY)))
    known = {**_KNOWN, "items": small}
    grouped = estimate_plan(counted(joined, name), lambda node: known[node.info["rel"]["name"]])
    assert grouped.rows == pytest.approx(180)
    both = estimate_plan(counted(joined, name, SOLD), lambda node: known[node.info["rel"]["name"]])
    # It may have from a tenth as many values as there are items to all of them: half-way in logarithms.
    assert both.column(name.bit).ndv == both.column(name.bit).drawn == pytest.approx(1800 / 10**0.5)


def test_groups_of_more_rows_than_the_average_fall_off_geometrically() -> None:
    """280,000 rows in 1,825 groups, 153.4 a group: (1 - 1/153.4)^100 of the groups have more than a hundred."""
    grouped = counted(SOLD_ON, DAY)
    many = Filter(call("GreaterThan", reference(NEW), lit(100)), grouped)
    share = (1 - 1 / (280_000 / 1825)) ** 100
    assert known_of(many).rows == pytest.approx(1825 * share)
    few = Filter(call("LessThanOrEqual", reference(NEW), lit(100)), grouped)
    assert known_of(few).rows == pytest.approx(1825 * (1 - share))


def test_null_is_one_group_however_many_rows_have_it() -> None:
    entry = {"rows": 1000, "source": "footers", "columns": {str(DAY.bit): {"ndv": 9, "nulls": 0.5}}}
    days = relation("days", [DAY, MONTH])
    distinct = node("Distinct", Project((reference(DAY),), days))
    for plan, groups in ((counted(days, DAY), 10.0), (distinct, 10.0), (counted(days, DAY, MONTH), 1000.0)):
        known = estimate_plan(plan, lambda _: from_json(entry, days.output))
        column = known.column(DAY.bit)
        assert (known.rows, column.ndv, column.nulls) == (groups, 9.0, pytest.approx(0.1))


def test_nulls_of_a_union_are_those_of_its_branches() -> None:
    """So that rows with NULL keys are counted alike whether Spark has filtered them below the union or not."""
    key, left, right = (Attribute(i, i, name, "int") for i, name in ((70, "k"), (71, "l"), (72, "r")))
    few, many = relation("few", [left]), relation("many", [right])
    known: dict[int, tuple[float, float | None]] = {id(few): (100.0, 0.5), id(many): (300.0, 0.1)}

    def of(plan: LogicalPlan) -> RelationStatistics:
        rows, nulls = known[id(plan)]
        columns = {plan.output[0].bit: ColumnStatistics(nulls=nulls)}
        return RelationStatistics(rows, rows * 8, columns=columns)

    union = LogicalPlan("Union", (few, many), (key,))
    assert estimate_operator(union, [of(few), of(many)], of).column(key.bit).nulls == pytest.approx(80 / 400)
    known[id(many)] = (300.0, None)
    assert estimate_operator(union, [of(few), of(many)], of).column(key.bit).nulls is None


def test_constants_distinguish_the_parts_of_a_union() -> None:
    tag = Attribute(330, 330, "tag", "string")

    def tagged(text: str) -> LogicalPlan:
        alias = Expression("Alias", (lit(text),), "string", attribute=tag)
        return Aggregate((reference(MONTH),), (reference(MONTH), alias), CALENDAR, (MONTH, tag))

    union = node("Union", tagged("store"), tagged("web"), tagged("catalog"))
    assert known_of(union).rows == 36 and known_of(union).column(tag.bit).ndv == 3


def test_common_table_expressions_are_read_as_they_are_now() -> None:
    definition = node("CTERelationDef", TABLES["customers"], cte=7)
    estimates = PlanEstimates(leaf, [definition])
    estimates.add_ctes([node("CTERelationDef", Filter(eq("c_nation", lit(3)), TABLES["customers"]), cte=7)])
    reading = LogicalPlan("CTERelationRef", (), TABLES["customers"].output, info={"cte": 7})
    assert estimates(reading).rows == ROWS["customers"] / 25
