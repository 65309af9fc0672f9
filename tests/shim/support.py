"""Direct access to the shim for tests: returns dicts and takes lists, without the optimizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Shim:
    """The shim of a session. Every export is released at the end of the test."""

    def __init__(self, spark: SparkSession, bridge: Any) -> None:
        self.spark = spark
        self.bridge = bridge
        self._opened: list[int] = []

    def export(self, df: DataFrame, stage: str | None = None) -> dict[str, Any]:
        if stage is None:
            return self._keep(self.bridge.export(df._jdf, "{}"))
        return self._keep(oracle_of(self.spark).exportStage(df._jdf, json.dumps({"stage": stage})))

    def rebuild(self, export: dict[str, Any], edits: dict[str, Any]) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self.bridge.rebuild(export["handle"], json.dumps(edits)), self.spark)

    def statistics(self, export: dict[str, Any], **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.bridge.statistics(export["handle"], json.dumps(request)))
        return answer

    def apply_rule(self, export: dict[str, Any], *rules: str, **request: Any) -> dict[str, Any]:
        return self._keep(oracle_of(self.spark).applyRule(export["handle"], json.dumps({"rules": rules, **request})))

    def close(self) -> None:
        for handle in self._opened:
            self.bridge.release(handle)

    def _keep(self, text: str) -> dict[str, Any]:
        export: dict[str, Any] = json.loads(text)
        self._opened.append(export["handle"])
        return export


def copy_all(export: dict[str, Any]) -> dict[str, Any]:
    """Edits that rebuild every inner node of the main plan.

    A copy with the same children would be the same object, so every leaf gets a filter that lets everything pass.
    """
    copies: dict[int, int] = {}
    nodes: list[list[Any]] = []
    for number, node in enumerate(export["nodes"]):
        if node["k"]:
            nodes.append(["Copy", number, [copies[child] for child in node["k"]]])
        else:
            nodes.append(["Filter", number, -1])
        copies[number] = -len(nodes)
    return {"exprs": [["True"]], "nodes": nodes, "root": copies[export["root"]]}


def find(export: dict[str, Any], kind: str, **fields: Any) -> int:
    """The number of the only node of a kind, with these fields."""
    found = [
        number
        for number, node in enumerate(export["nodes"])
        if node["c"] == kind and all(node.get(name) == value for name, value in fields.items())
    ]
    assert len(found) == 1, f"{len(found)} nodes are {kind} with {fields}"
    return found[0]


def expressions(export: dict[str, Any], kind: str) -> list[tuple[int, list[Any]]]:
    """All expressions of a class, with their numbers."""
    return [(number, row) for number, row in enumerate(export["expressions"]) if row[0] == kind]


def leaf(export: dict[str, Any]) -> int:
    """The number of the only leaf of a plan."""
    found = [number for number, node in enumerate(export["nodes"]) if not node["k"]]
    assert len(found) == 1, f"{len(found)} leaves"
    return found[0]


def message(error: Any) -> str:
    """The message of an error of the shim, without the Java stack."""
    return str(error.value.java_exception.getMessage())
