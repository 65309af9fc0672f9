"""Rows of a single join of any type, from what is known of its two sides."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics, likely_of
from pyjoinopt.estimation.plans.composite_key_rows import key_rows
from pyjoinopt.estimation.plans.join_domains import Member, met_domains, referred_shares, shared_domains
from pyjoinopt.estimation.plans.runs import thinned
from pyjoinopt.estimation.plans.selectivity import selectivity
from pyjoinopt.estimation.plans.unique_keys import of_join, plain_mask, times
from pyjoinopt.plan.equi_keys import Equality, equi_key, equi_keys
from pyjoinopt.plan.expressions import EQUALITIES, Attribute, Expression, conjuncts
from pyjoinopt.plan.facts.or_extraction import extract_predicate_within, top_filters
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, FULL, INNER, LEFT, RIGHT, SEMI, SINGLE, Join

#: Of these the opposite keeps nearly all pairs.
_EXCLUDE_FEW = EQUALITIES | {"In", "Like"}
_ORDERINGS = frozenset({"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"})


def _column(e: Expression, relation: RelationStatistics) -> ColumnStatistics:
    attribute = column_of(e)
    return relation.column(attribute.bit) if attribute is not None else ColumnStatistics()


def member(e: Expression, relation: RelationStatistics) -> Member:
    """What a side of an equality may hold."""
    known = _column(e, relation)
    return Member(
        known.ndv, known.guessed, known.key_values, relation.base_rows, relation.rows, known.min, known.max, known.bins,
        relation.filtered_by_text, known.heavy, known.frequencies, known.drawn or 0.0,
    )  # fmt: skip


def combined_columns(parts: Sequence[RelationStatistics], unfiltered: bool = False) -> RelationStatistics:
    """The columns of several relations as if they were one, for predicates that read more than one of them.

    Args:
        parts: the relations.
        unfiltered: whether columns may have more values than rows are left.
    """
    columns = {
        bit: column if unfiltered else replace(column, ndv=known.distinct(bit))
        for known in parts
        for bit, column in known.columns.items()
    }
    most = max((known.base_rows for known in parts), default=1.0)
    rows = max((known.rows for known in parts), default=1.0)
    return RelationStatistics(rows, 0.0, "group", False, columns, unfiltered=most)


def share_left(
    predicate: Expression, parts: Sequence[tuple[int, RelationStatistics]], passed: Container[object]
) -> float:
    """Share of the pairs of rows that a predicate keeps, of rows that have passed what it implies for a relation alone.

    Both are estimated alike, so it matters little whether columns were narrowed by what follows for them.

    Args:
        predicate: a conjunct that reads several relations.
        parts: the attributes of each relation, and what is known of it.
        passed: keys of conjuncts that the relations' filters test (`push_extra_predicate_through_join`).
    """
    together = combined_columns([known for _, known in parts])
    share = selectivity(predicate, together)
    for columns, _ in parts:
        implied = extract_predicate_within(predicate, columns)
        if implied is not None and implied.key in passed and share > 0.0:
            share /= max(share, selectivity(implied, together))
    return share


def residual_selectivity(predicate: Expression) -> float:
    """Share of the pairs of rows that a join predicate keeps which is no equality of columns."""
    factor = 1.0
    for e in conjuncts(predicate):
        if e.kind in EQUALITIES:
            factor *= ASSUMPTIONS.equal_by_chance
        elif e.kind in _ORDERINGS:
            factor *= ASSUMPTIONS.ordering
        elif e.kind == "Not" and e.children[0].kind in _EXCLUDE_FEW:
            continue
        else:
            factor *= ASSUMPTIONS.other_predicate
    return factor


def join_statistics(node: Join, left: RelationStatistics, right: RelationStatistics, source: str) -> RelationStatistics:
    """Statistics of a join's result; `bytes` is left for the caller, who knows the output's types."""
    sides = node.left.output_set, node.right.output_set
    passed = {e.key for side in node.children if _has_alternatives(node) for e in top_filters(side)}
    inner, matched = _inner(node.condition, sides, left, right, passed)
    l_rows, r_rows = left.rows, right.rows
    rows, kind = inner, node.join_type
    if kind == LEFT:
        rows = max(l_rows, inner)
    elif kind == RIGHT:
        rows = max(r_rows, inner)
    elif kind == FULL:
        rows = max(l_rows, inner) + max(r_rows, inner) - inner
    elif kind in (SEMI, ANTI):
        rows = l_rows * _kept(kind, matched)
    elif kind in (EXISTENCE, SINGLE):
        rows = l_rows
    one_sided = kind in (SEMI, ANTI, EXISTENCE)
    columns = dict(left.columns) if one_sided else _owned(node.left.output, left)
    if not one_sided:
        columns.update(_owned(node.right.output, right))
        columns = {bit: _repeated(column, rows) for bit, column in columns.items()}
        columns.update(_in_range(node, left, right, columns))
        columns.update(_with_runs(node, left, right, columns, inner))
        padding = max(ASSUMPTIONS.anti_join_least, 1.0 - inner / rows) if rows > 0 else ASSUMPTIONS.anti_join_least
        for padded, known in ((kind in (RIGHT, FULL), left.columns), (kind in (LEFT, FULL, SINGLE), right.columns)):
            if padded:
                columns.update({bit: padded_column(columns[bit], padding) for bit in known})
    if kind == EXISTENCE:
        columns[node.output[-1].bit] = ColumnStatistics(ndv=2.0, nulls=0.0, ndv_bound=2.0, mean=matched)
    keys, matches = (left.keys, (1.0, math.inf)) if one_sided or kind == SINGLE else of_join(node, left, right)
    bound = _bound(kind, left.upper_bound, right.upper_bound, matches)
    likely = likely_of((left, right), _bound(kind, left.likely_bound, right.likely_bound, matches))
    unfiltered = left.base_rows if one_sided or kind == SINGLE else max(left.base_rows, right.base_rows, rows)
    rows = min(max(rows, 0.0 if one_sided else min(1.0, l_rows * r_rows)), bound)
    return RelationStatistics(rows, 0.0, source, False, columns, bound, unfiltered, keys=keys).with_likely(likely)


def _bound(kind: str, left: float, right: float, matches: tuple[float, float]) -> float:
    """The most rows of a join, by those of its sides and the most matches of a row of each."""
    if kind in (SEMI, ANTI, EXISTENCE, SINGLE):
        return left
    product = times(left, right)
    if kind == LEFT:
        product = times(left, max(1.0, right))
    elif kind == RIGHT:
        product = times(right, max(1.0, left))
    elif kind == FULL:
        product += left + right
    by_keys = [times(rows, most) for rows, most in zip((left, right), matches) if most < math.inf]
    return min([product, *by_keys])


def share_kept(
    join_type: str,
    condition: Expression,
    left: RelationStatistics,
    right: RelationStatistics,
    right_columns: int,
    own: float = 0.0,
) -> float:
    """Share of its left rows that a semi or anti join keeps.

    Args:
        join_type: `LeftSemi` or `LeftAnti`.
        condition: its condition.
        left, right: what is known of its sides; of the left one the columns compared and the unfiltered rows matter.
        right_columns: attributes of the right side.
        own: share of the left rows that are rows of the right side, too, and have the same key there.
    """
    return _kept(join_type, own + (1.0 - own) * _inner(condition, (~right_columns, right_columns), left, right)[1])


def share_of_pairs(
    condition: Expression, left: RelationStatistics, right: RelationStatistics, right_columns: int
) -> float:
    """Share of the pairs of rows that an inner join on this condition would keep; arguments as of `share_kept`."""
    return _inner(condition, (~right_columns, right_columns), left, right)[0] / max(1.0, left.rows * right.rows)


def _kept(join_type: str, matched: float) -> float:
    return matched if join_type == SEMI else max(ASSUMPTIONS.anti_join_least, 1.0 - matched)


def padded_column(column: ColumnStatistics, share: float) -> ColumnStatistics:
    """A column of the side that an outer join fills up with NULLs; never none, for then IS NULL would keep nothing."""
    return column if column.nulls is not None and column.nulls >= share else replace(column, nulls=share)


def _owned(output: Sequence[Attribute], side: RelationStatistics) -> dict[int, ColumnStatistics]:
    """The columns of one side, each with the relation that it is from: this one, if it is no join itself."""
    if any(column.joined for column in side.columns.values()):
        return dict(side.columns)
    joined = (min((a.bit for a in output), default=0), max(1.0, side.rows))
    columns = {a.bit: ColumnStatistics(joined=joined) for a in output}
    columns.update((bit, replace(column, joined=joined)) for bit, column in side.columns.items())
    return columns


def _in_range(
    node: Join, left: RelationStatistics, right: RelationStatistics, columns: Mapping[int, ColumnStatistics]
) -> dict[int, ColumnStatistics]:
    """Columns of a side of whose key only one part is referred to: the calendar's weeks, where sales fill five years.

    They lose values in proportion, as what is numbered along with the key does; what would be left with less than one
    value comes again and again, like months, and keeps them all.
    """
    sides = (node.left.output_set, left, node.join_type in (RIGHT, INNER)), (
        node.right.output_set, right, node.join_type in (LEFT, INNER)
    )  # fmt: skip
    changed: dict[int, ColumnStatistics] = {}
    for key in equi_keys(node.condition, node.left.output_set, node.right.output_set):
        shares = referred_shares([member(key.left, left), member(key.right, right)])
        for share, (output, known, drops) in zip(shares, sides):
            for bit in known.columns if drops and share < 1.0 else ():
                column = changed.get(bit, columns[bit])
                if output >> bit & 1 and column.ndv is not None and column.ndv * share >= 1.0:
                    changed[bit] = replace(column, ndv=column.ndv * share)
    return changed


def _with_runs(
    node: Join,
    left: RelationStatistics,
    right: RelationStatistics,
    columns: Mapping[int, ColumnStatistics],
    rows: float,
) -> dict[int, ColumnStatistics]:
    """Columns whose runs are other ones in the result: those of a side that the other one refers to have its runs."""
    changed: dict[int, ColumnStatistics] = {}
    if all(column.run <= 1.0 for column in columns.values()):
        return changed
    for key in equi_keys(node.condition, node.left.output_set, node.right.output_set):
        for one, other, column, referred in ((left, right, key.left, key.right), (right, left, key.right, key.left)):
            if _column(referred, other).key_values is None:
                continue
            run, share = _column(column, one).run, rows / max(1.0, one.rows)
            for bit in one.columns:
                changed[bit] = thinned(changed.get(bit, columns[bit]), share, run)
            changed.update((bit, replace(columns[bit], run=run)) for bit in other.columns)
    return changed


def _repeated(column: ColumnStatistics, rows: float) -> ColumnStatistics:
    """A key is none any more as soon as a join gives more rows than it has values."""
    return column if column.key_values is None or rows <= column.key_values else replace(column, key_values=None)


def _inner(
    condition: Expression | None,
    columns: tuple[int, int],
    left: RelationStatistics,
    right: RelationStatistics,
    passed: Container[object] = frozenset(),
) -> tuple[float, float]:
    """(rows of the inner join, share of the left rows that find a partner); `passed` is as of `share_left`.

    Of the partners by the keys one has to fulfil the rest of the condition, too. Each of n does so with the share p of
    all pairs, so one of them does with 1 - (1 - p) ** n.
    """
    product, keys, matched, rest, of_left = 1.0, 0, 1.0, 1.0, 1.0
    counts: list[list[float]] = []
    equal: list[tuple[Expression, Expression]] = []
    for e in conjuncts(condition):
        key = equi_key(e, *columns)
        if key is None:
            share = _share(e, columns, left, right, passed)
            rest *= share
            of_left *= share if not e.references & ~columns[0] else 1.0  # which is the same for all partners
            continue
        keys += 1
        equal.append((key.left, key.right))
        members = [member(key.left, left), member(key.right, right)]
        counts.append(shared_domains(members))
        product *= max(met_domains(members))
        matched *= _share_met(key, left, right)
    if keys > 1:  # columns of one key do not multiply
        of_sides = [[count[side] for count in counts] for side in (0, 1)]
        sure = [side.is_unique(plain_mask(own)) for side, own in zip((left, right), zip(*equal))]
        product = min(product, key_rows(zip((left.base_rows, right.base_rows), of_sides), sure))
    rows = left.rows * right.rows / product * rest
    if not keys:
        return rows, min(1.0, right.rows / product * rest)
    partners = max(1.0, right.rows) / product
    if keys > 1:  # each column may find partners where the whole key finds none
        matched = min(matched, partners)
    if rest < 1.0 and matched > 0.0:
        pairs = min(1.0, rest / of_left) if of_left > 0.0 else 0.0
        matched *= of_left * (1.0 - (1.0 - pairs) ** max(1.0, partners / matched))
    return rows, matched


def _share_met(key: Equality, left: RelationStatistics, right: RelationStatistics) -> float:
    """Share of the left rows whose value is one of those that the right side's rows have.

    The filters of either side are taken to be independent of the values of the other, and the smaller of the two
    domains to be contained in the larger one. So it is the values that are left on the right over those of the larger
    domain before filters; a filter of the left side makes no difference.

        SELECT * FROM sales WHERE s_day IN (SELECT d_id FROM days WHERE d_year = 2000)

    Of a key on the right only the part counts that the left side refers to: the year is one of five that the sales
    fill, not one of a calendar of two centuries.
    """
    met = _unfiltered(key.right, right, math.inf)
    both = [_unfiltered(key.left, left, _column(key.left, left).ndv), met]
    of_left, of_right = shared_domains(both)
    of_right *= referred_shares(both)[1]
    domain = of_left if met.ndv is None or met.guessed else max(of_left, of_right)
    return min(1.0, _values_left(_column(key.right, right), of_right, right) / domain)


def _unfiltered(e: Expression, relation: RelationStatistics, unknown: float | None) -> Member:
    """What a side of an equality may hold before filters on other columns.

    Args:
        e: the side's operand.
        relation: the side.
        unknown: distinct values where they were only counted after filters.
    """
    column, found = _column(e, relation), member(e, relation)
    if column.domain is None:
        return found
    ndv = unknown if column.domain == math.inf else column.domain
    return replace(found, ndv=ndv, guessed=ndv == math.inf, key_values=None)


def _values_left(column: ColumnStatistics, domain: float, side: RelationStatistics) -> float:
    """Distinct values of a column among the rows that are left of a relation, at most `domain`.

    Where nothing counted them after the filters, they are what is left by chance if n of N rows are, of d values that
    occur equally often: d (1 - (1 - n/N) ** (N/d)). This is Yao's formula (CACM 1977) in the form of PostgreSQL's
    `estimate_num_groups`.
    """
    rows = max(1.0, side.rows)
    ndv = domain if column.ndv is None else min(column.ndv, domain)
    if column.domain is not None or column.key_values is not None or rows >= side.base_rows:
        return min(ndv, rows)
    if not ndv:
        return 1.0
    return min(rows, max(1.0, ndv * (1.0 - (1.0 - rows / side.base_rows) ** (side.base_rows / ndv))))


def _share(
    e: Expression,
    columns: tuple[int, int],
    left: RelationStatistics,
    right: RelationStatistics,
    passed: Container[object],
) -> float:
    """Share of the pairs of rows that a predicate keeps which is no equality between the sides."""
    for side, known in zip(columns, (left, right), strict=True):
        if not e.references & ~side:
            return selectivity(e, known)
    if e.kind in EQUALITIES:
        return residual_selectivity(e)
    return share_left(e, list(zip(columns, (left, right))), passed)


def _has_alternatives(node: Join) -> bool:
    return any(e.kind == "Or" for e in conjuncts(node.condition))
