"""Runs a benchmark and keeps what it prints, for the page on performance.

    python -m benchmarks.keep [--as NAME] BENCHMARK [ITS ARGUMENTS ...]

The output goes to the terminal and, with the command in its first line, to `results/NAME.txt` beside this file (NAME is
BENCHMARK unless it is said). `docs/generate.py` puts it under the benchmark's section. Nothing is kept of a run that
failed. Progress bars are not part of it, nor is where `--out=FILE` puts something.

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
    """Run it and keep its output; its exit code."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    told = shlex.join(argument for argument in command[2:] if not argument.startswith("--out="))
    lines = [f"$ python -m {told}    # {date.today().isoformat()}\n\n"]
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
