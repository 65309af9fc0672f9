"""How TPC queries are run by several variants of Spark: a process and a JVM each, the same files.

Variants that shared a JVM would share generated code as well: of two that have the same plan, the second would find it
compiled. And what one leaves behind in the heap, another would have to clear. So nothing is shared but the machine, and
one variant runs at a time.

A time is that of `spark.sql(text)`, of `optimize_joins()` where it is called, of planning and of running, until the
rows are here: as it passed, and as what the variant's JVM and its Python took of the processors for it.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Timer
from time import perf_counter
from typing import Any, NamedTuple

from platformdirs import user_cache_dir
from tqdm import tqdm

import pyjoinopt
from benchmarks.common import session
from benchmarks.true_rows import TrueRows
from demo.measure import equal_rows
from tests.support import tpc

PLAIN, AGAIN, CBO, OURS, TRUE = "as it comes", "the same again", "ANALYZE + CBO", "pyjoinopt", "with true rows"
_CBO_SETTINGS = ("cbo.enabled", "cbo.joinReorder.enabled", "cbo.planStats.enabled")
#: Several JVMs have to share the machine's memory: what dies young is cleared earlier, and memory given back.
_HEAP = "-XX:MaxNewSize=2g -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"

Run = tuple[float, float]  # seconds that passed, and seconds of processors
Runs = dict[str, dict[str, list[Run]]]  # query -> variant -> its runs
Rows = list[tuple[Any, ...]]
Plan = frozenset[frozenset[str]]  # the sets of relations that the joins make, whichever side is which


class Answer(NamedTuple):
    """What came of one run of a query.

    Attributes:
        run: seconds.
        rows: of the result; None of a run that was cancelled.
        plan: of pyjoinopt's join groups; empty of the other variants.
    """

    run: Run
    rows: Rows | None
    plan: Plan


class Circumstances(NamedTuple):
    """What all variants have in common.

    Attributes:
        benchmark: "tpch" or "tpcds".
        scale: of its data.
        partitions: of shuffles.
        memory: of each JVM, as Spark writes it.
        limit: seconds after which a query is cancelled, if there is one.
    """

    benchmark: str
    scale: float
    partitions: int
    memory: str
    limit: float | None


class Variant:
    """One variant of Spark, which runs queries in a process of its own.

    Args:
        name: which one.
        circumstances: of all.

    Raises:
        RuntimeError: by a call, with what was raised over there.
    """

    def __init__(self, name: str, circumstances: Circumstances) -> None:
        self._name = name
        context = multiprocessing.get_context("spawn")
        self._ask, answers = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, circumstances, answers), daemon=True)
        self._process.start()
        answers.close()  # or the end of the process would not be seen here
        self._received()

    def __call__(self, text: str) -> Answer:
        try:
            self._ask.send(text)
        except OSError:  # what `_received` says of it is easier to read
            pass
        answer = self._received()
        assert isinstance(answer, Answer)
        return answer

    def _received(self) -> object:
        try:
            answer = self._ask.recv()
        except (EOFError, OSError):
            raise RuntimeError(f"the process of {self._name!r} has ended") from None
        if isinstance(answer, str):
            raise RuntimeError(f"{self._name}: {answer}")
        return answer

    def close(self) -> None:
        """Stop its Spark and end its process."""
        self._ask.close()
        self._process.join()


def _serve(name: str, circumstances: Circumstances, asked: Connection) -> None:
    """Answers each text that is asked; the first thing sent says that it is ready. A text sent back is an error."""
    try:
        run = _runner(name, circumstances)
        asked.send(None)
        while True:
            asked.send(run(asked.recv()))
    except EOFError:
        pass
    except Exception:
        asked.send(traceback.format_exc())


def _runner(name: str, circumstances: Circumstances) -> Callable[[str], Answer]:
    benchmark, scale, partitions, memory, limit = circumstances
    spark = session(
        **{
            "spark.driver.memory": memory,
            "spark.driver.extraJavaOptions": _HEAP,
            "spark.sql.shuffle.partitions": str(partitions),
        }
    )
    if name == CBO:
        for setting in _CBO_SETTINGS:
            spark.conf.set(f"spark.sql.{setting}", "true")
        started = perf_counter()
        _analyse(spark, benchmark, scale)
        print(f"{benchmark}: ANALYZE of all columns took {perf_counter() - started:.1f} s, which no figure below holds")
    else:
        tpc.register(spark, benchmark, scale)
    prepare: Callable[[Any], Any] = lambda df: df  # noqa: E731
    learn = False  # whether `prepare` has to learn something, once a query, before its time is taken
    if name == OURS:
        prepare = pyjoinopt.optimize_joins
    elif name == TRUE:
        counts = Path(user_cache_dir("pyjoinopt")) / "truths" / f"{benchmark}-sf{scale:g}-spark{spark.version}.json"
        prepare, learn = TrueRows(spark, tpc.parquet_folder(benchmark, scale), counts).optimized, True
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    seen: set[str] = set()

    def run(text: str) -> Answer:
        if learn and text not in seen:
            seen.add(text)
            prepare(spark.sql(text))
        late = Event()

        def cancel() -> None:
            late.set()
            spark.sparkContext.cancelAllJobs()

        timer = Timer(limit or 0.0, cancel)
        df, rows = None, None
        started, spent = perf_counter(), _processors(jvm)
        if limit is not None:
            timer.start()
        try:
            df = prepare(spark.sql(text))
            rows = [tuple(row) for row in df.collect()]
        except Exception:
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        passed = perf_counter() - started, _processors(jvm) - spent
        return Answer(passed, rows, _plan(getattr(df, "_pyjoinopt_report", None)))

    return run


def _analyse(spark: Any, benchmark: str, scale: float) -> None:
    spark.sql(f"CREATE DATABASE {benchmark}")
    spark.sql(f"USE {benchmark}")
    for file in tqdm(sorted(tpc.parquet_folder(benchmark, scale).glob("*.parquet")), "analyze", leave=False):
        spark.sql(f"CREATE TABLE {file.stem} USING parquet LOCATION '{file.as_posix()}'")
        spark.sql(f"ANALYZE TABLE {file.stem} COMPUTE STATISTICS FOR ALL COLUMNS")


def _plan(report: pyjoinopt.JoinReport | None) -> Plan:
    groups = report.groups if report else ()
    return frozenset(frozenset(join.relations) for group in groups for join in group.estimated_rows)


def _processors(jvm: int) -> float:
    """Seconds of processors that this process and the JVM have taken so far; where /proc is not known, of this one."""
    here = sum(os.times()[:2])
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return here
    return here + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(name: str, variant: str, expected: Sequence[Any], rows: Sequence[Any]) -> None:
    # Sums of doubles in another order differ in more digits than one addition does.
    if not equal_rows(list(expected), list(rows), tolerance=1e-6):
        raise SystemExit(f"{name}: {variant} gives other rows")


def spread(runs: Sequence[Run], which: int) -> float:
    return max(run[which] for run in runs) / max(0.01, min(run[which] for run in runs))


def geo_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(max(0.01, value)) for value in values))
