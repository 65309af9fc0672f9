"""A projection over a union is computed in its branches, each with columns of its own."""

from __future__ import annotations

from pyjoinopt.catalyst.rules.push_projection_through_union import push_projection_through_union
from pyjoinopt.plan import constructors
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import LogicalPlan, Project
from tests.support.letters import Letters


def pushed(w: Letters, plan: LogicalPlan, repeats: bool = False) -> LogicalPlan:
    return push_projection_through_union(plan, fresh=ColumnFactory(len(w.columns)), repeats=repeats)


def test_only_the_wanted_columns_leave_each_branch() -> None:
    w = Letters()
    both = constructors.union([w.relation("t", "col1 col2 col3"), w.relation("u", "d e f")])
    assert show(pushed(w, w.project("col1 col2", both))).splitlines() == [
        "Union",
        "  Project col1, col2",
        "    LocalRelation t",
        "  Project d, e",
        "    LocalRelation u",
    ]


def test_a_computed_column_is_a_new_one_in_every_branch_but_the_first() -> None:
    w = Letters()
    both = constructors.union([w.relation("t", "a b"), w.relation("u", "c d"), w.relation("v", "e f")])
    plan = w.project("b", both, w.alias("x", "a + b"))
    result = pushed(w, plan)
    assert result.kind == "Union" and result.output == plan.output
    first, *others = result.children
    assert isinstance(first, Project) and first.projections == plan.projections
    assert [line.strip() for line in show(result).splitlines()[3::2]] == [
        "Project d, (c + d) AS x", "Project f, (e + f) AS x",
    ]  # fmt: skip
    bits = [branch.output[1].bit for branch in (first, *others)]
    assert len(set(bits)) == 3 and all(bit >= len(w.columns) for bit in bits[1:])


def test_unions_of_unions() -> None:
    w = Letters()
    inner = constructors.union([w.relation("u", "c d"), w.relation("v", "e f")])
    result = pushed(w, w.project("", constructors.union([w.relation("t", "a b"), inner]), w.alias("x", "a + b")))
    assert show(result).count("Project") == 3 and show(result).splitlines()[4] == "    Project (c + d) AS x"


def test_what_is_not_pushed() -> None:
    w = Letters()
    both = constructors.union([w.relation("t", "a b"), w.relation("u", "c d")])
    moody = w.project("a", both, w.alias("r", "rand()"))
    twice = w.project("a a", both)
    kept = Project((w("a"),), both, info={"cached": True})
    cached = LogicalPlan("Union", both.children, both.output, info={"cached": True})
    for plan in (moody, twice, kept, w.project("a", cached), w.project("a", constructors.distinct(both))):
        assert pushed(w, plan) is plan
    assert pushed(w, twice, repeats=True).kind == "Union"


def test_many_levels() -> None:
    w = Letters()
    plan = constructors.union([w.relation("t", "a b"), w.relation("u", "c d")])
    for i in range(1500):
        plan = constructors.union([plan, w.relation(f"r{i}", f"a{i} b{i}")])
    result = pushed(w, w.project("a", plan))
    assert show(result).count("Project") == 1502 and [a.name for a in result.output] == ["a"]
