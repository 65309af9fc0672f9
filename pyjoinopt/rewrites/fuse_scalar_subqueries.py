"""Scalar subqueries that aggregate the rows of one table with different filters read the table once.

    before  SELECT (SELECT count(*) FROM sales WHERE quantity BETWEEN 1 AND 20),
                   (SELECT avg(price) FROM sales WHERE quantity BETWEEN 21 AND 40)
    after   SELECT (SELECT count(*) FILTER (WHERE quantity BETWEEN 1 AND 20) FROM sales
                    WHERE quantity BETWEEN 1 AND 20 OR quantity BETWEEN 21 AND 40),
                   (SELECT avg(price) FILTER (WHERE quantity BETWEEN 21 AND 40) FROM sales
                    WHERE quantity BETWEEN 1 AND 20 OR quantity BETWEEN 21 AND 40)

Both subqueries then read the same rows, so Spark's own rule (`MergeScalarSubqueries`, in Spark 4.3 `MergeSubplans`)
makes one aggregate of them, and its planner runs that once. This rewrite only makes the filters equal. It does nothing
where that rule does not run or does the same by itself (`merges_equal_inputs`).

Legal if

* the subqueries are uncorrelated, and each is an aggregate without GROUP BY and with one column, nothing above it
  (HAVING, ORDER BY, LIMIT);
* they read the same table (`rewrites.plan_equivalence`) through filters, names and projections of columns only;
* their functions take a FILTER, are deterministic, and do not depend on the order of rows, but for rounding;
* nothing of it can throw: no filter and no argument, which are evaluated on the rows of the other subqueries; no
  function and nothing computed from its result, for a subquery that the query never evaluates must not fail either.
  Sums of `bigint` and of decimals of more than 28 digits can overflow in ANSI mode; those of narrower types need four
  billion rows for it.

* no filter compares floating-point numbers (`compares_floating`).

Sure to be merged if

* no function is DISTINCT: Spark expands one that has a FILTER before it merges subqueries;
* all functions of a pass are computed by the same physical aggregate: one by hashing has no MIN or MAX of text;
* the table is one of Parquet or ORC files that Spark lists by itself: other sources prune columns or files before
  subqueries are merged, and what a row of text files is may depend on the columns that are read;
* the column that the subquery is computed for is read, for Spark drops others before it merges.

Priced by what is read. A scan of n subqueries becomes one scan, whose rows and columns are those that any of them
reads, so it reads no row group and no column that none of the n read, and at most the sum, if its OR prunes as well as
the separate filters. Spark passes an OR to the reader only as a whole, so

* a filter that not all share is the only such filter of its subquery, or a comparison of a column with constants, as
  are all others of this subquery, unless a subquery has no such filter and reads all rows anyway;
* such a filter reads no partition column;
* there are fewer scans than without it: Spark merges what has equal filters, and of each such group what cannot be
  computed in the pass is left;
* one pass has at most 32 functions: Java compiles the code of more than some tens slowly or not at all.

Source: "computation reuse via fusion", N. Bruno and others, ICDE 2022.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import (
    ANSI,
    CORRELATED,
    REPLACED,
    SUBQUERY,
    Expression,
    conjunction,
    rewrite,
    substitute,
    walk,
)
from pyjoinopt.plan.facts.constant_values import is_fixed
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.fallible.value_ranges import FLOATING
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import map_subqueries, post_order
from pyjoinopt.rewrites.filtered_aggregates import (
    compares_floating,
    may_be_fused,
    only_where,
    own_predicates,
    rows_of_any,
    source_of,
)
from pyjoinopt.rewrites.plan_equivalence import Columns, PlanMatcher

#: By which the rewrite can be switched off.
NAME = "fuse_scalar_subqueries"
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_REUSE = "spark.sql.execution.reuseSubquery"
#: Spark 4.3 gives subqueries with different filters FILTER clauses by itself if it is set.
_SYMMETRIC = "spark.sql.optimizer.mergeSubplans.filterPropagation.symmetricFilterPropagation.enabled"
_EXTENSIONS = "spark.sql.extensions"
#: Settings that decide whether Spark merges subqueries.
SETTINGS = (_EXCLUDED, _REUSE, _SYMMETRIC, _EXTENSIONS)
#: The rule that merges them, by its names.
_MERGING = frozenset({"MergeScalarSubqueries", "MergeSubplans"})
#: Extensions, in lower case, which give each scan the files that its filters leave before subqueries are merged, or
#: which replace aggregates with a FILTER by operators of their own.
_OTHER_PLANNERS = ("delta", "comet", "gluten")
_FORMATS = frozenset({"parquet", "orc"})
_INTEGERS = frozenset({"tinyint", "smallint", "int"})
#: Types whose minimum is computed by hashing, beside decimals, and those for which Spark sorts.
_HASHED = _INTEGERS | FLOATING | {"bigint", "boolean", "date", "timestamp", "timestamp_ntz"}
_SORTED = frozenset({"string", "binary"})
_DECIMAL = re.compile(r"decimal\((\d+),\s*-?\d+\)")
#: A sum has ten digits more than its argument, and at most 38.
_WIDEST_SUMMED = 28
#: Functions that one pass computes at most.
_MOST_FUNCTIONS = 32
_COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
)


def merges_equal_inputs(settings: Mapping[str, str]) -> bool:
    """True if Spark merges scalar subqueries over equal inputs, and only these.

    Args:
        settings: the values of `SETTINGS`; those that this Spark does not have are left out.

    >>> merges_equal_inputs({"spark.sql.execution.reuseSubquery": "true"})
    True
    >>> merges_equal_inputs({"spark.sql.optimizer.excludedRules": "a.b.MergeSubplans"})
    False
    """
    excluded = {rule.strip().rpartition(".")[2] for rule in settings.get(_EXCLUDED, "").split(",")}
    extensions = settings.get(_EXTENSIONS, "").lower()
    return (
        not excluded & _MERGING
        and settings.get(_REUSE, "true").lower() == "true"
        and settings.get(_SYMMETRIC, "false").lower() == "false"
        and not any(name in extensions for name in _OTHER_PLANNERS)
    )


def may_be_worthwhile(expressions: Iterable[Expression]) -> bool:
    """True if a query has several uncorrelated scalar subqueries; one look at all its expressions."""
    return sum(e.kind == "ScalarSubquery" and not e.flags & CORRELATED for e in expressions) > 1


def fuse_scalar_subqueries(root: LogicalPlan) -> Rewritten:
    """Give subqueries that aggregate rows of one table the same filter, and their functions FILTER clauses.

    Args:
        root: the analysed plan of a whole query.

    Returns:
        The plan, the very same object if there was nothing to do, and a note for every table that is read once.
    """
    if not all(map(_deterministic, _definitions(root))):
        return Rewritten(root)  # Spark keeps one that is not as a common table expression, and then merges nothing
    alike = PlanMatcher()
    passes: list[_Pass] = []
    others: list[LogicalPlan] = []
    for plan in _subqueries(root):
        member = _member(plan)
        if member is None:
            others.append(plan)
        elif not any(one.admits(member) for one in passes):
            passes.append(_Pass(member, alike))
    fused = [one for one in passes if one.saves_scans(others, [other for other in passes if other is not one])]
    if not fused:
        return Rewritten(root)
    plans = {number: plan for one in fused for number, plan in one.plans()}

    def changed(plan: LogicalPlan) -> LogicalPlan:
        return plans[id(plan)] if id(plan) in plans else map_subqueries(plan, changed)

    return Rewritten(map_subqueries(root, changed), tuple(one.note for one in fused))


class _Member(NamedTuple):
    """A subquery that may be computed together with others.

    Attributes:
        plan: of the subquery.
        node: its aggregate.
        leaf: the table that it reads, perhaps with a name.
        predicates: its filters.
        sorts: whether Spark sorts to compute it.
    """

    plan: LogicalPlan
    node: Aggregate
    leaf: LogicalPlan
    predicates: list[Expression]
    sorts: bool

    @property
    def relation(self) -> LogicalPlan:
        return without_aliases(self.leaf)

    @property
    def functions(self) -> int:
        return sum(e.kind == "AggregateExpression" for e in walk(self.node.aggregates[0]))


def _subqueries(root: LogicalPlan) -> Iterator[LogicalPlan]:
    """The plans of uncorrelated scalar subqueries that are read, also inside others; each once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        plan = waiting.pop()
        read = needed_columns(plan)
        found: list[LogicalPlan] = []
        for node in post_order(plan):
            for e in () if node.cached else _read_expressions(node, read[id(node)]):
                for s in walk(e):
                    # Spark computes no column of EXISTS.
                    if s.plan is None or s.flags & CORRELATED or s.kind == "Exists" or id(s.plan) in seen:
                        continue
                    seen.add(id(s.plan))
                    found.append(s.plan)
                    if s.kind == "ScalarSubquery":
                        yield s.plan
        waiting += found


def _read_expressions(node: LogicalPlan, read: int) -> Iterator[Expression]:
    """The expressions with subqueries of a node, of a projection those whose columns are read."""
    columns = node.output if isinstance(node, Project) else ()
    for i, e in enumerate(node.expressions):
        if e.contains & SUBQUERY and (i >= len(columns) or columns[i].mask & read):
            yield e


def _definitions(root: LogicalPlan) -> Iterator[LogicalPlan]:
    """The common table expressions of a query and of all its subqueries."""
    waiting = [root]
    while waiting:
        for node in post_order(waiting.pop()):
            if node.kind == "CTERelationDef":
                yield node
            for e in () if node.cached else node.expressions:
                if e.contains & SUBQUERY:
                    waiting += [s.plan for s in walk(e) if s.plan is not None]


def _deterministic(definition: LogicalPlan) -> bool:
    return all(e.deterministic for node in post_order(definition) for e in node.expressions)


def _member(plan: LogicalPlan) -> _Member | None:
    """What a subquery's plan is if it may be computed together with others; None if not."""
    node = without_aliases(plan)
    if not isinstance(node, Aggregate) or len(node.aggregates) != 1 or node.info.get("hint"):
        return None
    if not may_be_fused(node) or _computes_a_fallible_result(node.aggregates[0]):
        return None
    calls = [e for e in walk(node.aggregates[0]) if e.kind == "AggregateExpression"]
    sorts = {_sorts(e) for e in calls}
    if not calls or None in sorts or any(map(_may_fail, calls)):
        return None
    leaves, predicates = source_of(node)
    if len(leaves) != 1 or not _is_plain_table(without_aliases(leaves[0])) or any(map(may_throw, predicates)):
        return None
    if compares_floating(predicates):
        return None
    return _Member(plan, node, leaves[0], predicates, True in sorts)


def _computes_a_fallible_result(listed: Expression) -> bool:
    """True if what is computed from the results of functions may throw."""

    def result(e: Expression) -> Expression:
        return Expression("AttributeReference", type=e.type) if e.kind == "AggregateExpression" else e

    return may_throw(rewrite(listed, result))


def _sorts(call: Expression) -> bool | None:
    """Whether Spark sorts to compute a function; None if that is not known or it is DISTINCT."""
    function = call.children[0]
    if call.info.get("distinct", True):
        return None
    if call.info.get("fn") not in ("Min", "Max"):
        return False
    if function.type in _HASHED or _DECIMAL.fullmatch(function.type):
        return False
    return True if function.type in _SORTED else None


def _may_fail(call: Expression) -> bool:
    """True if a function may throw whatever its arguments are."""
    function = call.children[0]
    if call.info.get("fn") not in ("Sum", "Average"):
        return False
    (argument, *_) = function.children
    if argument.type in _INTEGERS | FLOATING:
        return False
    digits = _DECIMAL.fullmatch(argument.type)
    if digits is None and argument.type != "bigint":
        return True  # intervals fail in any mode
    if digits is None and call.info.get("fn") == "Average":
        return False  # of floating numbers
    return bool(function.flags & ANSI) and (digits is None or int(digits[1]) > _WIDEST_SUMMED)


def _is_plain_table(leaf: LogicalPlan) -> bool:
    relation = leaf.info.get("rel") or {}
    return (
        relation.get("kind") == "file"
        and relation.get("format") in _FORMATS
        and relation.get("bytes") is not None  # Spark's own listing of files
    )


class _Pass:
    """Subqueries that will be computed in one pass over their table."""

    def __init__(self, first: _Member, alike: PlanMatcher) -> None:
        self._alike = alike
        self._members = [first]
        self._predicates = [first.predicates]
        self._columns: list[Columns] = [{}]  # of each member in terms of the first one's

    def admits(self, other: _Member) -> bool:
        """Take in another subquery, if that is possible."""
        first = self._members[0]
        if other.sorts is not first.sorts or self._functions + other.functions > _MOST_FUNCTIONS:
            return False
        columns = self._columns_of(other.relation)
        if columns is None:
            return False
        predicates = [*self._predicates, [substitute(p, columns) for p in other.predicates]]
        if not self._reads_no_more(own_predicates(self._alike, predicates)):
            return False
        self._predicates = predicates
        self._members.append(other)
        self._columns.append(columns)
        return True

    def saves_scans(self, others: Sequence[LogicalPlan], passes: Sequence[_Pass]) -> bool:
        """True if there are fewer scans than without it: one a filter, since Spark merges what has equal filters.

        Args:
            others: the plans of subqueries that are no members; those that read the table may have to be computed
                from a scan of their own that they shared with a member.
            passes: the other passes, whose members may have the filters of a member of this one.
        """
        left = sum(map(self._may_share_a_scan, others))
        left += sum(self._has_filters_of(m.relation, m.predicates) for p in passes for m in p._members_like(self))
        return left + 1 < len(self._distinct(own_predicates(self._alike, self._predicates)))

    def _members_like(self, other: _Pass) -> Sequence[_Member]:
        """The members, if Spark computes them by the same operator as those of the other pass."""
        return self._members if self._members[0].sorts is other._members[0].sorts else ()

    def _may_share_a_scan(self, plan: LogicalPlan) -> bool:
        node = without_aliases(plan)
        if not isinstance(node, Aggregate) or node.grouping or node.cached:
            return False
        leaves, predicates = source_of(node)
        if len(leaves) != 1:
            return False
        source = without_aliases(leaves[0])
        if source.children and not source.cached:  # perhaps a projection, of which Spark makes another
            below = list(post_order(source))
            nested = any(e.contains & SUBQUERY for inner in below for e in inner.expressions)
            return not nested and any(self._columns_of(leaf) is not None for leaf in below if not leaf.children)
        return self._has_filters_of(source, predicates)

    def _has_filters_of(self, relation: LogicalPlan, predicates: Sequence[Expression]) -> bool:
        columns = self._columns_of(relation)
        if columns is None:
            return False
        theirs = [substitute(p, columns) for p in predicates]
        return any(not any(own_predicates(self._alike, [mine, theirs])) for mine in self._predicates)

    def _columns_of(self, relation: LogicalPlan) -> Columns | None:
        return self._alike.columns(self._members[0].relation, relation)

    @property
    def note(self) -> str:
        name = self._members[0].relation.info["rel"].get("name") or "a table"
        return f"{len(self._members)} scalar subqueries over {name} are computed in one pass"

    def plans(self) -> Iterator[tuple[int, LogicalPlan]]:
        """The id of each subquery's plan, and what it becomes."""
        rests = own_predicates(self._alike, self._predicates)
        read = rows_of_any(self._predicates[0], self._distinct(rests))
        for member, rest, columns in zip(self._members, rests, self._columns, strict=True):
            back = self._alike.columns(member.relation, self._members[0].relation) if columns else {}
            assert back is not None
            keep = conjunction(rest)
            listed = only_where(member.node.aggregates[0], None if keep is None else substitute(keep, back))
            source = filtered([substitute(p, back) for p in read], member.leaf)
            yield id(member.plan), aggregate((), (listed,), source)

    @property
    def _functions(self) -> int:
        return sum(member.functions for member in self._members)

    def _reads_no_more(self, rests: list[list[Expression]]) -> bool:
        """True if one pass reads no row group that none of the separate passes read."""
        relation = self._members[0].relation.info["rel"]
        partitioned = sum(1 << bit for bit in relation.get("partitionCols") or ())
        if any(not p.references or p.references & partitioned for rest in rests for p in rest):
            return False
        return not all(rests) or all(len(rest) == 1 or all(map(_is_pushed, rest)) for rest in rests)

    def _distinct(self, rests: list[list[Expression]]) -> list[list[Expression]]:
        """The lists of predicates without repetitions, in the same order."""
        result: list[list[Expression]] = []
        for rest in rests:
            if not any(self._same_list(rest, known) for known in result):
                result.append(rest)
        return result

    def _same_list(self, one: list[Expression], other: list[Expression]) -> bool:
        mine, theirs = (sorted(some, key=self._alike.predicate_number) for some in (one, other))
        return len(mine) == len(theirs) and all(self._alike.same(a, b, {}) for a, b in zip(mine, theirs, strict=True))


def _is_pushed(predicate: Expression) -> bool:
    """True if Spark passes a predicate to the reader of files, also as a part of an OR: columns against constants."""
    waiting = [inline_common_expressions(predicate)]
    while waiting:
        e = waiting.pop()
        if e.kind in ("And", "Or", "Not") or e.flags & REPLACED:
            waiting += e.children
        elif e.kind in _COMPARISONS:
            if sorted(map(_operand, e.children)) != ["column", "constant"]:
                return False
        elif e.kind in ("IsNull", "IsNotNull"):
            if _operand(e.children[0]) != "column":
                return False
        elif e.kind in ("In", "InSet"):
            value, *options = map(_operand, e.children)
            if value != "column" or any(option != "constant" for option in options):
                return False
        else:
            return False
    return True


def _operand(e: Expression) -> str:
    if e.kind == "AttributeReference":
        return "column"
    return "constant" if is_fixed(e) else "other"
