"""Whether a shuffled hash join of a join gives the right rows.

    data LEFT SEMI JOIN lookup ON data.a = lookup.a AND data.b >= lookup.b

Of a semi, anti or existence join, Spark's shuffled hash join keeps one row for each key of the built side if the rest
of the condition reads no other column of that side. Before 3.5.7 and 4.0.1 it did so where the rest reads columns that
a key is only computed from (`substring(a, 1, 4) = substring(k, 1, 4) AND b >= k`), too, and lost partners
(SPARK-52873). Spark prefers sort merge joins, so that a hint of ours would be what makes such a query wrong.
"""

from __future__ import annotations

import re

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, SEMI, Join

_LOOK_FOR_PARTNERS = frozenset({SEMI, ANTI, EXISTENCE})
#: Version -> its first release without the error.
_REPAIRED = {(3, 5): 7, (4, 0): 1}


def can_be_hashed(join: Join, spark: str) -> bool:
    """Whether a join has keys, and a shuffled hash join by them is right.

    Args:
        join: any join.
        spark: the version of Spark, such as "4.0.1"; one that cannot be read counts as repaired.
    """
    keys = extract_equi_keys(join)
    if keys is None:
        return False
    return keys.condition is None or join.join_type not in _LOOK_FOR_PARTNERS or not _loses_partners(spark)


def _loses_partners(spark: str) -> bool:
    """Whether a release has the error.

    >>> [_loses_partners(version) for version in ("3.5.6", "3.5.7", "4.0.0.dev1", "4.0.1", "4.3.0", "4")]
    [True, False, True, False, False, False]
    """
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", spark)
    if found is None:
        return False
    major, minor, patch = map(int, found.groups())
    return patch < _REPAIRED.get((major, minor), 0)
