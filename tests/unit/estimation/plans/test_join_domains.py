"""Among how many values of a key the rows of a join find their partners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.estimation.plans.join_domains import Member, met_domains

KINDS = Member(100.0, False, 100.0, 100.0)  # a table of kinds, by their key
FACTS = Member(4.0, False, None, 1e6)  # of four kinds of them


def test_a_filter_that_names_its_values_rather_names_those_that_are_referred_to() -> None:
    """One kind of 100 has half-way between 1/100 and 1/4 of the facts, in logarithms."""
    one = replace(KINDS, kept=1.0)
    assert met_domains([one, FACTS]) == [100.0, 4.0]
    assert met_domains([replace(one, filtered_by_text=True), FACTS])[0] == pytest.approx(20.0)


def test_the_more_values_are_left_the_nearer_they_are_to_the_average() -> None:
    """Of 100 kinds some are left, and there are facts of four. No fewer values are taken for than are left."""
    few, some, half, all_but_one = (
        met_domains([replace(KINDS, kept=kept, filtered_by_text=True), FACTS])[0] for kept in (1.0, 4.0, 50.0, 99.0)
    )
    assert few == pytest.approx(20.0)
    assert few < some < half < 100.0 and half > 75.0
    assert all_but_one == pytest.approx(99.0)


@pytest.mark.parametrize("facts", [replace(FACTS, guessed=True), replace(FACTS, ndv=None)])
def test_only_counted_references_show_that(facts: Member) -> None:
    assert met_domains([replace(KINDS, kept=1.0, filtered_by_text=True), facts])[0] == 100.0


def test_of_several_references_those_to_most_values_count() -> None:
    named = replace(KINDS, kept=1.0, filtered_by_text=True)
    assert met_domains([named, FACTS, replace(FACTS, ndv=25.0)])[0] == pytest.approx(50.0)
