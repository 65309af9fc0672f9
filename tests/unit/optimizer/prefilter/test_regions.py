"""What equates the columns of the joins of a region, and what does not."""

from __future__ import annotations

from pyjoinopt.optimizer.prefilter.regions import Region, regions
from pyjoinopt.plan.constructors import alias_as, constant
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import SEMI, Aggregate, Filter, Join, LogicalPlan, Project


def column(bit: int) -> Attribute:
    return Attribute(bit, bit, f"c{bit}", "int")


def files(*bits: int) -> LogicalPlan:
    info = {"rel": {"kind": "file", "name": f"t{bits[0]}"}}
    return LogicalPlan("LogicalRelation", (), tuple(map(column, bits)), (), bits[0], None, info)


def equal(one: int, other: int) -> Expression:
    return call("EqualTo", reference(column(one)), reference(column(other)))


def filtered(bit: int) -> LogicalPlan:
    return Filter(call("EqualTo", reference(column(bit)), constant(3, "int")), files(bit))


def grouped(bit: int) -> LogicalPlan:
    return Aggregate((reference(column(bit)),), (reference(column(bit)),), files(bit), (column(bit),))


def sources(plan: LogicalPlan) -> list[str]:
    """The sources of the aggregates of a plan."""
    found: list[Region] = list(regions(plan))
    return [source.name for region in found for each in region.aggregates for source, *_ in region.sources_of(each)]


def semi_joined(first: int, second: int) -> LogicalPlan:
    """Columns 0 and 1, one of them equal to that of a filtered relation, the other to that of an aggregate."""
    semi = Join(Join(files(0, 1), files(first), SEMI, equal(0, first)), files(second), SEMI, equal(1, second))
    return Join(Join(semi, filtered(5), "Inner", equal(0, 5)), grouped(6), "Inner", equal(1, 6))


def test_a_column_that_two_plans_have_equates_nothing() -> None:
    """Both relations have the column 2, but it equals the column 0 in one and the column 1 in the other."""
    assert "t5" not in sources(semi_joined(2, 2)) and "t5" not in sources(semi_joined(2, 3))
    one = Join(Join(files(0), filtered(5), "Inner", equal(0, 5)), grouped(6), "Inner", equal(0, 6))
    assert "t5" in sources(one)


def test_the_regions_of_many_levels() -> None:
    """Of a thousand levels only the next ones are looked at."""
    plan: LogicalPlan = grouped(1000)
    for bit in reversed(range(1000)):
        plan = Join(files(bit), plan, "LeftOuter", equal(bit, bit + 1))
    assert sources(Join(filtered(2000), plan, "Inner", equal(2000, 0))) == []


def test_nothing_is_filtered_below_a_cached_plan() -> None:
    cached = Join(grouped(6), files(7), "Inner", equal(6, 7), info={"cached": True})
    assert sources(Join(filtered(5), cached, "Inner", equal(5, 6))) == [] == sources(cached)


def keys_of_side(plan: LogicalPlan, whole: LogicalPlan) -> set[tuple[str, str]]:
    """Each source of one side of a join, with the column of the side that it filters."""
    found: list[Region] = list(regions(whole))
    sides = [(region, side) for region in found for side in region.sides if side.plan is plan]
    return {(source.name, own.name) for region, side in sides for source, own, _ in region.sources_of(side)}


def test_rows_without_a_partner_are_not_filtered_by_its_columns() -> None:
    """The side `c0 LEFT JOIN c1` has rows in which c1 is NULL, and c0 is a key of the filtered relation."""
    padded = Join(files(0), files(1), "LeftOuter", equal(0, 1))
    found = keys_of_side(padded, Join(filtered(5), padded, "Inner", equal(0, 5)))
    assert ("t5", "c0") in found and ("t5", "c1") not in found
    renamed = Project((alias_as(column(3), reference(column(1))), reference(column(0))), padded)
    found = keys_of_side(renamed, Join(filtered(5), renamed, "Inner", equal(0, 5)))
    assert ("t5", "c0") in found and ("t5", "c3") not in found


def test_what_is_joined_by_a_column_of_an_optional_side() -> None:
    """A row of t7 is joined with rows in which c1 has a value, which is that of c0."""
    padded = Join(files(0), files(1), "LeftOuter", equal(0, 1))
    side = files(7)
    plan = Join(Join(padded, side, "Inner", equal(1, 7)), filtered(5), "Inner", equal(0, 5))
    assert ("t5", "c7") in keys_of_side(side, plan)
