"""Predicates that must not be copied from one column to an equal one.

From `p.k = r.k` and `100 / r.k > 2` Spark's InferFiltersFromConstraints derives `100 / p.k > 2` and filters `p` by
it. That is harmless only if the predicate cannot fail on rows on which it was not evaluated (`p.k = 0`), and if it
gives the same result for all values that the type calls equal: `0.0 = -0.0` holds for DOUBLE, but `string(k)` differs.
A predicate that violates one of the two is called *sensitive* here:

* *fallible*: in ANSI mode it can throw (`safety.may_throw`);
* *discerning*: it reads a column whose type has distinguishable equals (DOUBLE, FLOAT, strings under a collation other
  than UTF8_BINARY, and arrays and structs of them) by something other than a comparison.

In plain Spark the equality of an IN or EXISTS is never used that way, for the subquery becomes a join after that rule;
and of a left join's equality only the null-supplying side gets predicates. A plan in which such a join is an earlier
semi join or an inner join offers its equality to the rule. So before a rewrite makes an equality visible, it looks here
whether its columns belong to the equality class of a column that some sensitive predicate reads:

    SELECT * FROM p JOIN w ON p.k = w.k WHERE p.k IN (SELECT k FROM r WHERE 100 / k > 2)

has the class {p.k, w.k, r.k}, and the sensitive predicate reads r.k: the IN must not become a LeftSemi that Spark's
constraints see.

The classes are larger than Catalyst's: all equalities of the whole plan count, subqueries included, and so do renamed
columns and the columns that set operations and common table expressions map to each other. A predicate classed as
sensitive may therefore be harmless; the opposite does not happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from pyjoinopt.plan.expressions import AGGREGATE_OR_WINDOW, EQUALITIES, OUTER_REFERENCE, Expression, walk
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.lateral_joins import predicates_of
from pyjoinopt.plan.nodes import FULL, LEFT, OUTER, RIGHT, Aggregate, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.bitset import members

_IDENTITY = frozenset(
    "boolean tinyint smallint int bigint decimal date timestamp timestamp_ntz time string binary void".split()
)
#: What makes equality of a nested type weaker than identity, or unknown.
_WEAKER = re.compile(r"float|double|collate|variant|interval|geometry|geography|map<|udt|object", re.IGNORECASE)
_NESTED = ("array<", "struct<")
_FLOATING = frozenset({"float", "double"})
#: Comparisons by the order of the type: equal operands compare alike.
_COMPARISONS = frozenset(
    "EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull IsNaN".split()
    + ["AtLeastNNonNulls"]
)
#: A column of the row, or of the row of an enclosing query.
_COLUMNS = frozenset({"AttributeReference", "OuterReference"})
_SET_OPERATIONS = frozenset({"Union", "Intersect", "Except"})


def equality_is_identity(type_name: str) -> bool:
    """True if two equal values of a type are equal under every function.

    >>> [equality_is_identity(t) for t in ("int", "decimal(10,2)", "string", "double", "string collate UNICODE_CI")]
    [True, True, True, False, False]
    >>> equality_is_identity("array<int>"), equality_is_identity("struct<a:int,b:float>")
    (True, False)
    """
    if type_name.startswith(_NESTED):
        return _WEAKER.search(type_name) is None
    return type_name.split("(")[0] in _IDENTITY


def tells_equals_apart(expression: Expression) -> bool:
    """True unless the expression gives the same result whichever of several equal values its columns hold."""
    stack = [expression]
    while stack:
        e = stack.pop()
        if e.kind in _COLUMNS and not equality_is_identity(e.type):
            return True
        compares = e.kind in _COMPARISONS or (e.kind == "In" and e.children[0].type in _FLOATING)
        stack += [child for child in e.children if not (compares and _is_column(child))]
    return False


def _is_column(e: Expression) -> bool:
    """A column, perhaps widened from FLOAT to DOUBLE, which keeps equal values equal."""
    while e.kind == "Cast" and {e.type, e.children[0].type} <= _FLOATING:
        (e,) = e.children
    return e.kind in _COLUMNS


def is_sensitive(expression: Expression) -> bool:
    """True if the expression must not be evaluated on equal columns of other rows."""
    return may_throw(expression) or tells_equals_apart(expression)


def sensitive_columns(nodes: Sequence[LogicalPlan], discerning_only: bool = False) -> int:
    """The columns equal, directly or not, to one that a sensitive predicate reads, itself included.

    Args:
        nodes: of one plan, children first; plans of its subqueries are entered.
        discerning_only: whether fallible predicates do not count.

    Returns:
        An attribute set.
    """
    nodes = _with_subqueries(nodes)
    sensitive = tells_equals_apart if discerning_only else is_sensitive
    predicates = [p for n in nodes for p in predicates_of(n)]
    risky = _read_by_sensitive(nodes, predicates, sensitive)
    if not risky:
        return 0
    return _EqualityClasses(nodes, predicates).closure(risky)


def null_supplied_by_guarded(nodes: Iterable[LogicalPlan], sensitive: int) -> int:
    """Columns of null-supplying sides of outer joins that must remain outer joins.

    An outer join keeps a predicate over its null-supplying side above it, where it is evaluated on matched rows only,
    and evaluates its own condition pair by pair. Once the join is inner, Spark pushes both down to the relation. A
    predicate that rejects NULLs in such a column, even IS NOT NULL inferred from an equality, makes Spark turn it into
    an inner join.

    Args:
        nodes: of a plan.
        sensitive: see `sensitive_columns`.
    """
    guarded = 0
    for node in nodes:
        if isinstance(node, Join) and node.join_type in OUTER:
            supplied = null_supplied(node)
            if supplied & sensitive or (node.condition is not None and may_throw(node.condition)):
                guarded |= supplied
    return guarded


def null_supplied(join: Join) -> int:
    """The columns of an outer join's null-supplying sides."""
    left = join.left.output_set if join.join_type in (RIGHT, FULL) else 0
    return left | (join.right.output_set if join.join_type in (LEFT, FULL) else 0)


def _with_subqueries(nodes: Sequence[LogicalPlan]) -> list[LogicalPlan]:
    """These nodes, then those of the plans of their subqueries."""
    found = list(nodes)
    seen = {id(node) for node in found}
    for node in found:  # which grows
        for e in node.expressions:
            for part in walk(e) if e.plan is not None or e.children else ():
                if part.plan is not None:
                    inner = [n for n in post_order(part.plan) if id(n) not in seen]
                    seen.update(map(id, inner))
                    found += inner
    return found


def _computed(node: LogicalPlan) -> Iterable[Expression]:
    """The aliases of a projection or grouping; results of aggregate functions are no function of one row."""
    listed = node.projections if isinstance(node, Project) else node.aggregates if isinstance(node, Aggregate) else ()
    return (e for e in listed if e.kind == "Alias" and e.attribute and not e.contains & AGGREGATE_OR_WINDOW)


def _read_by_sensitive(
    nodes: Sequence[LogicalPlan], predicates: Iterable[Expression], sensitive: Callable[[Expression], bool]
) -> int:
    """What sensitive predicates read, by way of computed columns too; and what a tested sensitive column reads."""
    reads: dict[int, int] = {}  # computed column -> all columns that it is computed from, at any depth
    risks: dict[int, int] = {}  # computed column -> what its sensitive parts read
    for node in nodes:
        for alias in _computed(node):
            assert alias.attribute is not None
            below = _gathered(alias.references, reads)
            risk = _gathered(alias.references, risks, keep=False)
            plain = alias.children[0].kind == "AttributeReference"
            if not plain and sensitive(alias):
                risk |= below
                if may_throw(alias):  # a predicate on the column itself would move down to rows without one
                    risk |= alias.attribute.mask
            reads[alias.attribute.bit] = below
            if risk:
                risks[alias.attribute.bit] = risk
    found = 0
    for predicate in predicates:
        columns = _references(predicate)
        found |= _gathered(columns, risks, keep=False)
        if sensitive(predicate):
            found |= _gathered(columns, reads)
    return found


def _references(e: Expression) -> int:
    """What an expression reads, of the row of an enclosing query too."""
    if not e.contains & OUTER_REFERENCE:
        return e.references
    outer = (part.attribute.mask for part in walk(e) if part.kind == "OuterReference" and part.attribute is not None)
    return reduce(or_, outer, e.references)


def _gathered(columns: int, known: dict[int, int], keep: bool = True) -> int:
    found = (known.get(bit, 0) for bit in members(columns))
    return reduce(or_, found, columns if keep else 0)


class _EqualityClasses:
    """Columns that some equality, renaming or mapping of the plan makes equal: a union-find over attribute bits."""

    def __init__(self, nodes: Sequence[LogicalPlan], predicates: Iterable[Expression]) -> None:
        self._parent: dict[int, int] = {}
        for predicate in predicates:
            for e in walk(predicate):
                if e.kind in EQUALITIES:
                    one, other = map(_column, e.children)
                    if one is not None and other is not None:
                        self._unite(one, other)
        definitions = {n.info.get("cte"): n for n in nodes if n.kind == "CTERelationDef"}
        for node in nodes:
            for alias in _computed(node):
                column = _column(alias.children[0])
                if column is not None and alias.attribute is not None:
                    self._unite(column, alias.attribute.bit)
            mapped = list(node.children) if node.kind in _SET_OPERATIONS else []
            if node.kind == "CTERelationRef" and (definition := definitions.get(node.info.get("cte"))) is not None:
                mapped.append(definition)
            for other_node in mapped:
                for here, there in zip(node.output, other_node.output):
                    self._unite(here.bit, there.bit)

    def closure(self, columns: int) -> int:
        """The union of the classes of some columns."""
        roots = {self._find(bit) for bit in range(columns.bit_length()) if columns >> bit & 1}
        found = columns
        for bit in list(self._parent):
            if self._find(bit) in roots:
                found |= 1 << bit
        return found

    def _find(self, bit: int) -> int:
        parent = self._parent
        while parent.setdefault(bit, bit) != bit:
            parent[bit] = parent[parent[bit]]
            bit = parent[bit]
        return bit

    def _unite(self, one: int, other: int) -> None:
        self._parent[self._find(one)] = self._find(other)


def _column(e: Expression) -> int | None:
    """The column that an operand of an equality is, perhaps cast or from an outer query."""
    while e.kind in ("Cast", "UpCast", "KnownNotNull", "Collate") and e.children:
        e = e.children[0]
    return e.attribute.bit if e.kind in _COLUMNS and e.attribute is not None else None
