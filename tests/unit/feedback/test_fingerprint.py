"""Join groups are identified by what they read, not by how they are written."""

from __future__ import annotations

import pytest

from pyjoinopt.feedback.fingerprint import Fingerprint, fingerprint
from pyjoinopt.feedback.match_metrics import Observation, column_owners, observed_rows
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.plan.digest import Identity
from pyjoinopt.plan.expressions import Attribute, call, literal, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, relation

A, B, C = (Attribute(bit, 10 + bit, name) for bit, name in enumerate("abc"))


def files(leaf: LogicalPlan) -> str | None:
    return f"files of {leaf.info['rel']['name']}"


def tables() -> list[LogicalPlan]:
    return [relation(name, [column]) for name, column in zip("tuv", (A, B, C))]


def joined(*relations: LogicalPlan, identity: Identity = files) -> Fingerprint | None:
    """The fingerprint of a = b and b = c over three relations, in this order."""
    condition = call("And", call("EqualTo", reference(A), reference(B)), call("EqualTo", reference(B), reference(C)))
    one, two, three = relations
    (region,) = find_groups(Filter(condition, Join(Join(one, two), three))).groups.values()
    return fingerprint(build_graph(region, {})[0], identity)


def test_the_written_order_does_not_matter() -> None:
    t, u, v = tables()
    one, other = joined(t, u, v), joined(v, t, u)
    assert one and other and one.key == other.key
    # The set {t, u} is vertices 0 and 1 of the first, 1 and 2 of the second: one canonical set.
    assert one.canonical(0b011) == other.canonical(0b110)
    assert other.vertices(one.canonical(0b011)) == 0b110


def test_a_filter_and_other_files_do() -> None:
    t, u, v = tables()
    five, six = (Filter(call("LessThan", reference(A), literal(n, "int")), t) for n in (5, 6))
    keys = {f.key for f in (joined(t, u, v), joined(five, u, v), joined(six, u, v)) if f}
    assert len(keys) == 3
    assert joined(t, u, v) != joined(t, u, v, identity=lambda _: "others")


def test_what_cannot_be_recognised_has_none() -> None:
    assert joined(*tables(), identity=lambda _: None) is None


@pytest.mark.parametrize("kind", ["Sample", "Deduplicate", "Generate", "Expand", "AnOperatorOfANewerSpark"])
def test_an_operator_that_the_export_describes_in_part_has_none(kind: str) -> None:
    """Two samples of one fraction differ by their seeds, which the mirror does not have."""
    t, u, v = tables()
    assert joined(LogicalPlan(kind, (t,), t.output, info={"fraction": 0.5}), u, v) is None
    assert joined(LogicalPlan("Distinct", (t,), t.output), u, v) is not None


def operator(kind: str, children: tuple[int, ...] = (), rows: int | None = None, **more: object) -> dict[str, object]:
    metrics = {} if rows is None else {"numOutputRows": rows}
    return {"c": kind, "k": list(children), "m": metrics, **more}


def test_the_highest_operator_above_a_set_has_its_rows() -> None:
    plan = [
        operator("FileSourceScan", rows=100, o=[10]),
        operator("Filter", (0,), rows=40),
        operator("FileSourceScan", rows=7, o=[11]),
        operator("BroadcastHashJoin", (1, 2), rows=30),
        operator("FileSourceScan", rows=5, o=[12]),
        operator("SortMergeJoin", (3, 4), rows=12),
        operator("HashAggregate", (5,), rows=1),
    ]
    owners = column_owners(tables())
    assert observed_rows(plan, owners, (1, 1, 1)) == {0b001: 40, 0b010: 7, 0b011: 30, 0b100: 5, 0b111: 12}


@pytest.mark.parametrize("doubt", ["limited", "reduced"])
def test_what_may_have_been_cut_short_is_not_believed(doubt: str) -> None:
    plan = [
        operator("FileSourceScan", rows=100, o=[10], **{doubt: True}),
        operator("FileSourceScan", rows=7, o=[11]),
        operator("BroadcastHashJoin", (0, 1), rows=30, limited=doubt == "limited"),
    ]
    assert observed_rows(plan, column_owners(tables()), (1, 1, 1)) == {0b010: 7}


def test_one_branch_of_a_union_is_not_the_relation() -> None:
    plan = [operator("FileSourceScan", rows=3, o=[10]), operator("FileSourceScan", rows=4, o=[10])]
    plan.append(operator("Union", (0, 1)))
    assert observed_rows(plan, column_owners(tables()), (1, 1, 1)) == {}


def test_a_part_of_what_a_relation_reads_is_not_the_relation() -> None:
    """For example an aggregate over a join of two tables, one of which cannot be identified in the metrics."""
    plan = [operator("FileSourceScan", rows=300, o=[10]), operator("FileSourceScan", rows=4, o=[99])]
    plan.append(operator("BroadcastHashJoin", (0, 1), rows=30))
    assert observed_rows(plan, column_owners(tables()), (2, 1, 1)) == {}


def test_a_stage_that_was_not_run_again_counts_nothing() -> None:
    plan = [
        operator("FileSourceScan", rows=0, o=[10]),
        operator("FileSourceScan", rows=0, o=[11]),
        operator("SortMergeJoin", (0, 1), rows=30),
    ]
    assert observed_rows(plan, column_owners(tables()), (1, 1, 1)) == {0b011: 30}


def test_columns_of_two_relations_are_nobodys() -> None:
    t, u, _ = tables()
    plan = [operator("FileSourceScan", rows=3, o=[10])]
    assert observed_rows(plan, column_owners([t, u, relation("again", [A])]), (1, 1, 1)) == {}


def test_a_count_of_nothing_is_no_division_by_zero() -> None:
    assert Observation(("t",), 0.2, 0.0).q_error == 1.0
    assert Observation(("t",), 0.2, 8.0).q_error == 8.0
