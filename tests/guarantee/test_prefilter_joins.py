"""A side that is shuffled loses the rows that will find no partner; for aggregates see `test_prefilter_aggregates`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer.prefilter import prefilter
from tests.support.prefilters import checked, enabled, session_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Keys have NULLs, repetitions and values without a partner. `f` and `o` are too large for a broadcast at the
#: threshold below, `d` with its wide column, too; the filtered keys of `d` are not.
THRESHOLD = "200"
#: At this one no keys are broadcast, so a Bloom filter is made of them.
NO_ROOM = "20"
WIDE = "concat(repeat('x', 40), id)"
TABLES = {
    "f": f"""select if(id % 11 = 0, null, cast(id % 40 as int)) as k, cast(id % 60 as int) as g,
        cast(id % 13 - 3 as int) as v, concat('t', id % 9) as s, cast(id % 5 as double) as x, {WIDE} as p
        from range(900)""",
    "o": f"""select cast(id as int) as id, if(id % 7 = 3, null, cast(id % 50 as int)) as c, cast(id % 9 as int) as w,
        concat('t', id % 60) as s, {WIDE} as q from range(300)""",
    "d": f"""select if(id % 17 = 5, null, cast(id as int)) as id, concat('n', id % 8) as n, cast(id % 6 as int) as w,
        concat('t', id % 12) as t, {WIDE} as r from range(50)""",
    "c": "select cast(id as int) as c, cast(id % 10 as int) as z from range(50)",
}
FILTERED = {
    "a filtered key": "f JOIN d ON f.k = d.id WHERE d.n = 'n1'",
    "keys of a join": "f JOIN o ON f.g = o.id JOIN c ON o.c = c.c WHERE c.z = 3",
    "keys of a semi join": "f JOIN o ON f.g = o.id LEFT SEMI JOIN c ON o.c = c.c AND c.z = 3",
    "of the smaller one of two": "f JOIN o ON f.g = o.id JOIN d ON o.c = d.id WHERE d.n = 'n1' AND o.w < 8",
    "optional": "d LEFT JOIN f ON f.k = d.id WHERE d.n = 'n1'",
    "optional, on the left": "f RIGHT JOIN d ON f.k = d.id WHERE d.n = 'n1'",
    "with a test of its own": "d LEFT JOIN f ON f.k = d.id AND f.v > d.w WHERE d.n = 'n1'",
    "none is there": "d LEFT JOIN f ON f.k = d.id WHERE d.n = 'n1' AND f.k IS NULL",
    "only tested": "d LEFT SEMI JOIN f ON f.k = d.id AND f.v > d.w WHERE d.n = 'n1'",
    "excluded": "d LEFT ANTI JOIN f ON f.k = d.id AND f.v > d.w WHERE d.n = 'n1'",
    "exists": "d WHERE d.n = 'n1' AND EXISTS (SELECT 1 FROM f WHERE f.k = d.id AND f.v > d.w)",
    "in an OR": "d WHERE d.n = 'n1' AND (d.w = 1 OR EXISTS (SELECT 1 FROM f WHERE f.k = d.id AND f.v > 3))",
    "not exists": "d WHERE d.n = 'n1' AND NOT EXISTS (SELECT 1 FROM f WHERE f.k = d.id AND f.v > d.w)",
    "of an aggregate": "(SELECT g, max(p) m FROM f GROUP BY g) y JOIN o ON y.g = o.id WHERE o.w = 2 AND o.id < 200",
    "preserved below a join": "o LEFT JOIN f ON f.g = o.id JOIN c ON o.c = c.c JOIN d ON o.id = d.id WHERE d.n = 'n1'",
    "after a limit": "(SELECT k, p FROM f ORDER BY v, p LIMIT 700) y JOIN d ON y.k = d.id WHERE d.n = 'n1'",
    "of a union": "(SELECT k, p FROM f UNION ALL SELECT c, q FROM o) y JOIN d ON y.k = d.id WHERE d.n = 'n1'",
}  # fmt: skip
KEPT = {
    "no filter": "f JOIN d ON f.k = d.id",
    "preserved": "f LEFT JOIN d ON f.k = d.id AND d.n = 'n1'",
    "both preserved": "f FULL JOIN (SELECT * FROM d WHERE n = 'n1') d ON f.k = d.id",
    "the other is preserved": "(SELECT * FROM d WHERE n = 'n1') d RIGHT JOIN f ON f.k = d.id",
    "excluded by it": "f LEFT ANTI JOIN (SELECT * FROM d WHERE n = 'n1') d ON f.k = d.id",
    "no equality": "f JOIN d ON f.k < d.id WHERE d.n = 'n1'",
    "NULL equals NULL": "f JOIN d ON f.k <=> d.id WHERE d.n = 'n1'",
    "another type": "(SELECT CAST(k AS BIGINT) k, p FROM f) y JOIN d ON y.k = d.id WHERE d.n = 'n1'",
    "by chance": "f JOIN d ON f.k = d.id WHERE rand(3) < 2 AND d.w + rand(4) < 1",
    "the filter may fail": "f JOIN d ON f.k = d.id WHERE 12 div w > 3",
    "the filter reads more": "f JOIN d ON f.k = d.id WHERE d.w = (SELECT max(z) FROM c)",
    "broadcast": "f JOIN c ON f.k = c.c WHERE c.z = 3",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, TABLES, tmp_path_factory.mktemp("prefilter"))
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", THRESHOLD)
    yield session
    session.catalog.clearCache()


@pytest.fixture
def without_room(facts: SparkSession) -> Iterator[SparkSession]:
    facts.conf.set("spark.sql.autoBroadcastJoinThreshold", NO_ROOM)
    yield facts
    facts.conf.set("spark.sql.autoBroadcastJoinThreshold", THRESHOLD)


@pytest.mark.parametrize("name", FILTERED)
def test_rows_without_a_partner_are_not_shuffled(facts: SparkSession, name: str) -> None:
    assert checked(facts.sql(f"SELECT * FROM {FILTERED[name]}")).prefilters


@pytest.mark.parametrize("name", FILTERED)
def test_a_bloom_filter_of_many_keys(without_room: SparkSession, name: str) -> None:
    filters = checked(without_room.sql(f"SELECT * FROM {FILTERED[name]}")).prefilters
    assert filters and all("Bloom" in line for line in filters)


@pytest.mark.parametrize("name", sorted(set(KEPT) - {"broadcast"}))
def test_no_bloom_filter_of_others(without_room: SparkSession, name: str) -> None:
    text = KEPT[name].replace("12 div w", "12 div (w + 1)")  # may fail, but does not
    assert checked(without_room.sql(f"SELECT * FROM {text}")).prefilters == []


@pytest.mark.parametrize("test", ["d.n = 'none'", "d.n LIKE '%1' AND d.w > 77", "d.id IS NULL AND d.n = 'n5'"])
def test_a_bloom_filter_of_no_keys(without_room: SparkSession, test: str) -> None:
    for kind in ("JOIN", "LEFT JOIN", "LEFT ANTI JOIN"):
        checked(without_room.sql(f"SELECT * FROM d {kind} f ON f.k = d.id WHERE {test}"))


def test_a_bloom_filter_of_more_keys_than_expected(without_room: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "_LEAST_KEYS", 1)
    monkeypatch.setattr(prefilter, "_SPARE", 0.02)
    assert checked(without_room.sql(f"SELECT * FROM {FILTERED['a filtered key']}")).prefilters


@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert checked(facts.sql(f"SELECT * FROM {KEPT[name]}")).prefilters == []


#: A session does not plan a single join of small files.
@pytest.mark.parametrize("name", ["keys of a join", "keys of a semi join", "none is there", "with a test of its own"])
@pytest.mark.parametrize("threshold", [THRESHOLD, NO_ROOM])
def test_in_an_enabled_session(facts: SparkSession, without_room: SparkSession, name: str, threshold: str) -> None:
    facts.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    text = f"SELECT * FROM {FILTERED[name]}"
    plain = facts.sql(text).collect()
    with enabled(facts) as report_of:
        fast = facts.sql(text).collect()
        report = report_of()
    assert sorted(map(repr, fast)) == sorted(map(repr, plain)) and report.error is None
    assert report.prefilters and all(("Bloom" in line) is (threshold == NO_ROOM) for line in report.prefilters)


#: One question, or nearly: the rows of `d` of one name that some row of `f` refers to.
SAME = {
    "exists": "SELECT d.* FROM d WHERE n = 'n1' AND EXISTS (SELECT 1 FROM f WHERE f.k = d.id AND f.v > 3)",
    "in": "SELECT d.* FROM d WHERE n = 'n1' AND id IN (SELECT k FROM f WHERE v > 3)",
    "semi join": "SELECT d.* FROM d LEFT SEMI JOIN f ON d.id = f.k AND f.v > 3 WHERE 'n1' = d.n",
    "using": "SELECT y.* FROM (SELECT id AS k, * FROM d) y LEFT SEMI JOIN f USING (k) WHERE n = 'n1'",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_however_it_is_written(facts: SparkSession, text: str) -> None:
    assert checked(facts.sql(text)).prefilters


def test_dataframe_code(facts: SparkSession) -> None:
    d, f = facts.table("d").where("n = 'n1'"), facts.table("f").where("v > 3")
    assert checked(d.join(f, d["id"] == f["k"], "leftsemi")).prefilters
    assert checked(f.withColumnRenamed("k", "id").join(d, "id")).prefilters


def test_the_semi_join_is_below_the_shuffle(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT * FROM {FILTERED['keys of a join']}").optimize_joins(strict=True)
    lines = df._jdf.queryExecution().executedPlan().toString().splitlines()
    semi = next(i for i, line in enumerate(lines) if "LeftSemi" in line)
    assert "BroadcastHashJoin" in lines[semi]
    assert any("Exchange hashpartitioning" in line for line in lines[:semi])


def test_switched_off_and_too_dear(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT * FROM {FILTERED['keys of a join']}")
    assert checked(df, rewrites_without="prefilter_joins").prefilters == []
    assert checked(df, hints=False).prefilters == []
    assert checked(df, cost_constants="").prefilters == []


def test_a_source_that_is_shuffled_itself_is_not_read_twice(facts: SparkSession) -> None:
    """`o` and `d` are joined by a shuffle, so only the filter on `o` is worth its second reading."""
    report = checked(facts.sql("SELECT * FROM f JOIN o ON f.g = o.id JOIN d ON o.c = d.id WHERE o.w = 2 AND d.w < 5"))
    assert not any("with" in line for line in report.prefilters)


def test_a_join_that_spark_computes_once_is_left_whole(facts: SparkSession) -> None:
    """Both parts share the shuffles of one join; a filter inside one of them would have it computed twice."""
    text = """WITH j AS (SELECT f.k, f.p, o.q FROM f JOIN o ON f.g = o.id)
        SELECT d.w, j.p, j.q FROM d LEFT JOIN j ON j.k = d.id WHERE d.n = 'n1'
        UNION ALL SELECT c.z, j.p, j.q FROM c LEFT JOIN j ON j.k = c.c"""
    plain = facts.sql(text).collect()
    with enabled(facts) as report_of:
        fast = facts.sql(text).collect()
        report = report_of()
    assert sorted(map(repr, fast)) == sorted(map(repr, plain)) and report.error is None
    assert len(report.prefilters) == 1  # above the shared join


@pytest.mark.parametrize("threshold", [THRESHOLD, NO_ROOM])
def test_once_is_enough(facts: SparkSession, without_room: SparkSession, threshold: str) -> None:
    facts.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    df = facts.sql(f"SELECT * FROM {FILTERED['a filtered key']}").optimize_joins(strict=True)
    assert df._pyjoinopt_report.prefilters
    assert checked(df).prefilters == []
    with enabled(facts):
        fast = facts.sql(f"SELECT * FROM {FILTERED['a filtered key']}").optimize_joins(strict=True)
        plan = fast._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("LeftSemi") + plan.count("bloom_filter_agg") in (1, 2)  # Spark copies a filter to an equal key


@pytest.mark.ci
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_queries(facts: SparkSession, without_room: SparkSession, seed: int, ansi: str) -> None:
    draw = random.Random(f"{seed} {ansi}")
    filtered = 0
    facts.conf.set("spark.sql.autoBroadcastJoinThreshold", THRESHOLD if seed % 2 else NO_ROOM)
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for _ in range(10):
            filtered += bool(checked(facts.sql(_drawn(draw))).prefilters)
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")
    assert filtered >= 4


def _drawn(draw: random.Random) -> str:
    """A query in which something large is joined in some way with something filtered."""
    kinds = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
    kind = draw.choice(kinds)
    extra = draw.choice(["", "", " AND f.v > o.w", " AND f.v + o.w > 5"])
    of_o = draw.choice(["o", "(SELECT * FROM o WHERE w < 3) o", "(SELECT o.* FROM o JOIN c USING (c) WHERE z = 3) o"])
    of_f = draw.choice([
        "f", "f", "(SELECT * FROM f WHERE v > 0) f", "(SELECT f.* FROM f LEFT JOIN c ON k = c.c) f",
        "(SELECT f.*, x.c fc FROM f LEFT JOIN c x ON f.g = x.c) f",
        "(SELECT f.*, x.c fc FROM f LEFT JOIN c x ON f.g = x.c WHERE f.g IN (SELECT id FROM o)) f",
    ])  # fmt: skip
    left, right = draw.choice([(of_o, of_f), (of_f, of_o)])
    tables = f"{left} {kind} {right} ON f.g = o.id{extra}"
    have = {"LEFT SEMI JOIN": left[-1:], "LEFT ANTI JOIN": left[-1:]}.get(kind, "f o")
    where = []
    if "o" in have and draw.random() < 0.6:
        further = draw.choice(["JOIN", "LEFT SEMI JOIN", "LEFT JOIN"])
        tables = f"{tables} {further} c c2 ON o.c = c2.c AND c2.z IN (3, 4)"
    if "f" in have and draw.random() < 0.6:
        tables = f"{tables} {draw.choice(['JOIN', 'LEFT SEMI JOIN'])} d ON f.k = d.id AND d.n = 'n1'"
    if "o" in have and draw.random() < 0.4:
        where.append(draw.choice(["o.w = 2", "o.q LIKE '%1'", "o.id IS NOT NULL", "(o.w = 2 OR o.c = 7)"]))
    return f"SELECT * FROM {tables}" + (f" WHERE {' AND '.join(where)}" if where else "")
