"""Runs a benchmark and stores its output, for the page on performance.

    python -m benchmarks.keep [--as NAME] BENCHMARK [ITS ARGUMENTS ...]

The output is written to the terminal and, with the command in its first line, to `results/NAME.txt` next to this file
(NAME is BENCHMARK by default). `docs/generate.py` adds it to the benchmark's section. The output of a failed run is not
stored. Progress bars and the path of `--out=FILE` are left out.

Example:

    python -m benchmarks.keep --as tpc_shuffled tpc tpch --shuffle 3
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def keep(benchmark: str, arguments: list[str], name: str) -> int:
    """Run the benchmark and store its output; returns its exit code."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    as_typed = shlex.join(argument for argument in command[2:] if not argument.startswith("--out="))
    lines = [f"$ python -m {as_typed}    # {date.today().isoformat()}\n\n"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent, env=environment) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip() + "\n")
    if running.returncode == 0:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return running.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as", dest="name", help="what to call it (default: like the benchmark)")
    parser.add_argument("benchmark", choices=sorted(p.stem for p in HERE.glob("*.py") if "__main__" in p.read_text()))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the benchmark")
    chosen = parser.parse_args()
    return keep(chosen.benchmark, chosen.arguments, chosen.name or chosen.benchmark)


if __name__ == "__main__":
    sys.exit(main())
