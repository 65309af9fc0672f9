"""Settings `spark.pyjoinopt.*` that do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pyjoinopt.config import OPTIONS, PREFIX, SESSION_KEYS


def unknown_keys(conf: Mapping[str, str]) -> list[str]:
    """A warning for each key `spark.pyjoinopt.*` that does not exist, with the closest existing key.

    >>> unknown_keys({"spark.pyjoinopt.stratgy": "none", "spark.pyjoinopt.workers": "1", "spark.sql.ansi.enabled": ""})
    ["the setting 'spark.pyjoinopt.stratgy' is unknown and has no effect; did you mean 'spark.pyjoinopt.strategy'?"]
    """
    names = [*(option.key for option in OPTIONS), *(key for key, _, _ in SESSION_KEYS)]
    lower = {name.lower(): name for name in names}
    sentences = []
    for key in sorted(conf):
        if key.startswith(PREFIX) and key not in names:
            close = get_close_matches(key.lower(), lower, 1, 0.0)
            sentences.append(f"the setting {key!r} is unknown and has no effect; did you mean {lower[close[0]]!r}?")
    return sentences
