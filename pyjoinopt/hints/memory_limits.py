"""What a table that a hint has built may turn out to be, as far as is proved, without doing harm.

A hint is worth it if what is *expected* fits `spark.sql.autoBroadcastJoinThreshold`. But estimates err, so the most
that there can be is bounded, too, and that bound is a matter of memory: a broadcast is collected and built in the
driver, sent in blocks, and kept by every executor, which together takes several times its bytes. So with "auto" it
may be proved to have a sixteenth of the driver's heap, and an eighth of what an executor has for work and cache, but
eight times the threshold in any case and a hundred times at most. The table of a partition, which cannot be written to
disk and shares an executor with other tasks, is left at eight times.

The part is chosen with room to spare: with two gigabytes of heap, in local mode, Spark broadcasts an eighth of it and
fails with a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyjoinopt.catalyst.planner.build_side import JoinConf

#: [bytes] Keys of the export: the driver's heap, how many executors, the executors' memory.
DRIVER, EXECUTORS, MEMORY = "pyjoinopt.driver", "pyjoinopt.executors", "pyjoinopt.memory"
AUTO = "auto"
#: [1 / share of memory] A hinted broadcast may be proved to take a sixteenth of the driver's heap and an eighth of
#: an executor's memory; see above for the measurement.
_DRIVER_PART, _EXECUTOR_PART = 16, 8
#: [factor of the broadcast threshold] What may be proved of a hinted side whatever the memory, and at most.
_LEAST_FACTOR, _LARGEST_FACTOR = 8.0, 100.0
#: [factor of the broadcast threshold] A side counted to be larger gets a hint against its broadcast: a gigabyte
#: by default. Spark may find filters that are not seen here, so this only keeps drivers from running out of memory.
HARMFUL_BROADCAST = 100
#: [bytes] What a hint must save to build the other side than the one that Spark would broadcast.
LEAST_SAVING = 1 << 20


class MemoryAllowance(NamedTuple):
    """How many times the broadcast threshold may be proved of what is built; 0 for no hints."""

    broadcast: float = _LEAST_FACTOR
    hashed: float = _LEAST_FACTOR


#: Of a cluster of which nothing is known.
UNKNOWN = MemoryAllowance()


def slack_of(setting: int | str, conf: Mapping[str, str]) -> MemoryAllowance:
    """The slack of an option's value.

    Args:
        setting: `hint_slack`: times the threshold, or "auto".
        conf: Spark's configuration, and what the export knows of the cluster.

    >>> slack_of(3, {}), slack_of("auto", {})
    (MemoryAllowance(broadcast=3, hashed=3), MemoryAllowance(broadcast=8.0, hashed=8.0))
    >>> gb = 1 << 30
    >>> slack_of("auto", {"pyjoinopt.driver": str(4 * gb)}).broadcast
    25.6
    >>> slack_of("auto", {"pyjoinopt.driver": str(4 * gb), "pyjoinopt.executors": "5", "pyjoinopt.memory": str(6 * gb)})
    MemoryAllowance(broadcast=15.36, hashed=8.0)
    """
    if not isinstance(setting, str):
        return MemoryAllowance(setting, setting)
    threshold = JoinConf.of(conf).threshold
    driver, memory = _bytes(conf, DRIVER), _bytes(conf, MEMORY)
    known = [driver / _DRIVER_PART] if driver else []
    if memory:
        known.append(memory / max(1.0, _bytes(conf, EXECUTORS)) / _EXECUTOR_PART)
    if not known or threshold <= 0:
        return UNKNOWN
    return MemoryAllowance(min(_LARGEST_FACTOR, max(_LEAST_FACTOR, min(known) / threshold)))


def _bytes(conf: Mapping[str, str], key: str) -> float:
    try:
        return max(0.0, float(conf.get(key, 0)))
    except ValueError:
        return 0.0
