"""Which queries of a session are changed: by lists of tables and descriptions, and by a share of all queries.

    spark.pyjoinopt.denyTables         hr.*, *_staging          queries over these tables run as written
    spark.pyjoinopt.allowDescriptions  nightly *                only these jobs (SparkContext.setJobDescription)
    spark.pyjoinopt.canary             0.1                      a tenth of the queries

A share is a share of *shapes* (`query_shape`): the hash of a query without its constants decides, so a recurring query
is always changed or always left alone, in every session and after every restart, and a larger share contains a smaller
one. Spark plans a subquery in WHERE or SELECT by itself, and so it is decided by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from pyjoinopt.config import Options, parts
from pyjoinopt.feedback.query_shape import query_shape, subquery_plans
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: The number of possible hash values.
_HASHES = 1 << 32
#: Kinds of relations that are no table: what is in memory, and rows of the program.
_NO_TABLES = frozenset({"memory", "rdd", "local"})
#: Between the table and the database of a JDBC relation.
_AT = " at "


def why_left_out(options: Options, root: LogicalPlan, description: str = "") -> str | None:
    """The reason to leave a query as written, whatever could be won; None to optimise it.

    Args:
        options: of the session.
        root: the plan of the query.
        description: that of its Spark job; empty if it has none.
    """
    left = _by_description(options, description) or _by_tables(options, root)
    return left if left is not None or options.mode != "on" else _by_share(options.canary, root)


def _by_description(options: Options, description: str) -> str | None:
    denied = _match(options.deny_descriptions, [description])
    if denied is not None:
        return f"the description of its job is in spark.pyjoinopt.denyDescriptions ({denied})"
    if options.allow_descriptions.strip() and _match(options.allow_descriptions, [description]) is None:
        return "the description of its job is not in spark.pyjoinopt.allowDescriptions"
    return None


def _by_tables(options: Options, root: LogicalPlan) -> str | None:
    if not options.deny_tables.strip() and not options.allow_tables.strip():
        return None
    for leaf in _leaves(root):
        names = list(_names(leaf))
        denied = _match(options.deny_tables, names)
        if denied is not None:
            return f"it reads a table that is in spark.pyjoinopt.denyTables ({denied}): {names[0]}"
        if names and options.allow_tables.strip() and _match(options.allow_tables, names) is None:
            return f"it reads a table that is not in spark.pyjoinopt.allowTables: {names[0]}"
    return None


def _by_share(share: float, root: LogicalPlan) -> str | None:
    if share >= 1.0 or int(query_shape(root).shape[:8], 16) < share * _HASHES:
        return None
    return f"it is not in the share of queries that are changed (spark.pyjoinopt.canary = {share:g})"


def _leaves(root: LogicalPlan) -> Iterator[LogicalPlan]:
    for plan in (root, *subquery_plans(root)):
        yield from (node for node in post_order(plan) if not node.children)


def _names(leaf: LogicalPlan) -> Iterator[str]:
    """The names that a pattern may match: the full name, those without catalog and schema, and the paths.

    None for what is no table, such as VALUES. A cached table keeps its name; other cached data has none.
    """
    relation = leaf.info.get("rel") or {}
    name = str(relation.get("name") or "").replace("`", "")
    if relation.get("kind") == "jdbc":
        name = name.partition(_AT)[0]
    if relation.get("kind") in _NO_TABLES and name in ("", "cached", "rdd"):
        name = ""
    while name:
        yield name
        name = name.partition(".")[2]
    for path in relation.get("paths") or filter(None, [relation.get("path")]):
        for text in (str(path), urlsplit(str(path)).path):
            yield text
            yield f"{text}/"  # `/data/raw/*` is the folder, too


def _match(patterns: str, names: Iterable[str]) -> str | None:
    """The first pattern that fits one of the names; case-insensitive."""
    lowered = [name.lower() for name in names]
    return next((p for p in parts(patterns) if any(fnmatchcase(name, p.lower()) for name in lowered)), None)
