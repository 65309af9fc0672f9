"""Plans queries with true row counts.

Every connected set of relations of every join group is counted (`truth`), and planning uses the counts instead of
estimates. The difference between the time of that plan and of the ordinary one is the possible gain of better
estimates. Other differences are due to the cost model or to Spark.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.subplans import Group, connected_sets, is_correlated, name_of
from benchmarks.truth import count_group
from pyjoinopt import optimize_joins
from pyjoinopt.api import dataframe
from pyjoinopt.bridge.decode import Export
from pyjoinopt.feedback.learned_rows import LearnedRows
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.optimizer import plan_statistics

#: Sets of one group that are counted, and seconds for one count.
MOST, PATIENCE = 500, 30.0


class _WithTrueRows(LearnedRows):
    """Estimates with the true rows of every group."""

    def __init__(self, truth: TrueRows, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._truth = truth

    def recall(self, graph: Any, above: Any = ()) -> dict[int, float]:
        return self._truth.of(graph)


class TrueRows:
    """Counts rows, stores them in a file, and plans with them.

    Args:
        spark: the session whose queries are planned.
        folder: of the Parquet files behind its tables.
        remembered: a JSON file that stores the counts.
    """

    def __init__(self, spark: Any, folder: Path, remembered: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._file = remembered
        self._known: dict[str, dict[str, float]] = json.loads(remembered.read_text()) if remembered.exists() else {}
        self._export: Export | None = None

    def optimized(self, df: Any) -> Any:
        """Like `optimize_joins(df)`, with true counts; unknown counts are computed now, which takes long."""
        optimize = dataframe.optimize

        def reported(export: Export, *arguments: Any, **options: Any) -> Any:
            self._export = export
            return optimize(export, *arguments, **options)

        true_rows = partial(_WithTrueRows, self)
        with patch.object(plan_statistics, "LearnedRows", true_rows), patch.object(dataframe, "optimize", reported):
            return optimize_joins(df, strict=True)

    def of(self, graph: JoinGraph) -> dict[int, float]:
        """Set of vertices -> rows, for the sets that could be counted."""
        name = name_of(graph)
        if name not in self._known:
            self._known[name] = {} if is_correlated(graph) else self._counted(graph, name)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._known))
        return {int(relations): rows for relations, rows in self._known[name].items()}

    def _counted(self, graph: JoinGraph, name: str) -> dict[str, float]:
        assert self._export is not None
        group = Group(self._export, graph, connected_sets(graph, MOST, name), name)
        files = {path.stem: [path] for path in self._folder.glob("*.parquet")}
        found: dict[str, Any] = {}
        count_group(group, self._spark, files, found, PATIENCE)
        return {relations: rows for relations, rows in found.items() if not isinstance(rows, str)}
