"""TPC-H as Parquet, generated once per scale factor: ``python -m pyjoinopt.demo.tpch --scale 0.1``.

The generator is not part of the package: ``pip install 'pyjoinopt[demo]'``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyjoinopt.bridge.install.user_cache import cache_folder

#: Rows of each table at scale factor 1.
ROWS = {
    "region": 5,
    "nation": 25,
    "supplier": 10_000,
    "customer": 150_000,
    "part": 200_000,
    "partsupp": 800_000,
    "orders": 1_500_000,
    "lineitem": 6_001_215,
}
_FIXED = ("region", "nation")
_MARKER = "complete.json"
# One call of the generator per step and file: each call takes a second to start, and updates the progress bar.
_STEPS = (("region", "nation", "supplier", "customer", "part", "partsupp"), ("orders",), ("lineitem",))
_ROWS_A_FILE = 1_000_000


def generate(scale: float = 0.1, root: Path | None = None, progress: bool = True) -> Path:
    """Generate the eight tables, unless they exist, and return their folder.

    The folder gets its final name when it is complete, so an interrupted run leaves no incomplete folder behind.

    Args:
        scale: TPC-H's scale factor; 1 is about 350 MB of Parquet.
        root: the parent folder of all scales; by default the user's cache folder (``PYJOINOPT_CACHE_DIR``).
        progress: Show a progress bar, if tqdm is installed.
    Raises:
        ValueError: The scale is not positive.
        RuntimeError: The generator is not installed, or failed; the message contains its output.
    """
    if not scale > 0:
        raise ValueError(f"scale must be more than 0, not {scale!r}")
    root = root or cache_folder()
    folder = root / f"tpch-sf{scale:g}"
    if (folder / _MARKER).is_file():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".tpch-", dir=root))
    try:
        _fill(draft, scale, progress)
        (draft / _MARKER).write_text(json.dumps({"scale": scale, "tables": list(ROWS)}) + "\n")
        draft.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    except OSError:
        # Another process generated the same data meanwhile; use that.
        if not (folder / _MARKER).is_file():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def register(spark: Any, folder: Path) -> dict[str, int]:
    """Register the tables as temporary views; returns the number of rows of each."""
    counts = {}
    for table in ROWS:
        frame = spark.read.parquet(str(folder / table))
        frame.createOrReplaceTempView(table)
        counts[table] = frame.count()
    return counts


def _fill(folder: Path, scale: float, progress: bool) -> None:
    _generator()  # raises at once if it is missing
    rows = {table: count if table in _FIXED else max(1, round(count * scale)) for table, count in ROWS.items()}
    bar = _bar(scale, sum(rows.values())) if progress and find_spec("tqdm") is not None else None
    with bar or nullcontext():
        for tables in _STEPS:
            if bar is not None:
                bar.set_postfix_str(", ".join(tables) if len(tables) == 1 else f"{len(tables)} small tables")
            count, done = sum(rows[table] for table in tables), 0
            files = max(1, round(count / _ROWS_A_FILE)) if len(tables) == 1 else 1
            for number in range(1, files + 1):
                _generate_files(folder, tables, scale, files, number)
                if bar is not None:
                    bar.update(count * number // files - done)
                done = count * number // files
        if bar is not None:
            bar.set_postfix_str("done")


def _bar(scale: float, rows: int) -> Any:
    from tqdm import tqdm  # type: ignore[import-untyped]

    return tqdm(total=rows, desc=f"TPC-H, scale {scale:g}", unit=" rows", unit_scale=True, mininterval=0.2)


def _generate_files(folder: Path, tables: tuple[str, ...], scale: float, files: int, number: int) -> None:
    command = [_generator(), "parquet", "--scale-factor", f"{scale:g}", "--tables", ",".join(tables)]
    command += ["--parts", str(files), "--part", str(number), "--output-dir", str(folder), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        output = done.stderr.strip() or done.stdout.strip()
        raise RuntimeError(f"tpchgen-cli could not generate {', '.join(tables)}:\n{output}")


def _generator() -> str:
    """The generator's executable: in the scripts folder of this Python, or on the PATH."""
    beside = shutil.which("tpchgen-cli", path=sysconfig.get_path("scripts"))
    found = beside or shutil.which("tpchgen-cli")
    if found is None:
        raise RuntimeError("tpchgen-cli is not installed: pip install 'pyjoinopt[demo]'")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor (default: %(default)s)")
    print(generate(parser.parse_args().scale))
    return 0


if __name__ == "__main__":
    sys.exit(main())
