"""Runs the commands in docs/doors, and compares their output with the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.install import compile_scala, jars, java
from tests.sessions import doors
from tests.sessions.conftest import planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = doors.ROOT / "docs" / "doors"


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)


def code(page: str, language: str) -> list[str]:
    return [text for name, text in blocks(page) if name == language]


def check(page: str, said: str) -> None:
    """Every line of the page's results occurs in the output, in this order."""
    rest = said
    wanted = [line for text in code(page, "text") for line in text.splitlines()]
    assert wanted
    for line in wanted:
        assert line in rest, f"{line!r} is missing in:\n{said}"
        rest = rest.partition(line)[2]


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("page", ["new-session", "running-session"])
def test_python(page: str, tmp_path: Path) -> None:
    check(page, doors.run([sys.executable, "-c", "\n".join(code(page, "python"))], tmp_path))


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("page", ["spark-submit", "spark-sql", "spark-shell"])
def test_commands(page: str, tmp_path: Path) -> None:
    if page == "spark-shell":
        source = tmp_path / "Report.scala"
        source.write_text(code(page, "scala")[0])
        compile_scala.compile_shim(doors.HOME / "jars", java.ensure_java(), [source], tmp_path / "report.jar")
    check(page, doors.run(["bash", "-e", "-c", "\n".join(code(page, "bash"))], tmp_path))


def by_script(script: str, command: str) -> str:
    """The command that starts a server, given to the script that Spark has for it: the same arguments."""
    assert command.startswith("spark-submit \\\n  --class ") and " spark-internal" in command
    _, _, arguments = command.partition("--class ")[2].partition(" ")
    return f"SPARK_NO_DAEMONIZE=1 {script} {arguments.replace('spark-internal', '', 1)}".rstrip(" \\\n")


#: The command in `start-thriftserver.sh`, a script that the Spark of PyPI does not include.
START_THRIFT = f"spark-daemon.sh submit {doors.THRIFT} 1 --name thrift"


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.skipif(not doors.has_jar("spark-hive-thriftserver_*.jar"), reason="this Spark comes without the server")
@pytest.mark.parametrize("script", [None, START_THRIFT], ids=["spark-submit", "script"])
def test_thrift_server(tmp_path: Path, script: str | None) -> None:
    port = doors.free_port()
    server, client = (text.replace("10000", str(port)) for text in code("thrift-server", "bash"))
    if script:
        server = by_script(f"bash {doors.HOME}/sbin/{script}", server)
    with doors.running(["bash", "-e", "-c", f"{server.strip()}"], tmp_path, port):
        said = doors.run(["bash", "-e", "-c", client.replace("localhost", "127.0.0.1")], tmp_path)
    check("thrift-server", said)


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.skipif(not doors.has_jar("spark-connect_*.jar"), reason="this Spark comes without Connect")
@pytest.mark.parametrize("script", [None, "start-connect-server.sh"], ids=["spark-submit", "script"])
def test_connect(tmp_path: Path, script: str | None) -> None:
    port = doors.free_port()
    (server,) = code("connect", "bash")
    if script:
        if not (doors.HOME / "sbin" / script).exists():
            pytest.skip("this Spark comes without the script")
        server = by_script(f"bash {doors.HOME}/sbin/{script}", server)
    program = "\n".join(code("connect", "python")).replace("localhost:15002", f"127.0.0.1:{port}")
    command = server.replace("15002", str(port)).strip()
    with doors.running(["bash", "-e", "-c", command], tmp_path, port):
        check("connect", doors.client(port, program, tmp_path))


def block(page: Path, start: str) -> str:
    """The fenced block of a page that begins so."""
    (found,) = re.findall(rf"^```\w*\n({re.escape(start)}.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return found


QUERY = """SELECT count(*) FROM range(1000000) f JOIN range(10000) m ON f.id % 10000 = m.id
JOIN range(10) d ON m.id = d.id"""


@pytest.mark.jvm
@pytest.mark.slow
def test_the_readme_has_both_ways_in(tmp_path: Path) -> None:
    """Each of its two lines, without the other, orders the query."""
    one, other = block(doors.ROOT / "README.md", "spark = pyjoinopt.configure").splitlines()
    assert "configure(" in one and "enable(" in other
    for line in (one, f"spark = SparkSession.builder.getOrCreate()\n{other}"):
        program = (
            f"import pyjoinopt\nfrom pyspark.sql import SparkSession\n{line}\n"
            f"print(spark.sql({QUERY!r}).first()[0], *[report.changed for report in pyjoinopt.last_reports(spark)])"
        )
        assert doors.run([sys.executable, "-c", program], tmp_path).strip() == "1000 True"


@pytest.mark.jvm
@pytest.mark.slow
def test_the_three_settings(tmp_path: Path) -> None:
    settings = block(doors.ROOT / "docs" / "sessions.md", "--jars").replace("\n", " ")
    assert settings.count("--") == 3
    (tmp_path / "report.sql").write_text(f"{QUERY};\nSELECT changed FROM joinopt_report();")
    said = doors.run(["bash", "-e", "-c", f"spark-sql {settings} -f report.sql"], tmp_path)
    assert said.split() == ["1000", "true"]


def test_hints(session: SparkSession) -> None:
    pyjoinopt.disable(session)
    for name, rows in (("fact f", 1_000_000), ("mid m", 10_000), ("dim d", 10)):
        table, column = name.split()
        session.range(rows).toDF(column).createOrReplaceTempView(table)
    (text,) = code("hints", "sql")
    reported = []
    for statement in text.strip().split(";\n"):
        _, reports = planned(session, lambda statement=statement: session.sql(statement.rstrip(";")).collect())
        reported.append([(report.strategy, report.changed, report.error) for report in reports])
    assert reported == [[("auto", True, None)], [("heuristic", False, None)], []]
    query = session.sql("SELECT count(*) FROM fact, mid, dim WHERE f = m AND m = d")
    for line, strategies in zip(code("hints", "python")[0].splitlines(), (["heuristic"], [])):
        _, reports = planned(session, lambda line=line: eval(line, {"query": query}).collect())
        assert [report.strategy for report in reports] == strategies
    pyjoinopt.enable(session)
    (kept,) = (statement.rstrip(";") for statement in text.strip().split(";\n") if "KEEP_JOIN_ORDER" in statement)
    for statement, changed in ((kept, False), (kept.replace("/*+ KEEP_JOIN_ORDER */", ""), True)):
        _, reports = planned(session, lambda statement=statement: session.sql(statement).collect())
        assert any(report.changed for report in reports) is changed


def test_every_page_is_read_and_linked() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")}
    here = Path(__file__).read_text()
    overview = (doors.ROOT / "docs" / "sessions.md").read_text()
    for page in pages:
        assert f'"{page}"' in here and f"(doors/{page}.md" in overview
    links = {link for page in PAGES.glob("*.md") for link in re.findall(r"\]\(([\w-]+)\.md\)", page.read_text())}
    assert links <= pages


def test_the_commands_name_what_there_is() -> None:
    """Every command of every page has the class and the jar that this release has."""
    for page in ("spark-submit", "spark-sql", "spark-shell", "thrift-server", "connect"):
        for command in code(page, "bash"):
            if "--jars" in command:
                assert f"spark.sql.extensions={doors.EXTENSION} " in command
    done = subprocess.run([sys.executable, "-m", "pyjoinopt", "jar"], capture_output=True, text=True, cwd=doors.ROOT)
    assert done.stdout.strip() == str(jars.jar_for_version())
