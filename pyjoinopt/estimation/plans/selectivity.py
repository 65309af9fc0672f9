"""Which fraction of a relation's rows a predicate keeps.

Histograms, distinct counts, ranges and NULL counts are used where they are known. Where they are not, the shares of
`estimation.model.assumptions` are: round numbers, only meant to put predicates in a sensible order (an equality keeps
less than a range, a range less than an inequality). Predicates on different columns count as independent; both ends
of a range on one column do not.

**Popular values.** Of 200 countries one has a third of all companies, and it is this one that queries name. A value
that a query names is one of a random row rather than a random value, and these are frequent: with frequencies as they
are in texts (Zipf), a value so chosen of n has a share of about 1.6 / ln(n)^2, for n = 200 ten times 1/n. About
half-way between the two, in logarithms, lies n^-0.75: that is assumed for columns of text that have fewer values than
rows. Numbers are mostly identifiers, and have histograms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.model.comparisons import (
    LISTS,
    MIRRORED,
    TEXT,
    and_operands,
    comparison,
    comparisons,
    names,
    wraps_and,
)
from pyjoinopt.estimation.model.histogram import share_equal
from pyjoinopt.estimation.model.literals import column_of, constant_value
from pyjoinopt.estimation.model.most_common_values import share_of_value
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.estimation.plans.intervals import (
    EVERYTHING,
    Interval,
    fraction,
    is_ranged,
    narrow,
    narrowed,
    share_below,
    step_of,
)
from pyjoinopt.estimation.plans.like_patterns import PATTERNS, pattern_share
from pyjoinopt.estimation.plans.runs import thinned
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import CORRELATED, EQUALITIES, SUBQUERY, Attribute, Expression, call, operands
from pyjoinopt.plan.facts.constant_values import has_value
from pyjoinopt.plan.facts.inference import null_intolerant_columns
from pyjoinopt.util.bitset import members


def selectivity(predicate: Expression, relation: RelationStatistics) -> float:
    """Fraction of the relation's rows for which the predicate is true, within [0, 1].

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> a = reference(Attribute(0, 1, "a"))
    >>> t = RelationStatistics(100.0, 800.0, columns={0: ColumnStatistics(ndv=10, min=1, max=10)})
    >>> selectivity(call("EqualTo", a, literal(3, "int")), t)
    0.1
    """
    done: list[float] = []
    # A step is (what to do, its expression, number of results to combine, factor); "" means "look at it".
    stack: list[tuple[str, Expression, int, float]] = [("", inline_common_expressions(predicate), 0, 1.0)]
    while stack:
        step, e, count, factor = stack.pop()
        if step:
            parts = done[len(done) - count :]
            del done[len(done) - count :]
            done.append(_combine(step, e, parts, factor, relation))
        elif has_value(e):
            done.append(_of_constant(e))
        elif e.kind == "And" or wraps_and(e):
            others, factor = _ranges(_without_needless(and_operands(e)), relation)
            stack.append(("And", e, len(others), factor))
            stack.extend(("", other, 0, 1.0) for other in others)
        elif e.kind in ("Or", "Not"):
            others = operands(e, "Or") if e.kind == "Or" else list(e.children)
            stack.append((e.kind, e, len(others), 1.0))
            stack.extend(("", other, 0, 1.0) for other in others)
        else:
            done.append(_leaf(e, relation))
    return min(1.0, max(0.0, done[0]))


def apply_filter(relation: RelationStatistics, condition: Expression) -> RelationStatistics:
    """The relation after `Filter condition`: fewer rows, and narrower columns where the condition narrows one."""
    condition = inline_common_expressions(condition)
    share = selectivity(condition, relation)
    rows = relation.rows * share
    columns = _thinned(relation, condition, share)
    intervals: dict[int, tuple[Interval, float]] = {}
    named = relation.filtered_by_text
    for e in and_operands(condition):
        named = named or names(e)
        for attribute, kind, constant in comparisons(e):
            value = constant_value(constant)
            known = columns.get(attribute.bit, ColumnStatistics())
            if kind in EQUALITIES:
                known = replace(known, ndv=1.0, guessed=False, ndv_bound=1.0, nulls=0.0, bins=())
                columns[attribute.bit] = known if value is None else replace(known, min=value, max=value)
            elif value is not None:
                interval, step = intervals.get(attribute.bit, (EVERYTHING, step_of(attribute)))
                intervals[attribute.bit] = narrow(interval, kind, value, step), step
        if e.kind in LISTS and (listed := column_of(e.children[0])) is not None:
            known = columns.get(listed.bit, ColumnStatistics())
            count = float(_list_length(e))
            ndv = count if known.ndv is None else min(known.ndv, count)
            bound = min(known.ndv_bound, count)
            columns[listed.bit] = replace(known, ndv=max(1.0, ndv), ndv_bound=bound, nulls=0.0, bins=())
        elif e.kind == "IsNotNull" and (tested := column_of(e.children[0])) is not None and tested.bit in columns:
            columns[tested.bit] = replace(columns[tested.bit], nulls=0.0)
    for bit, (interval, step) in intervals.items():
        if bit in columns:
            columns[bit] = narrowed(columns[bit], interval, step)
    for e in and_operands(condition):
        for bit, known in columns.items() if e.kind != "IsNotNull" else ():
            if (known.heavy or known.frequencies) and e.references >> bit & 1:
                columns[bit] = replace(known, heavy=(), frequencies=None)  # as often as before, or not at all
    for bit, known in columns.items():
        if known.drawn is not None and (before := relation.columns[bit].ndv) and known.ndv is not None:
            columns[bit] = replace(known, drawn=max(known.ndv, known.drawn * min(1.0, known.ndv / before)))
    return replace(relation.with_rows(rows), columns=columns, unfiltered=relation.base_rows, filtered_by_text=named)


# -- predicates --------------------------------------------------------------------------------------------------


def _of_constant(e: Expression) -> float:
    return 1.0 if e.value is True else 0.0 if e.value is None or e.value is False else ASSUMPTIONS.other_predicate


def _thinned(relation: RelationStatistics, condition: Expression, share: float) -> dict[int, ColumnStatistics]:
    """The columns of a relation with the runs that a filter leaves."""
    if all(known.run <= 1.0 for known in relation.columns.values()):
        return dict(relation.columns)
    run = min((relation.column(bit).run for bit in members(condition.references)), default=1.0)
    return {bit: thinned(known, share, run) for bit, known in relation.columns.items()}


def _leaf(e: Expression, relation: RelationStatistics) -> float:
    """A predicate that is no AND, OR or NOT."""
    if e.kind == "AttributeReference":
        mean = None if e.attribute is None else relation.column(e.attribute.bit).mean
        return ASSUMPTIONS.boolean if mean is None else mean
    if e.kind in ("IsNull", "IsNotNull"):
        nulls = _null_fraction(e.children[0], relation)
        return nulls if e.kind == "IsNull" else 1.0 - nulls
    simple = comparisons(e)
    if simple:
        return _against_constant(*simple[0], relation) if len(simple) == 1 else _ranges([e], relation)[1]
    if e.contains & CORRELATED and (e.kind in EQUALITIES or e.kind in MIRRORED):
        return ASSUMPTIONS.ordering  # even an equality: it often keeps the first or the last of each
    if e.kind in EQUALITIES or e.kind in MIRRORED:
        share = _between_literals(e)
        return _between_columns(e, relation) if share is None else share
    if e.kind in LISTS:
        return _in_list(e, relation)
    if e.kind in PATTERNS:
        return _pattern(e, relation)
    return ASSUMPTIONS.subquery_test if e.flags & SUBQUERY else ASSUMPTIONS.other_predicate


def _against_constant(attribute: Attribute, kind: str, constant: Expression, relation: RelationStatistics) -> float:
    known = relation.column(attribute.bit)
    filled = 1.0 - (known.nulls or 0.0)
    if has_value(constant) and constant.value is None:
        return 0.0 if kind != "EqualNullSafe" else _null_fraction_of(attribute, relation)
    value = constant_value(constant)
    if kind in EQUALITIES:
        if value is not None and known.min is not None and known.max is not None:
            if not known.min <= value <= known.max:
                return 0.0
        return filled * _listed(attribute, [_value(constant, attribute)], relation)
    if value is None:
        return ASSUMPTIONS.ordering
    step = step_of(attribute)
    share = fraction(known, narrow(EVERYTHING, kind, value, step), step)
    return ASSUMPTIONS.ordering if share is None else filled * share


def _listed(attribute: Attribute, values: Sequence[float | str | None], relation: RelationStatistics) -> float:
    """Share of the rows that have one of these values, among those that are not NULL."""
    known, ndv, count = relation.column(attribute.bit), relation.distinct(attribute.bit), len(values)
    if ndv is None:
        return min(1.0 if count == 1 else ASSUMPTIONS.boolean, count * _equal(relation))
    if known.heavy and None not in values:
        return min(1.0, sum(share_of_value(known.heavy, v, ndv, relation.base_rows) for v in values))
    share = min(1.0, count / ndv)
    numbers = [v for v in values if isinstance(v, float)]
    if known.bins and len(numbers) == count:
        return min(1.0, max(share, sum(share_equal(known.bins, v) for v in numbers)))
    return share**ASSUMPTIONS.popular_text if attribute.type.startswith(TEXT) and _repeats(ndv, relation) else share


def _value(constant: Expression, attribute: Attribute) -> float | str | None:
    """A constant as a number, or as a text that a column without a collation is compared with; None if unknown."""
    value = constant.value if has_value(constant) else None
    return value if isinstance(value, str) and attribute.type == "string" else constant_value(constant)


def _repeats(ndv: float, relation: RelationStatistics) -> bool:
    """Whether a text column with so many distinct values has many rows with the same text."""
    return ndv < ASSUMPTIONS.repeated_text * relation.base_rows


def _between_literals(e: Expression) -> float | None:
    """1 or 0 for an equality of two constants: what is left of a test on a column that names a branch of a union."""
    one, other = e.children
    if e.kind not in EQUALITIES or not (has_value(one) and has_value(other)) or one.type != other.type:
        return None
    if one.value is None or other.value is None:
        return float(e.kind == "EqualNullSafe" and one.value is other.value)
    return float(one.value == other.value)


def _between_columns(e: Expression, relation: RelationStatistics) -> float:
    columns = [column_of(side) for side in e.children]
    if e.kind in MIRRORED:
        a, b = (ColumnStatistics() if column is None else relation.column(column.bit) for column in columns)
        share = share_below(a, b) if e.kind.startswith("Less") else share_below(b, a)
        return ASSUMPTIONS.ordering if share is None else share * (1.0 - (a.nulls or 0.0)) * (1.0 - (b.nulls or 0.0))
    counts = [relation.distinct(a.bit) for a in columns if a is not None]
    known = [ndv for ndv in counts if ndv is not None]
    return 1.0 / max(known) if known else _equal(relation)


def _equal(relation: RelationStatistics) -> float:
    """Share of the rows with one value of a column without statistics: it cannot have more values than rows."""
    return max(ASSUMPTIONS.equality, 1.0 / relation.base_rows)


def _in_list(e: Expression, relation: RelationStatistics) -> float:
    count = _list_length(e)
    attribute = column_of(e.children[0])
    if attribute is None:
        single = [call("EqualTo", e.children[0], value) for value in e.children[1:]]
        if single and all(comparisons(equal) or _between_literals(equal) is not None for equal in single):
            return min(1.0, sum(_leaf(equal, relation) for equal in single))
        return min(ASSUMPTIONS.boolean, count * _equal(relation))
    known = relation.column(attribute.bit)
    values = [_value(v, attribute) for v in e.children[1:]] if e.kind == "In" else [None] * count
    if known.min is not None and known.max is not None:
        values = [v for v in values if not isinstance(v, float) or known.min <= v <= known.max]
    return (1.0 - (known.nulls or 0.0)) * _listed(attribute, values, relation)


def _list_length(e: Expression) -> int:
    return int(e.info.get("hset") or 1) if e.kind == "InSet" else max(1, len(e.children) - 1)


def _pattern(e: Expression, relation: RelationStatistics) -> float:
    attribute = column_of(e.children[0])
    if attribute is None:
        return pattern_share(e, _equal(relation))
    filled = 1.0 - (relation.column(attribute.bit).nulls or 0.0)
    ndv = relation.distinct(attribute.bit)
    repeated = None if ndv is None else _repeats(ndv, relation)
    share = pattern_share(e, _listed(attribute, [None], relation), repeated)
    return filled * max(share, 1.0 / relation.base_rows)


def _null_fraction(e: Expression, relation: RelationStatistics) -> float:
    attribute = column_of(e)
    return ASSUMPTIONS.null if attribute is None else _null_fraction_of(attribute, relation)


def _null_fraction_of(attribute: Attribute, relation: RelationStatistics) -> float:
    nulls = relation.column(attribute.bit).nulls
    if nulls is not None:
        return nulls
    return ASSUMPTIONS.null if attribute.nullable else 0.0


def _without_needless(parts: Sequence[Expression]) -> list[Expression]:
    """The operands without those `IS NOT NULL` that others imply: these do not count rows with a NULL.

    Spark adds them to what is written, which must not change an estimate.
    """
    tests = [e for e in parts if e.kind == "IsNotNull"]
    if not tests or len(tests) == len(parts):
        return list(parts)
    others = [e for e in parts if e.kind != "IsNotNull"]
    implied = {column.key for e in others for column in null_intolerant_columns(e)}
    return others + [e for e in tests if e.children[0].key not in implied]


# -- AND, and ranges on one column -------------------------------------------------------------------------------


def _ranges(parts: Iterable[Expression], relation: RelationStatistics) -> tuple[list[Expression], float]:
    """Ranges on one column are one interval: (the other operands, the fraction that the intervals keep)."""
    others: list[Expression] = []
    intervals: dict[int, list[tuple[str, float, float]]] = {}
    vague: dict[int, set[bool]] = {}  # ends of ranges on columns without minimum and maximum
    for e in parts:
        simple = comparisons(e)
        if not simple or any(kind in EQUALITIES for _, kind, _ in simple):
            others.append(e)
            continue
        for attribute, kind, constant in simple:
            value, known = constant_value(constant), relation.column(attribute.bit)
            if value is not None and is_ranged(known):
                intervals.setdefault(attribute.bit, []).append((kind, value, step_of(attribute)))
            else:
                vague.setdefault(attribute.bit, set()).add(kind.startswith("Less"))
    factor = 1.0
    for bit, ends in intervals.items():
        interval, known = EVERYTHING, relation.column(bit)
        for kind, value, step in ends:
            interval = narrow(interval, kind, value, step)
        factor *= (fraction(known, interval, step) or 0.0) * (1.0 - (known.nulls or 0.0))
    for sides in vague.values():
        factor *= ASSUMPTIONS.between if len(sides) == 2 else ASSUMPTIONS.ordering
    return others, factor


def _combine(step: str, e: Expression, parts: list[float], factor: float, relation: RelationStatistics) -> float:
    if step == "And":
        return math.prod(parts, start=factor)
    if step == "Or":
        return 1.0 - math.prod(1.0 - part for part in parts)
    return max(0.0, 1.0 - parts[0] - _neither(e.children[0], relation))


def _neither(e: Expression, relation: RelationStatistics) -> float:
    """Share of the rows for which a test is NULL: neither it nor its opposite keeps them."""
    simple = comparison(e)
    attribute = simple[0] if simple else column_of(e.children[0]) if e.kind in PATTERNS or e.kind in LISTS else None
    return (relation.column(attribute.bit).nulls or 0.0) if attribute is not None else 0.0
