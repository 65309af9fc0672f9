"""The worker as a separate process: its messages on the pipe, which carries nothing else."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyjoinopt
from pyjoinopt.worker.serve import PROTOCOL

HEAD = struct.Struct(">4sI")
PACKAGES = str(Path(pyjoinopt.__file__).parent.parent)


class Talk:
    """The JVM's side of a worker's pipe."""

    def __init__(self, *program: str, **environment: str) -> None:
        variables = {**os.environ, "PYTHONPATH": PACKAGES, "PYJOINOPT_ATTACH": "off", **environment}
        pipe = subprocess.PIPE
        command = [sys.executable, *(program or ("-m", "pyjoinopt.worker"))]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.source, self.sink = self.process.stdout, self.process.stdin

    def write(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.sink.write(HEAD.pack(b"PJO1", len(body)) + body)
        self.sink.flush()

    def read(self) -> dict[str, Any]:
        mark, length = HEAD.unpack(self.source.read(HEAD.size))
        assert mark == b"PJO1"
        return dict(json.loads(self.source.read(length)))

    def end(self) -> tuple[int, str]:
        """Close its input; returns its exit code and its standard error."""
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors.decode()


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    yield made
    made.process.kill()
    made.process.communicate()


def export(**changes: Any) -> dict[str, Any]:
    """An export of a leaf without columns."""
    leaf = {"c": "OneRowRelation", "k": [], "o": [], "x": []}
    plain = {
        "protocol": 1, "handle": 1, "spark": "4.0.0", "streaming": False, "resolved": True, "command": False,
        "conf": {}, "types": [], "attributes": [], "expressions": [], "nodes": [leaf], "root": 0, "filtersNull": [],
    }  # fmt: skip
    return {**plain, **changes}


def request(number: int, exported: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"id": number, "request": {"op": "plan", "milliseconds": 2000, "options": options, "export": exported}}


def test_it_greets_and_answers_one_after_the_other_until_its_input_ends(talk: Talk) -> None:
    assert talk.read() == {"protocol": PROTOCOL, "version": pyjoinopt.__version__}
    for number in (5, 6):
        talk.write(request(number, export()))
        answer = talk.read()
        assert answer["id"] == number
        store = answer["answer"].pop("store")
        assert store is None or Path(store).is_absolute()
        assert answer["answer"] == {
            "edits": None, "summary": "", "problem": None, "outcome": "unchanged", "refusals": ["oneOrder"],
            "costs": None,
        }  # fmt: skip
        reported = talk.read()
        assert reported["id"] == number and reported["report"]["changed"] is False
    assert talk.end() == (0, "")


def test_what_goes_wrong_is_an_answer(talk: Talk) -> None:
    talk.read()
    unreadable = {"id": 3, "request": {}}
    for said, requested in (
        ("must be one of 'auto'", request(1, export(), strategy="clever")),
        ("protocol 99", request(2, export(protocol=99))),
        ("KeyError", unreadable),
    ):
        talk.write(requested)
        problem = talk.read()["answer"]["problem"]
        assert said in problem and talk.read()["report"]["error"] == problem
    talk.write(request(4, export()))
    assert talk.read()["answer"]["problem"] is None


def test_it_ends_when_its_input_ends_within_a_frame(talk: Talk) -> None:
    talk.read()
    talk.sink.write(HEAD.pack(b"PJO1", 100) + b"{")
    assert talk.end() == (0, "")


#: A worker that is busy for ever, once it has greeted.
BUSY = """
import sys
from pyjoinopt.worker import serve as worker
def serve(pipe):
    pipe.write({})
    while True:
        pass
worker.serve = serve
sys.exit(worker.main())
"""


def test_it_ends_with_its_input_while_it_is_busy() -> None:
    talk = Talk("-c", BUSY)
    talk.read()
    assert talk.end() == (0, "")


def test_it_ends_with_its_parent_while_it_is_busy() -> None:
    """Its input stays open: somebody else holds the other end too."""
    between = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {BUSY!r}], stdout=subprocess.PIPE)
child.stdout.read(1)
print(child.pid, flush=True)
time.sleep(60)
"""
    talk = Talk("-c", between)
    worker = int(talk.source.readline())
    os.kill(worker, 0)
    talk.process.kill()
    talk.process.wait()
    until = time.monotonic() + 20
    while (alive := Path(f"/proc/{worker}").exists()) and time.monotonic() < until:
        time.sleep(0.05)
    if alive:
        os.kill(worker, signal.SIGKILL)
    talk.end()
    assert not alive


def test_what_others_print_does_not_get_between_the_frames(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, sys\n"
        "class Loud:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pyjoinopt.optimizer.optimize':\n"
        "            print('loading', name, file=sys.stderr)\n"
        "sys.meta_path.insert(0, Loud())\n"
        "import json\n"
        "dumps = json.dumps\n"
        "def loud(*a, **k):\n"
        "    print('printed'); sys.stdout.flush(); os.write(1, b'written')\n"
        "    return dumps(*a, **k)\n"
        "json.dumps = loud\n"
    )
    talk = Talk(PYTHONPATH=os.pathsep.join([str(tmp_path), PACKAGES]))
    assert talk.read()["protocol"] == PROTOCOL
    talk.write(request(1, export()))
    assert talk.read()["id"] == 1
    code, errors = talk.end()
    assert code == 0
    assert errors.count("printed") == errors.count("written") >= 2


def test_it_does_without_pyspark(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyspark'] = sys.modules['py4j'] = None\n")
    talk = Talk(PYTHONPATH=os.pathsep.join([str(tmp_path), PACKAGES]))
    assert talk.read()["protocol"] == PROTOCOL
    assert talk.end() == (0, "")


def test_it_imports_nothing_heavy() -> None:
    program = "import sys, pyjoinopt.worker; print([m for m in ('pyspark', 'pandas', 'numpy') if m in sys.modules])"
    variables = {**os.environ, "PYTHONPATH": PACKAGES, "PYJOINOPT_ATTACH": "off"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
