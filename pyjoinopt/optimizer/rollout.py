"""Which queries of a session are changed: by lists of tables and descriptions, and by a share of all queries.

    spark.pyjoinopt.denyTables         hr.*, *_staging          these tables stay out of it
    spark.pyjoinopt.allowDescriptions  nightly *                only these jobs (SparkContext.setJobDescription)
    spark.pyjoinopt.canary             0.1                      a tenth of the queries

A share is a share of *shapes* (`query_shape`): the hash of a query without its constants decides, so a recurring query
is always changed or always left alone, in every session and after every restart, and a larger share contains a smaller
one. Spark plans a subquery in WHERE or SELECT by itself, and so it is decided by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from pyjoinopt.config import Options, parts
from pyjoinopt.feedback.query_shape import query_shape, subquery_plans
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: The hash is one of so many.
_HASHES = 1 << 32


def why_left_out(options: Options, root: LogicalPlan, description: str = "", writer: str = "") -> str | None:
    """The reason to leave a query as written, whatever could be won; None to optimise it.

    Args:
        options: of the session.
        root: the plan of the query.
        description: that of its Spark job; empty if it has none.
        writer: the operator that writes its rows; empty if there is none.
    """
    return (
        _by_description(options, description)
        or _by_tables(options, root)
        or _by_share(options.canary, root, writer)
    )


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


def _by_share(share: float, root: LogicalPlan, writer: str) -> str | None:
    if share >= 1.0:
        return None
    if int(query_shape(root, writer).shape[:8], 16) < share * _HASHES:
        return None
    return f"it is not in the share of queries that are changed (spark.pyjoinopt.canary = {share:g})"


def _leaves(root: LogicalPlan) -> Iterator[LogicalPlan]:
    for plan in (root, *subquery_plans(root)):
        yield from (node for node in post_order(plan) if not node.children)


def _names(leaf: LogicalPlan) -> Iterator[str]:
    """By what a list may name a relation: its full name, that without its catalog and schema, and its path.

    None for rows that are no table, such as VALUES.
    """
    relation = leaf.info.get("rel") or {}
    whole = str(relation.get("name") or "")
    while whole:
        yield whole
        whole = whole.partition(".")[2]
    if relation.get("path"):
        yield str(relation["path"])


def _match(patterns: str, names: Iterable[str]) -> str | None:
    """The first pattern that fits one of the names; letters of both cases are the same."""
    lowered = [name.lower() for name in names]
    return next((p for p in parts(patterns) if any(fnmatchcase(name, p.lower()) for name in lowered)), None)
