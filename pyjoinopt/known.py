"""What is known of a query's relations, for people: `pyjoinopt.statistics.show` and `forget`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for, forget_samples, session_setting
from pyjoinopt.config import PREFIX, Options, resolve
from pyjoinopt.statistics import analysis
from pyjoinopt.statistics.leaves import LeafStatistics
from pyjoinopt.statistics.store import open_store

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

_COLUMNS = ("relation", "format", "rows", "bytes", "source", "exact", "age", "columns", "note")


def show(df: DataFrame, **options: Any) -> pandas.DataFrame:
    """A row for each relation that the query reads; see `pyjoinopt.statistics.show`."""
    import pandas

    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        known = [(r, one) for r, one in _leaves(gateway, options)[0].known() if r.kind != "CTERelationRef"]
    now = time.time()
    rows: dict[str, tuple[Any, ...]] = {}
    for relation, one in known:
        age = None if one.gathered is None else pandas.Timedelta(seconds=max(0.0, now - one.gathered))
        columns = [name for name in relation.columns if name in one.columns]
        row = (
            relation.name, relation.format or relation.kind, one.rows, one.bytes, one.source, one.exact, age, columns,
            one.note,
        )  # fmt: skip
        rows.setdefault(repr(row[:6]) + str(relation.files), row)  # one that is read twice is shown once
    shown = pandas.DataFrame(list(rows.values()), columns=list(_COLUMNS))
    return shown.astype({"rows": "float64", "bytes": "float64", "age": "timedelta64[ns]"})


def forget(df: DataFrame | None = None, **options: Any) -> None:
    """Clear the store, or what it knows of one query's files; see `pyjoinopt.statistics.forget`."""
    if df is None:
        store = open_store(resolve(options, session_setting(PREFIX + "store")).store)
        if store is not None:
            store.forget()
        analysis.forget()
        forget_samples()
        return
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        known, chosen = _leaves(gateway, options)
        store = open_store(chosen.store)
        files = [relation.files for relation in known.relations() if relation.files is not None]
        gateway.forget_samples()
    analysis.forget(files)
    if store is not None:
        store.forget(files)


def _leaves(gateway: Py4jGateway, keywords: dict[str, Any]) -> tuple[LeafStatistics, Options]:
    options = resolve(keywords, gateway.export.conf)
    nodes = gateway.export.nodes
    leaves = [node for node in nodes if not node.children or node.cached]
    store = open_store(options.store)
    known = LeafStatistics(gateway.statistics, leaves, options.statistics, nodes, store)
    known.announce(nodes)
    return known, options
