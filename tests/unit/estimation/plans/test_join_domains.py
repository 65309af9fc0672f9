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


def test_no_fewer_values_than_are_left() -> None:
    """Of 100 kinds 50 are left, and there are facts of four: these are taken to be among the 50."""
    half = replace(KINDS, kept=50.0, filtered_by_text=True)
    assert met_domains([half, FACTS])[0] == pytest.approx(50.0)


@pytest.mark.parametrize("facts", [replace(FACTS, guessed=True), replace(FACTS, ndv=None)])
def test_only_counted_references_show_that(facts: Member) -> None:
    assert met_domains([replace(KINDS, kept=1.0, filtered_by_text=True), facts])[0] == 100.0


def test_of_several_references_those_to_most_values_count() -> None:
    named = replace(KINDS, kept=1.0, filtered_by_text=True)
    assert met_domains([named, FACTS, replace(FACTS, ndv=25.0)])[0] == pytest.approx(50.0)
