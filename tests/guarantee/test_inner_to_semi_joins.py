"""Inner joins of which one side is not read become semi joins where duplicates do not matter, with the same result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer import existence_price
from tests.support.eager import session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Posts, comments and votes of them, tags and which post has which; with NULLs, and partners that are missing.
TABLES = {
    "p": """SELECT if(id % 13 = 5, null, cast(id AS int)) id, concat('t', id % 9) title, cast(id % 6 AS int) author,
        cast(if(id % 4 = 0, null, id % 3 - 1) AS double) x FROM range(60)""",
    "c": """SELECT cast(id AS int) id, if(id % 7 = 3, null, cast(id * 7 % 70 AS int)) post, cast(id % 5 AS int) score,
        cast(if(id % 5 = 0, null, id % 3 - 1) AS double) x FROM range(200)""",
    "v": "SELECT if(id % 11 = 3, null, cast(id * 5 % 80 AS int)) post, cast(id % 3 AS int) kind FROM range(150)",
    "t": "SELECT cast(id * 3 % 70 AS int) post, if(id % 8 = 1, null, cast(id % 12 AS int)) tag FROM range(160)",
    "g": "SELECT cast(id AS int) id, concat('n', id % 10) n FROM range(14)",
}
NOTE = "nothing is read of the partners"

REPLACED = {
    "one branch": ("SELECT DISTINCT title FROM p JOIN c ON c.post = p.id", 1),
    "two branches": (
        """SELECT DISTINCT title FROM p JOIN c ON c.post = p.id JOIN v ON v.post = p.id
        WHERE kind > 0""",
        2,
    ),
    "everything compared with everything": (
        """SELECT min(title), max(author) FROM p, c, v, t, g WHERE p.id = c.post
        AND p.id = v.post AND c.post = v.post AND t.post = p.id AND t.post = c.post AND t.tag = g.id AND n < 'n5'""",
        3,
    ),
    "compared through a branch": ("SELECT DISTINCT title FROM c, p, v WHERE c.post = p.id AND v.post = c.post", 2),
    "a core of two": (
        """SELECT DISTINCT title, score FROM v, p, c
        WHERE v.post = c.post AND c.post = p.id AND kind = 1""",
        1,
    ),
    "a comparison beside": ("SELECT DISTINCT title FROM p JOIN c ON c.post = p.id AND c.score > p.author", 1),
    "a branch of two": ("SELECT DISTINCT title FROM p JOIN c ON c.post = p.id JOIN v ON v.kind = c.score", 1),
    "aggregates of sets": (
        """SELECT author, max(title), count(DISTINCT title), bool_or(p.id > 5) FROM p
        JOIN c ON c.post = p.id GROUP BY author""",
        1,
    ),
    "below IN": ("SELECT author FROM p WHERE id IN (SELECT c.post FROM c JOIN v ON c.post = v.post)", 1),
    "below NOT EXISTS": (
        """SELECT author FROM p WHERE NOT EXISTS (SELECT 1 FROM c JOIN v ON c.post = v.post
        WHERE c.post = p.id AND kind = 2)""",
        1,
    ),
    "below INTERSECT": (
        """SELECT title FROM p JOIN c ON c.post = p.id INTERSECT
        SELECT title FROM p JOIN v ON v.post = p.id""",
        2,
    ),
    "below UNION": ("SELECT title FROM p JOIN c ON c.post = p.id UNION SELECT n FROM g JOIN t ON t.tag = g.id", 2),
    "below a left join": (
        """SELECT DISTINCT title, n FROM (SELECT title, p.id FROM p JOIN c ON c.post = p.id) s
        LEFT JOIN g ON g.id = s.id""",
        1,
    ),
    "in the padded side": (
        """SELECT DISTINCT n, title FROM g LEFT JOIN (SELECT title, p.id FROM p
        JOIN c ON c.post = p.id) s ON g.id = s.id""",
        1,
    ),
    "above a left join": (
        """SELECT DISTINCT title, kind FROM p LEFT JOIN v ON v.post = p.id JOIN c ON c.post = p.id
        WHERE score < 3""",
        1,
    ),
    "above an aggregate": (
        """SELECT DISTINCT k FROM (SELECT author, count(*) k FROM p GROUP BY author) a
        JOIN c ON c.score = a.author""",
        1,
    ),
    "a table twice": ("SELECT DISTINCT a.title FROM p a JOIN p b ON a.author = b.author JOIN c ON c.post = b.id", 1),
    "a computed key": ("SELECT DISTINCT title FROM p JOIN c ON concat(c.post, 'x') = concat(p.id, 'x')", 1),
    "in a common table expression": (
        """WITH s AS (SELECT DISTINCT title, author FROM p JOIN c ON c.post = p.id)
        SELECT * FROM s a JOIN s b ON a.author = b.author""",
        1,
    ),
    "a projection between": (
        """SELECT DISTINCT title FROM (SELECT p.title, p.id + 0 AS i, p.id FROM p
        JOIN c ON c.post = p.id) s JOIN v ON v.post = s.id""",
        2,
    ),
    "one of two that are joined": (
        """SELECT max(title) FROM p JOIN t ON t.post = p.id JOIN g ON g.id = t.tag
        JOIN c ON c.post = p.id AND c.score = p.author""",
        2,
    ),
    "floating-point keys": ("SELECT DISTINCT title FROM p JOIN c ON c.x = p.x", 1),
}
KEPT = {
    "rows are counted": "SELECT count(title) FROM p JOIN c ON c.post = p.id",
    "rows are the result": "SELECT title FROM p JOIN c ON c.post = p.id",
    "a sum": "SELECT min(title), sum(author) FROM p JOIN c ON c.post = p.id",
    "it is read": "SELECT DISTINCT title, score FROM p JOIN c ON c.post = p.id",
    "it is read by a window": "SELECT DISTINCT title, rank() OVER (ORDER BY title) FROM p JOIN c ON c.post = p.id",
    "a limit between": "SELECT DISTINCT title FROM (SELECT * FROM p JOIN c ON c.post = p.id ORDER BY 1, 2 LIMIT 9)",
    "it connects what is read": "SELECT DISTINCT title, n FROM p JOIN t ON t.post = p.id JOIN g ON g.id = t.tag",
    "no equality": "SELECT DISTINCT title FROM p JOIN c ON c.post > p.id",
    "nothing is read": "SELECT DISTINCT 1 FROM p JOIN c ON c.post = p.id",
    "an outer join": "SELECT DISTINCT title FROM p FULL JOIN c ON c.post = p.id",
    "a hint": "SELECT /*+ MERGE(c) */ DISTINCT title FROM p JOIN c ON c.post = p.id",
    "NULLs are partners": "SELECT DISTINCT title FROM p JOIN c ON c.post <=> p.id",
    "rows by chance": "SELECT DISTINCT title, rand(1) < 2 FROM p JOIN c ON c.post = p.id",
    "a column by chance": "SELECT DISTINCT title, r < 2 FROM (SELECT title, rand(1) r FROM p JOIN c ON c.post = p.id)",
    "UNION ALL": "SELECT title FROM p JOIN c ON c.post = p.id UNION ALL SELECT n FROM g JOIN t ON t.tag = g.id",
    "only one common table expression": """WITH s AS (SELECT title, author FROM p JOIN c ON c.post = p.id)
        SELECT DISTINCT a.title, k FROM s a JOIN (SELECT count(*) k FROM s) b ON a.author < b.k""",
}


@pytest.fixture(scope="module")
def posts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_with(spark, tmp_path_factory.mktemp("posts"), TABLES)


@pytest.fixture
def free(free: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Semi joins for all branches, whatever they cost."""
    monkeypatch.setattr(existence_price, "_REPEATS", 0.0)
    monkeypatch.setattr(existence_price, "_ALONE", 0)


@pytest.fixture(params=["true", "false"])
def ansi(request: pytest.FixtureRequest, posts: SparkSession) -> Iterator[None]:
    posts.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    posts.conf.unset("spark.sql.ansi.enabled")


def semi_joins(session: SparkSession, text: str, **options: object) -> int:
    """How many semi joins a query gets, after rows and schema were compared with plain Spark's."""
    without = "self_join_to_semi_join,aggregate_to_window"
    report = checked(session.sql(text), **{"rewrites_without": without, **options})
    return sum(NOTE in note for note in report.spared_joins)


@pytest.mark.usefixtures("free", "ansi")
@pytest.mark.parametrize("name", REPLACED)
def test_partners_are_only_looked_for(posts: SparkSession, name: str) -> None:
    text, found = REPLACED[name]
    assert semi_joins(posts, text) == found


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(posts: SparkSession, name: str) -> None:
    assert semi_joins(posts, KEPT[name]) == 0


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a, b FROM {} WHERE 10 / (a - b) > 0",
        "SELECT DISTINCT a, b FROM {} WHERE cast(20 / (a - b) AS int) IN (SELECT z FROM z)",
        "SELECT DISTINCT a, b FROM {} WHERE 10 / (a - b) > 100 OR EXISTS (SELECT 1 FROM z WHERE z = x.a)",
        "SELECT * FROM (SELECT a, b FROM {} EXCEPT SELECT 1, 2) WHERE 10 / (a - b) > 0",
        "SELECT * FROM (SELECT a, b FROM {} INTERSECT SELECT z.z, y.b FROM z, y) WHERE 10 / (a - b) > 0",
        "SELECT DISTINCT a, b, z FROM (SELECT a, b FROM {}) s LEFT JOIN z ON z = a WHERE 10 / (a - b) > 0",
        "SELECT DISTINCT a, b FROM (SELECT a, b, 10 / (a - b) q FROM {}) WHERE q > 0",
        "SELECT a, b, max(x.id) FROM {} GROUP BY a, b HAVING 10 / (a - b) > 0",
        "SELECT DISTINCT a, b FROM {} WHERE if(a = b, raise_error('no'), true)",
    ],
)
def test_what_may_fail_is_evaluated_on_the_same_rows(posts: SparkSession, text: str) -> None:
    """`10 / (a - b)` fails for the rows of `x` and `y` that have no partner in `w`, and Spark moves it down to both."""
    posts.sql("SELECT * FROM VALUES (1, 10), (2, 20), (3, 30) x(id, a)").createOrReplaceTempView("x")
    posts.sql("SELECT * FROM VALUES (1, 3), (2, 5), (3, 30), (2, 6) y(id, b)").createOrReplaceTempView("y")
    posts.sql("SELECT * FROM VALUES (1, 0), (2, 1), (1, 2) w(id, kind)").createOrReplaceTempView("w")
    posts.sql("SELECT * FROM VALUES (1), (10), (20) z(z)").createOrReplaceTempView("z")
    posts.conf.set("spark.sql.ansi.enabled", "true")
    try:
        joins = "x JOIN w ON w.id = x.id JOIN y ON y.id = x.id AND w.kind <= y.b"
        assert semi_joins(posts, text.format(joins)) == 0
    finally:
        posts.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.usefixtures("free")
def test_correlated_subqueries_are_left_alone(posts: SparkSession) -> None:
    """Spark does not decorrelate the right side of a semi join."""
    text = """SELECT author, (SELECT max(title) FROM p JOIN c ON c.post = p.id WHERE c.score = o.author) FROM p o"""
    assert semi_joins(posts, text) == 0
    itself = """SELECT author, (SELECT max(a.title) FROM p a JOIN p b ON a.id = b.id AND a.title >= b.title
        WHERE b.author = o.author) FROM p o"""
    checked(posts.sql(itself), rewrites_without="")
    lateral = """SELECT author, t FROM p o, LATERAL (SELECT DISTINCT title t FROM p JOIN c ON c.post = p.id
        WHERE c.score = o.author)"""
    assert semi_joins(posts, lateral) == 0


def test_switched_off(posts: SparkSession, free: None) -> None:
    text, _ = REPLACED["two branches"]
    assert semi_joins(posts, text, rewrites_without="inner_to_semi_joins") == 0
    assert semi_joins(posts, text, strategy="heuristic") == 0


@pytest.mark.usefixtures("free")
def test_frames(posts: SparkSession) -> None:
    p, c = posts.table("p"), posts.table("c")
    df = p.join(c.withColumnRenamed("id", "cid"), p.id == c.post).select(p.title).distinct()
    assert any(NOTE in note for note in checked(df).spared_joins)
    joined = p.join(c.select("post", "score"), p.id == c.post).dropDuplicates(["title"])
    assert not any(NOTE in note for note in joined.optimize_joins(strict=True)._pyjoinopt_report.spared_joins)


@pytest.mark.usefixtures("free")
def test_hidden_columns_can_still_be_named(posts: SparkSession) -> None:
    p, c = posts.table("p").select("id", "title"), posts.table("c").selectExpr("post as id")
    df = p.join(c, "id").distinct()
    fast = df.optimize_joins(strict=True)
    assert not any(NOTE in note for note in fast._pyjoinopt_report.spared_joins)
    assert sorted(fast.select(c.id).collect()) == sorted(df.select(c.id).collect())
    below = p.join(c, "id").select("title").distinct()
    fast = below.optimize_joins(strict=True)
    assert sorted(fast.select(c.id).collect()) == sorted(below.select(c.id).collect())
    assert any(NOTE in note for note in checked(p.join(c, "id").groupBy("title").max("id")).spared_joins)


@pytest.fixture(scope="module")
def many(posts: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Tables that are too large to be broadcast, one of which has ten rows of each key."""
    folder = tmp_path_factory.mktemp("many")
    for name, rows in (("big", 40_000), ("often", 400_000), ("once", 40_000)):
        text = f"SELECT cast(id * 7919 % 40000 AS int) k, concat('v', id % 300) v FROM range({rows})"
        posts.sql(text).coalesce(1).write.parquet(str(folder / name))
        posts.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    conf = "spark.sql.autoBroadcastJoinThreshold"
    before = posts.conf.get(conf)
    posts.conf.set(conf, "100kb")
    yield posts
    posts.conf.set(conf, before)


TWICE = """SELECT DISTINCT big.v FROM big JOIN often a ON a.k = big.k JOIN often b ON b.k = big.k
    JOIN once ON once.k = big.k"""


@pytest.mark.ci
def test_only_where_it_pays(many: SparkSession) -> None:
    report = checked(many.sql(TWICE), statistics="full")
    assert [note.split(":")[0] for note in report.spared_joins] == ["a", "b"], "`once` repeats no row"
    small = "SELECT DISTINCT big.v FROM big JOIN often a ON a.k = big.k WHERE big.k < 20"
    assert not checked(many.sql(small), statistics="full").spared_joins, "the smaller side is better built"


@pytest.mark.ci
def test_in_an_enabled_session(many: SparkSession) -> None:
    plain = many.sql(TWICE).collect()
    with enabled(many, "") as report_of:
        fast = many.sql(TWICE).collect()
        report = report_of()
    assert sorted(fast) == sorted(plain) and report.error is None
    assert any(NOTE in note for note in report.spared_joins)


@pytest.mark.ci
@pytest.mark.usefixtures("free", "ansi")
@pytest.mark.parametrize("seed", range(6))
def test_drawn_queries(posts: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    found = sum(semi_joins(posts, _drawn(draw)) > 0 for _ in range(16))
    assert found >= 6


def _drawn(draw: random.Random) -> str:
    """A query that joins posts with some of the other tables in some ways, where duplicates seldom matter."""
    tables = draw.sample(["c", "v", "t"], draw.randint(1, 3))
    joins, keys = ["p"], ["p.id"]
    for name in tables:
        key = draw.choice(keys)
        more = draw.choice(["", "", f" AND {name}.post < 40", f" AND {key} <> 14"])
        joins.append(f"JOIN {name} ON {name}.post = {key}{more}")
        keys.append(f"{name}.post")
    if "t" in tables and draw.random() < 0.7:
        joins.append("JOIN g ON g.id = t.tag")
    wheres = [draw.choice(["author < 5", "title <> 't3'", "p.id IS NOT NULL", "p.id > 2 OR author = 1"])]
    wheres += ["score < author"] if "c" in tables and draw.random() < 0.4 else []
    wheres += ["kind IN (0, 1)"] if "v" in tables and draw.random() < 0.5 else []
    wheres += ["c.post = v.post"] if {"c", "v"} <= set(tables) and draw.random() < 0.5 else []
    read = draw.choice(["title", "title, author", "p.id", "p.x"] + [f"{name}.post" for name in tables])
    body = f"{' '.join(joins)} WHERE {' AND '.join(wheres)}"
    return draw.choice(
        [
            f"SELECT DISTINCT {read} FROM {body}",
            f"SELECT {read}, max(author) m FROM {body} GROUP BY {read}",
            f"SELECT min(title), max({read.split(',')[0]}), count(DISTINCT author) FROM {body}",
            f"SELECT author FROM p o WHERE o.author IN (SELECT author FROM {body})",
            f"SELECT author FROM p o WHERE o.id NOT IN (SELECT p.id FROM {body} AND p.id IS NOT NULL)",
            f"SELECT {read} FROM {body} EXCEPT SELECT {read} FROM {body} AND title < 't4'",
            f"SELECT count(*), sum(author) FROM {body}",
        ]
    )
