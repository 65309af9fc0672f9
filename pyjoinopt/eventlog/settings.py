"""The settings of an execution that advice depends on, and sizes in Spark's notation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

THRESHOLD, ADAPTIVE_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold"
#: Spark reads row counts of the catalog if one of them is true.
_ROW_COUNTS = "spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled"
#: The settings that are kept.
KEPT = (THRESHOLD, ADAPTIVE_THRESHOLD, "spark.sql.adaptive.enabled", "spark.executor.instances", *_ROW_COUNTS)
#: [bytes] Spark's default.
DEFAULT_THRESHOLD = 10 << 20
_SIZE = re.compile(r"(-?\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def kept(properties: Mapping[str, Any]) -> dict[str, str]:
    """Those of the properties that advice depends on."""
    return {key: str(properties[key]) for key in KEPT if properties.get(key) is not None}


def size_of(text: str | None) -> int | None:
    """Bytes of a size as Spark reads it; None if there is none, or if it is no size.

    >>> size_of("10m"), size_of("10485760b"), size_of("-1"), size_of("much")
    (10485760, 10485760, -1, None)
    """
    match = _SIZE.fullmatch(text.strip()) if text else None
    return int(match[1]) << _UNITS[match[2].lower()] if match else None


def broadcast_threshold(settings: Mapping[str, str]) -> int:
    """Bytes up to which a side is broadcast; -1 if none is.

    >>> broadcast_threshold({}), broadcast_threshold({THRESHOLD: "-1"})
    (10485760, -1)
    """
    known = size_of(settings.get(THRESHOLD))
    return DEFAULT_THRESHOLD if known is None else known


def uses_row_counts(settings: Mapping[str, str]) -> bool:
    """Whether Spark's optimizer reads the row counts of the catalog.

    >>> uses_row_counts({}), uses_row_counts({"spark.sql.cbo.enabled": "true"})
    (False, True)
    """
    return any(settings.get(key, "").lower() == "true" for key in _ROW_COUNTS)
