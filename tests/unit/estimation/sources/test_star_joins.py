"""Which joins are sampled with which dimensions; no JVM."""

from __future__ import annotations

import pytest

from pyjoinopt.estimation.sources.star_joins import TINY, LeafEquality, find_stars
from pyjoinopt.plan.nodes import LogicalPlan, relation
from tests.support.letters import Letters

ROWS = {"sales": 1e6, "customers": 1e5, "stores": 12.0, "days": 70_000.0}


def leaf(w: Letters, name: str, columns: str, number: int) -> LogicalPlan:
    typed = (column.split(":") for column in columns.split())
    plan = relation(name, [w.attribute(*column) for column in typed])
    plan.number = number
    return plan


def found_stars(compared: str, filtered: str = "", stores: float = 12.0) -> dict[str, list[str]]:
    """Centre -> its dimensions, of a plan that tests some equalities."""
    w = Letters()
    leaves = [
        leaf(w, "sales", "s_day s_store s_customer", 1), leaf(w, "customers", "c_id c_county:string c_state:string", 2),
        leaf(w, "stores", "t_id t_county:string t_state:string", 3), leaf(w, "days", "d_id", 4),
    ]  # fmt: skip
    equalities = [LeafEquality(*(w.columns[name] for name in pair.split("="))) for pair in compared.split()]
    rows = {**ROWS, "stores": stores}
    name = {plan.number: n for plan, n in zip(leaves, ROWS)}
    stars = find_stars(leaves, equalities, lambda f: name[f.number] in filtered, lambda f: rows[name[f.number]])
    return {name[star.center.number]: [name[d.leaf.number] for d in star.dimensions] for star in stars}


def test_numbers_of_a_tiny_relation_are_looked_up_only_beside_a_filter() -> None:
    compared = "s_store=t_id s_day=d_id"
    assert found_stars(compared) == {}
    assert found_stars(compared, filtered="days") == {"sales": ["stores", "days"]}


@pytest.mark.parametrize("compared", ["c_county=t_county", "c_county=t_county c_state=t_state"])
def test_texts_of_a_tiny_relation_are_looked_up_without_a_filter(compared: str) -> None:
    """Those of its neighbours: on the way to it from the sales, all customers would have to be read."""
    assert found_stars(f"{compared} s_customer=c_id s_day=d_id") == {"customers": ["stores"]}


def test_texts_of_larger_relations_are_not() -> None:
    assert found_stars("c_county=t_county", stores=TINY + 1.0) == {}
