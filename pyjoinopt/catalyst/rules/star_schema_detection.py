"""StarSchemaDetection: a big fact table in the middle, small dimensions around it.

    FROM customer, sales, date, store WHERE sales.date = date.id AND sales.store = store.id AND ... AND date.year = 2020

Spark knows no primary keys, so it guesses them from statistics. The largest table is the fact, unless the second
largest comes close to it (90 %): then there is no telling, and no star. A dimension is a table that an equality of
plain columns joins to the fact, on a column that looks like a key: no NULLs, and about as many distinct values as
rows. "About" is ten percent, twice the error that Spark allows itself when it counts distinct values. One dimension
does not make a star.

Such joins never make more rows: each fact row finds one partner or none. So they can be done first, and the dimension
that throws most rows away first of all. Without cost-based optimisation it is not known which that is; the smallest
dimension is the guess, and only if a predicate on some dimension throws rows away at all (IS NOT NULL does not count).

Everything rests on tables that were counted, so each plan has to be a base table: projections and filters over a
leaf with a known row count. One plan that is not, and there is no star.

Two rules use it: `reorder_join` puts the star first if cost-based optimisation is off, `join_reorder_dp` keeps the star
together if it is on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.catalyst.rules.rule_context import Statistics
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics
from pyjoinopt.catalyst.support.predicate_helper import can_evaluate
from pyjoinopt.plan.expressions import EQUALITIES, FOLDABLE, Attribute, Expression, conjuncts, walk
from pyjoinopt.plan.nodes import INNER, Filter, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name

_COMPARISONS = EQUALITIES | {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
#: Leaves that have a row count only with `cbo.enabled` or `cbo.planStats.enabled`.
_SECRETIVE = frozenset({"LogicalRelation", "HiveTableRelation"})
_FIELD_ACCESS = frozenset({"GetStructField", "GetArrayStructFields", "GetArrayItem", "GetMapValue"})


def find_star_joins(
    plans: Sequence[LogicalPlan],
    conditions: Sequence[Expression],
    statistics: Statistics,
    conf: Mapping[str, str] | None = None,
) -> list[LogicalPlan]:
    """The star among some joined plans (Catalyst's `StarSchemaDetection.findStarJoins`).

    Args:
        plans: what is joined, in the order written.
        conditions: conjuncts over their columns.
        statistics: of each plan and of each leaf; None if the row count is unknown.
        conf: Spark's settings: `spark.sql.cbo.enabled` (are estimates of filtered tables used?),
            `cbo.planStats.enabled`, `cbo.starJoinFTRatio` (0.9), `spark.sql.statistics.ndv.maxError` (0.05).

    Returns:
        The fact table and its dimensions, larger ones first; nothing if there is no star.
    """
    return [table.plan for table in _star(plans, conditions, _Settings(statistics, conf or {}))]


def reorder_star_joins(
    items: Sequence[tuple[LogicalPlan, str]],
    conditions: Sequence[Expression],
    statistics: Statistics,
    conf: Mapping[str, str] | None = None,
) -> list[tuple[LogicalPlan, str]]:
    """The star in the order in which it should be joined (Catalyst's `StarSchemaDetection.reorderStarJoins`).

    Args:
        items: plans with the types of the joins they come with; those of cross joins take no part.
        conditions, statistics, conf: see `find_star_joins`.

    Returns:
        The fact table and its dimensions, smaller ones first; nothing if there is no star or no predicate on any of
        its dimensions.
    """
    inner = [plan for plan, join_type in items if join_type == INNER]
    star = _star(inner, conditions, _Settings(statistics, conf or {}))
    if not star or not any(_is_selective(table, conditions) for table in star[1:]):
        return []
    return [(table.plan, INNER) for table in (star[0], *sorted(star[1:], key=lambda table: table.rows))]


def is_on(conf: Mapping[str, str], key: str) -> bool:
    """True if a switch that is off by default is on."""
    return conf.get(key, "false").strip().lower() == "true"


class _Settings:
    def __init__(self, statistics: Statistics, conf: Mapping[str, str]) -> None:
        self.statistics = statistics
        self.cbo = is_on(conf, "spark.sql.cbo.enabled")
        self.plan_stats = self.cbo or is_on(conf, "spark.sql.cbo.planStats.enabled")
        self.fact_ratio = float(conf.get("spark.sql.cbo.starJoinFTRatio", 0.9))
        self.tolerance = 2 * float(conf.get("spark.sql.statistics.ndv.maxError", 0.05))


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A base table as a join sees it.

    Attributes:
        plan: projections and filters over `leaf`.
        predicates: the conjuncts of those filters.
        known: statistics of the leaf.
        rows: what it counts for when tables are compared.
    """

    plan: LogicalPlan
    leaf: LogicalPlan
    predicates: list[Expression]
    known: CatalystStatistics
    rows: int

    def has_statistics(self, column: Attribute) -> bool:
        """True if the column comes as it is from a column of the leaf that was analysed."""
        return bool(self.plan.output_set & self.leaf.output_set & column.mask) and column.bit in self.known.columns

    def is_key(self, column: Attribute, tolerance: float) -> bool:
        """True if the column looks like one that has a different value in each row."""
        if not self.has_statistics(column) or self.known.rows <= 0:
            return False
        found = self.known.columns[column.bit]
        if found.ndv is None or found.nulls is None or found.nulls > 0:
            return False
        return abs(found.ndv / self.known.rows - 1) <= tolerance


def _star(plans: Sequence[LogicalPlan], conditions: Sequence[Expression], settings: _Settings) -> list[_Table]:
    tables = []
    for plan in plans if len(plans) > 1 else ():
        table = _table(plan, settings)
        if table is None:
            return []
        tables.append(table)
    tables.sort(key=lambda table: -table.rows)
    if len(tables) < 2 or tables[1].rows > settings.fact_ratio * tables[0].rows:
        return []
    fact, joined, joining = tables[0], [], []
    for table in tables[1:]:
        found = _join_conditions(fact.plan, table.plan, conditions)
        if found:
            joined.append(table)
            joining += found
    pairs = [(predicate, columns) for predicate in joining if (columns := _plain_columns(predicate)) is not None]
    if not all(any(_both_known(fact, table, *columns) for _, columns in pairs) for table in joined):
        return []
    equal = [columns for predicate, columns in pairs if predicate.kind in EQUALITIES]
    dimensions = [
        table
        for table in joined
        if any(table.is_key(_column_of(table.plan, *columns), settings.tolerance) for columns in equal)
    ]
    return [fact, *dimensions] if len(dimensions) > 1 else []


def _join_conditions(one: LogicalPlan, other: LogicalPlan, conditions: Sequence[Expression]) -> list[Expression]:
    both = one.output_set | other.output_set
    return [
        predicate
        for predicate in conditions
        if predicate.kind in _COMPARISONS
        and not predicate.references & ~both
        and not can_evaluate(predicate, one)
        and not can_evaluate(predicate, other)
    ]


def _plain_columns(predicate: Expression) -> tuple[Attribute, Attribute] | None:
    """Both sides of a comparison, if they are plain columns."""
    one, other = predicate.children
    if one.kind == other.kind == "AttributeReference" and one.attribute is not None and other.attribute is not None:
        return one.attribute, other.attribute
    return None


def _column_of(plan: LogicalPlan, one: Attribute, other: Attribute) -> Attribute:
    return one if plan.output_set & one.mask else other


def _both_known(fact: _Table, table: _Table, one: Attribute, other: Attribute) -> bool:
    own, its = _column_of(fact.plan, one, other), _column_of(table.plan, one, other)
    return fact.has_statistics(own) and table.has_statistics(its)


def _is_selective(table: _Table, conditions: Sequence[Expression]) -> bool:
    """True if a predicate on this table alone throws rows away."""
    own = (predicate for predicate in conditions if can_evaluate(predicate, table.plan))
    return any(predicate.kind != "IsNotNull" for predicate in (*own, *table.predicates))


# -- base tables (Catalyst's PhysicalOperation over a leaf) --------------------------------------------------------


def _table(plan: LogicalPlan, settings: _Settings) -> _Table | None:
    found = base_table(plan)
    if found is None:
        return None
    leaf, predicates = found
    if leaf.kind in _SECRETIVE and not settings.plan_stats:
        return None
    known = settings.statistics(leaf)
    if known is None:
        return None
    estimate = settings.statistics(plan) if settings.cbo else None
    return _Table(plan, leaf, predicates, known, known.rows if estimate is None else estimate.rows)


def base_table(plan: LogicalPlan) -> tuple[LogicalPlan, list[Expression]] | None:
    """The leaf below nothing but projections and filters, and the filters' conjuncts; None if there is more to it.

    As in Catalyst, the chain must be one that could be merged into a single projection over a single filter: nothing
    random between two filters, nothing expensive that would have to be computed twice. Cached plans are no tables.
    """
    chain = []
    while isinstance(plan, (Project, Filter)) or is_only_a_name(plan) or plan.kind == "ResolvedHint":
        if plan.cached:
            return None
        chain.append(plan)
        plan = plan.children[0]
    if plan.children or plan.cached:
        return None
    computed: dict[int, tuple[bool, bool]] = {}  # bit -> (deterministic, cheap)
    repeatable = True
    filters: list[Expression] = []
    for node in reversed(chain):
        if isinstance(node, Project):
            if not _may_merge(node.projections, computed):
                return None
            aliases = {
                e.attribute.bit: (e.deterministic, _is_cheap(e.children[0], computed))
                for e in node.projections
                if e.kind == "Alias" and e.attribute is not None
            }
            computed = {bit: how for bit, how in computed.items() if node.output_set >> bit & 1} | aliases
            repeatable = all(e.deterministic for e in node.projections)
        elif isinstance(node, Filter):
            if not repeatable or not _may_merge(node.expressions, computed):
                return None
            if filters and not (filters[-1].deterministic and node.condition.deterministic):
                return None
            filters.append(node.condition)
    return plan, [predicate for condition in filters for predicate in conjuncts(condition)]


def _may_merge(consumers: Sequence[Expression], computed: Mapping[int, tuple[bool, bool]]) -> bool:
    """Catalyst's `canCollapseExpressions`: what is read twice has to be cheap, what is read at all no dice."""
    if not computed:
        return True
    uses: dict[int, int] = {}
    for consumer in consumers:
        for e in walk(consumer):
            if e.kind == "AttributeReference" and e.attribute is not None and e.attribute.bit in computed:
                uses[e.attribute.bit] = uses.get(e.attribute.bit, 0) + 1
    return all(computed[bit][0] and (count == 1 or computed[bit][1]) for bit, count in uses.items())


def _is_cheap(body: Expression, computed: Mapping[int, tuple[bool, bool]]) -> bool:
    """True for a column, a constant, and a field of one."""
    while body.kind == "Alias" or (body.kind in _FIELD_ACCESS and not body.flags & FOLDABLE):
        if any(e.kind not in ("AttributeReference", "Literal") for e in body.children[1:]):
            return False
        body = body.children[0]
    if body.kind == "AttributeReference" and body.attribute is not None:
        return computed.get(body.attribute.bit, (True, True))[1]
    return body.kind == "OuterReference" or bool(body.flags & FOLDABLE)
