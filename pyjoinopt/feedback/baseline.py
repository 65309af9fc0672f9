"""Baselines: plans as text. The orders of the join groups of one query, and its hints, by the names of tables.

    SELECT * FROM sales JOIN dates ON s_date = d_date JOIN stores ON s_store = st_id WHERE d_year = 2026

    {"relations": {"dates": ["dates"], "sales": ["sales"], "stores": ["stores"]},
     "predicates": [{"join": "Inner", "columns": {"dates": ["d_date"], "sales": ["s_date"]}},
                    {"join": "Inner", "columns": {"sales": ["s_store"], "stores": ["st_id"]}}],
     "order": [["sales", "dates"], ["#1", "stores"]]}

An order is a list of joins, each of two sides; `#1` is the result of the first join, as in reports. The left side comes
first in the plan, and the right one is built where Spark has no reason to decide otherwise.

Whether its order is legal is no part of a baseline. That is proved again on each plan for which it is used
(`optimizer.order_group`), so an outdated baseline costs time at most. It holds no constant of the query: relations are
known by what they read, predicates by the columns that they compare (`match_baseline`).

Sources: SQL plan baselines of Oracle; pg_hint_plan of PostgreSQL, which also writes orders over names of relations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyjoinopt.feedback.query_shape import plain_table_name, tables_of
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import Attribute, walk
from pyjoinopt.plan.nodes import Join
from pyjoinopt.plan.relation_names import unique_names

#: Of the format of the text.
VERSION = 1
#: The strategies that a baseline may name.
STRATEGIES = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE")
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}")
_STEP = re.compile(r"#([1-9]\d*)")


@dataclass(frozen=True)
class PinnedPredicate:
    """A join predicate.

    Attributes:
        join: the type of the join, such as "Inner" or "LeftOuter".
        columns: relation -> names of its columns that are read, sorted.
    """

    join: str
    columns: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class PinnedGroup:
    """A join group and its order.

    Attributes:
        relations: name in this group -> the tables that it reads, sorted.
        predicates: those that join the relations.
        order: the joins, innermost first, each with its left and its right side: a relation, or `#n` for the n-th join.
    """

    relations: Mapping[str, tuple[str, ...]]
    predicates: tuple[PinnedPredicate, ...]
    order: tuple[tuple[str, str], ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that it reads, sorted."""
        return tuple(sorted(table for tables in self.relations.values() for table in tables))

    def tree(self, vertices: Mapping[str, int]) -> JoinTree:
        """The order over the vertices of a graph."""
        made = {name: leaf(vertex) for name, vertex in vertices.items()}
        for number, (left, right) in enumerate(self.order, 1):
            made[f"#{number}"] = join(made[left], made[right])
        return made[f"#{len(self.order)}"]


@dataclass(frozen=True)
class PinnedHint:
    """A hint on one join.

    Attributes:
        strategy: one of `STRATEGIES`.
        on: the tables of the side that has the hint, sorted.
        other: those of the other side.
    """

    strategy: str
    on: tuple[str, ...]
    other: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """A plan of one query.

    Attributes:
        name: of letters, digits, `_`, `.` and `-`.
        groups: its join groups.
        hints: those of its plan; with a baseline, no others are given.
        options: of the call that made the plan, as far as they decide which rewrites are used.
        spark, version: of Spark, and of this package, with which it was made.
    """

    name: str
    groups: tuple[PinnedGroup, ...]
    hints: tuple[PinnedHint, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    spark: str = ""
    version: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "baseline": VERSION,
            "name": self.name,
            "spark": self.spark,
            "pyjoinopt": self.version,
            "options": dict(self.options),
            "groups": [
                {
                    "relations": {name: list(tables) for name, tables in group.relations.items()},
                    "predicates": [
                        {"join": p.join, "columns": {name: list(columns) for name, columns in p.columns.items()}}
                        for p in group.predicates
                    ],
                    "order": [list(step) for step in group.order],
                }
                for group in self.groups
            ],
            "hints": [{"strategy": h.strategy, "on": list(h.on), "other": list(h.other)} for h in self.hints],
        }

    def to_json(self) -> str:
        """As a text for version control: one line for each relation, predicate, join and hint."""
        return json_lines(self.to_dict()) + "\n"

    @staticmethod
    def from_json(text: str) -> Baseline:
        """The baseline of a text.

        Raises:
            ValueError: the text is no baseline; the message has the place and what is expected there.

        >>> Baseline.from_json('{"baseline": 1, "name": "daily"}')
        Traceback (most recent call last):
        ValueError: groups is None, but must be a list
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the text is no JSON: {error}") from None
        return _baseline(data)


def check_name(name: Any) -> str:
    """The name, if a baseline may have it.

    Raises:
        TypeError, ValueError: it may not.
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r} ({type(name).__name__}), but must be a text")
    if not _NAME.fullmatch(name):
        raise ValueError(f"name is {name!r}, but must be up to 100 letters, digits, '_', '.' and '-'")
    return name


def pinned_names(graph: JoinGraph) -> tuple[str, ...]:
    """What a baseline calls the relations of a group, by vertex."""
    return unique_names([plain_table_name(name) for name in graph.names])


def pinned_group(graph: JoinGraph, order: JoinTree | None = None) -> PinnedGroup:
    """A group and one order of it, if there is one."""
    names = pinned_names(graph)
    owner = {column.bit: vertex for vertex, plan in enumerate(graph.relations) for column in plan.output}
    predicates = []
    for edge in graph.edges:
        if edge.implied:
            continue
        read: dict[str, set[str]] = {}
        for column in _columns_of(edge.predicate):
            if column.bit in owner:
                read.setdefault(names[owner[column.bit]], set()).add(column.name)
        predicates.append(PinnedPredicate(edge.join_type, {name: tuple(sorted(read[name])) for name in sorted(read)}))
    predicates.sort(key=lambda p: (sorted(p.columns.items()), p.join))
    relations = {names[vertex]: tables_of(graph.relations[vertex]) for vertex in range(len(graph))}
    steps = () if order is None else order_steps(order, names)
    return PinnedGroup(dict(sorted(relations.items())), tuple(predicates), steps)


def pinned_hints(joins: Iterable[Join]) -> tuple[PinnedHint, ...]:
    """The hints of joins, each on one side."""
    found = []
    for node in joins:
        sides = (node.left, node.right)
        for strategy, (on, other) in zip(node.hint, (sides, sides[::-1]), strict=True):
            if strategy is not None:
                found.append(PinnedHint(strategy, tables_of(on), tables_of(other)))
    return tuple(dict.fromkeys(found))


def _columns_of(predicate: Any) -> list[Attribute]:
    return [e.attribute for e in walk(predicate) if e.kind == "AttributeReference" and e.attribute is not None]


def order_steps(order: JoinTree, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The joins of an order, innermost first, as `PinnedGroup.order` has them."""
    steps: list[tuple[str, str]] = []
    done: list[str] = []
    for node in order.post_order():
        if node.is_leaf:
            done.append(names[node.vertex])
        else:
            right, left = done.pop(), done.pop()
            steps.append((left, right))
            done.append(f"#{len(steps)}")
    return tuple(steps)


def json_lines(value: Any, indent: str = "") -> str:
    """JSON in which lists and objects without others inside take one line.

    >>> print(json_lines({"a": [1, 2], "b": {"c": [[1, 2], [3]]}}))
    {
      "a": [1, 2],
      "b": {
        "c": [
          [1, 2],
          [3]
        ]
      }
    }
    """
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(part, (dict, list)) for part in inside) or _is_predicate(value):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + "  "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {json_lines(part, deeper)}" for key, part in value.items()]
    else:
        rows = [json_lines(part, deeper) for part in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{last}"


def _is_predicate(value: Any) -> bool:
    return isinstance(value, dict) and ("columns" in value or "strategy" in value)


def _baseline(data: Any) -> Baseline:
    """The record of plain data, of which nothing is trusted."""
    top = _dict(data, "the text")
    if top.get("baseline") != VERSION:
        raise ValueError(f"baseline is {top.get('baseline')!r}, but this release reads {VERSION}")
    groups = tuple(_group(group, f"groups[{i}]") for i, group in enumerate(_list(top.get("groups"), "groups")))
    if not groups:
        raise ValueError("groups is empty, but must have a join group of three relations or more")
    hints = tuple(_hint(hint, f"hints[{i}]") for i, hint in enumerate(_list(top.get("hints", []), "hints")))
    texts = [str(top.get(key, "")) for key in ("spark", "pyjoinopt")]
    return Baseline(check_name(top.get("name")), groups, hints, _dict(top.get("options", {}), "options"), *texts)


def _group(data: Any, where: str) -> PinnedGroup:
    group = _dict(data, where)
    relations = {
        name: _texts(tables, f"{where}.relations[{name!r}]")
        for name, tables in _dict(group.get("relations"), f"{where}.relations").items()
    }
    bad = next((name for name in relations if not name or name.startswith("#")), None)
    if bad is not None:
        raise ValueError(f"{where}.relations has {bad!r}, but a name must not be empty or begin with '#'")
    predicates = tuple(
        _predicate(predicate, relations, f"{where}.predicates[{i}]")
        for i, predicate in enumerate(_list(group.get("predicates"), f"{where}.predicates"))
    )
    return PinnedGroup(relations, predicates, _order(group.get("order"), relations, f"{where}.order"))


def _order(data: Any, relations: Iterable[str], where: str) -> tuple[tuple[str, str], ...]:
    """The steps of an order in which each relation and each join but the last is a side once."""
    left, steps = set(relations), []
    for number, step in enumerate(_list(data, where), 1):
        sides = _texts(step, f"{where}[{number - 1}]", ordered=True)
        for side in sides:
            if side not in left:
                known = _STEP.fullmatch(side) or side in relations
                problem = "is joined twice or too early" if known else "is no relation of the group"
                raise ValueError(f"{where}[{number - 1}] has {side!r}, which {problem}")
            left.remove(side)
        if len(sides) != 2:
            raise ValueError(f"{where}[{number - 1}] has {len(sides)} sides, but must have two")
        left.add(f"#{number}")
        steps.append((sides[0], sides[1]))
    if len(left) != 1 or not steps:
        raise ValueError(f"{where} must join all relations of the group; {', '.join(sorted(left))} are left")
    return tuple(steps)


def _predicate(data: Any, relations: Mapping[str, Any], where: str) -> PinnedPredicate:
    predicate = _dict(data, where)
    columns = {
        name: _texts(names, f"{where}.columns[{name!r}]")
        for name, names in _dict(predicate.get("columns"), f"{where}.columns").items()
    }
    for name in columns:
        if name not in relations:
            raise ValueError(f"{where}.columns has {name!r}, which is no relation of the group")
    return PinnedPredicate(str(predicate.get("join", "Inner")), columns)


def _hint(data: Any, where: str) -> PinnedHint:
    hint = _dict(data, where)
    if hint.get("strategy") not in STRATEGIES:
        raise ValueError(f"{where}.strategy is {hint.get('strategy')!r}, but must be one of {', '.join(STRATEGIES)}")
    return PinnedHint(hint["strategy"], *(_texts(hint.get(side), f"{where}.{side}") for side in ("on", "other")))


def _dict(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {_short(value)}, but must be an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {_short(value)}, but must be a list")
    return value


def _texts(value: Any, where: str, ordered: bool = False) -> tuple[str, ...]:
    texts = _list(value, where)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where} is {_short(value)}, but must be a list of texts")
    return tuple(texts if ordered else sorted(texts))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
