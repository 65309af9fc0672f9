"""`python -m tests.golden DIR`: run a folder of SQL files in three ways and print where they differ.

The exit code is 0 if nothing differs, 1 if something does, 2 if the arguments are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden.runner import DIFFERS, PLAIN_FAILS, SAME, UNSTABLE, Result, run_file
from tests.golden.statements import read_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = ("statements", SAME, "changed", PLAIN_FAILS, UNSTABLE, DIFFERS)


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    """Run the files that the arguments name; without a session one is started, and stopped at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="a folder of .sql files; those in folders below it count, too")
    parser.add_argument("--match", default="", help="only files whose path has this text")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of all sessions")
    parser.add_argument("--cost", default="c_out", help="the cost model (default c_out: tables of tests are tiny)")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder; give one that holds .sql files")
    paths = [path for path in sorted(options.folder.rglob("*.sql")) if options.match in path.as_posix()]
    if not paths:
        where = f" with {options.match!r} in its path" if options.match else ""
        parser.error(f"{options.folder} has no .sql file{where}")
    wrong = [pair for pair in options.conf if "=" not in pair]
    if wrong:
        parser.error(f"--conf {wrong[0]}: must be KEY=VALUE")
    conf = dict(pair.split("=", 1) for pair in options.conf)
    try:
        files = [read_file(path, options.folder) for path in paths]
    except ValueError as error:
        parser.error(str(error))
    own = spark is None
    spark = spark or _spark()
    results = []
    try:
        for file in files:
            results.append(run_file(spark, file, conf, options.cost))
            print(_line(results[-1].file.name, *(str(results[-1].counts[c]) for c in _COLUMNS)), flush=True)
    finally:
        if own:
            spark.stop()
    print(summary(results))
    return int(any(result.differences for result in results))


def summary(results: Sequence[Result]) -> str:
    """The table's last lines, then every difference and every instruction that was not followed."""
    total = [str(sum(result.counts[column] for result in results)) for column in _COLUMNS]
    lines = [_line("file", *_COLUMNS), _line(f"{len(results)} files", *total)]
    for result in results:
        if result.file.ignored:
            lines.append(f"{result.file.name}: not followed: {', '.join(sorted(set(result.file.ignored)))}")
        for found in result.differences:
            lines += ["", f"{found.file}, statement {found.number}, {found.entrance}: {found.reason}", found.statement]
    return "\n".join(lines)


def _line(name: str, *values: str) -> str:
    return f"{name:40}" + "".join(f"{value:>12}" for value in values)


def _spark() -> SparkSession:
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.install.java import ensure_java

    ensure_java()
    builder = SparkSession.builder.master("local[2]").appName("golden")
    for key, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.shuffle.partitions": "4"}.items():
        builder = builder.config(f"spark.{key}", value)
    spark: SparkSession = builder.config("spark.pyjoinopt.store", "off").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    sys.exit(main())
