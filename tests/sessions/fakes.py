"""Programs that replace the worker, and the processes of this machine."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.worker.serve import PROTOCOL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The first steps of a worker: it sends its greeting, and reads one request.
GREETS = """
import json, struct, sys, time
def write(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack(">4sI", b"PJO1", len(body)) + body)
    sys.stdout.buffer.flush()
def read():
    mark, length = struct.unpack(">4sI", sys.stdin.buffer.read(8))
    return json.loads(sys.stdin.buffer.read(length))
write({"protocol": PROTOCOL, "version": "0"})
request = read()
""".replace("PROTOCOL", str(PROTOCOL))

#: The real worker, which takes its time.
SLOW = """
import sys, time
from pyjoinopt.worker import serve
answer = serve.Planner.answer
def slowly(*parts):
    time.sleep(2)
    return answer(*parts)
serve.Planner.answer = slowly
sys.exit(serve.main())
"""


def fake(folder: Path, program: str) -> str:
    """An executable that runs a program instead of the worker, in a group of processes that can be found."""
    script = folder / "worker.py"
    script.write_text(program)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" PYJOINOPT-FAKE\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


def counting(starts: Path, program: str) -> str:
    """A program that leaves an x for each of its starts."""
    return f"open({str(starts)!r}, 'a').write('x')\n{program}"


def running() -> dict[int, tuple[int, list[str]]]:
    """The processes of this machine: number -> (parent, command line)."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(process.name)] = (int(parent), words)
    return found


def children(mark: str) -> list[int]:
    """The running processes with this in their command line."""
    return [number for number, (_, words) in running().items() if any(mark in word for word in words)]


def workers() -> list[int]:
    """The real workers that were started below this process; others may be testing on the same machine."""
    everything = running()

    def is_ours(number: int) -> bool:
        while number in everything and number != os.getpid():
            number = everything[number][0]
        return number == os.getpid()

    return [number for number, (_, words) in everything.items() if "pyjoinopt.worker" in words and is_ours(number)]


def gone(mark: str) -> bool:
    """Whether no such process is left, after a moment."""
    until = time.monotonic() + 5
    while children(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not children(mark)


def give(session: SparkSession, **settings: object) -> None:
    """Settings of the application for one session, as `enable` gives them, without starting a worker in advance."""
    keys = {"start_timeout": "startTimeout"}
    values = {f"spark.pyjoinopt.{keys.get(name, name)}": str(value) for name, value in settings.items()}
    bridge_of(session).setApplicationSettings(session._jsparkSession, json.dumps(values))
