"""Plan equivalence on Spark's plans: equivalent parts, and parts that only look equivalent."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.nodes import Aggregate, Join
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.plan_equivalence import PlanMatcher, column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt.plan.nodes import LogicalPlan


def two(session: SparkSession, one: str, other: str) -> tuple[LogicalPlan, LogicalPlan]:
    """The plans of both texts, in one export."""
    df = session.sql(f"select * from ({one}) p cross join ({other}) q")
    export = decode(bridge_for(df).export(df._jdf, "{}"))
    top = next(node for node in reversed(list(post_order(export.root))) if isinstance(node, Join))
    return top.left, top.right


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("select * from t", "select * from t", True),
        ("select * from t", "select * from u", False),
        ("select * from t a where a.x > 1", "select * from t where 1 < x", True),
        ("select * from t where x > 1 and s = 'a'", "select * from t where s = 'a' and not (x <= 1)", True),
        ("select * from t where x > 1", "select * from t where x > 2", False),
        ("select * from t where x > 1", "select * from t where y > 1", False),
        ("select * from t where x > 1", "select * from t where x > 1 and y > 1", False),
        ("select * from t where x between 1 and 2", "select * from t where x between 1 and 2", True),
        ("select * from t where x between 1 and 2", "select * from t where x between 1 and 3", False),
        ("select * from t where x between 1 and 2", "select * from t where x not between 1 and 2", False),
        ("select * from t where x in (1, 2)", "select * from t where x in (2, 1)", True),
        ("select * from t where s like 'a!%' escape '!'", "select * from t where s like 'a!%' escape '/'", False),
        ("select * from t where rand(1) < 0.5", "select * from t where rand(1) < 0.5", False),
        ("select x, k from t", "select x, k from t", True),
        ("select x, k from t", "select k, x from t", False),
        ("select x + 1 q from t", "select x + 1 r from t", True),
        ("select x + 1 q from t", "select x + 2 q from t", False),
        ("select cast(x as string) q from t", "select cast(x as bigint) q from t", False),
        ("select cast(x as string) q from t", "select try_cast(x as string) q from t", False),
        ("select sum(x) q from t", "select sum(x) r from t", True),
        ("select sum(x) q from t", "select sum(y) q from t", False),
        ("select sum(x) q from t", "select try_sum(x) q from t", False),
        ("select sum(x) q from t", "select avg(x) q from t", False),
        ("select count(x) q from t", "select count(distinct x) q from t", False),
        ("select count(distinct x) q from t", "select count(distinct x) q from t", True),
        ("select sum(x) filter (where y > 1) q from t", "select sum(x) filter (where y > 1) r from t", True),
        ("select sum(x) filter (where y > 1) q from t", "select sum(x) filter (where y > 2) q from t", False),
        ("select sum(x) filter (where y > 1) q from t", "select sum(x) q from t", False),
        ("select first(x) q from t", "select first(x, true) q from t", False),
        ("select percentile(x, 0.2) q from t", "select percentile(x, 0.3) q from t", False),
        ("select approx_count_distinct(x, 0.05) q from t", "select approx_count_distinct(x, 0.3) q from t", False),
        ("select k, max(x) m from t group by k", "select k, max(x) m from t group by k", True),
        ("select max(x) m from t group by k", "select max(x) m from t group by y", False),
        ("select max(x) m from t group by k, y", "select max(x) m from t group by k", False),
        ("select t.x from t join d on t.k = d.k", "select t.x from t join d on d.k = t.k", True),
        ("select t.x from t join d on t.k = d.k", "select t.x from d join t on t.k = d.k", True),
        ("select t.x from t join d on t.k = d.k", "select t.x from d, t where t.k = d.k", False),  # not pushed down yet
        (
            "select t.x from t join (d cross join u) on t.k = d.k and t.x = u.x",
            "select t.x from u join t on t.x = u.x join d on d.k = t.k", True,
        ),
        (
            "select t.x from t join (select max(k) k from d group by k) m on t.k = m.k join d on d.k = t.k",
            "select t.x from d join t on d.k = t.k join (select max(k) k from d group by k) m on t.k = m.k", True,
        ),
        ("select t.x from t join d on t.k = d.k join u on true", "select t.x from t join d on t.k = d.k", False),
        ("select t.x from t join d on t.k = d.k join u on true", "select t.x from t join u on t.k = u.x join d", False),
        ("select a.x from t a join d join t b on a.k = b.y", "select a.x from d join t a join t b on a.k = b.y", True),
        ("select a.x from t a join d join t b on a.k = b.y", "select a.x from d join t b join t a on a.k = b.y", False),
        ("select t.x from t join d on t.k = d.k", "select t.x from t left join d on t.k = d.k", False),
        ("select t.x from t join d on t.k = d.k", "select t.x from t join d on t.x = d.k", False),
        ("select a.x from t a join t b on a.k = b.y", "select a.x from t a join t b on a.y = b.k", False),
        ("select /*+ broadcast(d) */ t.x from t join d on t.k = d.k", "select t.x from t join d on t.k = d.k", False),
        ("select x from t limit 3", "select x from t limit 3", False),
        ("values (1)", "values (1)", False),
    ],
)
def test_plans(tiny: SparkSession, one: str, other: str, alike: bool) -> None:
    a, b = two(tiny, one, other)
    known = PlanMatcher().columns(a, b)
    assert (known is not None) is alike
    if known is not None:
        assert [column(known, theirs) for theirs in b.output] == list(without_aliases(a).output)
        assert not a.output_set & b.output_set


def test_to_spark_the_order_of_joins_matters(tiny: SparkSession) -> None:
    a, b = two(tiny, "select t.x from t join d on t.k = d.k", "select t.x from d join t on t.k = d.k")
    assert PlanMatcher(any_order=False).columns(a, b) is None
    assert PlanMatcher(any_order=False).columns(a, a) is not None


def test_functions(tiny: SparkSession) -> None:
    texts = ["sum(x)", "try_sum(x)", "sum(y)", "sum(distinct x)", "sum(x) filter (where y > 1)", "count(x)"]
    listed = ", ".join(f"{text} c{i}" for i, text in enumerate(texts))
    for mine in texts:
        a, b = two(tiny, f"select {mine} q from t", f"select {listed} from t")
        a, b = without_aliases(a), without_aliases(b)
        assert isinstance(a, Aggregate) and isinstance(b, Aggregate)
        alike = PlanMatcher()
        known = alike.columns(a.child, b.child)
        assert known is not None
        same = [alike.same(a.aggregates[0].children[0], e.children[0], known) for e in b.aggregates]
        assert same == [mine == text for text in texts]


def test_a_definition_is_alike_in_all_its_readers(tiny: SparkSession) -> None:
    text = "with w as (select k, x from t), v as (select k, x from t) select * from w a, w b, v c, v d"
    df = tiny.sql(text)
    export = decode(bridge_for(df).export(df._jdf, "{}"))
    readers = [node for node in export.nodes if node.kind == "CTERelationRef"]
    assert len(readers) == 4
    for one, other in combinations(readers, 2):
        known = PlanMatcher().columns(one, other)
        assert (known is not None) is (one.info["cte"] == other.info["cte"])
