"""The store with real files and processes: concurrent writers, killed writers, broken and unreadable files."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from pyjoinopt.estimation.sources.registry import Column, Files, Known
from pyjoinopt.estimation.store import sqlite_file
from pyjoinopt.estimation.store import store as store_module
from pyjoinopt.estimation.store.sqlite_file import APPLICATION, open_file
from pyjoinopt.estimation.store.store import Store, open_store
from pyjoinopt.feedback import query_store
from pyjoinopt.feedback.query_store import QueryStore, Run

ROOT = Path(__file__).resolve().parents[4]


def files(id: str, schema: str = "s") -> Files:
    return Files(id, schema, 1, 100, 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "statistics.sqlite"


def run(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own, with a store in it."""
    head = (
        "import sys, time, warnings\nfrom pathlib import Path\n"
        "sys.modules['pyspark'] = None\n"  # takes long to import
        "from pyjoinopt.estimation.sources.registry import Column, Files, Known\n"
        "from pyjoinopt.estimation.store.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "warnings.simplefilter('error')\n"
        "def files(id): return Files(id, 's', 1, 100, 0.0)\n"
    )
    command = [sys.executable, "-c", head + program, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def test_what_was_put_comes_back(path: Path) -> None:
    columns = {
        "k": Column(ndv=3.0, min=-(1 << 62), max=(1 << 62) + 1, nulls=0.0),
        "f": Column(min=0.5, max=2.5, avg_len=8, details={"hist": True}),
        "täxt": Column(nulls=7),
    }
    known = Known(10.0, 100.0, columns, True, "footers", 1234.5, "weak")
    Store(path).put({files("a"): known}, {files("a"): "t"})
    assert Store(path).get([files("a"), files("b"), files("a", "other")]) == {("a", "s"): (known, None)}


def test_only_some_columns_were_requested(path: Path) -> None:
    store = Store(path)
    store.put({files("a"): Known(1.0, source="x")}, {}, {files("a"): frozenset("kb")})
    assert store.get([files("a")])["a", "s"][1] == {"k", "b"}


def test_blobs_and_feedback(path: Path) -> None:
    store = Store(path)
    store.put_blob(files("a"), "sample", b"\0\1")
    assert not store.has_feedback()
    store.put_feedback("group", {0b01: 5, 0b11: 6})
    store.put_feedback("group", {0b01: 7})
    store.put_feedback("group2", {0b01: 9})
    again = Store(path)
    assert again.blob(files("a"), "sample") == b"\0\1"
    assert again.blob(files("a"), "sketch") is None
    assert again.has_feedback() and again.feedback("other") == {}
    assert again.feedback("group") == {0b01: 7, 0b11: 6}


def test_its_state_changes_with_what_plans_depend_on(path: Path) -> None:
    store = Store(path)
    store.put_feedback("group", {1: 10.0, 2: 20.0})
    states = [store.state()]

    def has_changed() -> bool:
        states.append(store.state())
        return states[-1] != states[-2]

    store.put_feedback("group", {1: 10.0, 2: 20.0})
    assert not has_changed(), "the same counts are not written again"
    recorded = Run("i", "", "", "driver", False, 2.0, 100.0, 0.0, 1.5)
    for writer in (store, Store(path)):
        QueryStore(writer).add("s", "c", ("t",), recorded)
        assert not has_changed(), "no plan is made of a run, whoever records it"
    store.put_feedback("group", {1: 10.0, 2: 21.0})
    assert has_changed() and store.feedback("group") == {1: 10.0, 2: 21.0}
    Store(path).put_blob(files("a"), "kind", b"1")
    assert has_changed(), "so do those that another connection writes"
    Store(path).write(lambda connection: connection.execute("INSERT INTO baseline VALUES ('daily', '{}', 0)"))
    assert has_changed(), "a plan may be pinned"
    with sqlite3.connect(path) as by_hand:
        by_hand.execute("UPDATE feedback SET rows = 22.0 WHERE rows = 21.0")
    assert has_changed(), "whoever writes, and whatever with"
    store.forget()
    assert has_changed() and store.feedback("group") == {}
    store.close()
    assert has_changed(), "and so while nobody looked"


def test_columns_that_an_earlier_release_lacks(path: Path) -> None:
    """They are added, and its runs keep what they have; a store that cannot be written is read without runs."""
    store = Store(path)
    store.put_feedback("group", {1: 10.0})
    store.close()
    with sqlite3.connect(path) as earlier:
        for (trigger,) in earlier.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            earlier.execute(f"DROP TRIGGER {trigger}")
        earlier.execute("DROP TABLE changes")
        for column in ("task_seconds", "skew"):
            earlier.execute(f"ALTER TABLE run DROP COLUMN {column}")
        earlier.execute("INSERT INTO run (shape, conditions, plan, seconds, ended) VALUES ('s', 'c', '', 1.5, 1.0)")
    earlier.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    earlier.close()
    read_only = path.with_name("read-only.sqlite")
    shutil.copy(path, read_only)
    connection = sqlite3.connect(f"{read_only.as_uri()}?mode=ro&immutable=1", uri=True)
    assert not query_store._has_tables(connection) and sqlite_file.changes(connection) is None
    connection.close()
    before = store.state()
    (run,) = QueryStore(store).runs("s", "c")
    assert (run.seconds, run.task_seconds, run.skew) == (1.5, 0.0, 0.0) and store.feedback("group") == {1: 10.0}
    store.put_feedback("group", {1: 11.0})
    assert store.state() != before, "what counts the changes is added, too"


@pytest.mark.parametrize("damage", ["DROP TRIGGER blob_update", "DELETE FROM changes", "DROP TABLE changes"])
def test_the_count_of_changes_is_repaired(path: Path, damage: str) -> None:
    store = Store(path)
    store.put_blob(files("a"), "kind", b"1")
    store.close()
    with sqlite3.connect(path) as by_hand:
        if "TABLE" in damage:
            for table in sqlite_file._PLANNED_WITH:
                for event in ("insert", "update", "delete"):
                    by_hand.execute(f"DROP TRIGGER {table}_{event}")
        by_hand.execute(damage)
    by_hand.close()
    before = store.state()
    store.write(lambda connection: connection.execute("UPDATE blob SET content = 'x'"))
    assert None not in (before, store.state()) and store.state() != before


def test_counts_of_yesterday_are_dated_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest counts go first when the file grows."""
    store = Store(path)
    store.put_feedback("group", {1: 10.0})
    (_, first) = store.dated_feedback("group")[1]
    for later, expected in ((3600.0, first), (2 * 86400.0, first + 2 * 86400.0)):
        monkeypatch.setattr("time.time", lambda at=first + later: at)
        store.put_feedback("group", {1: 10.0})
        assert store.dated_feedback("group")[1] == (10.0, expected)


def test_forget(path: Path) -> None:
    store = Store(path)
    store.put({files(id): Known(1.0, source="x") for id in "abc"}, {})
    store.put_blob(files("a"), "sample", b"x")
    store.put_feedback("group", {0b01: 1})
    store.forget([files("a")])
    assert set(store.get([files("a"), files("b")])) == {("b", "s")}
    assert store.blob(files("a"), "sample") is None
    store.forget()
    assert store.get([files("b"), files("c")]) == {} and store.feedback("group") == {}


def test_the_oldest_go_when_it_grows_too_large(path: Path) -> None:
    store = Store(path, max_bytes=1 << 20)
    for i in range(60):
        store.put_blob(files(str(i)), "sample", bytes(100_000))
    assert path.stat().st_size < 2 << 20
    kept = [i for i in range(60) if store.blob(files(str(i)), "sample") is not None]
    assert kept and kept == list(range(kept[0], 60))


def test_eight_processes_write_at_once(path: Path) -> None:
    program = (
        "for i in range(40):\n"
        "    store.put({files(f'{sys.argv[2]}.{i}'): Known(i, source='x', columns={'c': Column(ndv=i)})}, {})\n"
        "    store.put_feedback('shared', {1: i})\n"
    )
    for process in [run(program, path, n) for n in range(8)]:
        finish(process)
    keys = [files(f"{n}.{i}") for n in range(8) for i in range(40)]
    found = Store(path).get(keys)
    assert len(found) == 320
    assert all(found[f.id, "s"][0].rows == int(f.id.split(".")[1]) for f in keys)


def test_a_killed_writer_leaves_what_was_committed(path: Path) -> None:
    program = (
        "i = 0\n"
        "while True:\n"
        "    store.put({files(f'{i}.{j}'): Known(i, source='x') for j in range(50)}, {})\n"
        "    i += 1\n"
        "    print(i, flush=True)\n"
    )
    writer = run(program, path)
    assert writer.stdout is not None
    committed = 0
    for line in writer.stdout:
        committed = int(line)
        if committed == 20:
            break
    writer.send_signal(signal.SIGKILL)
    writer.communicate(timeout=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = Store(path)
        for i in range(committed + 3):
            found = len(store.get([files(f"{i}.{j}") for j in range(50)]))
            assert found == 50 if i < committed else found in (0, 50), "a transaction is there whole, or not at all"
        store.put({files("after"): Known(1.0, source="x")}, {})
    assert store.get([files("after")])


def _filled(path: Path) -> None:
    store = Store(path)
    store.put({files(str(i)): Known(1.0, source="x", note="n" * 200) for i in range(500)}, {})
    store.close()
    assert not Path(f"{path}-wal").exists(), "the last one to leave cleans up"


@pytest.mark.parametrize("damage", ["cut short", "cut to a page", "overwritten", "no database", "noise inside"])
def test_a_broken_file_is_set_aside(path: Path, damage: str) -> None:
    _filled(path)
    whole = path.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    broken = {
        "cut short": whole[: len(whole) // 2 - 77],
        "cut to a page": whole[:page],
        "overwritten": whole[:100] + os.urandom(len(whole) - 100),
        "no database": b"this is a text file\n" * 100,
        "noise inside": whole[:page] + b"\xff" * (len(whole) - page),
    }[damage]
    path.write_bytes(broken)
    store = Store(path)
    with pytest.warns(RuntimeWarning) as reported:
        assert store.get([files(str(i)) for i in range(500)]) == {}
        store.put({files("new"): Known(2.0, source="x")}, {})
    assert len(reported) == 1 and "broken" in str(reported[0].message)
    assert Store(path).get([files("new")])["new", "s"][0].rows == 2
    assert path.with_name(path.name + ".broken").read_bytes()[:100] == broken[:100]


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Store(path).put({files("a"): Known(1.0, source="x")}, {})
        assert Store(path).get([files("a")])


def test_another_process_creates_the_tables_while_one_looks(path: Path) -> None:
    """A reader sees the file before or after the change, never an intermediate state."""
    path.parent.mkdir()
    looker = sqlite3.connect(path, isolation_level=None)
    looker.execute("PRAGMA journal_mode = WAL")  # as a creator does first
    looked = []

    def create(statement: str) -> None:
        if "sqlite_master" in statement and not looked:
            looked.append(statement)
            open_file(path)[0].close()

    looker.set_trace_callback(create)
    assert sqlite_file._check(looker) is False and looked
    assert sqlite_file._check(looker) is True
    looker.close()


def test_four_processes_meet_a_broken_file(path: Path) -> None:
    _filled(path)
    path.write_bytes(path.read_bytes()[:5000])
    program = (
        "warnings.simplefilter('ignore')\n"
        "for i in range(10):\n"
        "    store.put({files(f'{sys.argv[2]}.{i}'): Known(i, source='x')}, {})\n"
        "print(len(store.get([files(f'{sys.argv[2]}.{i}') for i in range(10)])))\n"
    )
    for process in [run(program, path, n) for n in range(4)]:
        assert finish(process) == "10\n"


@pytest.mark.parametrize("damage", ["another program", "a later version"])
def test_the_database_of_somebody_else_is_left_alone(path: Path, damage: str) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        if damage == "another program":
            other.execute("CREATE TABLE precious (x)")
        else:
            other.execute(f"PRAGMA application_id = {APPLICATION}")
            other.execute("PRAGMA user_version = 99")
    other.close()
    before = path.read_bytes()
    store = Store(path)
    with pytest.warns(RuntimeWarning, match="another program|version 99") as reported:
        store.put({files("a"): Known(1.0, source="x")}, {})
        assert store.get([files("a")]) == {}
    assert len(reported) == 1
    assert path.read_bytes() == before


def test_a_locked_store_costs_a_warning_and_a_second(path: Path) -> None:
    _filled(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    store = Store(path)
    started = time.monotonic()
    with pytest.warns(RuntimeWarning, match="locked") as reported:
        for i in range(5):
            store.put({files("new"): Known(1.0, source="x")}, {})
            assert store.get([files("new"), files(str(i))]) == {}
    assert len(reported) == 1
    assert time.monotonic() - started < 5
    holder.execute("ROLLBACK")
    holder.close()
    assert len(Store(path).get([files("1")])) == 1


def _as_nobody(work: str, path: Path) -> str:
    """Run in a process that may not write: root may write everywhere."""
    drop = "import os\nif os.getuid() == 0:\n    os.setuid(65534)\n"
    return finish(run(drop + work, path))


_READ = (
    "with warnings.catch_warnings(record=True) as told:\n"
    "    warnings.simplefilter('always')\n"
    "    for _ in range(2):\n"
    "        store.put({files('new'): Known(2.0, source='x')}, {})\n"
    "        found = len(store.get([files('1'), files('new')]))\n"
    "print(found, len(told))\n"
)


@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_a_read_only_store_is_read(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, mode: int) -> None:
    """In a folder that may not be written, and in one that may."""
    path = tmp_path / "shared" / "statistics.sqlite"
    _filled(path)
    base = tmp_path_factory.getbasetemp()
    base = base.parent if base.name.startswith("popen-") else base  # of one of several processes
    for folder in (tmp_path, *tmp_path.parents):
        if base in (folder, *folder.parents) or Path(tempfile.gettempdir()) in folder.parents:
            folder.chmod(folder.stat().st_mode | 0o055)
    path.chmod(0o444)
    path.parent.chmod(mode)
    try:
        assert _as_nobody(_READ, path) == "1 1\n"
    finally:
        path.parent.chmod(0o755)


def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "statistics.sqlite"):
        store = Store(path)
        with pytest.warns(RuntimeWarning) as reported:
            store.put({files("a"): Known(1.0, source="x")}, {})
            assert store.get([files("a")]) == {}
        assert len(reported) == 1


def test_a_file_that_goes_away_comes_back(path: Path) -> None:
    store = Store(path)
    store.put({files("a"): Known(1.0, source="x")}, {})
    for file in path.parent.iterdir():
        file.unlink()
    store.put({files("b"): Known(1.0, source="x")}, {})
    assert set(Store(path).get([files("a"), files("b")])) == {("b", "s")}


def test_after_a_fork(path: Path) -> None:
    store = Store(path)
    store.put({files("a"): Known(1.0, source="x")}, {})
    child = os.fork()
    if child == 0:
        store.put({files("child"): Known(1.0, source="x")}, {})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.put({files("parent"): Known(1.0, source="x")}, {})
    assert len(store.get([files("a"), files("child"), files("parent")])) == 3


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_stores", {})
    monkeypatch.setenv("PYJOINOPT_STORE", str(tmp_path / "env.sqlite"))
    assert open_store("off") is None
    chosen, default = open_store(str(tmp_path / "x.sqlite")), open_store()
    assert chosen is not None and chosen.path == tmp_path / "x.sqlite"
    assert default is not None and default.path == tmp_path / "env.sqlite"
    assert open_store("auto") is default
    monkeypatch.delenv("PYJOINOPT_STORE")
    monkeypatch.setenv("PYJOINOPT_CACHE_DIR", str(tmp_path / "cache"))
    users = open_store()
    assert users is not None and users.path == tmp_path / "cache" / "statistics.sqlite"
    assert not users.path.parent.exists(), "nothing is made before it is needed"


def modes(path: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob(f"{path.name}*")}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system knows no such modes")
def test_nobody_else_reads_it(path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(path)
        store.put({files("a"): Known(1.0, source="x")}, {})
        assert Path(f"{path}-wal").exists() and modes(path) == {0o600}
        store.close()
        path.chmod(0o664)
        Store(path).put({files("b"): Known(1.0, source="x")}, {})
        assert modes(path) == {0o600}
    finally:
        os.umask(before)


def test_the_file_of_another_program_keeps_its_mode(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    path.chmod(0o644)
    with pytest.warns(RuntimeWarning, match="of another program"):
        assert Store(path).get([files("a")]) == {}
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_folder_is_made_only_where_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_stores", {})
    path = tmp_path / "new" / "store.sqlite"
    store = open_store(str(path), folder=False)
    assert store is not None
    with pytest.warns(RuntimeWarning, match="no session may create one"):
        store.put({files("a"): Known(1.0, source="x")}, {})
    assert not path.parent.exists()
    monkeypatch.setattr(store_module, "_stores", {})
    given = open_store(str(path))
    assert given is not None
    given.put({files("a"): Known(1.0, source="x")}, {})
    assert path.exists()


def test_many_tables_are_found_at_once(path: Path) -> None:
    columns = {f"c{i}": Column(ndv=i, min=0, max=i, nulls=0.0) for i in range(30)}
    keys = [files(str(i)) for i in range(100)]
    Store(path).put({key: Known(1.0, source="x", columns=columns) for key in keys}, {})
    store = Store(path)
    started = time.perf_counter()
    assert len(store.get(keys)) == 100
    assert time.perf_counter() - started < 0.5, "at most 5 ms a table"
