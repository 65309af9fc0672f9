"""Which expressions may be computed for more rows, for fewer, or once more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.fallible.fallibility import may_throw

#: Types whose equality compares exactly.
_EXACT = re.compile(r"tinyint|smallint|int|bigint|decimal\(.*\)|string|date|timestamp|timestamp_ntz")


def is_safe(expressions: Iterable[Expression]) -> bool:
    """Whether expressions have the same value everywhere, and cannot fail."""
    return all(e.deterministic and not may_throw(e) for e in expressions)


def is_exact(pair: tuple[Attribute, Attribute]) -> bool:
    """Whether two columns are of one type whose equality compares exactly."""
    one, other = pair
    return one.type == other.type and _EXACT.fullmatch(one.type) is not None
