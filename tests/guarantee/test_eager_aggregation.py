"""Rows are grouped before they are joined, and nothing else changes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from pyjoinopt.optimizer.eager_aggregation import eager_aggregation
from pyjoinopt.optimizer.eager_aggregation.eager_aggregation import EagerAggregation
from tests.support.eager import FREE, early_aggregates, session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Functions of `f`'s columns.
FUNCTIONS = """sum(v), count(*), count(v), min(v), max(s), sum(m), sum(m28), min(m38), count(x, v), max(t), min(q),
    sum(i8), sum(i16), max(b)"""
#: Functions of which is known what a row of NULLs adds.
OPTIONAL = """sum(v), count(*), count(v), count(1) a, min(v), max(s), sum(m), count(v, g), sum(v) FILTER (WHERE g > 2),
    count(*) FILTER (WHERE v > 0), max(t) FILTER (WHERE g IS NULL)"""
AVERAGES = """avg(v), avg(m), avg(m28), avg(i8), avg(i16), avg(v) FILTER (WHERE g > 2), avg(-m),
    avg(CAST(v AS BIGINT) + i8), avg(CAST(m AS DECIMAL(11, 4))), avg(CAST(m AS DECIMAL(12, 4))),
    avg(CAST(m AS DECIMAL(18, 1)))"""
#: Functions of columns of `d`.
OTHERS = """sum(w), count(w), avg(w), min(w), max(ds), count(w, ds), sum(CAST(w AS BIGINT) + 1),
    avg(CAST(w AS DECIMAL(12, 2)))"""
#: Functions of columns of a second `f`.
DECIMALS = """sum(o.m), sum(CAST(o.m AS DECIMAL(8, 2))), sum(CAST(o.m AS DECIMAL(9, 2))), sum(o.m28),
    sum(CAST(o.m AS DECIMAL(17, 3))), sum(CAST(o.m AS DECIMAL(18, 3))), avg(o.m), avg(CAST(o.m AS DECIMAL(11, 4))),
    avg(CAST(o.m AS DECIMAL(12, 4))), avg(o.m28), avg(CAST(o.m AS DECIMAL(18, 1))), sum(o.i64)"""
#: SELECT of which one aggregate is computed in part below a join.
EARLY = {
    "inner join": f"n, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY n",
    "on the right": f"n, {FUNCTIONS} FROM d JOIN f ON k = id GROUP BY n",
    "by another key": f"w, n, {FUNCTIONS} FROM f JOIN d ON s = ds GROUP BY w, n",
    "groups of both sides": f"n, g, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY n, g",
    "groups of the facts alone": f"g, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY g",
    "preserved": f"n, {FUNCTIONS} FROM f LEFT JOIN d ON k = id GROUP BY n",
    "preserved, with a test": f"n, {FUNCTIONS} FROM f LEFT JOIN d ON k = id AND g < w GROUP BY n",
    "preserved on the right": f"n, {FUNCTIONS} FROM d RIGHT JOIN f ON k = id GROUP BY n",
    "the other side is optional": "n, count(*), sum(w) FROM d LEFT JOIN f ON k = id GROUP BY n",
    "optional on the left": "n, count(*), sum(w) FROM f RIGHT JOIN d ON k = id GROUP BY n",
    "an EXISTS in an OR": f"s, {FUNCTIONS} FROM f WHERE k IN (SELECT id FROM d) OR g > 4 GROUP BY s",
    "below a semi join": f"n, {FUNCTIONS} FROM f JOIN d ON k = id WHERE g IN (SELECT z FROM e) GROUP BY n",
    "below an anti join": f"n, {FUNCTIONS} FROM f JOIN d ON k = id LEFT ANTI JOIN e ON g = z GROUP BY n",
    "every pair": f"g, {FUNCTIONS} FROM f CROSS JOIN e GROUP BY g",
    "no equality": f"n, {FUNCTIONS} FROM f JOIN d ON k < id GROUP BY n",
    "NULL equals NULL": f"n, {FUNCTIONS} FROM f JOIN d ON k <=> id GROUP BY n",
    "a test of both": f"n, {FUNCTIONS} FROM f JOIN d ON k = id AND g <> w GROUP BY n",
    "a filter above": f"n, {FUNCTIONS} FROM f LEFT JOIN d ON k = id WHERE g > 2 OR w IS NULL GROUP BY n",
    "no groups": f"{FUNCTIONS} FROM f JOIN d ON k = id",
    "no rows": f"{FUNCTIONS} FROM f JOIN nothing ON k = id",
    "no rows of a group": f"n, {FUNCTIONS} FROM f JOIN nothing ON k = id GROUP BY n",
    "nothing else": "count(*) FROM f JOIN d ON k = id",
    "a constant": "n, sum(1), count(7), max('z') FROM f JOIN d ON k = id GROUP BY n",
    "FILTER": """n, sum(v) FILTER (WHERE g > 2), count(*) FILTER (WHERE v > 0), max(s) FILTER (WHERE x IS NULL),
        count(v) FILTER (WHERE g = 99), sum(m) FILTER (WHERE q) FROM f JOIN d ON k = id GROUP BY n""",
    "HAVING": "n, sum(v) a FROM f JOIN d ON k = id GROUP BY n HAVING count(*) > 12 AND sum(v) > 3 ORDER BY a, n",
    "expressions": """concat('n', n) c, sum(v) * 2 + count(*) e, CASE WHEN count(*) > 3 THEN max(v) ELSE g END z
        FROM f JOIN d ON k = id GROUP BY n, g""",
    "computed groups": f"substr(n, 2, 1) c, g % 3 r, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY 1, 2",
    "texts and dates": f"s, t, q, {FUNCTIONS} FROM (SELECT f.*, n FROM f JOIN d ON k = id) GROUP BY s, t, q",
    "long decimals": "n, sum(m29), sum(CAST(m28 AS DECIMAL(35, 4))) FROM f JOIN d ON k = id GROUP BY n",
    "decimals as keys": f"m, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY m",
    "the same twice": "n, sum(v) a, sum(v) b, sum(v) + max(v) c FROM f JOIN d ON k = id GROUP BY n",
    "MIN and MAX of both": "n, sum(v), min(v), max(w), min(n) FROM f JOIN d ON k = id GROUP BY n",
    "computed arguments": """n, sum(c), max(u) FROM (SELECT n, g % 5 c, concat(n, 'x') u FROM f JOIN d ON k = id)
        GROUP BY n""",
    "computed keys": """p, r, sum(v) FROM (SELECT f.*, length(n) p, coalesce(g, w) r FROM f JOIN d ON k = id)
        GROUP BY p, r""",
    "computed twice": """c, sum(i), max(b), min(n) FROM (SELECT if(a > 2, a, 0) i, c, b, n FROM
        (SELECT g % 5 a, s c, w b, n FROM f JOIN d ON k = id)) GROUP BY c""",
    "a star": f"n, z, {FUNCTIONS} FROM f JOIN d ON f.k = id LEFT JOIN e ON g = z GROUP BY n, z",
    "a filtered side": f"n, {FUNCTIONS} FROM (SELECT * FROM f WHERE v > 0) JOIN d ON k = id GROUP BY n",
    "through a name": f"n, {FUNCTIONS} FROM (SELECT * FROM (SELECT f.*, n FROM f JOIN d ON k = id) a) b GROUP BY n",
    "below a join": "* FROM e JOIN (SELECT w, sum(v), count(*) FROM f JOIN d ON k = id GROUP BY w) ON e.z = w",
    "a union": "n, sum(v), count(*) FROM (SELECT k, v FROM f UNION ALL SELECT k, z FROM e) JOIN d ON k = id GROUP BY n",
    "no function": "n FROM f JOIN d ON k = id GROUP BY n",
    "DISTINCT": "DISTINCT n, g FROM f JOIN d ON k = id",
    "DISTINCT, computed": "DISTINCT concat(n, 'x') a, g % 3 b, g % 3 c FROM f JOIN d ON k = id",
    "DISTINCT columns twice": "DISTINCT g, n, g FROM f JOIN d ON k = id",
    "DISTINCT, preserved": "DISTINCT n, s FROM f LEFT JOIN d ON k = id AND g < w",
    "DISTINCT below an aggregate": "count(*), sum(g) FROM (SELECT DISTINCT n, g FROM f JOIN d ON k = id)",
    "DISTINCT, no rows": "DISTINCT n, g FROM f JOIN nothing ON k = id",
    "DISTINCT in an INTERSECT": "n, s FROM f JOIN d ON k = id INTERSECT SELECT n, ds FROM d",
    "MIN and MAX of the other side": "n, max(w), min(concat(n, w)) FROM f JOIN d ON k = id GROUP BY n",
    "both sides preserved": f"n, {OPTIONAL} FROM f FULL JOIN d ON k = id GROUP BY n",
    "DISTINCT of both sides preserved": "DISTINCT n, g FROM f FULL JOIN d ON k = id",
    "optional": f"n, {OPTIONAL} FROM d LEFT JOIN f ON k = id GROUP BY n",
    "optional, by its own column": f"n, g, {OPTIONAL} FROM d LEFT JOIN f ON k = id GROUP BY n, g",
    "optional, with a test": f"n, {OPTIONAL} FROM f RIGHT JOIN d ON k = id AND g < w GROUP BY n",
    "optional, no rows": "n, count(*), sum(z) FROM d LEFT JOIN (SELECT * FROM e WHERE z > 9) ON k = id GROUP BY n",
    "optional twice": f"n, {OPTIONAL} FROM e RIGHT JOIN (d LEFT JOIN f ON f.k = id) ON z = w GROUP BY n",
    "optional below a join": f"z, {OPTIONAL} FROM e LEFT JOIN (d JOIN f ON f.k = id) ON z = w GROUP BY z",
    "optional, a filter above": f"n, {OPTIONAL} FROM d LEFT JOIN f ON k = id WHERE g IS NULL OR g > 2 GROUP BY n",
    "optional constants": """n, count(one), count(*) FILTER (WHERE one = 1), max(two), sum(two)
        FROM d LEFT JOIN (SELECT k, 1 one, if(g > 2, 2, 3) two FROM f) ON k = id GROUP BY n""",
    "optional computed": """n, count(coalesce(v, 0)), sum(CAST(v AS BIGINT) + g), min(v % 5)
        FROM d LEFT JOIN f ON k = id GROUP BY n""",
    "averages": f"n, {AVERAGES} FROM f JOIN d ON k = id GROUP BY n",
    "averages, optional": f"n, {AVERAGES} FROM d LEFT JOIN f ON k = id GROUP BY n",
    "averages of no groups": f"{AVERAGES} FROM f JOIN d ON k = id",
    "averages of nothing": f"{AVERAGES} FROM f JOIN nothing ON k = id",
    "averages computed": "n, avg(v) + avg(m), sum(v) / count(v) FROM f JOIN d ON k = id GROUP BY n HAVING avg(v) > 1",
    "BIGINT by the files": "n, sum(i64), avg(i64) FROM f JOIN d ON k = id GROUP BY n",
    "38 digits by the files": "n, sum(m38) FROM f JOIN d ON k = id GROUP BY n",
    "BIGINT by a name": "n, sum(z), avg(z) FROM (SELECT k, i64 z FROM f WHERE g < 5) JOIN d ON k = id GROUP BY n",
    "ROLLUP": f"n, g, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY ROLLUP (n, g)",
    "CUBE": f"n, s, grouping(n), grouping_id(), {FUNCTIONS}, avg(v) FROM f JOIN d ON k = id GROUP BY CUBE (n, s)",
    "grouping sets": "n, g, sum(v), avg(m) FROM f JOIN d ON k = id GROUP BY GROUPING SETS ((n), (g, n), (g), ())",
    "ROLLUP of what is aggregated": "g, v, sum(v), count(g) FROM f JOIN d ON k = id GROUP BY ROLLUP (g, v)",
    "ROLLUP of an expression": "length(n) l, g % 3 h, count(*) FROM f JOIN d ON k = id GROUP BY ROLLUP (1, 2)",
    "ROLLUP, optional": f"n, w, {OPTIONAL} FROM d LEFT JOIN f ON k = id GROUP BY ROLLUP (n, w)",
    "ROLLUP, MIN and MAX of both": "n, g, sum(v), max(w) FROM f JOIN d ON k = id GROUP BY ROLLUP (n, g)",
    "ROLLUP, no rows": "n, g, sum(v), count(*) FROM f JOIN nothing ON k = id GROUP BY ROLLUP (n, g)",
    "ROLLUP, no function": "n, g FROM f JOIN d ON k = id GROUP BY ROLLUP (n, g)",
    "ROLLUP of the facts alone": f"g, s, {FUNCTIONS} FROM f JOIN d ON k = id GROUP BY ROLLUP (g, s)",
    "a subquery": "n FROM d WHERE w < (SELECT count(*) FROM f JOIN e ON g = z)",
}  # fmt: skip
#: SELECT with functions of rows that stand for all rows of a group.
REPEATED = {
    "of both sides": f"n, sum(v), {OTHERS} FROM f JOIN d ON k = id GROUP BY n",
    "of the other side alone": f"g, {OTHERS} FROM f JOIN d ON k = id GROUP BY g",
    "of the right side": f"n, {OTHERS} FROM d JOIN f ON id = k GROUP BY n",
    "a FILTER": """n, sum(v), sum(w) FILTER (WHERE n > 'n3'), count(*) FILTER (WHERE w > 2),
        avg(w) FILTER (WHERE w < 5), count(w) FILTER (WHERE ds IS NULL) FROM f JOIN d ON k = id GROUP BY n""",
    "preserved": f"g, sum(v), {OTHERS} FROM f LEFT JOIN d ON k = id GROUP BY g",
    "optional": f"n, count(v), {OTHERS} FROM d LEFT JOIN f ON k = id GROUP BY n",
    "both sides preserved": f"w, count(*), {OTHERS} FROM f FULL JOIN d ON k = id GROUP BY w",
    "not NULL of nothing": "g, sum(coalesce(w, 1)), count(coalesce(w, 1)) FROM f FULL JOIN d ON k = id GROUP BY g",
    "ROLLUP": f"n, g, sum(v), {OTHERS} FROM f JOIN d ON k = id GROUP BY ROLLUP (n, g)",
    "no groups": f"avg(v), {OTHERS} FROM f JOIN d ON k = id",
    "no rows": f"sum(v), {OTHERS} FROM f JOIN nothing ON k = nothing.id CROSS JOIN d",
    "three sides": f"g, sum(z), avg(z), {OTHERS} FROM f JOIN d ON f.k = id JOIN e ON e.k = w GROUP BY g",
    "below an outer join": f"z, {OTHERS} FROM e LEFT JOIN (d JOIN f ON f.k = id) ON z = w GROUP BY z",
    "computed": f"n, {OTHERS} FROM (SELECT f.*, n, w % 4 w, ds FROM f JOIN d ON k = id) GROUP BY n",
    "by the values": "n, sum(g), avg(g), count(g) FROM f JOIN d ON k = id GROUP BY n",
    "decimals": f"f.g, {DECIMALS} FROM f JOIN f o ON f.k = o.k GROUP BY f.g",
    "decimals of no group": f"{DECIMALS} FROM f LEFT JOIN f o ON f.k = o.k AND o.g > 3",
    "negative numbers": """n, sum(v), avg(v), sum(w - CAST(3 AS BIGINT)), avg(w - CAST(3 AS BIGINT))
        FROM f JOIN d ON k = id GROUP BY n""",
    "many to many": "sum(f.v), sum(o.v), avg(o.m), count(*) FROM f JOIN f AS o ON f.g = o.g",
}  # fmt: skip
#: SELECT of which both sides of a join are grouped.
BOTH = {
    "sums of both": "f.g, sum(f.v), sum(o.m), avg(f.m), avg(o.v), count(*) FROM f JOIN f o ON f.k = o.k GROUP BY f.g",
    "counts": "count(*), count(f.v), count(o.v) FROM f JOIN f AS o ON f.s = o.s",
    "outer": "f.s, sum(f.v), count(f.v), sum(o.i8), count(o.k), count(*) FROM f LEFT JOIN f o ON f.k = o.k GROUP BY 1",
    "full": "f.s, sum(f.v), count(f.v), sum(o.i8), count(o.k), count(1) FROM f FULL JOIN f o ON f.k = o.k GROUP BY 1",
    "of a third": "f.s, sum(z), avg(z), sum(f.v), max(o.m) FROM f JOIN f o ON f.k = o.k JOIN e ON f.g = z GROUP BY f.s",
    "DISTINCT": "DISTINCT f.g, o.s FROM f JOIN f o ON f.k = o.k",
    "computed": """c, sum(x), sum(y) FROM (SELECT f.g % 3 c, f.v % 5 x, o.m y, o.g h FROM f JOIN f o ON f.k = o.k)
        WHERE h > 1 GROUP BY c""",
}  # fmt: skip
KEPT = {
    "of both at once": "n, sum(g * w) FROM f JOIN d ON k = id GROUP BY n",
    "a FILTER of both": "n, sum(v) FILTER (WHERE w > 2) FROM f JOIN d ON k = id GROUP BY n",
    "MAX of both at once": "n, sum(v), max(greatest(g, w)) FROM f JOIN d ON k = id GROUP BY n",
    "DISTINCT": "n, sum(DISTINCT v) FROM f JOIN d ON k = id GROUP BY n",
    "another one is DISTINCT": "n, sum(v), count(DISTINCT g) FROM f JOIN d ON k = id GROUP BY n",
    "an average of floating point": "n, avg(x) FROM f JOIN d ON k = id GROUP BY n",
    "an average of 29 digits": "n, avg(m29) FROM f JOIN d ON k = id GROUP BY n",
    "an average of BIGINT": "n, avg(b) FROM f JOIN d ON k = id GROUP BY n",
    "a TRY of an average": "n, try_avg(v) FROM f JOIN d ON k = id GROUP BY n",
    "an average of DISTINCT": "n, avg(DISTINCT v) FROM f JOIN d ON k = id GROUP BY n",
    "optional, added if NULL": """n, sum(1) FILTER (WHERE g IS NULL OR v > 1), max(s)
        FROM d LEFT JOIN f ON k = id GROUP BY n""",
    "optional, a sum of constants": "n, sum(1), sum(v) FROM d LEFT JOIN f ON k = id GROUP BY n",
    "optional, not NULL": "n, sum(coalesce(v, 1)) FROM d LEFT JOIN f ON k = id GROUP BY n",
    "optional, the greatest constant": "n, sum(v), max(coalesce(s, 'z')) FROM d LEFT JOIN f ON k = id GROUP BY n",
    "optional, counts FILTERed": "n, count(*) FILTER (WHERE g IS NULL) FROM d LEFT JOIN f ON k = id GROUP BY n",
    "ROLLUP of floating point": "n, x, sum(v) FROM f JOIN d ON k = id GROUP BY ROLLUP (n, x)",
    "ROLLUP and DISTINCT": "n, g, sum(v), count(DISTINCT s) FROM f JOIN d ON k = id GROUP BY ROLLUP (n, g)",
    "a first": "n, sum(v), first(n) FROM f JOIN d ON k = id GROUP BY n",
    "floating point": "n, sum(x) FROM f JOIN d ON k = id GROUP BY n",
    "the least of floating point": "n, min(x) FROM f JOIN d ON k = id GROUP BY n",
    "a TRY": "n, try_sum(v) FROM f JOIN d ON k = id GROUP BY n",
    "floating keys": "n, sum(v) FROM f JOIN d ON x = dx GROUP BY n",
    "floating groups": "x, sum(v) FROM f JOIN d ON k = id GROUP BY x",
    "binary keys": "n, sum(v) FROM f JOIN d ON y = dy GROUP BY n",
    "no key": "z, sum(v) FROM f CROSS JOIN e GROUP BY z",
    "no key at all": "sum(v), count(*) FROM f CROSS JOIN e",
    "by chance": "n, sum(v) FROM f LEFT JOIN d ON k = id WHERE rand(4) < 2 + g GROUP BY n",
    "chance between": "n, sum(v) FROM (SELECT n, v, rand(3) r FROM f LEFT JOIN d ON k = id) WHERE r < 2 GROUP BY n",
    "a chance of a key": "r, sum(v) FROM (SELECT round(0 * rand(3)) < 1 r, v FROM f JOIN d ON k = id) GROUP BY r",
    "computed of both": "n, sum(c) FROM (SELECT n, if(w > 2, v, g) c FROM f JOIN d ON k = id) GROUP BY n",
    "a subquery between": """n, sum(v) FROM f LEFT JOIN d ON k = id WHERE w IS NULL OR w > (SELECT min(z) FROM e)
        GROUP BY n""",
    "a subquery in an argument": "n, max(if(g > (SELECT min(z) FROM e), s, 'x')) FROM f JOIN d ON k = id GROUP BY n",
    "a subquery in a column": """n, max(c) FROM (SELECT n, if(g > (SELECT min(z) FROM e), s, 'x') c
        FROM f JOIN d ON k = id) GROUP BY n""",
    "a subquery in the list": "n, sum(v) + (SELECT max(z) FROM e) FROM f JOIN d ON k = id GROUP BY n",
    "a window between": "n, sum(r) FROM (SELECT n, rank() OVER (ORDER BY v, s) r FROM f JOIN d ON k = id) GROUP BY n",
    "a limit between": "n, sum(v) FROM (SELECT n, v FROM f JOIN d ON k = id ORDER BY v, n LIMIT 20) GROUP BY n",
    "a semi join": "g, sum(v) FROM f LEFT SEMI JOIN d ON k = id GROUP BY g",
    "an anti join": "g, sum(v) FROM f LEFT ANTI JOIN d ON k = id GROUP BY g",
    "DISTINCT of floating point": "DISTINCT x, dx FROM f JOIN d ON k = id",
    "DISTINCT of what is distinct": """DISTINCT n FROM (SELECT DISTINCT k FROM f) JOIN (SELECT DISTINCT id, n FROM d)
        ON k = id""",
    "no join": "g, sum(v) FROM f GROUP BY g",
}  # fmt: skip
#: SELECT of what may fail in ANSI mode.
FALLIBLE = {
    "BIGINT in a subquery": "n, sum(z) FROM (SELECT k, b + v z FROM f) JOIN d ON k = id GROUP BY n",
    "BIGINT": "n, sum(b) FROM f JOIN d ON k = id GROUP BY n",
    "BIGINT of two files": """n, sum(i64) FROM (SELECT k, i64 FROM f UNION ALL SELECT k, b FROM f) JOIN d ON k = id
        GROUP BY n""",
    "BIGINT of a common table expression": """n, sum(i64) FROM
        (WITH u AS (SELECT k, i64 FROM f UNION ALL SELECT k, b FROM f) SELECT * FROM u) JOIN d ON k = id GROUP BY n""",
    "an argument": "n, sum(100 div v) FROM (SELECT * FROM f WHERE k < 99) JOIN d ON k = id AND v <> 0 GROUP BY n",
    "a FILTER": "n, count(*) FILTER (WHERE 100 div v > 3) FROM f JOIN d ON k = id AND v <> 0 GROUP BY n",
    "a column between": "n, sum(c) FROM (SELECT n, 100 div v AS c FROM f JOIN d ON k = id AND v <> 0) GROUP BY n",
    "a key between": "c, sum(v) FROM (SELECT v, 100 div g AS c FROM f JOIN d ON k = id AND g <> 0) GROUP BY c",
    "a condition": "n, sum(v) FROM f JOIN d ON k = id AND v <> 0 AND 100 div v > w GROUP BY n",
    "a filter": "n, sum(v) FROM f LEFT JOIN d ON k = id AND g > 0 WHERE 100 div g < w GROUP BY n",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, tmp_path_factory.mktemp("eager"))
    yield session
    session.catalog.clearCache()


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def in_either_mode(facts: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    facts.conf.set("spark.sql.ansi.enabled", request.param)
    yield facts
    facts.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture(autouse=True)
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_aggregation, "_MARGIN", 0.0)


def _of_facts(sentences: list[str]) -> list[str]:
    """Those about other relations than `d` and `e`."""
    return [one for one in sentences if not re.search(r"reads [de] grouped", one)]


@pytest.mark.parametrize("name", EARLY)
def test_rows_are_grouped_before_they_are_joined(in_either_mode: SparkSession, name: str) -> None:
    assert early_aggregates(in_either_mode, f"SELECT {EARLY[name]}")


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("sides", [1, 2])
def test_rows_that_stand_for_several(
    in_either_mode: SparkSession, monkeypatch: pytest.MonkeyPatch, sides: int, name: str
) -> None:
    if sides == 1:
        monkeypatch.setattr(EagerAggregation, "_of_another_side", lambda *_: [])
    assert 1 <= len(early_aggregates(in_either_mode, f"SELECT {REPEATED[name]}")) <= sides


@pytest.mark.parametrize("name", BOTH)
def test_both_sides_are_grouped(in_either_mode: SparkSession, name: str) -> None:
    assert len(early_aggregates(in_either_mode, f"SELECT {BOTH[name]}")) == 2


@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert _of_facts(early_aggregates(facts, f"SELECT {KEPT[name]}")) == []


@pytest.mark.parametrize("name", FALLIBLE)
def test_what_may_fail_is_left_alone(facts: SparkSession, name: str) -> None:
    found = []
    for ansi in ("true", "false"):
        facts.conf.set("spark.sql.ansi.enabled", ansi)
        found.append(len(_of_facts(early_aggregates(facts, f"SELECT {FALLIBLE[name]}"))))
    facts.conf.unset("spark.sql.ansi.enabled")
    assert found == [0, 1]


def test_the_aggregate_is_below_the_join(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT {EARLY['inner join']}").optimize_joins(strict=True)
    lines = df._jdf.queryExecution().optimizedPlan().toString().splitlines()
    aggregates = [i for i, line in enumerate(lines) if "Aggregate" in line]
    join = next(i for i, line in enumerate(lines) if "Join" in line)
    assert len(aggregates) == 2 and aggregates[0] < join < aggregates[1]


def test_the_lowest_sums_add_up_to_the_same_type(facts: SparkSession) -> None:
    """The sum of sums of decimals has ten digits more, and must not have."""
    sums = "sum(CAST(m AS DECIMAL(8, 2))), sum(CAST(m AS DECIMAL(9, 2))), sum(m28)"
    text = f"SELECT n, {sums} FROM f JOIN d ON k = id GROUP BY n"
    assert len(early_aggregates(facts, text)) == 1


@pytest.mark.parametrize("name", ["averages", "averages, optional"])
def test_averages_without_sparks_rule_for_short_decimals(facts: SparkSession, name: str) -> None:
    rule = "org.apache.spark.sql.catalyst.optimizer.DecimalAggregates"
    facts.conf.set("spark.sql.optimizer.excludedRules", rule)
    try:
        assert len(early_aggregates(facts, f"SELECT {EARLY[name]}")) == 1
    finally:
        facts.conf.unset("spark.sql.optimizer.excludedRules")


def test_an_average_of_rows_that_joins_repeat(in_either_mode: SparkSession) -> None:
    """The sum of a bigint over all rows would be too large for one, and Spark's average has a sum of type double."""
    text = "SELECT round(avg(i45) / 1000) FROM f JOIN d ON k = id CROSS JOIN (SELECT id FROM range(2000)) r"
    assert early_aggregates(in_either_mode, f"{text} WHERE r.id >= 0") == []


def test_a_python_function_is_not_called_for_other_rows(facts: SparkSession) -> None:
    facts.udf.register("twice", lambda v: None if v is None else 2 * v, "int")
    assert early_aggregates(facts, "SELECT n, sum(twice(v)) FROM f JOIN d ON k = id GROUP BY n") == []
    assert early_aggregates(facts, "SELECT n, sum(v) FROM f LEFT JOIN d ON k = id WHERE twice(g) > 3 GROUP BY n") == []


def test_a_correlated_subquery_is_left_alone(facts: SparkSession) -> None:
    text = "SELECT * FROM d o WHERE 5 > (SELECT count(*) FROM f JOIN e ON g = z WHERE f.k = o.id)"
    checked(facts.sql(text))
    lateral = "SELECT * FROM d o, LATERAL (SELECT sum(v) a FROM (SELECT * FROM f WHERE k = o.id) JOIN e ON g = z)"
    assert early_aggregates(facts, lateral) == []


def test_a_cached_join_is_left_whole(facts: SparkSession) -> None:
    facts.sql("SELECT * FROM f JOIN d ON k = id").drop("b", "s", "x", "y").createOrReplaceTempView("joined")
    facts.table("joined").cache()
    try:
        assert early_aggregates(facts, "SELECT n, sum(v) FROM joined GROUP BY n") == []
        above = early_aggregates(facts, "SELECT n, count(v) FROM joined JOIN e ON g = z GROUP BY n")
        assert any("reads joined grouped by g, n" in one for one in above)
    finally:
        facts.catalog.uncacheTable("joined")


def test_what_spark_computes_once_is_left_whole(facts: SparkSession) -> None:
    """Both aggregates read one join, whose shuffles are reused."""
    text = """SELECT * FROM (SELECT n, sum(v) a FROM f JOIN d ON k = id GROUP BY n) x
        JOIN (SELECT w, count(*) c FROM f JOIN d ON k = id GROUP BY w) y ON a > c"""
    assert early_aggregates(facts, text) == []


def test_once_is_enough(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT {EARLY['a star']}")
    fast = df.optimize_joins(strict=True)
    assert fast._pyjoinopt_report.eager_aggregations
    assert checked(fast).eager_aggregations == []


def test_names_are_not_resolved_below_the_upper_aggregate(facts: SparkSession) -> None:
    """`count(1)` above the result would count groups instead of rows."""
    df = facts.sql("SELECT n, sum(v) AS a FROM f JOIN d ON k = id GROUP BY n")
    fast = df.optimize_joins(strict=True)
    assert fast._pyjoinopt_report.eager_aggregations and df.filter("count(1) > 30").collect()
    with pytest.raises(AnalysisException):
        fast.filter("count(1) > 30").collect()
    assert fast.filter("a > 3").sort("n").collect() == df.filter("a > 3").sort("n").collect()


def test_switched_off(facts: SparkSession) -> None:
    text = f"SELECT {EARLY['inner join']}"
    assert early_aggregates(facts, text, rewrites_without="eager_aggregation") == []
    assert early_aggregates(facts, text, hints=False) == []
    assert "Rows grouped before they are joined" in str(checked(facts.sql(text)))


@pytest.mark.parametrize(
    "name",
    ["a star", "preserved", "below a semi join", "below a join", "optional", "averages, optional", "ROLLUP, optional"],
)
def test_in_an_enabled_session(facts: SparkSession, name: str) -> None:
    text = f"SELECT {EARLY[name]}"
    plain = facts.sql(text).collect()
    with enabled(facts, FREE) as report_of:
        fast = facts.sql(text).collect()
        report = report_of()
    assert sorted(map(repr, fast)) == sorted(map(repr, plain)) and report.error is None
    assert len(report.eager_aggregations) == 1


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(4))
def test_drawn_queries(in_either_mode: SparkSession, seed: int) -> None:
    draw = random.Random(f"{seed} {in_either_mode.conf.get('spark.sql.ansi.enabled')}")
    done = sum(len(early_aggregates(in_either_mode, _drawn(draw))) for _ in range(15))
    assert done >= 3


def _drawn(draw: random.Random) -> str:
    """A query that aggregates what one, two or three joins give."""
    of_facts = ["sum(v)", "count(*)", "count(v)", "min(s)", "max(t)", "sum(m)", "sum(m28)", "max(q)", "sum(i8)"]
    of_facts += ["avg(v)", "avg(m)", "avg(i8)", "avg(m28)", "count(coalesce(v, 0))", "sum(coalesce(v, 1))"]
    others = ["max(w)", "min(n)", "sum(w)", "avg(w)", "count(DISTINCT g)", "sum(x)", "sum(m38)"]
    functions = draw.sample(of_facts, draw.randint(1, 4)) + (draw.sample(others, 1) if draw.random() < 0.3 else [])
    if draw.random() < 0.4:
        test = draw.choice(["g > 2", "v IS NULL", "v > 1 AND q", "f.k = 3", "w > 1", "s < 't5'", "v IS NULL OR g > 2"])
        functions[0] = f"{functions[0]} FILTER (WHERE {test})"
    kind = draw.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
    key = draw.choice(
        ["f.k = id", "f.k = id", "s = ds", "g = w", "f.k <=> id", "x = dx", "f.k = id AND g < w", "g > id"]
    )
    tables = draw.choice([f"f {kind} d", f"d {kind} f"]) + ("" if kind == "CROSS JOIN" else f" ON {key}")
    if draw.random() < 0.4:
        further = draw.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        tables += f" {further} e ON {draw.choice(['g = z', 'f.k = e.k', 'w = z'])}"
    by = draw.sample(["n", "g", "w", "s", "q", "m", "t", "f.k", "x", "length(n)", "v"], draw.randint(0, 3))
    where = draw.choice(["", "", " WHERE g > 1", " WHERE w IS NULL OR g < 5", " WHERE n < 'n5' AND s > 't1'"])
    having = draw.choice(["", "", " HAVING count(*) > 4", " HAVING max(v) > 2"])
    sets = draw.choice(["{}", "{}", "ROLLUP ({})", "CUBE ({})"])
    grouped = f" GROUP BY {sets.format(', '.join(by))}" if by else ""
    columns = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*by, *functions]))
    return f"SELECT {columns} FROM {tables}{where}{grouped}{having}"
