"""Null-rejecting predicates: what a predicate can answer when some of its columns are NULL.

An outer join pads a row without a partner with NULL in all columns of its null-supplying side. A predicate that cannot
be true on such a row is null-rejecting: it removes all padded rows, so the outer join may be an inner one.

    SELECT * FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 5    -- an inner join gives the same rows

The same fact decides which outer joins may change places. It is computed over *sets of possible outcomes*: a NULL
column gives {NULL}, any other column {anything}, and each operator maps sets to sets. A null-intolerant operator (most
functions are) gives {NULL} as soon as one argument is certainly NULL. An operator that is not known may give anything,
so an error can only be on the side of "not null-rejecting".
"""

from __future__ import annotations

from collections.abc import Callable

from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import NULL_INTOLERANT, REPLACED, UNEVALUABLE, Expression, walk
from pyjoinopt.plan.facts.constant_values import is_fixed

# Possible outcomes as a bit set. VALUE stands for any non-null value that is not a boolean.
TRUE, FALSE, NULL, VALUE = 1, 2, 4, 8
ANYTHING = TRUE | FALSE | NULL | VALUE


def outcomes(expression: Expression, null_columns: int) -> int:
    """The outcomes that `expression` can have when the attributes in `null_columns` are NULL.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> a = Attribute(0, 1, "a")
    >>> outcomes(call("IsNull", reference(a)), a.mask) == TRUE
    True
    """
    results: list[int] = []
    for e in walk(inline_common_expressions(expression)):
        n = len(e.children)
        args = results[len(results) - n :]
        del results[len(results) - n :]
        results.append(_outcome(e, args, null_columns))
    return results[0]


def rejects_nulls(predicate: Expression, columns: int) -> bool:
    """True if `predicate` is never true on a row where all `columns` are NULL (it filters padding out).

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> a = Attribute(0, 1, "a")
    >>> rejects_nulls(call("EqualNullSafe", reference(a), literal(0, "int")), a.mask)
    True
    """
    if not predicate.deterministic or not predicate.references & columns:
        return False
    return not outcomes(predicate, columns) & (TRUE | VALUE)


def _outcome(e: Expression, args: list[int], null_columns: int) -> int:
    if is_fixed(e):
        return _of_value(e.value)
    if e.kind == "Alias" or (e.flags & REPLACED and len(args) == 1):
        return args[0]
    if e.kind == "AttributeReference":
        return NULL if e.references & null_columns else ANYTHING
    known = _OUTCOMES.get(e.kind)
    found = None if known is None else known(args)
    if found is not None:
        return found
    if e.flags & NULL_INTOLERANT and not e.flags & UNEVALUABLE and NULL in args:
        return NULL
    return ANYTHING


def _of_value(value: object) -> int:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return NULL if value is None else VALUE


def _not(args: list[int]) -> int:
    (arg,) = args
    swapped = (TRUE if arg & FALSE else 0) | (FALSE if arg & TRUE else 0)
    return swapped | (arg & NULL) | (ANYTHING if arg & VALUE else 0)


def _is_null(args: list[int]) -> int:
    return (TRUE if args[0] & NULL else 0) | (FALSE if args[0] & ~NULL else 0)


def _is_not_null(args: list[int]) -> int:
    return (FALSE if args[0] & NULL else 0) | (TRUE if args[0] & ~NULL else 0)


def _equal_null_safe(args: list[int]) -> int:
    if args[0] == NULL and args[1] == NULL:
        return TRUE
    both = args[0] & args[1] & NULL
    return FALSE | (TRUE if both or (args[0] & ~NULL and args[1] & ~NULL) else 0)


def _coalesce(args: list[int]) -> int:
    possible = 0
    for arg in args:
        possible |= arg & ~NULL
        if not arg & NULL:
            return possible
    return possible | NULL


def _if(args: list[int]) -> int | None:
    if len(args) != 3:
        return None
    return (args[1] if args[0] & (TRUE | VALUE) else 0) | (args[2] if args[0] & ~TRUE else 0)


def _in(args: list[int]) -> int | None:
    if not args or args[0] != NULL:
        return None
    return NULL if len(args) > 1 else NULL | FALSE  # an empty list has nothing to compare with


def _logical(a: int, b: int, dominant: int, neutral: int) -> int:
    """Three-valued AND (dominant FALSE) or OR (dominant TRUE) over sets of outcomes."""
    if (a | b) & VALUE:
        a, b = (x & ~VALUE | (ANYTHING & ~VALUE if x & VALUE else 0) for x in (a, b))
    possible = dominant if (a | b) & dominant else 0
    if a & neutral and b & neutral:
        possible |= neutral
    if (a & NULL and b & (NULL | neutral)) or (b & NULL and a & (NULL | neutral)):
        possible |= NULL
    return possible


#: Kind of an expression -> its possible outcomes, by those of its arguments; None for what the kind alone decides.
_OUTCOMES: dict[str, Callable[[list[int]], int | None]] = {
    "Not": _not,
    "And": lambda args: _logical(args[0], args[1], dominant=FALSE, neutral=TRUE),
    "Or": lambda args: _logical(args[0], args[1], dominant=TRUE, neutral=FALSE),
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "EqualNullSafe": _equal_null_safe,
    "Coalesce": _coalesce,
    "If": _if,
    "In": _in,
}
