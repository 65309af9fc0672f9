"""Run notebooks from top to bottom and keep their outputs: `python notebooks/execute.py [01_getting_started ...]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbclient
import nbformat
from tqdm import tqdm

HERE = Path(__file__).resolve().parent


def main() -> None:
    chosen = [HERE / f"{name.removesuffix('.ipynb')}.ipynb" for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    for path in (bar := tqdm(chosen)):
        bar.set_description(path.stem)
        content = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(content, timeout=300, resources={"metadata": {"path": str(HERE)}}).execute()
        for cell in content.cells:
            cell.metadata.pop("execution", None)  # times of this run, another diff every time
            if cell.cell_type == "code":  # what a JVM prints when it starts names this machine
                cell.outputs = [o for o in cell.outputs if not (o.output_type == "stream" and o.name == "stderr")]
        nbformat.write(content, path)


if __name__ == "__main__":
    main()
