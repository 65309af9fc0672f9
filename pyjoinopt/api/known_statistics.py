"""The implementation of `pyjoinopt.statistics.show` and `forget`."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for, forget_samples, session_setting
from pyjoinopt.config import PREFIX, Options, resolve, resolve_call
from pyjoinopt.estimation.model.relation_statistics import FEEDBACK
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.declared_keys import declared_keys
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.proven_keys import proved_keys
from pyjoinopt.estimation.sources.registry import Relation
from pyjoinopt.estimation.sources.samples import BLOB
from pyjoinopt.estimation.store.store import Store, open_store
from pyjoinopt.feedback.learned_rows import LEARNED
from pyjoinopt.optimizer.optimize import optimize
from pyjoinopt.report.join_report import JoinReport

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

_COLUMNS = (
    "relation", "format", "rows", "bytes", "source", "exact", "age", "columns", "distinct", "sample",
    "sample_columns", "sample_age", "keys", "note",
)  # fmt: skip
_NUMBERS = dict.fromkeys(("rows", "bytes", "sample"), "float64")
_AGES = dict.fromkeys(("age", "sample_age"), "timedelta64[ns]")


def show(df: DataFrame, **options: Any) -> pandas.DataFrame:
    """One row for each relation of the query; see `pyjoinopt.statistics.show`."""
    import pandas

    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        leaves, chosen = _leaves(gateway, options)
        store = open_store(chosen.store, chosen.store_folder)
        known = [(r, one) for r, one in leaves.known() if r.kind != "CTERelationRef"]
        samples = _samples(gateway, [relation for relation, _ in known], store)
        joins = _counted(gateway, chosen, store)
    rows: dict[str, dict[str, Any]] = {}
    for (relation, one), sample in zip(known, samples):
        columns = [name for name in relation.columns if name in one.columns]
        row = {
            "relation": relation.name, "format": relation.format or relation.kind, "rows": one.rows, "bytes": one.bytes,
            "source": one.source, "exact": one.exact, "age": _age(one.gathered), "columns": columns,
            "distinct": {name: one.columns[name].ndv for name in columns if one.columns[name].ndv is not None},
            "keys": [*one.keys, *declared_keys(relation.name), *_proved(relation, store)], "note": one.note, **sample,
        }  # fmt: skip
        rows.setdefault(f"{row['relation']} {one} {relation.files}", row)  # a relation that is read twice is shown once
    shown = pandas.DataFrame([*rows.values(), *joins], columns=list(_COLUMNS))
    return shown.astype({**_NUMBERS, **_AGES})


def _proved(relation: Relation, store: Store | None) -> list[tuple[str, ...]]:
    return [] if relation.files is None else proved_keys(relation.files, store)


def _age(moment: float | None) -> Any:
    import pandas

    return None if moment is None else pandas.Timedelta(seconds=max(0.0, time.time() - moment))


def _samples(gateway: Py4jGateway, relations: list[Relation], store: Store | None) -> list[dict[str, Any]]:
    """Rows, columns and age of existing samples; draws none."""
    requested, ages = [], {}
    for number, relation in enumerate(relations):
        if relation.files is None or relation.leaf is None:
            continue
        entry: dict[str, Any] = {
            "node": relation.leaf.number, "id": relation.files.id, "schema": relation.files.schema, "columns": [],
            "predicates": [],
        }  # fmt: skip
        stored = store.dated_blob(relation.files, BLOB) if store is not None else None
        if stored is not None:
            entry["blob"] = base64.b64encode(stored[0]).decode("ascii")
            ages[number] = stored[1]
        requested.append((number, entry))
    found: list[dict[str, Any]] = [{"sample_columns": []} for _ in relations]
    for (number, _), answer in zip(requested, gateway.samples([entry for _, entry in requested]) if requested else []):
        if "rows" in answer:
            found[number] = {
                "sample": answer["rows"], "sample_columns": answer["columns"], "sample_age": _age(ages.get(number)),
            }  # fmt: skip
    return found


def _counted(gateway: Py4jGateway, options: Options, store: Store | None) -> list[dict[str, Any]]:
    """Joins of the query whose rows were counted in an earlier run."""
    if store is None or options.statistics not in LEARNED or "feedback" in options.without or not store.has_feedback():
        return []
    found = {}
    for watch in optimize(gateway.export, gateway, options, JoinReport(), watching=True).expected:
        if watch.fingerprint is None:
            continue
        for canonical, (rows, moment) in store.dated_feedback(watch.fingerprint.key).items():
            names = watch.named(watch.fingerprint.vertices(canonical))
            found[names, watch.fingerprint.key] = {
                "relation": " ⋈ ".join(names), "format": "join" if len(names) > 1 else "filter", "rows": rows,
                "source": FEEDBACK, "exact": False, "age": _age(moment), "columns": [], "distinct": {},
                "sample_columns": [], "keys": [], "note": "",
            }  # fmt: skip
    return list(found.values())


def forget(df: DataFrame | None = None, **options: Any) -> None:
    """Delete the whole store, or its entries for one query's files; see `pyjoinopt.statistics.forget`."""
    if df is None:
        store = open_store(resolve(options, session_setting(PREFIX + "store")).store)
        if store is not None and store.path.exists():
            store.forget()
        analyzed_tables.forget()
        forget_samples()
        return
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        known, chosen = _leaves(gateway, options)
        store = open_store(chosen.store, chosen.store_folder)
        files = [relation.files for relation in known.relations() if relation.files is not None]
        gateway.forget_samples()
    analyzed_tables.forget(files)
    if store is not None:
        store.forget(files)


def _leaves(gateway: Py4jGateway, keywords: dict[str, Any]) -> tuple[LeafStatistics, Options]:
    options = resolve_call(keywords, gateway.export.conf)
    nodes = gateway.export.nodes
    leaves = [node for node in nodes if not node.children or node.cached]
    store = open_store(options.store, options.store_folder)
    known = LeafStatistics(gateway.statistics, leaves, options.statistics, nodes, store, without=options.without)
    known.use_partition_filters(nodes)
    return known, options
