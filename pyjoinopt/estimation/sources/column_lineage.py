"""Column lineage: conjuncts in terms of the columns of leaves, and the columns by which leaves are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyjoinopt.estimation.model.comparisons import and_operands
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.sources.star_joins import LeafEquality, leaf_equalities
from pyjoinopt.plan import limits
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import (
    AGGREGATE_OR_WINDOW,
    OUTER_REFERENCE,
    PYTHON_UDF,
    SUBQUERY,
    Expression,
    reference,
    substitute,
    walk,
)
from pyjoinopt.plan.nodes import ANTI, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import ROWS_ONE_TO_ONE
from pyjoinopt.plan.traversal import post_order

#: What cannot be evaluated over a row of one relation.
NEVER = AGGREGATE_OR_WINDOW | OUTER_REFERENCE | PYTHON_UDF | SUBQUERY
_SEMI = frozenset({SEMI, ANTI})
_GROUPS = frozenset({"Aggregate", "Distinct"})
#: Readers of a common table expression join it, more often than not.
_JOINED = frozenset({"Join", "CTERelationDef"})


@dataclass(frozen=True, slots=True)
class PlanLeaves:
    """What a plan reads of its leaves.

    Attributes:
        leaves: of which there may be a sample.
        filtered: those of which a conjunct reads columns of no other relation, with these conjuncts.
        keys: number of a leaf -> the columns that joins compare, as an attribute mask.
        compared: equalities of their columns in inner joins.
        semi_keys: number of a leaf -> the columns that semi and anti joins compare with columns of another leaf.
        grouped: numbers of leaves whose rows make groups that are joined.
    """

    leaves: tuple[LogicalPlan, ...]
    filtered: tuple[tuple[LogicalPlan, list[Expression]], ...]
    keys: dict[int, int]
    compared: tuple[LeafEquality, ...]
    semi_keys: Mapping[int, int] = field(default_factory=dict)
    grouped: frozenset[int] = frozenset()


class ColumnLineage:
    """Maps each computed or renamed column to an expression over leaf columns.

    Feed it the nodes of a plan bottom-up with `add_aliases`.
    """

    def __init__(self) -> None:
        self._meaning: dict[int, Expression] = {}

    def add_aliases(self, node: LogicalPlan) -> None:
        """Add the definitions of the columns of a projection, or of a node that renames its child's columns."""
        if isinstance(node, Project):
            for bit, e in node.columns().items():
                if bit not in self._meaning:
                    meant = substitute(e, self._meaning)
                    if meant.deterministic and not meant.contains & NEVER and _is_short(meant):
                        self._meaning[bit] = meant
        elif node.kind in ROWS_ONE_TO_ONE and len(node.output) == len(node.children[0].output):
            for before, after in zip(node.children[0].output, node.output):  # a view names columns anew
                if before.bit != after.bit and after.bit not in self._meaning:
                    self._meaning[after.bit] = self._meaning.get(before.bit, reference(before))

    def conjuncts(self, condition: Expression) -> tuple[Expression, ...]:
        """The conjuncts of a condition, over the columns of leaves."""
        parts = and_operands(inline_common_expressions(condition))
        return tuple(map(self.meaning, parts))

    def meaning(self, e: Expression) -> Expression:
        """An expression over the columns of leaves."""
        return substitute(e, self._meaning) if e.references else e

    def of_leaves(
        self, plan: LogicalPlan, sampled: Callable[[LogicalPlan], bool]
    ) -> PlanLeaves:
        """What a plan reads of its leaves.

        Args:
            plan: plans of subqueries are not entered.
            sampled: whether a leaf is one of which there may be a sample.
        """
        nodes = list(post_order(plan))
        owner: dict[int, LogicalPlan] = {}
        leaves: list[LogicalPlan] = []
        keys = join_keys(nodes)
        keys_of: dict[int, int] = {}
        for node in nodes:
            if not node.children and sampled(node):
                leaves.append(node)
                owner.update((attribute.bit, node) for attribute in node.output)
                keys_of[number_of(node)] = keys & node.output_set
            self.add_aliases(node)
        found: dict[int, tuple[LogicalPlan, list[Expression]]] = {}
        for node in nodes:
            condition = node.condition if isinstance(node, (Filter, Join)) else None
            for e in self.conjuncts(condition) if condition is not None else ():
                leaf = owner.get(e.references.bit_length() - 1) if e.references else None
                if leaf is not None and not e.references & ~leaf.output_set and is_countable(e):
                    found.setdefault(number_of(leaf), (leaf, []))[1].append(e)
        compared = leaf_equalities(nodes, self.meaning)
        semi_keys: dict[int, int] = {}
        for equality in leaf_equalities(nodes, self.meaning, _SEMI):
            if equality.one.bit in owner and equality.other.bit in owner:
                for column in equality:
                    number = number_of(owner[column.bit])
                    semi_keys[number] = semi_keys.get(number, 0) | column.mask
        below = _below_joined_groups(nodes)
        grouped = frozenset(number_of(leaf) for leaf in leaves if id(leaf) in below)
        return PlanLeaves(tuple(leaves), tuple(found.values()), keys_of, tuple(compared), semi_keys, grouped)


def _below_joined_groups(nodes: Sequence[LogicalPlan]) -> set[int]:
    """Ids of nodes below a GROUP BY or DISTINCT whose result is joined; `nodes` has children before parents."""
    joined: set[int] = set()
    grouped: set[int] = set()
    for node in reversed(nodes):
        children = [id(child) for child in node.children]
        if id(node) in grouped or id(node) in joined and node.kind in _GROUPS:
            grouped.update(children)
        if id(node) in joined or node.kind in _JOINED:
            joined.update(children)
    return grouped


def join_keys(nodes: Iterable[LogicalPlan]) -> int:
    """The set of attributes that joins compare with `=`."""
    keys = 0
    for node in nodes:
        for left, right, _ in equalities(node.condition) if isinstance(node, Join) else ():
            keys |= sum(a.mask for a in (column_of(left), column_of(right)) if a is not None)
    return keys


def is_countable(e: Expression) -> bool:
    """Whether the JVM may be able to evaluate it; the JVM refuses what it cannot."""
    return bool(e.references) and e.deterministic and not e.contains & NEVER


def _is_short(e: Expression) -> bool:
    return sum(1 for _ in zip(walk(e), range(limits.COLUMN_DEFINITION + 1))) <= limits.COLUMN_DEFINITION


def number_of(leaf: LogicalPlan) -> int:
    """The JVM's number of a leaf; -1 if it has none."""
    return leaf.number if leaf.number is not None else -1
