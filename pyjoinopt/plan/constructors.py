"""What rules make anew: columns with an identity of their own, constants, counts, and the operators over them.

Most rules only move what is there. Those that rewrite INTERSECT ALL or push a projection through a union need columns
that are new. Each gets the next free bit; the JVM learns of it with the alias that defines it (`encode`), so
the defining alias must be part of the plan that is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    DETERMINISTIC,
    FOLDABLE,
    NULL_INTOLERANT,
    UNEVALUABLE,
    Attribute,
    Expression,
    reference,
)  # fmt: skip
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project


class ColumnFactory:
    """Gives out attributes that are in no plan yet.

    Args:
        first: the lowest bit that is free: the number of attributes of the export.

    >>> ColumnFactory(7).attribute("n", "bigint").bit
    7
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self._bits = count(first)

    def attribute(self, name: str, type: str, nullable: bool = True) -> Attribute:
        """A new column; its id is negative, so that it is no id of Spark's."""
        bit = next(self._bits)
        return Attribute(bit, -1 - bit, name, type, nullable)

    def alias(self, child: Expression, name: str, nullable: bool = True, like: Expression | None = None) -> Expression:
        """`child AS name`, a new column; with `like`, an existing alias, it takes over qualifiers and metadata."""
        info: dict[str, Any] = {"n": name}
        if like is not None and like.origin is not None:
            info["like"] = like.origin
        flags = DETERMINISTIC if child.deterministic else 0
        attribute = self.attribute(name, child.type, nullable)
        return Expression("Alias", (child,), child.type, flags, attribute, info=info)


def constant(value: int | bool | None, type: str) -> Expression:
    """A literal that can be sent to the JVM: `boolean` (also NULL), `int` or `bigint`.

    >>> constant(1, "bigint")
    1
    """
    text = "null" if value is None else str(value).lower()
    return Expression("Literal", type=type, flags=DETERMINISTIC | FOLDABLE, value=value, text=text)


def if_else(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """IF(condition, then, otherwise)."""
    return Expression("If", (condition, then, otherwise), then.type)


def aggregate_call(
    function: str, argument: Expression, type: str = "bigint", where: Expression | None = None
) -> Expression:
    """SUM or COUNT of a `bigint` or boolean column, or MAX, over the rows of a group for which `where` is true."""
    flags = DETERMINISTIC | AGGREGATE_OR_WINDOW | UNEVALUABLE
    inner = Expression(function, (argument,), type, flags)
    children = (inner,) if where is None else (inner, where)
    return Expression("AggregateExpression", children, type, flags, info={"distinct": False, "fn": function})


def window_call(function: Expression, partition: Sequence[Expression]) -> Expression:
    """An aggregate function over all rows with the same values of `partition`; `window` computes it."""
    flags = DETERMINISTIC | AGGREGATE_OR_WINDOW | UNEVALUABLE
    return Expression("WindowExpression", (function, *partition), function.type, flags)


def window(calls: Sequence[Expression], partition: Sequence[Expression], child: LogicalPlan) -> LogicalPlan:
    """The child's rows with one more column for each alias of a `window_call`; all have the same partition."""
    output = child.output + tuple(e.attribute for e in calls if e.attribute is not None)
    info = {"parts": [len(calls), len(partition), 0]}
    return LogicalPlan("Window", (child,), output, (*calls, *partition), info=info)


def alias_as(column: Attribute, child: Expression) -> Expression:
    """`child AS column`, for a column of a relation that is not read any more."""
    flags = DETERMINISTIC if child.deterministic else 0
    return Expression("Alias", (child,), child.type, flags, column, info={"n": column.name, "as": True})


def distinct(child: LogicalPlan) -> LogicalPlan:
    """SELECT DISTINCT * FROM child."""
    return LogicalPlan("Distinct", (child,), child.output, output_set=child.output_set)


def union(children: Sequence[LogicalPlan]) -> LogicalPlan:
    """UNION ALL by position; its columns are those of the first child."""
    info = {"byName": False, "allowMissing": False}
    return LogicalPlan("Union", tuple(children), children[0].output, info=info)


def local_limit(limit: Expression, child: LogicalPlan) -> LogicalPlan:
    """At most `limit` rows of every partition."""
    info = {"limit": limit.value if isinstance(limit.value, int) else None}
    return LogicalPlan("LocalLimit", (child,), child.output, (limit,), info=info, output_set=child.output_set)


def over(node: LogicalPlan, child: LogicalPlan) -> LogicalPlan:
    """The same operator, such as a limit or a sort, over another child, whose columns are its own."""
    info = {key: value for key, value in node.info.items() if key not in ("cached", "reads_set")}
    return LogicalPlan(
        node.kind, (child,), child.output, node.expressions, None, node.origin, info, output_set=child.output_set
    )


def aggregate(
    grouping: Sequence[Expression], aggregates: Sequence[Expression], child: LogicalPlan, like: Aggregate | None = None
) -> Aggregate:
    """GROUP BY anew; with `like` a copy of that aggregate (its hints) with other lists."""
    columns = tuple(e.attribute for e in aggregates if e.attribute is not None)
    origin = like.origin if like is not None else None
    return Aggregate(tuple(grouping), tuple(aggregates), child, columns, None, origin)


def replicate_rows(times: Attribute, columns: Sequence[Attribute], child: LogicalPlan) -> LogicalPlan:
    """Every row as often as the value of its column `times`; outputs the child's columns and then `columns` again."""
    arguments = tuple(reference(a) for a in (times, *columns))
    generator = Expression("ReplicateRows", arguments, "", DETERMINISTIC | NULL_INTOLERANT | AGGREGATE_OR_WINDOW)
    output = child.output + tuple(columns)
    info = {"generated": [a.bit for a in columns], "unrequired": [], "outer": False}
    return LogicalPlan("Generate", (child,), output, (generator,), info=info)


def project(columns: Sequence[Attribute], child: LogicalPlan) -> Project:
    """A projection that just picks and orders columns."""
    return Project(tuple(reference(a) for a in columns), child)


def might_contain(child: LogicalPlan, column: Attribute, keys: LogicalPlan, items: int) -> LogicalPlan:
    """The rows whose column may be among the keys: all that are, and some more (a Bloom filter).

    Args:
        child, column: a plan, and a column of it.
        keys: a plan with a single column of the same type.
        items: how many different keys are expected.
    """
    info = {"items": items}
    return LogicalPlan("MightContain", (child, keys), child.output, (reference(column),), None, None, info)


def with_distinct_ids(columns: Sequence[Attribute], fresh: ColumnFactory) -> list[Expression]:
    """A use of each column; one that was listed before gets an alias, so that all of them have ids of their own.

    >>> a = Attribute(0, 1, "a")
    >>> with_distinct_ids([a, a], ColumnFactory(1))
    [a, a AS a]
    """
    seen: set[int] = set()
    used = []
    for a in columns:
        used.append(fresh.alias(reference(a), a.name, a.nullable) if a.bit in seen else reference(a))
        seen.add(a.bit)
    return used
