"""Shrinks a failing query: removes a part, undoes this if the query no longer fails, and repeats while parts can go.

A removal leaves references to columns that no longer exist. `repaired` drops these references, so each candidate is a
query that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.support.querytree import (
    Aggregate,
    Call,
    Chain,
    Column,
    Constant,
    Expression,
    Filter,
    Join,
    Node,
    Project,
    Query,
    Subquery,
    Table,
    Top,
    Type,
    Union_,
    children,
    columns_of,
    output,
    size,
    with_children,
)

Columns = dict[str, tuple[tuple[str, Type], ...]]
ROWS = Call("count rows", (), "int")


def shrunk(query: Query, fails: Callable[[Query], bool], budget: int = 200) -> Query:
    """The smallest query found that still fails, after at most `budget` runs."""
    seen = {query}
    smaller = True
    while smaller:
        smaller = False
        for candidate in sorted(candidates(query), key=size):
            if candidate in seen or size(candidate) > size(query):
                continue
            seen.add(candidate)
            if budget == 0:
                return query
            budget -= 1
            if fails(candidate):
                query, smaller = candidate, True
                break
    return query


def candidates(query: Query) -> Iterator[Query]:
    """Every query that one cut leads to."""
    for root in cuts(query.root):
        yield repaired(replace(query, root=root))
    for position, (name, definition) in enumerate(query.definitions):
        for cut in cuts(definition):
            if isinstance(cut, Project):
                changed = (*query.definitions[:position], (name, cut), *query.definitions[position + 1 :])
                yield repaired(replace(query, definitions=changed))


def cuts(node: Node) -> Iterator[Node]:
    """This tree with one thing less, anywhere in it."""
    yield from children(node)
    yield from _own_cuts(node)
    below = children(node)
    for position, child in enumerate(below):
        for cut in cuts(child):
            if isinstance(node, Union_) and not isinstance(cut, Project):
                continue
            if isinstance(node, Chain) and not _is_part(cut):
                continue
            yield with_children(node, (*below[:position], cut, *below[position + 1 :]))


def _own_cuts(node: Node) -> Iterator[Node]:
    if isinstance(node, Join):
        for condition in _lists(node.condition):
            yield replace(node, condition=condition)
        if node.hint:
            yield replace(node, hint=None)
        if node.style != "join":
            yield replace(node, style="join")
    elif isinstance(node, Chain):
        for position in range(len(node.kinds)):
            if len(node.kinds) > 1:
                parts = (*node.parts[: position + 1], *node.parts[position + 2 :])
                yield replace(node, parts=parts, kinds=node.kinds[:position] + node.kinds[position + 1 :])
            if node.kinds[position] != "inner":
                yield replace(node, kinds=(*node.kinds[:position], "inner", *node.kinds[position + 1 :]))
    elif isinstance(node, Filter):
        for conjuncts in _lists(node.conjuncts):
            yield replace(node, conjuncts=conjuncts)
    elif isinstance(node, Project):
        for items in _named_lists(node.items):
            yield replace(node, items=items)
        if node.distinct:
            yield replace(node, distinct=False)
    elif isinstance(node, Aggregate):
        for keys in _named_lists(node.keys):
            yield replace(node, keys=keys)
        for position in range(len(node.values)):
            yield replace(node, values=node.values[:position] + node.values[position + 1 :])
    elif isinstance(node, Union_):
        for position in range(len(node.left.items)):
            left, right = (side.items[:position] + side.items[position + 1 :] for side in (node.left, node.right))
            yield replace(node, left=replace(node.left, items=left), right=replace(node.right, items=right))


def _is_part(node: Node) -> bool:
    """Whether it may be joined by USING."""
    if isinstance(node, Top):
        return isinstance(node.child, Project) and _is_part(node.child)
    return isinstance(node, (Project, Aggregate)) and [column.name for column in output(node)][:1] == ["k"]


def _lists(parts: tuple[Expression, ...]) -> Iterator[tuple[Expression, ...]]:
    for position, part in enumerate(parts):
        yield parts[:position] + parts[position + 1 :]
        for simple in _simpler(part):
            yield (*parts[:position], simple, *parts[position + 1 :])


def _named_lists(items: tuple[tuple[str, Expression], ...]) -> Iterator[tuple[tuple[str, Expression], ...]]:
    for position, (name, item) in enumerate(items):
        yield items[:position] + items[position + 1 :]
        for simple in _simpler(item):
            yield (*items[:position], (name, simple), *items[position + 1 :])


def _simpler(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Subquery):
        for source in cuts(expression.source):
            inside = frozenset(output(source))
            lost = frozenset(output(expression.source)) - inside
            if expression.value is None or not columns_of(expression.value) & lost:
                kept = tuple(part for part in expression.condition if not columns_of(part) & lost)
                yield replace(expression, source=source, condition=kept)
        for condition in _lists(expression.condition):
            yield replace(expression, condition=condition)
    elif isinstance(expression, Call):
        for position, arg in enumerate(expression.args):
            if arg.type == expression.type and not isinstance(arg, Constant):
                yield arg
            for simple in _simpler(arg):
                args = (*expression.args[:position], simple, *expression.args[position + 1 :])
                yield replace(expression, args=args)


def repaired(query: Query) -> Query:
    """The same query without the parts that need columns nobody provides any more."""
    known: Columns = {}
    definitions = []
    for name, node in query.definitions:
        definitions.append((name, _repair(node, known)))
        known[name] = tuple((column.name, column.type) for column in output(definitions[-1][1]))
    root = _repair(query.root, known)
    used = {part.name for part in _tables(root)}
    return Query(tuple(pair for pair in definitions if pair[0] in used), root)


def _tables(node: Node) -> Iterator[Table]:
    if isinstance(node, Table):
        yield node
    for child in children(node):
        yield from _tables(child)


def _repair(node: Node, known: Columns) -> Node:
    if isinstance(node, Table):
        return replace(node, columns=known.get(node.name, node.columns))
    node = with_children(node, tuple(_repair(child, known) for child in children(node)))
    if isinstance(node, Union_):
        return _repair_union(node)
    if isinstance(node, Chain):
        return node if all(_is_part(part) for part in node.parts) else node.parts[0]
    available = frozenset(column for child in children(node) for column in output(child))

    def fits(expression: Expression) -> bool:
        return columns_of(expression) <= available

    if isinstance(node, Join):
        return replace(node, condition=tuple(part for part in node.condition if fits(part)))
    if isinstance(node, Filter):
        conjuncts = tuple(part for part in node.conjuncts if fits(part))
        return replace(node, conjuncts=conjuncts) if conjuncts else node.child
    if isinstance(node, Project):
        items = tuple(item for item in node.items if fits(item[1]))
        return replace(node, items=items or (("n0_v", _any_column(node.child)),))
    if isinstance(node, Aggregate):
        values = tuple(item for item in node.values if fits(item[1])) or (("m0_v", ROWS),)
        return replace(node, keys=tuple(item for item in node.keys if fits(item[1])), values=values)
    return node


def _repair_union(node: Union_) -> Node:
    left, right = dict(node.left.items), dict(node.right.items)
    shared = [name for name in left if name in right and left[name].type == right[name].type]
    if not shared:
        return node.left
    sides = [
        replace(side, items=tuple((n, items[n]) for n in shared))
        for side, items in ((node.left, left), (node.right, right))
    ]
    return replace(node, left=sides[0], right=sides[1])


def _any_column(node: Node) -> Column:
    return output(node)[0]
