"""Public functions for baselines: plans that are kept, compared and put under version control.

    pyjoinopt.baselines.pin(df, "daily")              # keep the plan that the optimizer has for this query
    df.optimize_joins(baseline="daily")               # use it; in SQL: /*+ OPTIMIZE_JOINS('baseline=daily') */
    pyjoinopt.baselines.export("plans/")              # a JSON file each
    pyjoinopt.baselines.import_("plans/")

A baseline has the orders of the query's join groups, and its hints. Whether an order gives the same rows, and whether
a hint is safe, is proved again each time. A baseline that no longer fits is not used, and the report has the reason.

The implementation is `pyjoinopt.api.baselines`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.feedback.baseline import Baseline

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

__all__ = ["Baseline", "drop", "export", "get", "import_", "pin", "show"]


def pin(df: DataFrame, name: str, *, store: str | None = None, **options: Any) -> Baseline:
    """Keep the plan of a query under a name; another baseline of this name is replaced. Does not run the query.

    Args:
        df: a classic DataFrame as written, or one that `optimize_joins` returned.
        name: up to 100 letters, digits, `_`, `.` and `-`.
        store: the path of the store, as in the option `store`; None for that of the DataFrame's session, or the user's
            own. The other functions use that of the active session.
        **options: options of `optimize_joins`, for a DataFrame as written. Those that decide about rewrites and hints
            are part of the baseline.

    Returns:
        The baseline. Its method `to_json` returns the text that `export` writes.

    Raises:
        ValueError: the query has no join group of three relations or more, a wrong name, a wrong option, options for
            an optimised DataFrame, or the store is off.
        TypeError: an argument of another type.
        PyJoinOptError: the DataFrame has no JVM, the query could not be planned, or the store cannot be written.

    Example:
        >>> pyjoinopt.baselines.pin(df, "daily")    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    return baselines.pin(df, name, store, options)


def get(name: str, *, store: str | None = None) -> Baseline:
    """A baseline that is kept.

    Raises:
        KeyError: there is none of this name.
        ValueError, TypeError: a wrong name or store, or a baseline of a later release.

    Example:
        >>> baseline = pyjoinopt.baselines.pin(df, "daily")    # doctest: +SKIP
        >>> print(pyjoinopt.baselines.get("daily").to_json())    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    return baselines.get(name, store)


def show(*, store: str | None = None) -> pandas.DataFrame:
    """All baselines.

    Returns:
        A row for each: `name`, `orders` of its join groups, `hints`, `options`, `spark` (the version with which it was
        made), `pinned` (when it was stored).

    Raises:
        ValueError, TypeError: a wrong store.

    Example:
        >>> pyjoinopt.baselines.show()    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    return baselines.show(store)


def drop(name: str, *, store: str | None = None) -> None:
    """Delete a baseline.

    Raises:
        KeyError: there is none of this name.
        ValueError, TypeError: a wrong name or store.
        PyJoinOptError: the store cannot be written.

    Example:
        >>> baseline = pyjoinopt.baselines.pin(df, "daily")    # doctest: +SKIP
        >>> pyjoinopt.baselines.drop("daily")    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    baselines.drop(name, store)


def export(path: str, *names: str, store: str | None = None) -> list[Path]:
    """Write baselines as JSON files into a folder, `NAME.json` each; files of the same name are replaced.

    Args:
        path: the folder; it is created if necessary.
        names: of the baselines; all if none is given.
        store: see `pin`.

    Returns:
        The files.

    Raises:
        KeyError: there is no baseline of a name.
        ValueError, TypeError: a wrong name or store, or the path is a file.
        OSError: a file cannot be written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> pyjoinopt.baselines.export(folder)    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    return baselines.export(path, names, store)


def import_(path: str, *, store: str | None = None) -> list[str]:
    """Read baselines from a JSON file, or from all files `*.json` of a folder. If one of them is wrong, none is kept.

    Returns:
        Their names.

    Raises:
        ValueError: a file is no baseline; the message has the file, the place and what is expected there.
        OSError: a file cannot be read.
        PyJoinOptError: the store cannot be written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> baseline = pyjoinopt.baselines.pin(df, "daily")    # doctest: +SKIP
        >>> files = pyjoinopt.baselines.export(folder)    # doctest: +SKIP
        >>> pyjoinopt.baselines.import_(folder)    # doctest: +SKIP
    """
    from pyjoinopt.api import baselines

    return baselines.import_(path, store)
