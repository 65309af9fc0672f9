"""Logical plan nodes of the mirror.

Five kinds have a class of their own because rules read them (`Join`, `Filter`, `Project`, `Aggregate`,
`SubqueryAlias`); everything else is a plain `LogicalPlan`: a Catalyst class name, children, expressions and output.
Such a node is opaque: it may get other children with the same output, and that is all that may be done to it.

`number` and `origin` mean what they mean for expressions: `number` stands for "this is JVM node *n*, with all below
it", `origin` for "JVM node *n* with other children or expressions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjoinopt.plan.expressions import Attribute, Expression

INNER, CROSS = "Inner", "Cross"
LEFT, RIGHT, FULL = "LeftOuter", "RightOuter", "FullOuter"
SEMI, ANTI, EXISTENCE, SINGLE = "LeftSemi", "LeftAnti", "ExistenceJoin", "LeftSingle"
INNER_LIKE = frozenset({INNER, CROSS})
OUTER = frozenset({LEFT, RIGHT, FULL})

#: A pair of hint strategies, left and right (Catalyst's JoinHint), e.g. `(None, "BROADCAST")`.
Hint = tuple[str | None, str | None]
NO_HINT: Hint = (None, None)
#: What a join keeps of the IN or EXISTS that it was made of.
_OF_PREDICATES = ("early", "subquery", "early_reads")


def attribute_set(attributes: Sequence[Attribute]) -> int:
    """The set of attributes as an int, bit by bit."""
    mask = 0
    for attribute in attributes:
        mask |= 1 << attribute.bit
    return mask


class LogicalPlan:
    """A node of the plan; an opaque one if it has no subclass.

    `cached` is true if the session holds cached data for exactly this sub-plan: it must not be changed. `info` holds
    what only some kinds have, by the keys of `plan.info_keys`.
    """

    __slots__ = (
        "kind", "children", "output", "output_set", "expressions", "number", "origin", "info", "cached", "below",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        children: tuple[LogicalPlan, ...] = (),
        output: tuple[Attribute, ...] = (),
        expressions: tuple[Expression, ...] = (),
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
        output_set: int | None = None,
    ) -> None:
        self.kind = kind
        self.children = children
        self.output = output
        self.output_set: int = attribute_set(output) if output_set is None else output_set
        self.expressions = expressions
        self.number = number
        self.origin = origin
        self.info = info or {}
        self.cached = bool(self.info.get("cached"))
        #: What is below this node, once it was walked (`plan.traversal.post_order`).
        self.below: tuple[LogicalPlan, ...] | None = None

    @property
    def references(self) -> int:
        """Attributes that this node's own expressions read (Catalyst's `references`)."""
        if "reads_set" in self.info:
            return int(self.info["reads_set"])
        mask = 0
        for e in self.expressions:
            mask |= e.references
        return mask

    def with_children(self, children: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """The same node over other children that have the same output."""
        if children == self.children:  # by identity: nodes have no other equality
            return self
        return self._copy(children, self.expressions)

    def with_expressions(self, expressions: tuple[Expression, ...]) -> LogicalPlan:
        """The same node with other expressions in the same places."""
        if expressions == self.expressions:
            return self
        return self._copy(self.children, expressions)

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> LogicalPlan:
        return LogicalPlan(self.kind, children, self.output, expressions, None, self.origin, _uncached(self.info))

    def __repr__(self) -> str:
        return f"{self.kind}{list(self.output)}"


def _uncached(info: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in info.items() if k != "cached"} if "cached" in info else info


class Join(LogicalPlan):
    """A join of any type. `hint` is Catalyst's JoinHint (none on analysed plans).

    A semi or anti join is `held` if Spark's optimizer should not move it (`joins.emit.pinned_semi_joins`). Of one made
    of an IN or EXISTS, `early` is the number of the JVM's join that knows the predicate. With a `subquery`, the same
    number, it is built as the filter with that predicate (`rewrites.restore_subqueries`).
    """

    __slots__ = ("join_type", "condition", "hint")

    def __init__(
        self,
        left: LogicalPlan,
        right: LogicalPlan,
        join_type: str = INNER,
        condition: Expression | None = None,
        hint: Hint = NO_HINT,
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
        exists: Attribute | None = None,
    ) -> None:
        if join_type in (SEMI, ANTI):
            output, output_set = left.output, left.output_set
        elif join_type == EXISTENCE and exists is not None:
            output, output_set = (*left.output, exists), left.output_set | exists.mask
        else:
            output, output_set = left.output + right.output, left.output_set | right.output_set
        expressions = () if condition is None else (condition,)
        super().__init__("Join", (left, right), output, expressions, number, origin, info, output_set)
        self.join_type = join_type
        self.condition = condition
        self.hint = hint

    @property
    def left(self) -> LogicalPlan:
        return self.children[0]

    @property
    def right(self) -> LogicalPlan:
        return self.children[1]

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> Join:
        exists = self.output[-1] if self.join_type == EXISTENCE else None
        condition = expressions[0] if expressions else None
        return Join(
            children[0], children[1], self.join_type, condition, self.hint, None, self.origin,
            _uncached(self.info), exists,
        )  # fmt: skip

    @property
    def held(self) -> bool:
        return bool(self.info.get("held"))

    @property
    def early(self) -> int | None:
        number: int | None = self.info.get("early")
        return number

    @property
    def early_reads(self) -> int:
        """The columns that the predicate of the query reads; a part of it may have left the condition."""
        reads: int = self.info.get("early_reads", 0)
        return reads

    @property
    def subquery(self) -> int | None:
        number: int | None = self.info.get("subquery")
        return number

    def as_subquery(self) -> Join:
        """The same semi or anti join, to be built as the predicate that it was in the query."""
        info = {"subquery": self.early, "early_reads": self.early_reads}
        return Join(self.left, self.right, self.join_type, self.condition, self.hint, info=info)

    def with_inputs(self, left: LogicalPlan, right: LogicalPlan, condition: Expression | None, hint: Hint) -> Join:
        """A new join of the same type, and of the same predicate of the query if it was one."""
        info: dict[str, Any] = {key: self.info[key] for key in _OF_PREDICATES if key in self.info}
        return Join(left, right, self.join_type, condition, hint, info=info or None)

    def with_hint(self, hint: Hint) -> Join:
        """The same join with a hint. An existence join remains a copy of its origin, which adds the column."""
        if self.join_type == EXISTENCE:
            info, mark = _uncached(self.info), self.output[-1]
            return Join(self.left, self.right, EXISTENCE, self.condition, hint, None, self.origin, info, mark)
        held = {"held": True} if self.held else None
        return Join(self.left, self.right, self.join_type, self.condition, hint, info=held)

    def with_type(self, join_type: str) -> Join:
        """The same join with another of the types inner, cross, left, right, full."""
        return Join(self.left, self.right, join_type, self.condition, self.hint)


class Filter(LogicalPlan):
    """Keeps the rows for which the condition is true."""

    __slots__ = ("condition",)

    def __init__(
        self,
        condition: Expression,
        child: LogicalPlan,
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("Filter", (child,), child.output, (condition,), number, origin, info, child.output_set)
        self.condition = condition

    @property
    def child(self) -> LogicalPlan:
        return self.children[0]

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> Filter:
        return Filter(expressions[0], children[0], None, self.origin, _uncached(self.info))


class Project(LogicalPlan):
    """A list of attributes and aliases over the child."""

    __slots__ = ()

    def __init__(
        self,
        projections: tuple[Expression, ...],
        child: LogicalPlan,
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
        output: tuple[Attribute, ...] | None = None,
    ) -> None:
        columns = output if output is not None else tuple(e.attribute for e in projections if e.attribute)
        super().__init__("Project", (child,), columns, projections, number, origin, info)

    @property
    def projections(self) -> tuple[Expression, ...]:
        return self.expressions

    @property
    def child(self) -> LogicalPlan:
        return self.children[0]

    @property
    def only_attributes(self) -> bool:
        """True if it just picks and orders columns."""
        return all(e.kind == "AttributeReference" for e in self.expressions)

    def columns(self) -> dict[int, Expression]:
        """Attribute bit of each computed column -> the expression behind it."""
        return {e.attribute.bit: e.children[0] for e in self.expressions if e.kind == "Alias" and e.attribute}

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> Project:
        return Project(expressions, children[0], None, self.origin, _uncached(self.info), self.output)


class Aggregate(LogicalPlan):
    """GROUP BY `grouping`, giving `aggregates`."""

    __slots__ = ("grouping",)

    def __init__(
        self,
        grouping: tuple[Expression, ...],
        aggregates: tuple[Expression, ...],
        child: LogicalPlan,
        output: tuple[Attribute, ...],
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("Aggregate", (child,), output, grouping + aggregates, number, origin, info)
        self.grouping = grouping

    @property
    def aggregates(self) -> tuple[Expression, ...]:
        return self.expressions[len(self.grouping) :]

    @property
    def child(self) -> LogicalPlan:
        return self.children[0]

    @property
    def group_only(self) -> bool:
        """Catalyst's `groupOnly`: no aggregate function, only grouping expressions in the list."""
        groups = {g.key for g in self.grouping}
        return all((e.children[0] if e.kind == "Alias" else e).key in groups for e in self.aggregates)

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> Aggregate:
        n = len(self.grouping)
        return Aggregate(
            expressions[:n], expressions[n:], children[0], self.output, None, self.origin, _uncached(self.info)
        )


class SubqueryAlias(LogicalPlan):
    """A name for a sub-plan; qualifiers only, no effect on rows."""

    __slots__ = ("name",)

    def __init__(
        self,
        name: str,
        child: LogicalPlan,
        number: int | None = None,
        origin: int | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("SubqueryAlias", (child,), child.output, (), number, origin, info, child.output_set)
        self.name = name

    @property
    def child(self) -> LogicalPlan:
        return self.children[0]

    def _copy(self, children: tuple[LogicalPlan, ...], expressions: tuple[Expression, ...]) -> SubqueryAlias:
        return SubqueryAlias(self.name, children[0], None, self.origin, _uncached(self.info))


def relation(name: str, output: Sequence[Attribute], **info: Any) -> LogicalPlan:
    """A leaf for tests and examples."""
    return LogicalPlan("LocalRelation", (), tuple(output), info={"rel": {"kind": "test", "name": name}, **info})
