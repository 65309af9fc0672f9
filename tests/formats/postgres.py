"""A PostgreSQL server for one test run, with its own data, on loopback only, run by an unprivileged user."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType


class Postgres:
    """Use it as a context: it is started there and stopped at the end.

    Args:
        folder: for its data and its log; an empty one.

    Attributes:
        url: without user and password.
        user, password: of its superuser.
    """

    user, password = "tester", "se-cret"

    def __init__(self, folder: Path) -> None:
        found = [*glob.glob("/usr/lib/postgresql/*/bin/initdb"), shutil.which("initdb")]
        self._bin = Path(next(path for path in found if path)).resolve().parent
        self._data = folder / "data"
        self._log = folder / "log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"jdbc:postgresql://127.0.0.1:{self._port}/postgres"
        self._owner = None if os.geteuid() else pwd.getpwnam("postgres" if _exists("postgres") else "nobody")
        if self._owner is not None:  # the server refuses to run as root
            for path in (folder, *list(folder.parents)[:2]):
                os.chmod(path, path.stat().st_mode | 0o055)
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)

    def __enter__(self) -> Postgres:
        secret = self._data.parent / "secret"
        secret.write_text(self.password)
        if self._owner is not None:
            os.chown(secret, self._owner.pw_uid, self._owner.pw_gid)
        self._run(
            "initdb", "-D", str(self._data), "-U", self.user, "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"
        )
        options = f"-c listen_addresses=127.0.0.1 -c port={self._port} -c unix_socket_directories='' -c fsync=off"
        options += " -c autovacuum=off"  # tables are analysed when a test does it
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._log), "-w", "-o", options, "start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def execute(self, sql: str) -> str:
        """The output of `psql` for some statements."""
        where = f"postgresql://{self.user}:{self.password}@127.0.0.1:{self._port}/postgres"
        return self._run("psql", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", where, "-c", sql)

    def _run(self, program: str, *arguments: str) -> str:
        owner = self._owner
        done = subprocess.run(
            [str(self._bin / program), *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, cwd="/", text=True, timeout=120,
            **({"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner is not None else {}),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}")
        return done.stdout


def _exists(user: str) -> bool:
    return any(entry.pw_name == user for entry in pwd.getpwall())
