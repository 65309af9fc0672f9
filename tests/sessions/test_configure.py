"""`configure` and manual configuration, each in a separate process and JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

import pyjoinopt
from pyjoinopt.bridge.builder_conf import append, inherited_lists
from pyjoinopt.bridge.extension import EXTENSION
from pyjoinopt.bridge.install.jars import jar_for_version
from tests.sessions import doors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]

#: The first lines of every script: a builder, and a dict for the results.
PRELUDE = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import pyjoinopt

def children():
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\\0")
        except OSError:
            continue
        if "pyjoinopt.worker" in words and "{mark}" in (process / "environ").read_text():
            found.append(int(process.name))
    return found

def builder():
    return (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-Xss16m -XX:+UseParallelGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "2").config("spark.sql.warehouse.dir", "{home}/warehouse")
        .config("spark.pyjoinopt.timeout", "60s"))

SQL = '''SELECT count(*) FROM range(1000000) f JOIN range(10000) m ON f.id % 10000 = m.id
         JOIN range(10) d ON m.id = d.id'''

def order(spark):
    count = spark.sql(SQL).first()[0]
    return [count] + [g.order_after for r in pyjoinopt.last_reports(spark) for g in r.groups]

answer = {{}}
"""


def run(tmp_path: Path, script: str, **environment: str) -> tuple[dict[str, Any], str]:
    """The contents of a script's `answer`, and its standard error."""
    mark = tmp_path.name
    prelude = PRELUDE.format(home=tmp_path, mark=f"PYJOINOPT_TEST={mark}")
    text = prelude + script + "\nprint('ANSWER' + json.dumps(answer))\n"
    variables = {
        **os.environ, "PYTHONPATH": str(ROOT), "PYJOINOPT_TEST": mark, "PYSPARK_PYTHON": sys.executable, **environment
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=variables, timeout=300)
    reported = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    assert done.returncode == 0 and reported, done.stdout + done.stderr
    return json.loads(reported[0].removeprefix("ANSWER")), done.stderr


@pytest.mark.jvm
@pytest.mark.slow
def test_configured_stopped_and_configured_again_in_one_process(tmp_path: Path) -> None:
    """Three applications one after the other in one JVM; workers end with theirs, threads too."""
    answer, _ = run(
        tmp_path,
        """
def threads(spark):
    names = [t.getName() for t in spark._jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return sum("pyjoinopt-worker" in name for name in names)

def until(condition):
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.05)
    return False

plain = builder().getOrCreate()
answer["plain"] = order(plain)
try:
    pyjoinopt.configure(builder()).getOrCreate()
except pyjoinopt.SessionError as error:
    answer["too late"] = str(error)
pyjoinopt.enable(plain)
answer["live"] = order(plain)
plain.stop()
answer["plain stopped"] = until(lambda: not children())
spark = pyjoinopt.configure(builder(), hints=False).getOrCreate()
answer["enabled"] = pyjoinopt.is_enabled(spark)
answer["hints"] = spark.conf.get("spark.pyjoinopt.hints")
answer["before"] = children()
answer["order"] = order(spark)
answer["workers"] = len(children()), threads(spark)
answer["new"] = pyjoinopt.is_enabled(spark.newSession())
spark.conf.set("spark.pyjoinopt.enabled", "false")
answer["off"] = pyjoinopt.is_enabled(spark)
hinted = SQL.replace("SELECT", "SELECT /*+ OPTIMIZE_JOINS */", 1)
spark.sql(hinted).collect()
answer["hinted"] = len(pyjoinopt.last_reports(spark))
try:
    pyjoinopt.configure(SparkSession.builder).getOrCreate()
    answer["same"] = "same session"
except Exception as error:
    answer["same"] = str(error)
late = spark.sql(hinted)
spark.stop()
answer["stopped"] = until(lambda: not children())
try:
    late._jdf.queryExecution().optimizedPlan()
except Exception as error:
    answer["late"] = str(error)
answer["none for the dead"] = children()
again = pyjoinopt.configure(builder()).getOrCreate()
answer["again"] = order(again)
answer["threads"] = until(lambda: threads(again) == 1), len(children())
again.stop()
answer["stopped again"] = until(lambda: not children())
""",
    )
    assert answer["enabled"] and answer["new"] and not answer["off"] and answer["hints"] == "false"
    assert len(answer["before"]) <= 1 and answer["workers"] == [1, 1]  # it starts with the session
    assert answer["order"][0] == answer["again"][0] == answer["live"][0]
    assert len(answer["order"]) == len(answer["again"]) == len(answer["live"]) == 2, answer
    assert answer["hinted"] == 2 and answer["none for the dead"] == []
    assert answer["same"] == "same session"
    assert answer["stopped"] and answer["stopped again"] and answer["threads"] == [True, 1]
    assert answer["plain"] == answer["order"][:1] and answer["plain stopped"]
    assert "pyjoinopt.enable(spark)" in answer["too late"]


@pytest.mark.jvm
@pytest.mark.slow
def test_beside_an_extension_that_cannot_be_loaded(tmp_path: Path) -> None:
    """Spark only warns of it; set before us or after us, it takes nothing from ours."""
    answer, warned = run(
        tmp_path,
        """
for number, spark in enumerate((
    pyjoinopt.configure(builder().config("spark.sql.extensions", "no.such.Before")),
    pyjoinopt.configure(builder()).config("spark.sql.extensions", "no.such.After"),
)):
    session = spark.getOrCreate()
    answer[number] = order(session)
    session.stop()
""",
    )
    assert "no.such.Before" in warned and "no.such.After" in warned
    assert len(answer["0"]) == len(answer["1"]) == 2


@pytest.mark.ci
@pytest.mark.jvm
def test_the_bare_configuration_is_enough(tmp_path: Path) -> None:
    """No pyjoinopt call before the session: the jar knows its package, the worker takes PySpark's Python."""
    answer, _ = run(
        tmp_path,
        f"""
spark = (builder().config("spark.jars", {str(jar_for_version())!r})
    .config("spark.sql.extensions", {EXTENSION!r}).getOrCreate())
answer["order"] = spark.sql(SQL).first()[0]
answer["changed"] = [r.changed for r in spark.sql("SELECT changed FROM joinopt_report()").collect()]
answer["enabled"] = pyjoinopt.is_enabled(spark)
""",
        PYTHONPATH=f"{ROOT}",
    )
    assert answer["changed"] == [True] and answer["enabled"]


class Settings:
    """The part of a builder that `configure` uses."""

    def __init__(self, **options: str) -> None:
        self._options = {key.replace("_", "."): value for key, value in options.items()}

    def config(self, key: str, value: str) -> None:
        self._options[key] = value


OURS = {"spark.jars": "/ours.jar", "spark.sql.extensions": EXTENSION}


def test_what_was_configured_before_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    builder = Settings(spark_jars="a.jar, b.jar", spark_sql_extensions="org.one.Extension")
    for _ in range(2):
        append(builder, OURS, inherited_lists(None))
        assert builder._options["spark.jars"] == "a.jar,b.jar,/ours.jar"
        assert builder._options["spark.sql.extensions"] == f"org.one.Extension,{EXTENSION}"

    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.jars   d.jar\nspark.sql.extensions=org.two.E\n")
    builder = Settings()
    append(builder, OURS, inherited_lists(None))
    assert builder._options == {
        "spark.jars": "d.jar,/ours.jar",
        "spark.sql.extensions": f"org.two.E,{EXTENSION}",
    }
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars s.jar --conf spark.sql.extensions=org.three.E pyspark-shell")
    builder = Settings()
    append(builder, OURS, inherited_lists(None))
    assert builder._options == {"spark.jars": "s.jar,/ours.jar", "spark.sql.extensions": f"org.three.E,{EXTENSION}"}


def test_what_the_jvm_got_is_kept(spark: SparkSession) -> None:
    """Fetched jars stay beside the builder's; a file is listed once; of extensions the builder's hide the others."""
    system = spark._jvm.java.lang.System
    system.setProperty("spark.jars", "file:///fetched.jar,file:///ours.jar,file:///own.jar")
    system.setProperty("spark.sql.extensions", "org.one.E")
    try:
        reported = inherited_lists(spark._jvm)
    finally:
        system.clearProperty("spark.jars")
        system.clearProperty("spark.sql.extensions")
    plain, own = Settings(), Settings(spark_jars="/own.jar,/more.jar", spark_sql_extensions="org.two.E")
    for builder in (plain, own):
        append(builder, OURS)
        append(builder, OURS, reported)
    assert plain._options["spark.jars"] == "file:///fetched.jar,file:///own.jar,/ours.jar"
    assert plain._options["spark.sql.extensions"] == f"org.one.E,{EXTENSION}"
    assert own._options["spark.jars"] == "file:///fetched.jar,file:///own.jar,/more.jar,/ours.jar"
    assert own._options["spark.sql.extensions"] == f"org.two.E,{EXTENSION}"


JOB = """
import json
import pyjoinopt
from pyspark.sql import SparkSession

builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "3")
spark = pyjoinopt.configure(builder).getOrCreate()
spark.sql('''SELECT count(*) FROM range(1000000) f JOIN range(10000) m ON f.id % 10000 = m.id
    JOIN range(10) d ON m.id = d.id''').collect()
keys = ("spark.jars", "spark.sql.extensions", "spark.sql.shuffle.partitions")
told = [spark.sparkContext.getConf().get(key) for key in keys]
print("TOLD" + json.dumps([told, [report.changed for report in pyjoinopt.last_reports(spark)]]))
spark.stop()
"""


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("way", ["spark-submit", "arguments", "defaults"])
def test_configured_where_others_have_set_more(tmp_path: Path, way: str) -> None:
    """Their jars and extensions stay, and ours is found by a JVM that was started without it."""
    (tmp_path / "job.py").write_text(JOB)
    with ZipFile(tmp_path / "theirs.jar", "w"):
        pass
    theirs = {"spark.jars": str(tmp_path / "theirs.jar"), "spark.sql.extensions": "not.there.Extension"}
    conf = ["--jars", theirs["spark.jars"], "--conf", "spark.sql.extensions=not.there.Extension"]
    command, more = [sys.executable, "job.py"], {}
    if way == "spark-submit":
        command = ["spark-submit", *conf, "job.py"]
    elif way == "arguments":
        more = {"PYSPARK_SUBMIT_ARGS": " ".join([*conf, "pyspark-shell"])}
    else:
        folder = tmp_path / "more"
        folder.mkdir()
        doors.environment(tmp_path)
        text = (tmp_path / "conf" / "spark-defaults.conf").read_text()
        text += "".join(f"{key} {value}\n" for key, value in theirs.items())
        (folder / "spark-defaults.conf").write_text(text)
        more = {"SPARK_CONF_DIR": str(folder)}
    (line,) = [line for line in doors.run(command, tmp_path, **more).splitlines() if line.startswith("TOLD")]
    (jars, extensions, partitions), changed = json.loads(line.removeprefix("TOLD"))
    assert [part.rpartition("/")[2] for part in jars.split(",")] == ["theirs.jar", jar_for_version().name]
    assert extensions == f"not.there.Extension,{EXTENSION}"
    assert partitions == "3" and changed == [True]


def test_wrong_options_raise_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean 'strategy'"):
        pyjoinopt.configure(Settings(), stratgy="auto")
