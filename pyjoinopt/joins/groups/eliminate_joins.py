"""Joins of a group that need not be what they are, if one side is known to have one row a key.

* A **left join** whose right side is unique on what it is compared by neither drops nor repeats a row. If nobody reads
  its columns either, it goes. (`catalyst.rules.eliminate_outer_join` sees that under a projection right above the join;
  here other joins may stand between.)
* A **semi join** whose right side is unique on what it is compared by finds one partner at most. So it is as good as
  an inner join, which may be applied in any order, also with the right side first.

Unique is what the plan proves to be: groups of an aggregate, rows of a DISTINCT.
"""

from __future__ import annotations

from dataclasses import replace

from pyjoinopt.joins.groups.join_group import Conjunct, JoinGroup, Written
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys, is_unique
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import INNER, LEFT, SEMI


def drop_unused_left_joins(
    group: JoinGroup, read: int, keys: DistinctKeys
) -> tuple[JoinGroup, list[tuple[int, int]]]:
    """The group without left joins that make no difference.

    Args:
        group: a join group; it is left as it is.
        read: the attributes that are read above the group.
        keys: the distinct keys of a plan.

    Returns:
        The same group, if there are none, and a list of what went: (position of some item on the left, of the item).
    """
    gone: list[tuple[int, int]] = []
    found = True
    while found:
        found = False
        for conjunct in group.conjuncts:
            position = _unread(group, conjunct, read, keys)
            if position is not None and conjunct.sides is not None:
                (start, end), _ = conjunct.sides
                gone.append((min(p for p in group.items if start <= p < end), position))
                group = _without(group, conjunct, position)
                found = True
                break
    return group, gone


def _unread(group: JoinGroup, conjunct: Conjunct, read: int, keys: DistinctKeys) -> int | None:
    """The position of the one item on the right of a left join that may go."""
    if conjunct.join_type != LEFT or conjunct.sides is None or fallibility.may_throw(conjunct.predicate):
        return None
    start, end = conjunct.sides[1]
    inside = [p for p in group.items if start <= p < end]
    if len(inside) != 1:
        return None
    (position,) = inside
    own = 0
    for bit, owner in group.owners.items():
        if owner == position:
            own |= 1 << bit
    others = [c for c in group.conjuncts if c is not conjunct]
    if any(fallibility.may_throw(c.predicate) for c in others if _is_within(c, start, end)):
        return None
    if read & own or any(c.predicate.references & own for c in others if not _is_within(c, start, end)):
        return None
    if any(alias.references & own for alias in group.deferred.values()):
        return None
    plan = group.items[position].plan
    return position if is_unique(keys(plan), _equated(conjunct.predicate, plan.output_set)) else None


def _is_within(conjunct: Conjunct, start: int, end: int) -> bool:
    return start <= conjunct.start and conjunct.end <= end


def _without(group: JoinGroup, conjunct: Conjunct, position: int) -> JoinGroup:
    gone = {bit for bit, owner in group.owners.items() if owner == position}
    mask = sum(1 << bit for bit in gone)
    assert conjunct.sides is not None
    start, end = conjunct.sides[1]
    return replace(
        group,
        items={p: item for p, item in group.items.items() if p != position},
        written=_pruned(group.written, position),
        conjuncts=tuple(c for c in group.conjuncts if c is not conjunct and not _is_within(c, start, end)),
        owners={bit: owner for bit, owner in group.owners.items() if bit not in gone},
        attributes=group.attributes & ~mask,
        padded=group.padded - {position},
    )


def _pruned(written: Written, position: int) -> Written:
    """The order as written without one leaf."""
    done: list[Written | None] = []
    stack: list[tuple[Written, bool]] = [(written, False)]
    while stack:
        node, expanded = stack.pop()
        if isinstance(node, int):
            done.append(None if node == position else node)
        elif expanded:
            right, left = done.pop(), done.pop()
            done.append((left, right) if left is not None and right is not None else right if left is None else left)
        else:
            stack += [(node, True), (node[1], False), (node[0], False)]
    assert done[0] is not None
    return done[0]


def semi_to_inner_joins(group: JoinGroup, keys: DistinctKeys, sensitive: int = 0) -> JoinGroup:
    """The group with inner joins for semi joins that find one partner at most; the same one if there are none.

    Of an inner join Spark infers more than of a semi join, so none is freed by `sensitive` columns
    (`plan.facts.equality_substitution`). And Spark tests a semi join on the relation that it reads, which may be what
    keeps a predicate of the group from failing; so none is freed where one may fail.
    """
    if any(fallibility.may_throw(conjunct.predicate) for conjunct in group.conjuncts):
        return group
    freed: dict[int, Conjunct] = {}
    hidden: dict[int, int] = {}  # position -> columns of the right side of a semi join
    for conjunct in group.conjuncts:
        if conjunct.right is not None:
            hidden[conjunct.right] = group.items[conjunct.right].plan.output_set
    attributes = group.attributes
    for conjunct in group.conjuncts:
        position = conjunct.right
        if position is None or conjunct.join_type != SEMI:
            continue
        if conjunct.subquery is not None or conjunct.predicate.references & sensitive:
            continue
        plan = group.items[position].plan
        elsewhere = attributes
        for other, columns in hidden.items():
            elsewhere |= columns if other != position else 0
        if plan.output_set & elsewhere:
            continue  # two columns with one id could not be distinguished
        if is_unique(keys(plan), _equated(conjunct.predicate, plan.output_set)):
            freed[position] = conjunct
            attributes |= plan.output_set
    if not freed:
        return group
    kept: list[Conjunct] = []
    for conjunct in group.conjuncts:
        if conjunct.right in freed:
            kept += [Conjunct(p, conjunct.start, conjunct.end, INNER) for p in conjuncts(conjunct.predicate)]
        else:
            kept.append(conjunct)
    owners = dict(group.owners)
    for position in freed:
        owners |= {attribute.bit: position for attribute in group.items[position].plan.output}
    return replace(
        group, conjuncts=tuple(kept), owners=owners, attributes=attributes, semi_right=group.semi_right & ~attributes
    )


def _equated(condition: Expression, right: int) -> list[Expression]:
    """What a condition sets equal to something of the other side, of the columns in `right`."""
    found = []
    for left_operand, right_operand, null_safe in equalities(condition):
        if not null_safe and left_operand.deterministic and right_operand.deterministic:
            for one, other in ((left_operand, right_operand), (right_operand, left_operand)):
                if one.references and not one.references & ~right and not other.references & right:
                    found.append(one)
    return found
