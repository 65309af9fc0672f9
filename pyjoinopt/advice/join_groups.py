"""Inner joins of a physical plan that may be ordered together, with the rows that each of them returned.

A group is what inner joins by keys connect, through exchanges, sorts and projections. Everything else is one relation
of the group: a scan with its filters, an aggregate, an outer join with all that is below it. Each relation and each
join of a group has a row count out of the run; that is what an order can be judged by.

Keys are found by column ids. A key belongs to the relation whose operators name its id. An aggregate's results are not
in its text, so an id that no relation names belongs to the only relation that is no plain scan, if there is just one.
Where the relation of a key is not known, no order is advised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyjoinopt.advice.operators import (
    KEEPS_ROWS,
    REUSED,
    SCANS,
    column_ids,
    data_size,
    has_run_time_filter,
    kind,
    may_stop_early,
    result_rows,
    run_in_order,
)  # fmt: skip
from pyjoinopt.advice.physical_joins import PhysicalJoin, read_join, split
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.joins.join_tree import JoinTree, join, leaf

_ALIAS = re.compile(r"(.+) AS [^#]*#(\d+)L?")
_PLAIN = KEEPS_ROWS | SCANS | {"Filter", "Range", "LocalTableScan"}
_MOST = 60
#: [bytes] Of a row, where no exchange has measured it: Spark's row of few columns.
_COLUMN, _ROW = 8.0, 16.0


@dataclass(frozen=True, eq=False)
class Relation:
    """One relation of a group.

    Attributes:
        node: the operator that returns its rows to the group.
        rows: that it returned; None if they are not counted.
        width: bytes of a row.
        columns: ids of columns that its operators name.
        plain: True if it is a scan with filters and projections, so that its text names all its columns.
        thinned: True if a filter made at run time has taken rows away.
    """

    node: PlanNode
    rows: float | None
    width: float
    columns: frozenset[int]
    plain: bool
    thinned: bool


@dataclass(frozen=True, eq=False)
class ObservedJoin:
    """One join of a group; sets are bit sets of relations.

    Attributes:
        join: the operator.
        left, right: the sets that it joined.
        rows: that it returned; None if that is unknown.
        edges: the sets that its keys and its condition connect.
        text: of its keys.
    """

    join: PhysicalJoin
    left: int
    right: int
    rows: float | None
    edges: tuple[int, ...]
    text: str


@dataclass(frozen=True, eq=False)
class ObservedGroup:
    """A group of at least three relations.

    Attributes:
        relations: its relations; number i is bit i.
        joins: those of the run, inputs first.
        tree: the order in which they ran.
    """

    relations: tuple[Relation, ...]
    joins: tuple[ObservedJoin, ...]
    tree: JoinTree


@dataclass(eq=False)
class _Part:
    """A sub-plan while groups are gathered: a relation, or a group so far."""

    node: PlanNode
    relations: list[Relation] = field(default_factory=list)
    joins: list[ObservedJoin] = field(default_factory=list)
    tree: JoinTree | None = None
    aliases: dict[int, frozenset[int]] = field(default_factory=dict)


def find_groups(plan: PlanNode) -> Iterator[ObservedGroup]:
    """The groups of a plan with at least three relations, all of which have row counts of all their rows."""
    parts: dict[int, _Part] = {}
    partial = may_stop_early(plan)
    for node in run_in_order(plan):
        inputs = [parts.pop(id(child), _Part(child)) for child in node.children]
        part = _extended(node, inputs)
        if part is None:
            yield from filter(None, [_finished(each, partial) for each in inputs])
            part = _Part(node)
        parts[id(node)] = part
    yield from filter(None, [_finished(each, partial) for each in parts.values()])


def _extended(node: PlanNode, inputs: Sequence[_Part]) -> _Part | None:
    """The group of an operator together with its inputs; None if it starts a relation of its own."""
    found = read_join(node)
    if found is not None and found.join_type == "Inner" and found.left_keys:
        return _joined(node, found, *inputs)
    (part,) = inputs if len(inputs) == 1 else (None,)
    if part is None or not part.joins or kind(node) not in KEEPS_ROWS or kind(node) in REUSED:
        return None
    part.node = node
    if kind(node) == "Project":
        for piece in split(node.text.partition("[")[2].rpartition("]")[0]):
            alias = _ALIAS.fullmatch(piece)
            if alias:
                part.aliases[int(alias[2])] = column_ids(alias[1])
    return part


def _joined(node: PlanNode, found: PhysicalJoin, left: _Part, right: _Part) -> _Part | None:
    for part in (left, right):
        if not part.joins:
            part.relations, part.tree = [_relation(part.node)], leaf(0)
    if len(left.relations) + len(right.relations) > _MOST or left.tree is None or right.tree is None:
        return None
    shift = len(left.relations)
    aliases = {**left.aliases, **right.aliases}
    edges: list[int] = []
    for one, other in zip(found.left_keys, found.right_keys):
        ours, theirs = _owners(one, left, aliases), _owners(other, right, aliases)
        if not ours or not theirs:
            return None
        edges.append(ours | theirs << shift)
    if found.condition:
        both = _Part(node, [*left.relations, *right.relations])
        reads = _owners(found.condition, both, aliases)
        if not reads:
            return None
        edges.append(reads)
    text = " AND ".join(f"{_plain(a)} = {_plain(b)}" for a, b in zip(found.left_keys, found.right_keys))
    own = ObservedJoin(
        found, left.tree.relations, right.tree.relations << shift, found.rows, tuple(dict.fromkeys(edges)), text
    )
    moved = [_shifted(each, shift) for each in right.joins]
    tree = join(left.tree, right.tree.renumbered([i + shift for i in range(len(right.relations))]))
    return _Part(node, [*left.relations, *right.relations], [*left.joins, *moved, own], tree, aliases)


def _shifted(observed: ObservedJoin, by: int) -> ObservedJoin:
    edges = tuple(edge << by for edge in observed.edges)
    return ObservedJoin(observed.join, observed.left << by, observed.right << by, observed.rows, edges, observed.text)


def _owners(text: str, part: _Part, aliases: dict[int, frozenset[int]]) -> int:
    """The relations of a part whose columns an expression reads; 0 if that is not known of all of them."""
    found, left, seen = 0, list(column_ids(text)), set[int]()
    if not left:
        return 0
    while left:
        column = left.pop()
        if column in seen:
            continue
        seen.add(column)
        owners = [i for i, relation in enumerate(part.relations) if column in relation.columns]
        if not owners and column in aliases:
            left.extend(aliases[column])
            continue
        owners = owners or [i for i, relation in enumerate(part.relations) if not relation.plain]
        if len(owners) != 1:
            return 0
        found |= 1 << owners[0]
    return found


def _relation(node: PlanNode) -> Relation:
    """A sub-plan as a relation of a group."""
    columns: set[int] = set()
    plain, thinned = True, False
    stack = [node]
    while stack:
        at = stack.pop()
        if kind(at) in REUSED or kind(at) == "InMemoryTableScan":
            columns |= column_ids(at.text.partition("[")[2].partition("]")[0])
            continue
        columns |= column_ids(at.text)
        plain = plain and kind(at) in _PLAIN
        thinned = thinned or has_run_time_filter(at)
        stack.extend(at.children)
    rows, size = result_rows(node), data_size(node)
    known = rows is not None and rows > 0 and size is not None and size > 0
    width = size / rows if known and size and rows else _ROW + _COLUMN * min(len(_output(node)), 20)
    return Relation(node, rows, width, frozenset(columns), plain, thinned)


def _output(node: PlanNode) -> frozenset[int]:
    """Ids of the columns that a sub-plan returns, as far as its text names them; else those of its scan."""
    at = node
    while True:
        if kind(at) == "Project" or kind(at) in SCANS or not at.children:
            return column_ids(at.text.partition("[")[2].partition("]")[0])
        at = at.children[0]


def _finished(part: _Part, partial: set[int]) -> ObservedGroup | None:
    unknown = any(relation.rows is None for relation in part.relations)
    if len(part.relations) < 3 or part.tree is None or unknown or id(part.node) in partial:
        return None
    return ObservedGroup(tuple(part.relations), tuple(part.joins), part.tree)


def _plain(key: str) -> str:
    """A key without column ids."""
    return re.sub(r"#\d+L?", "", key)
