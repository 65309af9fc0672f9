"""Every notebook runs from top to bottom (one by default), and is committed with the outputs of such a run."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

#: Texts that the outputs of a notebook must contain, so that a run in which nothing was optimised does not pass.
EXPECTED = {
    "01_getting_started.ipynb": (
        "(True, True)",
        "reordered",
        "pairs considered",
        "as written",
        "the same rows",
        "became inner",
        "a join hint of yours",
    ),
    "02_catalyst_rules.ipynb": (
        "Join LeftSemi (country <=> item)",
        "Join LeftAnti (c_id <=> o_customer)",
        "replicaterows",
        "+     Join Inner (o_id = l_order)",
        "ReplaceDistinctWithAggregate → EliminateOuterJoin",
        "PushDownPredicates → InferFiltersFromConstraints",
        "CostBasedJoinReorder",
        "rule runs changed the plan.",
    ),
    "03_why_join_order_matters.ipynb": (
        "132 left-deep orders",
        "as written   39,302",
        "best          1,274",
        "store_sales ⋈ date_dim",
        "(np.True_, True)",
        "error factor",
    ),
    "04_the_search_step_by_step.ipynb": (
        "24 of 31 sets hang together",
        "51 pairs, among 90 ways",
        "optimizer (lineitem ⋈",
        "((((orders ⟕ customer) ⟕ nation) ⋉ lineitem) ⋈ supplier)",
        "18 relations: linearized",
    ),
    "05_statistics_and_feedback.ipynb": (
        "footers, sample",
        "Largest own error",
        "analyze",
        "our catalogue",
    ),
    "06_all_sessions.ipynb": (
        "chosen ",
        "order_before",
        "as written, without a report",
        "OPTIMIZE_JOINS  (",
        "Join Inner",
    ),
    "07_plans_that_learn.ipynb": (
        "the whole query: this plan took",
        "revoked: this plan took",
        '"baseline": 1',
        "('baseline', ",
        "runs (",
        "the same rows",
    ),
}


def printed(cell: Any) -> str:
    """The text of a cell's outputs."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())]
    return "\n".join(texts)


def test_there_are_notebooks() -> None:
    assert [notebook.name for notebook in NOTEBOOKS] == sorted(EXPECTED)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_with_the_outputs_of_one_run(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    check(notebook, cells)
    everything = "\n".join(map(printed, cells))
    assert str(Path.home()) not in everything and str(FOLDER.parent) not in everything


def test_the_first_notebook_is_committed_with_a_gain_of_several_times() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOKS[0], as_version=4).cells if cell.cell_type == "code"]
    (low,) = re.findall(r"speed-up +[\d.]+x \(between ([\d.]+)x and", "\n".join(map(printed, cells)))
    assert float(low) >= 2, "the smallest ratio of all pairs of runs"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_needs_nothing_of_the_checkout(notebook: Path) -> None:
    checkout = {entry.stem for entry in FOLDER.parent.iterdir()} - {"pyjoinopt"}
    assert {"demo", "tests", "benchmarks"} <= checkout
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        assert "sys.path" not in cell.source and "PYTHONPATH" not in cell.source
        imports = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {getattr(node, "module", None) or alias.name for node in imports for alias in node.names}
        assert not {name.split(".")[0] for name in names} & checkout


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel is a separate process: it needs this Python for Spark's workers, and no other Spark installation.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    content = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(
        content, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    check(notebook, [cell for cell in content.cells if cell.cell_type == "code"])


def check(notebook: Path, cells: list[Any]) -> None:
    """No cell failed, and the outputs contain the expected results."""
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    everything = "\n".join(map(printed, cells))
    missing = [text for text in EXPECTED[notebook.name] if text not in everything]
    assert not missing, f"{notebook.name} does not show {missing}"
