"""Two groups become one; computed columns between them are placed on an input or deferred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyjoinopt.joins.groups.join_group import Conjunct
from pyjoinopt.joins.groups.open_group import OpenGroup
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import TRUE, Expression, conjuncts, substitute, walk
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import CROSS, FULL, LEFT, RIGHT, Filter, Join
from pyjoinopt.plan.outer_references import row_references
from pyjoinopt.util.bitset import members

#: Expression nodes of a predicate over deferred columns, once these are inlined.
_LONGEST = limits.DEFERRED_COLUMN
#: All such predicates of a group together; five hundred filters, each over a column made of the one before, are 60,000.
_LONGEST_TOGETHER = limits.DEFERRED_COLUMNS


def merged(node: Join, left: OpenGroup, right: OpenGroup) -> OpenGroup:
    """One group out of two; the larger one's collections are extended."""
    big, small = (left, right) if len(left.items) >= len(right.items) else (right, left)
    big.items.update(small.items)
    big.conjuncts.extend(small.conjuncts)
    big.owners.update(small.owners)
    big.deferred.update(small.deferred)
    big.hidden.extend(small.hidden)
    big.guards.extend(small.guards)
    return replace(
        big, top=node, crossed=left.crossed or right.crossed or node.join_type == CROSS,
        written=(left.written, right.written), start=min(left.start, right.start),
        end=max(left.end, right.end), attributes=left.attributes | right.attributes,
        semi_right=left.semi_right | right.semi_right, inlined_size=left.inlined_size + right.inlined_size,
        padded=left.padded | right.padded,
    )  # fmt: skip


def semi_right(node: Join, left: OpenGroup, right: OpenGroup) -> OpenGroup:
    """The left side's group under a semi or anti join with one item on its right."""
    ((position, item),) = right.items.items()
    assert node.condition is not None
    left.items[position] = item
    condition = _in_terms_of_items(left, node.condition)
    start, end = min(left.start, right.start), max(left.end, right.end)
    sides = (left.start, left.end), (right.start, right.end)
    left.conjuncts.append(Conjunct(condition, start, end, node.join_type, position, sides, node.subquery, id(node)))
    return replace(
        left, top=node, written=(left.written, right.written), start=start, end=end,
        semi_right=left.semi_right | right.attributes,
    )  # fmt: skip


def outer_joined(node: Join, left: OpenGroup, right: OpenGroup) -> OpenGroup:
    """One group out of the two sides of an outer join; a right join is a left one the other way round."""
    if node.join_type == RIGHT:
        left, right = right, left
    sides = (left.start, left.end), (right.start, right.end)
    padded = set(right.items)
    if node.join_type == FULL:
        padded |= set(left.items)
    group = merged(node, left, right)
    group.padded = left.padded | right.padded | padded
    condition = TRUE if node.condition is None else _in_terms_of_items(group, node.condition)
    join_type = FULL if node.join_type == FULL else LEFT
    group.conjuncts.append(Conjunct(condition, group.start, group.end, join_type, sides=sides, operator=id(node)))
    return group


def with_conjuncts(group: OpenGroup, node: Join | Filter) -> OpenGroup:
    for predicate in conjuncts(node.condition):
        predicate = _in_terms_of_items(group, predicate)
        group.conjuncts.append(Conjunct(predicate, group.start, group.end, operator=id(node)))
    return group


def _in_terms_of_items(group: OpenGroup, predicate: Expression) -> Expression:
    """The predicate with deferred columns inlined."""
    deferred = {bit: alias.children[0] for bit, alias in group.deferred.items()}
    computed = sum(1 << bit for bit in deferred)
    if predicate.references & computed:
        while predicate.references & computed:
            predicate = substitute(predicate, deferred)
        group.inlined_size += sum(1 for _ in walk(predicate))
    return predicate


def place_column(group: OpenGroup, alias: Expression) -> None:
    """Compute a column on the one input that it reads, or defer it to the top of the group."""
    assert alias.attribute is not None
    group.attributes |= alias.attribute.mask
    position = _home(group, alias)
    if position is None:
        group.deferred[alias.attribute.bit] = alias
    else:
        item = group.items[position]
        group.items[position] = replace(item, columns=(*item.columns, alias))
        group.owners[alias.attribute.bit] = position


def _home(group: OpenGroup, alias: Expression) -> int | None:
    """The input on which a column of a projection above the group may be computed, if there is one.

    What is computed below an outer join from its padded side is NULL in a padded row; above, it may be something else.
    """
    owners = {group.owners.get(bit, -1) for bit in members(alias.references)}
    if len(owners) > 1 or -1 in owners or fallibility.may_throw(alias):
        return None
    if not owners:
        semi_right = {conjunct.right for conjunct in group.conjuncts}
        return min((p for p in group.items if p not in group.padded and p not in semi_right), default=None)
    position = owners.pop()
    renames = alias.children[0].kind == "AttributeReference"
    return position if renames or position not in group.padded else None


def computes_deferred(group: OpenGroup) -> bool:
    """True if some column of the group, or of a pending projection above it, has to be deferred.

    On top of a group that is padded by an outer join, it would not be padded with the rest of that side.
    """
    pending = (e for node in group.pending for e in node.expressions)
    return bool(group.deferred) or any(e.kind == "Alias" and _home(group, e) is None for e in pending)


def tests_costly(group: OpenGroup | None, condition: Expression | None) -> bool:
    """True if the condition reads a column of the group that is costly to compute and may throw (`s RLIKE p AS m`).

    Spark leaves such a condition above the projection, where it is evaluated on joined rows only. Inlined it would be
    an ordinary predicate, which Spark moves down to the relation.
    """
    if group is None or condition is None:
        return False
    pending = (e for node in group.pending for e in node.expressions if e.kind == "Alias")
    columns = {**group.deferred, **{e.attribute.bit: e for e in pending if e.attribute is not None}}
    read, waiting = 0, [condition]
    while waiting:
        fresh = waiting.pop().references & ~read
        read |= fresh
        for body in (columns[bit].children[0] for bit in members(fresh) if bit in columns):
            if fallibility.is_costly(body) and fallibility.may_throw(body):
                return True
            waiting.append(body)
    return False


def guard(group: OpenGroup, predicates: Iterable[Expression]) -> None:
    """Record what predicates above the group read that may throw.

    They remain above the group, but Spark moves them down to the lowest join that has all they read, in any order.
    """
    waiting = (e for node in group.pending for e in node.expressions if e.kind == "Alias")
    columns = {**group.deferred, **{e.attribute.bit: e for e in waiting if e.attribute is not None}}
    for predicate in predicates:
        read, parts, fails = 0, [predicate], False
        while parts:
            part = parts.pop()
            fails = fails or fallibility.may_throw(part)
            fresh = row_references(part) & ~read
            read |= fresh
            parts += [columns[bit].children[0] for bit in members(fresh) if bit in columns]
        if fails and predicate.deterministic:
            group.guards.append(read)


def exceeds_inline_limit(deferred: dict[int, Expression], condition: Expression | None, inlined_size: int) -> bool:
    """True if the condition has too many expression nodes once deferred columns are inlined (x = x + x, fifty times).

    `inlined_size` is how many nodes such predicates of the group have already.
    """
    if not deferred or condition is None:
        return False
    sizes: dict[int, int] = {}

    def size(e: Expression) -> int:
        return sum(sizes.get(part.attribute.bit, 1) if part.attribute else 1 for part in walk(e))

    for bit, alias in deferred.items():
        sizes[bit] = size(alias.children[0])
    lengths = [size(p) for p in conjuncts(condition) if any(p.references >> bit & 1 for bit in deferred)]
    return bool(lengths) and (max(lengths) > _LONGEST or sum(lengths) + inlined_size > _LONGEST_TOGETHER)
