"""Runs the commands of the documentation: Python in a session, scripts in a shell. Every configuration key exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.config import OPTIONS, SESSION_KEYS
from tests.sessions import doors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = doors.ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), doors.ROOT / "README.md"]


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


@pytest.fixture
def names(spark: SparkSession) -> Iterator[dict[str, Any]]:
    """The names that the blocks of a page refer to; a separate session, whose settings are restored at the end."""
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", "off")
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    slow = session.sql(
        """SELECT m.id % 7 AS n, count(*) AS orders FROM range(0, 300000, 1, 4) f
        JOIN range(0, 200000, 1, 4) m ON f.id % 200000 = m.id JOIN range(40) d ON m.id = d.id GROUP BY 1"""
    )
    yield {"spark": session, "pyjoinopt": pyjoinopt, "slow": slow}
    pyjoinopt.disable(session)
    pyjoinopt.statistics.forget_declared()
    for table in ("sales", "products", "days"):
        session.sql(f"DROP TABLE IF EXISTS {table}")


def typed(page: str, names: dict[str, Any], wanted: str = "") -> None:
    for block in blocks(page, "python"):
        if wanted in block:
            exec(compile(block, f"{page}.md", "exec"), names)


def jobs(spark: SparkSession) -> int:
    return spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()


@pytest.mark.slow
def test_the_steps_of_a_roll_out(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    typed("rollout", names)
    printed = capsys.readouterr().out
    assert names["report"].changed and "the same rows" in printed
    (row,) = [row for row in names["shadow"].collect() if row["order_before"]]
    assert row["order_before"] != row["order_after"] and row["cost_after"] < row["cost_before"]
    assert not any(report.changed for report in names["pyjoinopt"].last_reports(names["spark"]))


@pytest.mark.slow
def test_a_second_collect_reuses_stages(names: dict[str, Any]) -> None:
    """The mistake that the pages warn about."""
    spark, slow = names["spark"], names["slow"]
    started = []
    for frame in (slow, slow, slow.select("*")):
        before = jobs(spark)
        frame.collect()
        started.append(jobs(spark) - before)
    assert started[1] < started[0] == started[2], started


@pytest.mark.slow
def test_recipes(names: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a table that is not analysed
        typed("cookbook", names)
    report = names["report"]
    assert len(names["fast"].collect()) == len(names["table"].collect()) == 100
    (group,) = report.groups
    before, after = group.order_before, group.order_after
    assert report.changed and before.index("⋈") > before.rindex("⟕") and after.index("⋈") < after.rindex("⟕")
    assert {relation.source.partition(",")[0] for relation in names["star_report"].groups[0].relations} == {"analyze"}


@pytest.mark.slow
def test_a_source_of_row_counts(names: dict[str, Any]) -> None:
    typed("table-formats", names)
    source = pyjoinopt.statistics.registered()[-1]
    pyjoinopt.statistics.unregister(source)
    assert source.name == "our catalogue"


@pytest.mark.parametrize("page", ["cookbook", "rollout"])
def test_scripts_are_valid(page: str) -> None:
    scripts = blocks(page, "bash")
    assert scripts
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert not done.stderr, f"{script}\n{done.stderr}"
    for text in blocks(page, "json"):
        json.loads(text)


def installed(tmp_path: Path) -> Path:
    """The folder that the script of the cookbook makes; pip is left out, and this checkout is found instead."""
    script = next(text for text in blocks("cookbook", "bash") if "install-pyjoinopt.sh;" in text)
    pip = "/opt/pyjoinopt/bin/python -m pip install pyjoinopt\n"
    assert script.count(pip) == 1 and "SPARK_VERSION" in script
    home = tmp_path / "opt"
    script = script.replace(pip, "").replace("/opt/pyjoinopt", str(home))
    needed = os.pathsep.join([str(doors.ROOT), *(path for path in sys.path if path.endswith("site-packages"))])
    spark = ".".join(map(str, doors.SPARK)) + ".0"
    environment = {**os.environ, "PYTHON": sys.executable, "SPARK_VERSION": spark, "PYTHONPATH": needed}
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return home


@pytest.mark.ci
@pytest.mark.jvm
def test_the_script_for_a_machine_gives_an_optimised_session(tmp_path: Path) -> None:
    home = installed(tmp_path)
    (settings,) = [text for text in blocks("cookbook", "") if "spark.jars" in text]
    conf = [line.split(None, 1) for line in settings.replace("/opt/pyjoinopt", str(home)).splitlines()]
    query = """SELECT count(*) FROM range(1000000) f JOIN range(10000) m ON f.id % 10000 = m.id
        JOIN range(10) d ON m.id = d.id"""
    (tmp_path / "report.sql").write_text(f"{query};\nSELECT changed FROM joinopt_report();")
    command = ["spark-sql", *(word for key, value in conf for word in ("--conf", f"{key}={value}")), "-f", "report.sql"]
    needed = os.pathsep.join([str(doors.ROOT), *(path for path in sys.path if path.endswith("site-packages"))])
    said = doors.run(["env", f"PYTHONPATH={needed}", *command], tmp_path)
    assert said.split() == ["1000", "true"]
    assert shutil.which("python", path=str(home / "bin")), "the workers' own Python"


def test_keys_that_pages_name_exist() -> None:
    known = {option.key for option in OPTIONS} | {key for key, _, _ in SESSION_KEYS}
    found = 0
    for page in PAGES:
        keys = re.findall(r"(?<![\w.])spark\.pyjoinopt\.[a-zA-Z]+", page.read_text(encoding="utf-8"))
        found += len(keys)
        assert set(keys) <= known, f"{page.name}: {set(keys) - known}"
    assert found > 50
