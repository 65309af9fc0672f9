"""Logs from a History Server, which a small server of the test stands for."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zipfile import ZipFile

import pytest

import pyjoinopt
from pyjoinopt.errors import EventLogError
from pyjoinopt.eventlog.history_server import applications
from tests.support.made_up_logs import LogWriter, op

LOG = LogWriter().start().execution(1, op("Range", rows=5)).text()


def packed() -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr("eventlog_v2_app-1/events_1_app-1", LOG)
        archive.writestr("../../outside", "{}")
    return buffer.getvalue()


class Server(BaseHTTPRequestHandler):
    """Two applications; the logs of the second one are gone."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/api/v1/applications":
            return self._send(json.dumps([{"id": "app-1"}, {"id": "app-2"}]).encode())
        if path == "/api/v1/applications/app-1/logs":
            return self._send(packed())
        if path == "/broken/api/v1/applications":
            return self._send(b"<html>")
        return self.send_error(404)

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_all_applications_are_read(address: str) -> None:
    advice = pyjoinopt.advise(address)
    assert advice.executions == 1 and advice.applications == 1
    (note,) = [note for note in advice.notes if "History Server" in note]
    assert "cannot be read: Not Found" in note


def test_one_application_since_a_day(address: str) -> None:
    assert applications(address, "2026-01-31") == ["app-1", "app-2"]
    assert pyjoinopt.advise(address, app="app-1").executions == 1
    assert pyjoinopt.advise(address + "/", app="app-1", since="2099-01-01").executions == 0


def test_what_is_no_history_server(address: str) -> None:
    for wrong in (f"{address}/broken", f"{address}/other", "http://127.0.0.1:1", "http://[bad"):
        with pytest.raises(EventLogError, match="the History Server at .* cannot be read: "):
            pyjoinopt.advise(wrong)
