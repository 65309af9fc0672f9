"""Where a broadcast hint is worth giving, and safe.

A hint is a promise that Spark does not check: it broadcasts a hinted side whatever its size. So a side is hinted only
if the rows that it can have at most are *proved* (exact counts, catalog counts, a limit, groups that there cannot be
more of), and the bytes of that many rows fit the threshold. And only where Spark, going by sizes of files and products
of joins, would not see it itself.
"""

from __future__ import annotations

from pyjoinopt.physical.build_side import BROADCAST, BROADCASTS_LEFT, BROADCASTS_RIGHT, JoinConf
from pyjoinopt.plan.nodes import NO_HINT, Hint
from pyjoinopt.statistics.relation import RelationStatistics


def broadcast_hint(
    join_type: str,
    left: RelationStatistics,
    right: RelationStatistics,
    left_spark_bytes: float,
    right_spark_bytes: float,
    threshold: float,
    existing: Hint = NO_HINT,
) -> tuple[str | None, str | None, str]:
    """The hint for an equi-join.

    Args:
        join_type: the type of the join.
        left, right: what is known of the two sides.
        left_spark_bytes, right_spark_bytes: what Spark believes (`spark_sizes.spark_bytes`).
        threshold: spark.sql.autoBroadcastJoinThreshold; below 0 nothing is ever hinted.
        existing: hints that the query gives; they are never touched.

    Returns:
        (strategy of the left side or None, strategy of the right side or None, the reason either way).

    >>> small = RelationStatistics(500.0, 20000.0, "footers", False, upper_bound=1000.0)
    >>> large = RelationStatistics(1e9, 1e11, "footers", True, upper_bound=1e9)
    >>> broadcast_hint("Inner", large, small, 1e11, 1e9, 10485760)
    (None, 'BROADCAST', 'at most 1,000 rows (40.0 kB), Spark believes 1.0 GB')
    """
    if existing != NO_HINT:
        return None, None, "the join has a hint already"
    if threshold < 0:
        return None, None, "broadcasting is switched off"
    conf = JoinConf(threshold=threshold)
    sides = [
        ("left", left, left_spark_bytes, join_type in BROADCASTS_LEFT),
        ("right", right, right_spark_bytes, join_type in BROADCASTS_RIGHT),
    ]
    allowed = [(name, known, believed) for name, known, believed, allows in sides if allows]
    if not allowed:
        return None, None, f"a {join_type} join cannot be broadcast"
    if any(conf.fits(believed) for _, _, believed in allowed):
        return None, None, "Spark broadcasts it by itself"
    proved = [(known.bytes_bound, name, known, believed) for name, known, believed in allowed]
    bound, name, known, believed = min(proved, key=lambda side: (side[0], side[1] == "left"))
    if not conf.fits(bound):
        return None, None, "no side is proved to fit"
    reason = f"at most {known.upper_bound:,.0f} rows ({_bytes(bound)}), Spark believes {_bytes(believed)}"
    return (BROADCAST, None, reason) if name == "left" else (None, BROADCAST, reason)


def _bytes(size: float) -> str:
    size = min(size, 1e300)  # products of many joins are larger than a float can be
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    return f"{size:.1e} PB" if size >= 1000 else f"{size:.1f} PB"
