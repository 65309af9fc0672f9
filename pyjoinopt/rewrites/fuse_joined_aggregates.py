"""Aggregates of which one reads the joins of the other, and one relation more, are computed in one pass.

    before  SELECT * FROM (SELECT sum(price) promoted FROM sales JOIN days ON ... JOIN promotion ON promo = id
                           WHERE channel = 'TV'),
                          (SELECT sum(price) total FROM sales JOIN days ON ...)
    after   SELECT sum(price) FILTER (WHERE partners IS NOT NULL) promoted,
                   sum(price) FILTER (WHERE partners IS NULL OR partners > 0) total
            FROM sales JOIN days ON ... LEFT JOIN marked ON promo = id

`marked` has the key of each promotion with this channel. A left join gives a row without partners once, with NULLs, and
another one as often as it has partners. So the first aggregate sees what it saw before. For the second one each row has
to count once, whatever its partners are. No key needs to be known for that: the promotions are grouped by what they are
joined by, the group gives one row with the number of its promotions, and one row with 0 for each further promotion:

    marked  WITH counted AS (SELECT id, count(*) partners FROM promotion WHERE channel = 'TV' GROUP BY id)
            SELECT id, partners FROM counted
            UNION ALL SELECT id, 0 FROM (SELECT replicate_rows(partners - 1, id) FROM counted)

Both functions then see the very rows that they saw before, so none needs to be weighted, and no sum gets another type
or can overflow where it did not. If the further relation is proved to have one row for each value of what it is joined
by, as groups have (`plan.facts.distinct_keys`), it is left joined as it is. Keys that statistics prove are no such
proof: files may change between planning and running.

Legal if

* the aggregates have no GROUP BY and are inputs of one region of inner joins whose conditions cannot throw;
* the smaller one joins relations with inner joins, and the other one joins the same relations
  (`rewrites.plan_equivalence`) with all of these predicates, and further relations;
* each column of these that is read together with the others' columns is equal to one of theirs, of a type whose
  equality is identity: all partners of a row are then in one group;
* no filter and no argument can throw: they are evaluated for more rows;
* filters on the common relations that only the larger aggregate has, which become a FILTER, compare no floating-point
  numbers (`compares_floating`);
* what only the larger aggregate demands reads columns, and the plan is not that of a correlated subquery;
* the functions take a FILTER, are deterministic, and do not depend on the order of rows, but for rounding;
* there are at most 16 DISTINCT functions: each repeats every row.

And where the further relations are grouped, which reads them twice,

* they give the same rows each time: filters and inner joins of tables, without a limit, a sample, or a user's data;
* the aggregate reads no column of theirs.

Whether it pays is not decided here (`optimizer.alternatives`): the joins of both plans are ordered. A further relation
that leaves few rows is joined early without this rewrite, and its aggregate is cheap then.

Source: "computation reuse via fusion", N. Bruno and others, ICDE 2022. The left join, for which no key is needed, is
ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, permutations, product
from operator import or_

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.constructors import (
    ColumnFactory,
    aggregate,
    aggregate_call,
    constant,
    project,
    replicate_rows,
    union,
)
from pyjoinopt.plan.equi_keys import equi_keys
from pyjoinopt.plan.expressions import (
    DETERMINISTIC,
    Attribute,
    Expression,
    call,
    conjunction,
    reference,
    substitute,
)
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys, is_unique
from pyjoinopt.plan.facts.equality_substitution import equality_is_identity
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import LEFT, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import HINTS, without_aliases
from pyjoinopt.plan.outer_references import has_outer_references
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.traversal import post_order, transform_down
from pyjoinopt.rewrites.filtered_aggregates import (
    MOST_DISTINCT,
    compares_floating,
    distinct_functions,
    may_be_fused,
    only_where,
    own_predicates,
    source_of,
)
from pyjoinopt.rewrites.inner_join_region import inner_join_inputs, is_inner
from pyjoinopt.rewrites.plan_equivalence import Columns, PlanMatcher

NAME = "fuse_joined_aggregates"
#: Ways to take the relations of one aggregate for those of another, if a relation comes several times.
_MOST_WAYS = 64
#: Leaves that give the same rows each time they are read.
_TABLES = frozenset({"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "LocalRelation", "Range"})


@dataclass(frozen=True, eq=False)
class JoinedFusion:
    """Two aggregates that can be computed in one pass.

    Attributes:
        plan: the whole plan with that pass; its predicates have to be pushed down.
        note: for the report.
        common: the rows of the smaller aggregate, which are read once less.
        further: what else the larger aggregate joins.
        grouped: whether that is grouped to be joined.
    """

    plan: LogicalPlan
    note: str
    common: LogicalPlan
    further: LogicalPlan
    grouped: bool


def joined_fusions(plan: LogicalPlan, fresh: ColumnFactory) -> Iterator[JoinedFusion]:
    """The pairs of aggregates of a plan that can be computed in one pass.

    Args:
        plan: a plan with its predicates pushed down.
        fresh: makes new columns.
    """
    nodes = list(post_order(plan))
    if sum(isinstance(node, Aggregate) and may_be_fused(node) for node in nodes) < 2 or has_outer_references(nodes):
        return
    seen: set[int] = set()
    for top in reversed(nodes):
        if not is_inner(top) or id(top) in seen:
            continue
        parts, predicates, joins = inner_join_inputs(top)
        seen |= joins
        if any(map(may_throw, predicates)):
            continue  # it may rely on a join that has one row or none
        for smaller, larger in permutations(range(len(parts)), 2):
            fused = _fused(parts[smaller], parts[larger], fresh)
            if fused is None:
                continue
            rest = [part for i, part in enumerate(parts) if i not in (smaller, larger)]
            rest.insert(min(smaller, larger), fused.plan)
            region = project(top.output, filtered(predicates, reduce(Join, rest)))
            yield JoinedFusion(_replaced(plan, top, region), fused.note, fused.common, fused.further, fused.grouped)


def _replaced(plan: LogicalPlan, old: LogicalPlan, new: LogicalPlan) -> LogicalPlan:
    return transform_down(plan, lambda node: new if node is old else node)


def _fused(smaller: LogicalPlan, larger: LogicalPlan, fresh: ColumnFactory) -> JoinedFusion | None:
    """One aggregate in the place of two; None if that is not legal."""
    one, other = without_aliases(smaller), without_aliases(larger)
    if not isinstance(one, Aggregate) or not isinstance(other, Aggregate):
        return None
    if not may_be_fused(one) or not may_be_fused(other):
        return None
    if distinct_functions(one) + distinct_functions(other) > MOST_DISTINCT:
        return None
    leaves, predicates = source_of(one)
    of_larger, demanded = source_of(other)
    if not leaves or len(of_larger) <= len(leaves) or any(map(may_throw, (*predicates, *demanded))):
        return None
    alike = PlanMatcher()
    for columns, further in _ways(leaves, of_larger, alike):
        here = [substitute(p, columns) for p in demanded]
        lacking, rest = own_predicates(alike, [predicates, here])
        joined = None if lacking else _further_join(reduce(or_, (r.output_set for r in leaves)), further, rest)
        if joined is None:
            continue
        listed = [substitute(e, columns) for e in other.aggregates]
        rows = filtered(predicates, reduce(Join, leaves))
        return _one_pass(rows, joined, one, listed, fresh)
    return None


def _ways(
    leaves: Sequence[LogicalPlan], of_larger: Sequence[LogicalPlan], alike: PlanMatcher
) -> Iterator[tuple[Columns, list[LogicalPlan]]]:
    """The columns of the larger aggregate in terms of the smaller one's, and the relations that only it reads."""
    found: list[list[tuple[int, Columns]]] = []
    for leaf in leaves:
        like_it = ((i, alike.columns(leaf, mine)) for i, mine in enumerate(of_larger))
        found.append([(i, columns) for i, columns in like_it if columns is not None])
        if not found[-1]:
            return
    for chosen in islice(product(*found), _MOST_WAYS):
        taken = {i for i, _ in chosen}
        if len(taken) == len(leaves):
            columns = {bit: column for _, of_leaf in chosen for bit, column in of_leaf.items()}
            yield columns, [leaf for i, leaf in enumerate(of_larger) if i not in taken]


@dataclass(frozen=True)
class _FurtherJoin:
    """What the larger aggregate joins with the rows of the smaller one.

    Attributes:
        plan: the further relations.
        name: theirs.
        keys: their columns by which they are joined.
        linking: the predicates of that join.
        kept: what the larger aggregate demands of the common rows beside that.
    """

    plan: LogicalPlan
    name: str
    keys: tuple[Attribute, ...]
    linking: list[Expression]
    kept: list[Expression]

    @property
    def unique(self) -> bool:
        """Whether a row of the smaller aggregate is proved to have one partner at most."""
        return is_unique(DistinctKeys()(self.plan), map(reference, self.keys))


def _further_join(known: int, further: Sequence[LogicalPlan], demanded: Sequence[Expression]) -> _FurtherJoin | None:
    """How further relations are joined; None if the join is of another form than it may have.

    Args:
        known: the columns of the common relations.
        further: the relations.
        demanded: the predicates that only the larger aggregate has.
    """
    if not all(p.references for p in demanded):
        return None
    own = reduce(or_, (r.output_set for r in further))
    if own & known or any(p.references & ~(own | known) for p in demanded):
        return None
    linking = [p for p in demanded if p.references & own and p.references & known]
    kept = [p for p in demanded if not p.references & own]
    read = reduce(or_, (p.references for p in linking), 0) & own
    keys: dict[int, Attribute] = {}
    for p in linking:
        for key in equi_keys(p, known, own):
            column = key.right.attribute if key.right.kind == "AttributeReference" else None
            if column is None or key.null_safe:
                continue
            if equality_is_identity(column.type):
                keys[column.bit] = column
    if not keys or any(not keys.get(bit) for bit in range(read.bit_length()) if read >> bit & 1):
        return None
    if compares_floating(kept) or any(node.kind in HINTS for r in further for node in post_order(r)):
        return None
    inside = [p for p in demanded if not p.references & known]
    plan = filtered(inside, reduce(Join, further))
    return _FurtherJoin(plan, ", ".join(map(relation_name, further)), tuple(keys.values()), linking, kept)


def _one_pass(
    rows: LogicalPlan, joined: _FurtherJoin, smaller: Aggregate, listed: Sequence[Expression], fresh: ColumnFactory
) -> JoinedFusion | None:
    """The aggregate over the left join; None if the further relations would have to be grouped and cannot be."""
    grouped = not joined.unique
    once: Expression | None = None
    if grouped:
        read = reduce(or_, (e.references for e in listed), 0)
        if read & joined.plan.output_set or not _same_each_time(joined.plan):
            return None
        marked, names, partners = _marked(joined, fresh)
        linking = [substitute(p, names) for p in joined.linking]
        found = call("IsNotNull", reference(partners))
        more = call("GreaterThan", reference(partners), constant(0, "bigint"))
        once = call("Or", call("IsNull", reference(partners)), more)
    else:
        marked, linking = joined.plan, joined.linking
        found = call("IsNotNull", reference(joined.keys[0]))
    source = Join(rows, marked, LEFT, conjunction(linking))
    matched = conjunction([found, *joined.kept])
    aggregates = [only_where(e, once) for e in smaller.aggregates] + [only_where(e, matched) for e in listed]
    names_of = [", ".join(e.attribute.name for e in es if e.attribute) for es in (listed, smaller.aggregates)]
    note = f"{names_of[0]} and {names_of[1]} are computed together: only the former are joined with {joined.name}"
    return JoinedFusion(aggregate((), aggregates, source), note, rows, joined.plan, grouped)


def _same_each_time(plan: LogicalPlan) -> bool:
    """Whether a plan gives the same rows when it is read twice."""
    for node in post_order(plan):
        if not all(e.deterministic for e in node.expressions):
            return False
        if node.cached or isinstance(node, (Filter, Project)) or is_inner(node) or without_aliases(node) is not node:
            continue
        if node.kind not in _TABLES:
            return False
    return True


def _marked(joined: _FurtherJoin, fresh: ColumnFactory) -> tuple[LogicalPlan, Columns, Attribute]:
    """The keys of the further relations, as often as these have them, with a number that is positive once for each key.

    Returns:
        The plan, the new names of the keys, and the column of that number.
    """
    first, partners = _counted(joined, fresh)
    numbers = [fresh.alias(reference(a), a.name, a.nullable) for a in (*joined.keys, partners)]
    again, repeated = _counted(joined, fresh)
    less = Expression("Add", (reference(repeated), constant(-1, "bigint")), "bigint", DETERMINISTIC)
    others = fresh.alias(less, "others", False)
    assert others.attribute is not None
    copies = replicate_rows(others.attribute, joined.keys, Project((*map(reference, joined.keys), others), again))
    zero = fresh.alias(constant(0, "bigint"), "partners", False)
    names = [fresh.alias(reference(a), a.name, a.nullable) for a in joined.keys]
    marked = union([Project(tuple(numbers), first), Project((*names, zero), copies)])
    *keys, number = marked.output
    return marked, {old.bit: reference(new) for old, new in zip(joined.keys, keys, strict=True)}, number


def _counted(joined: _FurtherJoin, fresh: ColumnFactory) -> tuple[LogicalPlan, Attribute]:
    """The further relations grouped by their keys, with the number of rows of each group, and its column."""
    count = fresh.alias(aggregate_call("Count", constant(1, "int")), "partners", False)
    assert count.attribute is not None
    keys = [reference(a) for a in joined.keys]
    return aggregate(keys, [*keys, count], joined.plan), count.attribute
