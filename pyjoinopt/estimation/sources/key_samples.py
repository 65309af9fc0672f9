"""Joins of relations that are both too large to be read, as their samples by the same keys show them.

`pyjoinopt.analyze` stores, for each column that may be a join key, the rows whose values have hashes below a threshold.
The hash is the same for all tables, so the samples of two of them have the same keys, up to the smaller threshold:

    lines JOIN orders ON l_order = o_id WHERE o_date >= '2024-03-01' AND l_shipped < '2024-02-01'

Every sampled line has its order in the sample of `orders`, if it has one at all. So the sample shows that no line is
shipped before its order is placed, where the model takes both filters as independent. What is drawn at random is an
order with all of its lines, so each key is one place for the variance of a share (`joins.cardinality.join_synopses`).

This is correlated sampling: Vengerov, Menck, Zait and Chakkappen, "Join Size Estimation Subject to Filter Conditions",
VLDB 2015. CS2 (Yu, Hou, Luo, Che and Zhu, SIGMOD 2013) draws the partners of a uniform sample instead, which
takes a second pass.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
from pyjoinopt.estimation.sources.column_lineage import PlanLeaves, number_of
from pyjoinopt.estimation.sources.joined_sample import JoinedSample, joined_sample
from pyjoinopt.estimation.sources.json import number
from pyjoinopt.estimation.sources.registry import Column, Files, Relation
from pyjoinopt.estimation.sources.sample_request import selects
from pyjoinopt.estimation.sources.star_joins import SMALL, Dimension, Star
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.nodes import LogicalPlan

#: [rows] The size of a sample by keys.
KEY_ROWS = 4096
#: Columns of a table that have such a sample.
MOST_KEYS = 4
#: [bytes] Longer texts are no keys.
_LONGEST_TEXT = 40
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_Conjuncts = Mapping[int, Sequence[Expression]]


def blob_kind(column: str) -> str:
    """Kind of the store's blob with the sample by a column."""
    return f"sample by {column}"


def key_columns(
    relation: Relation, columns: Iterable[str], rows: float | None, known: Mapping[str, Column], declared: Iterable[str]
) -> list[str]:
    """The columns by which rows of a relation are sampled, at most `MOST_KEYS`: those declared, whole numbers, others.

    Relations that are read whole anyway need no such sample, and a column with few values is no key of a large one.

    Args:
        relation: which is analysed.
        columns: those that are analysed.
        rows: of the relation, if that is known.
        known: what is known of its columns before the analysis.
        declared: columns that are declared to be a key or to refer to one, in lower case.
    """
    if rows is None or rows <= SMALL:
        return []
    ranked = []
    for name in columns:
        kind = relation.columns.get(name, "")
        rank = 0 if name.lower() in declared else 1 if kind in _WHOLE else 2
        column = known.get(name, Column())
        has_many = rank == 0 or _values(kind, column, rows) > min(SMALL, rows / 10)
        if has_many and kind in _WHOLE | {"date", "string"}:
            ranked.append((rank, name))
    return [name for _, name in sorted(ranked, key=lambda one: one[0])][:MOST_KEYS]


def _values(kind: str, column: Column, rows: float) -> float:
    """How many different values a column may have."""
    if kind == "string" and column.avg_len is not None and column.avg_len > _LONGEST_TEXT:
        return 0.0
    most = rows if column.ndv is None else float(column.ndv)
    low, high = number(column.min), number(column.max)
    if kind != "string" and low is not None and high is not None:
        most = min(most, high - low + 1.0)
    return most


@dataclass(frozen=True, slots=True)
class KeyJoin:
    """A join of two relations that were sampled by the columns that it compares.

    Attributes:
        star: a relation, the column that refers to another one, and that one with its key.
        threshold: hashes of keys that both samples have are below it.
    """

    star: Star
    threshold: int

    @property
    def sides(self) -> tuple[tuple[LogicalPlan, Attribute], tuple[LogicalPlan, Attribute]]:
        """Both relations with the columns that are compared, the referring one first."""
        (dimension,) = self.star.dimensions
        return (self.star.center, dimension.columns[0]), (dimension.leaf, dimension.key[0])


def find_key_joins(read: PlanLeaves, known: StatisticsOf) -> list[KeyJoin]:
    """The joins of a plan with a large and filtered relation of which samples by keys show the partners.

    Args:
        read: what the plan reads of its leaves.
        known: statistics of a leaf, without filters.
    """
    owner = {a.bit: leaf for leaf in read.leaves for a in leaf.output}
    filtered = {number_of(leaf) for leaf, conjuncts in read.filtered if selects(conjuncts)}
    found: dict[tuple[int, int], list[KeyJoin]] = {}
    for equality in dict.fromkeys(read.compared):
        for column, key in ((equality.one, equality.other), (equality.other, equality.one)):
            left, right = owner.get(column.bit), owner.get(key.bit)
            if left is None or right is None or left is right or number_of(right) not in filtered:
                continue
            of_left, of_right = known(left), known(right)
            one, other = of_left.column(column.bit).key_threshold, of_right.column(key.bit).key_threshold
            if one is None or other is None or of_right.rows <= SMALL:
                continue
            ndv = of_right.column(key.bit).ndv or 0.0
            if ndv >= ASSUMPTIONS.nearly_unique * of_right.rows:
                star = Star(left, (Dimension(right, -1, (column,), (key,)),))
                found.setdefault((number_of(left), number_of(right)), []).append(KeyJoin(star, min(one, other)))
    # Of relations that several columns connect, no single one shows the partners.
    return [joins[0] for joins in found.values() if len(joins) == 1]


def key_samples(
    joins: Sequence[KeyJoin],
    conjuncts: _Conjuncts,
    files: Callable[[LogicalPlan], Files | None],
    send: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
    store: Store | None,
) -> dict[int, list[JoinedSample]]:
    """The sampled rows of each referring relation with their partners, by the number of its leaf.

    Args:
        joins: as of `find_key_joins`.
        conjuncts: number of a leaf -> the filters that are evaluated over its sampled rows.
        files: of a leaf.
        send: a request to the JVM about samples.
        store: where samples are remembered that the JVM does not have.
    """
    found: dict[int, list[JoinedSample]] = {}
    missing: Sequence[KeyJoin] = joins
    for stored in (False, True):
        request: list[dict[str, Any]] = []
        for join in missing:
            sides = [_entry(leaf, key, join.threshold, conjuncts, files(leaf), store if stored else None)
                     for leaf, key in join.sides]  # fmt: skip
            of, partner = (column.bit for _, column in join.sides)
            sides[0]["dimensions"] = [{"relation": len(request) + 1, "of": -1, "columns": [of], "key": [partner]}]
            request += sides
        late = []
        for join, answer, other in zip(missing, *[iter(send(request))] * 2):
            sample = joined_sample(join.star, conjuncts, answer, by_key=True)
            if sample is None or "hits" not in other:
                late.append(join)
            else:
                found.setdefault(number_of(join.star.center), []).append(sample)
        missing = late
        if not missing or store is None:
            break
    return found


def _entry(
    leaf: LogicalPlan, key: Attribute, threshold: int, conjuncts: _Conjuncts, files: Files | None, store: Store | None
) -> dict[str, Any]:
    own = conjuncts.get(number_of(leaf), ())
    read = key.mask
    for e in own:
        read |= e.references
    blob = store.blob(files, blob_kind(key.name)) if store is not None and files is not None else None
    return {
        "node": leaf.number, "id": files.id if files else "", "schema": files.schema if files else "",
        "columns": [a.bit for a in leaf.output if read >> a.bit & 1], "predicates": own,
        "keyedBy": [key.bit], "threshold": threshold,
        **({"blob": base64.b64encode(blob).decode("ascii")} if blob is not None else {}),
    }  # fmt: skip
