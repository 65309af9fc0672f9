"""Writes logs of Delta tables according to the Delta protocol."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Action = dict[str, Any]
SCHEMA = "id BIGINT, day DATE, price DOUBLE, part INT"
#: The names that columns have in the files of a table whose columns are mapped.
MAPPED = {"id": "col-1", "day": "col-2", "price": "id", "part": "col-4"}  # `price` was called `id` once

#: Types of a checkpoint's columns, as Delta writes them.
_FILE = (
    "path string, partitionValues map<string, string>, size bigint, stats string, "
    "deletionVector struct<storageType: string, pathOrInlineDv: string, offset: int, sizeInBytes: int, "
    "cardinality: bigint>"
)
_ACTIONS = {
    "add": _FILE,
    "protocol": "minReaderVersion int, minWriterVersion int, readerFeatures array<string>",
    "metaData": "id string, schemaString string, partitionColumns array<string>, configuration map<string, string>",
    "remove": "path string, deletionTimestamp bigint",
    "sidecar": "path string, sizeInBytes bigint, modificationTime bigint",
    "checkpointMetadata": "version bigint",
    "zebra": "stripes int",
}


def protocol(*features: str, version: int | None = None) -> Action:
    if version is None:
        version = 3 if features else 1
    return {"protocol": {"minReaderVersion": version, "minWriterVersion": 7, "readerFeatures": list(features)}}


def meta_data(mode: str = "none") -> Action:
    types = {"id": "long", "day": "date", "price": "double", "part": "integer"}
    fields = [
        {
            "name": name, "type": kind, "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": MAPPED[name]} if mode != "none" else {},
        }
        for name, kind in types.items()
    ]  # fmt: skip
    schema = json.dumps({"type": "struct", "fields": fields})
    settings = {"delta.columnMapping.mode": mode} if mode != "none" else {}
    return {
        "metaData": {"id": "t", "schemaString": schema, "partitionColumns": ["part"], "configuration": settings}
    }


def vector(hidden: int, name: str = "x") -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 9, "cardinality": hidden}


def add(
    number: int,
    rows: int | None,
    size: int = 1000,
    part: str | None = "1",
    hides: dict[str, Any] | None = None,
    names: dict[str, str] | None = None,
    **more: Any,
) -> Action:
    """File `number` holds ids from 100 * number on, days from 2020-01-01 on, a NULL price in every tenth row."""

    def named(**values: Any) -> dict[str, Any]:
        return {(names or {}).get(name, name): value for name, value in values.items()}

    stats = {
        "numRecords": rows, "minValues": named(id=100 * number, day="2020-01-01", price=0.5),
        "maxValues": named(id=100 * number + (rows or 0) - 1, day="2020-01-31", price=9.5),
        "nullCount": named(id=0, day=0, price=(rows or 0) // 10),
    }  # fmt: skip
    one = {"path": f"f{number}.parquet", "partitionValues": named(part=part), "size": size, "dataChange": True, **more}
    if rows is not None:
        one["stats"] = json.dumps(stats)
    if hides:
        one["deletionVector"] = hides
    return {"add": one}


def remove(number: int, hides: dict[str, Any] | None = None) -> Action:
    return {"remove": {"path": f"f{number}.parquet", **({"deletionVector": hides} if hides else {})}}


def commit(table: Path, version: int, *actions: Action) -> None:
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{version:020}.json").write_text(lines)


def checkpoint(spark: SparkSession, table: Path, name: str, actions: Sequence[Action]) -> Path:
    """A checkpoint's file, as Parquet or JSON; `name` from `_delta_log` on."""
    path = table / "_delta_log" / name
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".json":
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        return path
    kinds = {kind for action in actions for kind in action}
    schema = ", ".join(f"{kind} struct<{_struct(_ACTIONS[kind])}>" for kind in _ACTIONS if kind in kinds)
    lines = spark.createDataFrame([(json.dumps(action),) for action in actions], "line string")
    folder = table / f"written-{uuid.uuid4()}"
    lines.selectExpr(f"from_json(line, '{schema}') a").selectExpr("a.*").coalesce(1).write.parquet(str(folder))
    (part,) = folder.glob("*.parquet")
    part.rename(path)
    return path


def _struct(columns: str) -> str:
    """Columns as they are written inside a struct."""
    depth, found = 0, ""
    for letter in columns:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        found += ":" if letter == " " and depth == 0 and not found.rstrip().endswith(",") else letter
    return found


def sidecars(spark: SparkSession, table: Path, parts: Iterable[Sequence[Action]]) -> list[Action]:
    """Sidecar files, and the actions that name them."""
    named = []
    for actions in parts:
        path = checkpoint(spark, table, f"_sidecars/{uuid.uuid4()}.parquet", actions)
        named.append({"sidecar": {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1}})
    return named
