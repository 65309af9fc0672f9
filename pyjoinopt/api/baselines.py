"""The implementation of `pyjoinopt.baselines`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.api.dataframe import join_report, report_of
from pyjoinopt.bridge.shim import bridge_for, session_setting
from pyjoinopt.config import PREFIX, resolve
from pyjoinopt.errors import PyJoinOptError
from pyjoinopt.estimation.store.store import Store, open_store
from pyjoinopt.feedback.baseline import Baseline, check_name
from pyjoinopt.feedback.baseline_rows import COLUMNS, baseline_rows
from pyjoinopt.feedback.baseline_store import BaselineStore

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

_SUFFIX = ".json"


def pin(df: DataFrame, name: str, store: str | None, options: dict[str, Any]) -> Baseline:
    """See `pyjoinopt.baselines.pin`."""
    check_name(name)
    bridge_for(df)
    opened = store_of(df, store)
    baseline = replace(planned(df, options), name=name)
    if not baseline.groups:
        raise ValueError("there is nothing to pin: the query has no join group of three relations or more")
    put(baseline, opened)
    return baseline


def planned(df: DataFrame, options: dict[str, Any]) -> Baseline:
    """The plan that a DataFrame has, or would get from `optimize_joins`, as a baseline without a name.

    Raises:
        ValueError: a DataFrame that was optimised already, and options.
        PyJoinOptError: it cannot be planned; the message has the reason.
    """
    bridge_for(df)
    report = report_of(df)
    if report is not None and report.strategy == "none":  # the DataFrame is as written
        report = None
    if report is not None and options:
        raise ValueError("optimize_joins returned this DataFrame, so its plan is known; options have no effect on it")
    if report is None:
        report = join_report(df, **{"mode": "on", "guard": "off", **options})
    if report.error is not None:
        raise PyJoinOptError(f"the query could not be planned: {report.error}")
    found: Baseline | None = report._planned() if report._planned is not None else None
    if found is None:
        raise PyJoinOptError("the query could not be planned")
    return found


def get(name: str, store: str | None, df: DataFrame | None = None) -> Baseline:
    """See `pyjoinopt.baselines.get`; with a DataFrame, the store is that of its session."""
    opened = store_of(df, store)
    found = BaselineStore(opened).get(check_name(name))
    if found is None:
        raise KeyError(f"there is no baseline {name!r} in {opened.path}; {_listed(opened)}")
    return found


def show(store: str | None) -> pandas.DataFrame:
    """See `pyjoinopt.baselines.show`."""
    import pandas

    rows = baseline_rows(BaselineStore(store_of(None, store)))
    table = pandas.DataFrame(rows, columns=list(COLUMNS))
    table["pinned"] = pandas.to_datetime(table["pinned"].astype("float64"), unit="s", utc=True)
    return table


def drop(name: str, store: str | None) -> None:
    """See `pyjoinopt.baselines.drop`."""
    opened = store_of(None, store)
    if check_name(name) not in BaselineStore(opened).names():
        raise KeyError(f"there is no baseline {name!r} in {opened.path}; {_listed(opened)}")
    if not BaselineStore(opened).drop(name):
        raise PyJoinOptError(f"the store {opened.path} cannot be written")


def export(path: str, names: tuple[str, ...], store: str | None) -> list[Path]:
    """See `pyjoinopt.baselines.export`."""
    wanted = names or BaselineStore(store_of(None, store)).names()
    found = [get(name, store) for name in wanted]
    folder = Path(path).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"path is {str(path)!r}, but must be a folder: each baseline is a file of its own in it")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for baseline in found:
        file = folder / f"{baseline.name}{_SUFFIX}"
        file.write_text(baseline.to_json(), encoding="utf-8")
        files.append(file)
    return files


def import_(path: str, store: str | None) -> list[str]:
    """See `pyjoinopt.baselines.import_`."""
    given = Path(path).expanduser()
    files = sorted(given.glob(f"*{_SUFFIX}")) if given.is_dir() else [given]
    if not files:
        raise ValueError(f"the folder {given} has no files *{_SUFFIX}")
    read = []
    for file in files:  # all of them before the first one is stored
        try:
            read.append(Baseline.from_json(file.read_text(encoding="utf-8")))
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: {error}") from None
    opened = store_of(None, store)
    for baseline in read:
        put(baseline, opened)
    return [baseline.name for baseline in read]


def put(baseline: Baseline, store: Store) -> None:
    """Store a baseline.

    Raises:
        PyJoinOptError: the store cannot be written.
    """
    if not BaselineStore(store).put(baseline):
        raise PyJoinOptError(f"the store {store.path} cannot be written, so the baseline {baseline.name} is not kept")


def store_of(df: DataFrame | None, store: str | None) -> Store:
    """The store of a path, or of a DataFrame's session, or of the active session.

    Raises:
        TypeError, ValueError: no path, or the store is off.
    """
    if store is not None and not isinstance(store, str):
        raise TypeError(f"store is {store!r} ({type(store).__name__}), but must be a path")
    given: dict[str, Any] = {} if store is None else {"store": store}
    opened = open_store(resolve(given, session_setting(PREFIX + "store", df)).store)
    if opened is None:
        raise ValueError("store is 'off', but baselines need one: give a path, or set spark.pyjoinopt.store")
    return opened


def _listed(store: Store) -> str:
    names = BaselineStore(store).names()
    return f"there are {', '.join(names)}" if names else "there are none"
