"""Random queries for both rules, the same ones for the same seed."""

from __future__ import annotations

import re
from random import Random

_FUNCTIONS = (
    "count(*)",
    "count(x)",
    "sum(y)",
    "min(s)",
    "max(y)",
    "avg(y)",
    "count(distinct k)",
    "sum(distinct x)",
    "bool_or(y > 3)",
    "sum(x) filter (where y > 2)",
    "coalesce(max(x), 7)",
    "count(*) + max(k)",
    "max(s)",
    "stddev(y)",
)
_OWN = (
    "x = 1",
    "x = 2",
    "x > 1",
    "x is null",
    "y between 2 and 6",
    "s like 'a%'",
    "s is not null",
    "k in (1, 3, 4)",
    "x < y",
    "k = 1 or x = 2",
    "not (x = 1 and y > 3)",
    "x <=> null",
    "coalesce(k, 1) = 1",
    "x = 99",
    "length(s) > 1",
)
_SOURCES = (
    "t",
    "t",
    "empty t",
    "(select * from t where y > 0) t",
    "t join d on t.k = d.k",
    "d join t on t.k = d.k and d.z = 1",
    "t left join d on t.k = d.k",
    "(select distinct k, x, y, s from t) t",
    "t join d on t.k = d.k join u on u.x = d.z and u.y < 3",
    "d join u on u.x = d.z and u.y < 3 join t on d.k = t.k",
    "(select t.k, max(t.x) x, count(*) y, min(t.s) s from t join d on t.k = d.k group by t.k) t",
    "(select t.k, max(t.x) x, count(*) y, min(t.s) s from d join t on d.k = t.k group by t.k) t",
    "t left semi join d on t.k = d.k",
    "t, d",
    "(select k, max(x) x, count(*) y, min(s) s from t group by k) t",
)


def product(draw: Random, repeat: bool) -> str:
    """Two to four aggregates, cross joined; with `repeat` a filter may occur twice."""
    sources = draw.sample(_SOURCES, draw.choice((1, 1, 1, 2)))
    common = draw.choices(_OWN, k=draw.choice((0, 0, 1)))
    parts = []
    for i in range(draw.choice((2, 2, 3, 4))):
        functions = draw.sample(_FUNCTIONS, draw.choice((1, 2, 3)))
        filters = [*common, *draw.sample(_OWN, draw.choice((0, 1, 1, 2)))]
        if not repeat:
            filters = list(dict.fromkeys(filters))
        elif filters:
            filters.append(draw.choice(filters))
        draw.shuffle(filters)
        where = " and ".join(f"({_qualified(f)})" for f in filters)
        listed = ", ".join(f"{_qualified(f)} c{i}{j}" for j, f in enumerate(functions))
        parts.append(f"(select {listed} from {draw.choice(sources)}{' where ' + where if where else ''}) q{i}")
    if draw.random() < 0.3:
        parts.insert(draw.randrange(len(parts) + 1), "(select k dk, z from d where k < 3) d")
    columns = draw.choice(("*", "q1.*, q0.*", "q0.c00, q1.c10"))
    where = draw.choice(("", "", " where q0.c00 is not null or q1.c10 is null", " where q1.c10 <=> q0.c00"))
    if where.endswith("q0.c00"):
        where = " where cast(q1.c10 as string) <=> cast(q0.c00 as string)"
    inner = f"select {columns} from {', '.join(parts)}{where}"
    if draw.random() < 0.2:
        return f"select k, z from d where exists (select 1 from ({inner}) where d.z = 1)"
    return inner


_PLACES = (
    "select {0}, {1}, {2}, {3}, {4}, {5}",
    "select case when {0} > 3 then {1} when {2} > {3} then {4} else {5} end",
    "select k, {0}, {1} from d where z < {2} or {3} > {4} or {5} is null",
    "select k, count(*) from d group by k having count(*) < {0} or max(z) > {1} or {2} > {3} or {4} > {5}",
    "select k, {0} from d where exists (select 1 from u where u.k = d.k and u.y < {1} + {2}) or {3} < {4} + {5}",
    "select d.k, {0} from d join u on d.k = u.k and u.y < {1} where u.x < {2} or {3} > {4} order by {5}, d.k",
    "select max(q) from (select {0} q from d union all select {1} union all select {2} where {3} < {4}) where q < {5}",
)


def scalar_subqueries(draw: Random) -> str:
    """Two to six scalar subqueries over tables of one schema, some of them several times, in some place."""
    functions = draw.sample([f for f in _FUNCTIONS if not f.startswith(("min(s)", "max(s)", "bool_or"))], 3)
    common = draw.choices(_OWN, k=draw.choice((0, 0, 1)))
    several = []
    for _ in range(draw.choice((2, 3, 4, 5, 6))):
        filters = [*common, *draw.sample(_OWN, draw.choice((0, 1, 1, 1, 2)))]
        where = " where " + " and ".join(f"({f})" for f in filters) if filters else ""
        several.append(
            f"(select {draw.choice(functions)} from {draw.choice(('t', 't', 't', 't', 'u', 'empty'))}{where})"
        )
    return draw.choice(_PLACES).format(*several, *draw.choices(several, k=6 - len(several)))


def _qualified(text: str) -> str:
    return re.sub(r"(?<!')\b([kxys])\b", r"t.\1", text)


_PAIRS = (
    "a.k = b.k",
    "a.k = b.k and a.x <> b.x",
    "a.k = b.k and a.y < b.y",
    "a.k = b.k and a.x = b.x",
    "a.s = b.s and b.y > 2",
    "a.k = b.x",
    "a.k = b.k and (a.x > b.x or b.s like 'a%')",
    "a.k < b.k and a.y = b.y",
    "a.k = b.k and b.x is null",
)
_AROUND = (
    "",
    "",
    " join d z on z.k = a.k",
    " left join d z on z.k = a.x",
    " join t c on c.x = a.x and c.y < 3",
    " left join d z on z.k = b.x",
    " join t c on c.k = b.k",
)
_READERS = (
    "select distinct {one} from {w}",
    "select distinct {one}, {two} from {w} where {one} is not null",
    "select {one}, max({two}) from {w} group by {one}",
    "select min({two}), count(distinct {one}) from {w}",
    "select d.* from d where k in (select {one} from {w})",
    "select d.* from d where not exists (select 1 from {w} where {one} = d.k)",
    # `9 / (k + 5)` might fail for all that is known, so that this IN must remain one, and the other one need not.
    "select d.* from d where 9 / (k + 5) > 1 and k in (select {one} from {w} where {two} > 1)",
    "select d.* from d where 9 / (k + 5) > 1 and k in (select {one} from {w} where {two} > 1) and z in "
    "(select {one} from {w})",
    "select {one} from {w} union select {two} from {w}",
    "select k from d except select {one} from {w}",
    "select count(*), sum({one}) from {w}",
    "select {one}, {two} from {w}",
    "select {one}, count(*) from {w} group by {one}",
    "select distinct {one}, count(*) over (partition by {two}) from {w}",
    "select {one} from {w} intersect select k from d",
    "select d.k, (select max({two}) from {w} where {one} = d.k) from d",
    "select distinct v.{one} from {w} v join {w} u on v.{one} = u.{one}",
    "select * from (select distinct {one} from {w}) p left join (select max({two}) m from {w}) q on p.{one} < q.m",
)


def self_join(draw: Random) -> str:
    """A self-join in some surroundings, read once or several times."""
    table = draw.choice(("t", "t", "t", "u", "empty"))
    other = table if draw.random() < 0.9 else "t"
    columns = ["a.k one", "a.y two", "b.x three", "b.y four", "a.x + 1 five"]
    draw.shuffle(columns)
    where = draw.choice(("", "", " where a.y > 1", " where b.y < 5", " where a.x in (select z from d)"))
    around = draw.choice(_AROUND)
    pairs = f"select {', '.join(columns)} from {table} a join {other} b on {draw.choice(_PAIRS)}{around}{where}"
    names = draw.choice(
        (("one", "two"), ("one", "two"), ("one", "five"), ("two", "one"), ("one", "three"), ("four", "three"))
    )
    readers = [draw.choice(_READERS[:10]) if draw.random() < 0.7 else draw.choice(_READERS) for _ in range(2)]
    if draw.random() < 0.5:
        return readers[0].format(one=names[0], two=names[1], w=f"({pairs})")
    text = readers[0].format(one=names[0], two=names[1], w="w")
    if draw.random() < 0.6:
        second = readers[1].format(one=names[0], two=names[1], w="w")
        text = f"select count(*) n, count(distinct *) m from ({text}) union all select count(*), 0 from ({second})"
    return f"with w as ({pairs}) {text}"


_BOTH = (
    "a.k = b.k",
    "a.k = b.k and a.s = b.s",
    "a.k = b.k and a.v < b.v",
    "a.k = b.k and abs(a.k) = b.k",
    "a.k = b.k and a.k + 0 = b.k",
    "abs(a.k) = b.k",
    "a.k = b.k and 2 * a.k = b.k",
    "a.k <=> b.k",
    "a.s = b.s and lower(a.s) = b.s",
)
_GROUPS = (
    "select k, x, count(*) n, sum(y) v, max(s) s from t group by k, x",
    "select s, x, count(*) n, sum(y) v, max(k) k from t group by s, x",
    "select upper(s) s, x, count(*) n, sum(y) v, 3 - max(k) k from t group by upper(s), x",
    "select 3 - k k, x, count(*) n, sum(y) v, max(s) s from t group by k, x",
)


def pivot(draw: Random) -> str:
    """Readers of one aggregate that are distinguished by constants, joined by columns or what is computed of these."""
    both = draw.choice(_BOTH)
    one, other = draw.choice(("a.x = 1", "a.x = 2 and a.v > 0")), draw.choice(("b.x = 2", "b.x = 3", "b.x = 2 + 1"))
    further = draw.choice(("", "", " join d on d.k = b.k", " left join d on d.k = a.v"))
    columns = draw.choice(("a.k, a.v, b.v", "a.s, b.n, b.s", "count(*), sum(a.v * b.n)", "a.*, b.v"))
    text = f"select {columns} from w a join w b on {both}{further} where {one} and {other}"
    if draw.random() < 0.3:
        text += f" union all {text}"
    return f"with w as ({draw.choice(_GROUPS)}) {text}"
