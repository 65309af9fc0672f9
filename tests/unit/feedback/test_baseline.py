"""Baselines as text, and which relations of a join group are those of a baseline."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline import Baseline, PinnedGroup, PinnedHint, PinnedPredicate
from pyjoinopt.feedback.baseline_store import BaselineStore, read_baselines
from pyjoinopt.feedback.match_baseline import differences, match

SALES = PinnedGroup(
    {"d1": ("dates",), "d2": ("dates",), "sales": ("sales",), "stores": ("stores",)},
    (
        PinnedPredicate("Inner", {"d1": ("d_date",), "sales": ("s_sold",)}),
        PinnedPredicate("Inner", {"d2": ("d_date",), "sales": ("s_shipped",)}),
        PinnedPredicate("LeftOuter", {"sales": ("s_store",), "stores": ("st_id",)}),
    ),
    (("sales", "d1"), ("#1", "d2"), ("#2", "stores")),
)
BASELINE = Baseline("daily", (SALES,), (PinnedHint("BROADCAST", ("dates",), ("sales",)),), {"hints": False}, "4.3.0")


def renamed(group: PinnedGroup, names: dict[str, str]) -> PinnedGroup:
    steps = {f"#{i}": f"#{i}" for i in range(1, len(group.order) + 1)}
    known = {**names, **steps}
    return PinnedGroup(
        {names[name]: tables for name, tables in sorted(group.relations.items(), key=lambda item: names[item[0]])},
        tuple(
            PinnedPredicate(p.join, {names[name]: columns for name, columns in p.columns.items()})
            for p in reversed(group.predicates)
        ),
        tuple((known[left], known[right]) for left, right in group.order),
    )


class TestText:
    def test_it_is_read_as_it_was_written(self) -> None:
        assert Baseline.from_json(BASELINE.to_json()) == BASELINE

    def test_each_join_has_a_line_of_its_own(self) -> None:
        lines = [line.strip().rstrip(",") for line in BASELINE.to_json().splitlines()]
        for expected in ('["sales", "d1"]', '["#1", "d2"]', '"stores": ["stores"]'):
            assert expected in lines

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("baseline",), 2, "baseline is 2, but this release reads 1"),
            (("name",), "a/b", "name is 'a/b', but must be"),
            (("name",), "../x", "name is '../x', but must be"),
            (("groups",), [], "groups is empty"),
            (("groups",), {}, r"groups is \{\}, but must be a list"),
            (("groups", 0, "relations"), [], r"groups\[0\].relations is \[\], but must be an object"),
            (("groups", 0, "relations", "d1"), 3, r"groups\[0\].relations\['d1'\] is 3, but must be a list"),
            (("groups", 0, "order", 0), ["sales"], "has 1 sides, but must have two"),
            (("groups", 0, "order", 0), ["sales", "dd"], "'dd', which is no relation of the group"),
            (("groups", 0, "order", 1), ["#1", "d1"], "'d1', which is joined twice or too early"),
            (("groups", 0, "order", 0), ["sales", "#2"], "'#2', which is joined twice or too early"),
            (
                ("groups", 0, "order"),
                [["sales", "d1"]],
                "must join all relations of the group; #1, d2, stores are left",
            ),
            (("groups", 0, "predicates", 0, "columns"), {"x": ["a"]}, "has 'x', which is no relation of the group"),
            (("hints", 0, "strategy"), "FAST", "must be one of BROADCAST, SHUFFLE_HASH, SHUFFLE_MERGE"),
        ],
    )
    def test_what_is_wrong_is_named(self, path: tuple[Any, ...], value: Any, message: str) -> None:
        data = json.loads(BASELINE.to_json())
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(ValueError, match=message):
            Baseline.from_json(json.dumps(data))

    @given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
    def test_anything_else_is_a_value_error(self, data: Any) -> None:
        for text in (json.dumps(data), json.dumps({"baseline": 1, "name": "n", "groups": data}), str(data)):
            with pytest.raises(ValueError, match="."):
                Baseline.from_json(text)

    def test_a_deep_text_is_a_value_error(self) -> None:
        with pytest.raises(ValueError, match="no JSON"):
            Baseline.from_json("[" * 100_000)


class TestMatch:
    @given(st.integers())
    def test_other_names_are_the_same_group(self, seed: int) -> None:
        rng = random.Random(seed)
        new = [f"r{i}" for i in range(len(SALES.relations))]
        rng.shuffle(new)
        names = dict(zip(SALES.relations, new, strict=True))
        assert match(SALES, renamed(SALES, names)) == names

    def test_other_predicates_do_not_matter_where_no_table_is_read_twice(self) -> None:
        group = PinnedGroup({"a": ("a",), "b": ("b",), "c": ("c",)}, SALES.predicates[:0], ())
        other = PinnedGroup(group.relations, (PinnedPredicate("Inner", {"a": ("x",), "b": ("y",)}),), ())
        assert match(group, other) == {"a": "a", "b": "b", "c": "c"}

    def test_other_tables_are_another_group(self) -> None:
        assert match(SALES, PinnedGroup({**SALES.relations, "d2": ("days",)}, SALES.predicates, ())) is None

    def test_a_table_that_is_read_twice_is_recognised_by_its_columns(self) -> None:
        other = (*SALES.predicates[:1], PinnedPredicate("Inner", {"d2": ("d_date",), "sales": ("s_returned",)}))
        assert match(SALES, PinnedGroup(SALES.relations, other, ())) is None

    def test_a_further_predicate_elsewhere_does_not_matter(self) -> None:
        further = PinnedPredicate("Inner", {"sales": ("s_city",), "stores": ("st_city",)})
        other = PinnedGroup(SALES.relations, (*SALES.predicates, further), ())
        assert match(SALES, other) == {name: name for name in SALES.relations}

    def test_equal_neighbours_are_matched_in_some_way(self) -> None:
        group = PinnedGroup({"x": ("t",), "y": ("t",), "z": ("t",)}, (), ())
        found = match(group, renamed(group, {"x": "c", "y": "a", "z": "b"}))
        assert found is not None and sorted(found.values()) == ["a", "b", "c"]


class TestDifferences:
    def test_the_same_plan_has_none(self) -> None:
        names = {"d1": "e", "d2": "f", "sales": "s", "stores": "a"}
        turned = renamed(SALES, names)
        turned = PinnedGroup(turned.relations, turned.predicates, (("e", "s"), ("f", "#1"), ("#2", "a")))
        assert differences(BASELINE, Baseline("", (turned,), BASELINE.hints)) == []

    def test_another_order_and_other_hints(self) -> None:
        other = PinnedGroup(SALES.relations, SALES.predicates, (("sales", "d2"), ("#1", "d1"), ("#2", "stores")))
        assert differences(
            BASELINE, Baseline("", (other,), (PinnedHint("SHUFFLE_MERGE", ("stores",), ("sales",)),))
        ) == [
            "the order is (((sales ⋈ d2) ⋈ d1) ⋈ stores), not (((sales ⋈ d1) ⋈ d2) ⋈ stores)",
            "the hint BROADCAST of dates, joined with sales, is not in the plan",
            "the hint SHUFFLE_MERGE of stores, joined with sales, is not in the baseline",
        ]

    def test_groups_that_only_one_of_them_has(self) -> None:
        smaller = PinnedGroup({"a": ("a",), "b": ("b",)}, (), (("a", "b"),))
        found = differences(Baseline("x", (SALES,)), Baseline("", (smaller,)))
        assert found == [
            "the plan has no join group of d1, d2, sales, stores, joined by the same columns",
            "the join group (a ⋈ b) is not in the baseline",
        ]


class TestStore:
    def test_baselines_survive_what_is_forgotten(self, tmp_path: Any) -> None:
        store = Store(tmp_path / "store.sqlite")
        assert BaselineStore(store).put(BASELINE)
        store.forget()
        assert BaselineStore(Store(tmp_path / "store.sqlite")).get("daily") == BASELINE
        assert BaselineStore(store).names() == ("daily",)
        assert BaselineStore(store).drop("daily") and BaselineStore(store).get("daily") is None

    def test_baselines_survive_a_store_that_is_full(self, tmp_path: Any) -> None:
        store = Store(tmp_path / "store.sqlite", max_bytes=1)
        assert BaselineStore(store).put(BASELINE)
        store.put_feedback("group", {1: 2.0})
        assert BaselineStore(store).get("daily") == BASELINE

    def test_what_cannot_be_used_has_a_reason(self, tmp_path: Any) -> None:
        store = Store(tmp_path / "store.sqlite")
        BaselineStore(store).put(BASELINE)
        store.write(lambda c: c.execute("INSERT INTO baseline VALUES ('odd', '{}', 0)"))
        found, missing = read_baselines(["daily", "odd", "none"], store)
        assert found == [BASELINE]
        assert missing == [
            ("odd", "the store has a baseline of this name that cannot be read: baseline is None, but this release "
             "reads 1"),
            ("none", "the store has no baseline of this name"),
        ]  # fmt: skip
        assert read_baselines(["daily"], None) == ([], [("daily", "the store has no baseline of this name")])

    def test_a_store_of_an_earlier_release_gets_the_table(self, tmp_path: Any) -> None:
        store = Store(tmp_path / "store.sqlite")
        store.put_feedback("group", {1: 2.0})
        store.write(lambda c: c.execute("DROP TABLE baseline"))
        store.close()
        assert BaselineStore(store).put(BASELINE)
        assert store.feedback("group") == {1: 2.0}

    def test_a_store_that_cannot_be_written_is_noticed(self, tmp_path: Any) -> None:
        (tmp_path / "file").write_text("")
        store = Store(tmp_path / "file" / "store.sqlite")
        with pytest.warns(RuntimeWarning, match="the store of statistics"):
            assert not BaselineStore(store).put(BASELINE)
