"""The constants of the cost model: how many rows' worth of work each thing is that Spark does.

The unit is a row handed through one operator of a running query, some tens of nanoseconds. `benchmarks/calibrate.py`
fits them to the cluster at hand; the defaults are those of the run that `benchmarks/results/calibrate.txt` keeps. They
need to be right in proportion only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows' worth of work.

    Attributes:
        shuffle: one exchange: a stage that is planned, started and waited for.
        shuffled_row, shuffled_byte: a row and a byte that are written to and read from an exchange.
        sorted_row: a row that is sorted for a merge join.
        hashed_row: a row that goes into the hash table of a shuffled hash join.
        broadcast: one broadcast: a job that is started and waited for.
        broadcast_row, broadcast_byte: a row and a byte that are collected, built into a table and sent out.
    """

    shuffle: float = 2_630_000.0
    shuffled_row: float = 6.14
    shuffled_byte: float = 0.539
    sorted_row: float = 1.73
    hashed_row: float = 9.14
    broadcast: float = 2_900_000.0
    broadcast_row: float = 20.1
    broadcast_byte: float = 1.17


DEFAULT = Constants()


@lru_cache(maxsize=8)
def read_constants(path: str) -> Constants:
    """The constants in a JSON file, as `benchmarks/calibrate.py` writes it.

    Raises:
        ValueError: it cannot be read, or is not of that form. Nothing of its content is in the message, nor in a chain
            of causes: it may be another file than was meant.
    """
    names = [field.name for field in fields(Constants)]
    found, problem = _read(path, names)
    if found is None:
        raise ValueError(
            f"cost_constants={path!r} is not a file with the constants of the cost model ({problem}); "
            f"`python -m benchmarks.calibrate` writes one, with {', '.join(names)}"
        )
    if min(asdict(found).values()) < 0:
        raise ValueError(f"cost_constants={path!r} has a constant below 0; costs must not fall as rows come in")
    return found


def _read(path: str, names: list[str]) -> tuple[Constants | None, str]:
    """The constants, or what is wrong."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return None, error.strerror or type(error).__name__
    except ValueError:
        return None, "it is no text"
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        return None, "it is no JSON object"
    missing = [name for name in names if name not in read]
    wrong = [name for name in names if isinstance(read.get(name), bool) or not isinstance(read.get(name), (int, float))]
    if wrong:
        return None, f"it has no {missing[0]}" if missing else f"its {wrong[0]} is no number"
    return Constants(**{name: float(read[name]) for name in names}), ""
