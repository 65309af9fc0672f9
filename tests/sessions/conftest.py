"""Sessions that optimise every query, and queries in a bad written order over four small tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A program that tests start.
collect_ignore = ["ui_program.py", "ui_users_program.py"]

TABLES = (("fact", 2000, 200), ("mid", 200, 20), ("dim", 20, 10), ("note", 10, 5))

#: The written order joins the large table with the middle one before the small one has reduced it.
BAD_ORDER = """
    SELECT {hint} fact_k, mid_v, dim_v FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k
    WHERE dim_v = 1 AND fact_v < 4
"""
BETTER = "(fact ⋈ (mid ⋈ dim))"


@pytest.fixture(scope="session")
def small_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fact (2000 rows), mid (200), dim (20) and note (10) as Parquet, with NULLs and duplicates."""
    folder = tmp_path_factory.mktemp("small")
    for name, rows, keys in TABLES:
        spark.range(rows).selectExpr(
            f"CASE WHEN id % 17 = 3 THEN NULL ELSE CAST(id % {keys} AS int) END AS {name}_f",
            f"CAST(id AS int) AS {name}_k",
            f"CAST(id % 5 AS int) AS {name}_v",
        ).coalesce(1).write.parquet(str(folder / name))
    return folder


@pytest.fixture
def new_session(spark: SparkSession, small_files: Path) -> Callable[[], SparkSession]:
    """Makes sessions of the running application with views of the tables, not enabled."""

    def make() -> SparkSession:
        session = spark.newSession()
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        for name, _, _ in TABLES:
            session.read.parquet(str(small_files / name)).createOrReplaceTempView(name)
        return session

    return make


@pytest.fixture
def session(spark: SparkSession, new_session: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """An enabled session, which also parses the hints, since the extension was loaded before it was created."""
    bridge_of(spark).enable(spark._jsparkSession, *pythons())
    made = new_session()
    pyjoinopt.enable(made)
    made.conf.set("spark.pyjoinopt.timeout", "30s")  # a busy machine may take over two to start Python and plan
    yield made


@pytest.fixture
def warnings(spark: SparkSession) -> Iterator[Callable[[], list[str]]]:
    """The warnings of our logger since the last call, and its lines about queries that were changed."""
    with logged(spark, "%p %m%n") as lines:
        yield lambda: [line for line in lines() if line.startswith(("WARN", "INFO Joins reordered"))]


@contextmanager
def logged(spark: SparkSession, pattern: str) -> Iterator[Callable[[], list[str]]]:
    """The lines of our logger since the last call, by a pattern of Log4j."""
    jvm = spark._jvm
    core = jvm.org.apache.logging.log4j.core
    writer = jvm.java.io.StringWriter()
    layout = core.layout.PatternLayout.newBuilder().withPattern(pattern).build()
    appender = core.appender.WriterAppender.createAppender(layout, None, writer, "caught", False, True)
    appender.start()
    name = "org.apache.spark.sql.pyjoinopt"
    core.config.Configurator.setLevel(name, jvm.org.apache.logging.log4j.Level.INFO)
    logger = jvm.org.apache.logging.log4j.LogManager.getContext(False).getLogger(name)
    logger.addAppender(appender)

    def take() -> list[str]:
        text = str(writer.toString())
        writer.getBuffer().setLength(0)
        return text.splitlines()

    try:
        yield take
    finally:
        logger.removeAppender(appender)
        core.config.Configurator.setLevel(name, jvm.org.apache.logging.log4j.Level.ERROR)


def pythons() -> tuple[str, str]:
    """The settings that `enable` passes to the JVM."""
    import sys

    return sys.executable, str(Path(pyjoinopt.__file__).parent.parent)


def swell(folder: Path, size: int) -> None:
    """Make a Parquet file so much larger by a hole between its rows and its footer: readers never look there."""
    (file,) = folder.glob("*.parquet")
    whole = file.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    with file.open("r+b") as out:
        out.seek(footer + size)
        out.write(whole[footer:])
    (folder / f".{file.name}.crc").unlink()


def swollen(session: SparkSession, folder: Path, size: int) -> None:
    """The table fact, with more bytes and the same rows."""
    session.table("fact").coalesce(1).write.parquet(str(folder / "fact"))
    swell(folder / "fact", size)
    session.read.parquet(str(folder / "fact")).createOrReplaceTempView("fact")


def planned(session: SparkSession, run: Callable[[], Any]) -> tuple[Any, list[pyjoinopt.JoinReport]]:
    """The result of `run`, and the reports of the plans that it made."""
    numbered = "SELECT DISTINCT number, report FROM joinopt_report() WHERE number > {} ORDER BY number"
    known = bridge_of(session).isPresent(session._jsparkSession)
    before = [row.number for row in session.sql(numbered.format(-1)).collect()] if known else []
    result = run()
    after = session.sql(numbered.format(max(before, default=-1))).collect() if known else []
    return result, [pyjoinopt.JoinReport.from_dict(json.loads(row.report)) for row in after]


def orders(reports: list[pyjoinopt.JoinReport]) -> list[str]:
    """The chosen orders in the reports."""
    return [group.order_after for report in reports for group in report.groups]


def rows(df: Any) -> list[str]:
    """The rows as a sorted list of texts."""
    return sorted(map(str, df.collect()))
