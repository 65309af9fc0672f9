"""`pyjoinopt.analyze`: collects statistics of tables with one Spark job per table, and stores them.

No other function of the package starts a Spark job for statistics. The job runs in a thread of the JVM. Python polls
its progress ten times a second, to draw a progress bar and so that Ctrl-C cancels the job at once. Finished tables are
stored.
"""

from __future__ import annotations

import base64
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for, check_progress, check_session, kind_of
from pyjoinopt.config import resolve_call
from pyjoinopt.errors import BridgeError
from pyjoinopt.estimation.sources import analyzed_tables, samples
from pyjoinopt.estimation.sources.declared_keys import declared_keys, declared_references
from pyjoinopt.estimation.sources.json import known_from, relation_of
from pyjoinopt.estimation.sources.jvm_questions import WIDE
from pyjoinopt.estimation.sources.key_samples import KEY_ROWS, blob_kind, key_columns
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.estimation.sources.registry import Files, Known, Relation
from pyjoinopt.estimation.store.store import Store, open_store
from pyjoinopt.plan.nodes import LogicalPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Default number of sampled rows.
SAMPLE_ROWS = 10_000
_MOST_SAMPLE_ROWS = 1_000_000
#: Maximum number of columns in one pass.
MOST_COLUMNS = 200
#: Seconds between two polls, and the time to wait for a cancelled job.
_PAUSE = 0.1
_CANCEL_SECONDS = 10.0
#: Leaves with known rows, which need no statistics.
_KNOWN_ANYWAY = frozenset({"LocalRelation", "Range", "OneRowRelation", "CommandResult", "CTERelationRef"})


@dataclass(frozen=True)
class Analysed:
    """The result of `analyze` for one relation.

    Attributes:
        relation: name of the relation.
        rows: exact number of rows; None if it was refused.
        columns: names of the analysed columns.
        sampled: number of rows in the sample.
        seconds: duration of the job.
        refused: why nothing was collected; "" if it was analysed.
    """

    relation: str
    rows: float | None = None
    columns: tuple[str, ...] = ()
    sampled: int = 0
    seconds: float = 0.0
    refused: str = ""


@dataclass
class _Work:
    """One relation to analyse."""

    gateway: Py4jGateway
    leaf: LogicalPlan
    relation: Relation
    files: Files
    known: Known
    columns: dict[str, int] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The columns by whose values rows are sampled."""
        name = self.relation.name
        declared = [key[0].lower() for key in (*self.known.keys, *declared_keys(name)) if len(key) == 1]
        declared += declared_references(name)
        return key_columns(self.relation, self.columns, self.known.rows, self.known.columns, declared)


def analyze(
    spark: SparkSession,
    what: str | DataFrame | Sequence[str | DataFrame],
    *,
    columns: Sequence[str] | None = None,
    sample_rows: int = SAMPLE_ROWS,
    progress: bool | None = None,
    store: str | None = None,
) -> list[Analysed]:
    """Collect statistics of tables with Spark jobs, one pass per table, and store them for this and later sessions.

    Counts rows; for each column counts NULLs, finds minimum and maximum, estimates the number of distinct values by a
    sketch, and finds the most common values. Of up to 16 columns that may be join keys (whole numbers first, then text
    and dates) summarises how often values occur, which estimates and bounds joins. Draws a uniform sample, on which
    filters are evaluated when queries are planned. Of a table with more than 131,072 rows, and for up to four columns
    that may be join keys, keeps the rows of randomly drawn values, the same in all tables, which estimate joins of two
    large tables. The statistics are used for as long as the files are unchanged.

    Args:
        spark: a classic session.
        what: the name of a table or view, a DataFrame (the relations that it reads), or several of these.
        columns: names of the columns; by default all columns of a named table, and the columns that a DataFrame uses.
        sample_rows: number of rows to sample, from 1 to 1,000,000.
        progress: whether to draw a progress bar; by default if stderr is a terminal and tqdm
            is installed.
        store: the file to store the statistics in, see the option `store`; by default the session's.

    Returns:
        One `Analysed` per relation. Relations that do not read files (JDBC, DSv2, RDDs) are refused, with a warning.

    Raises:
        TypeError, ValueError: an argument that is not allowed; a column that no relation has; a table with more than
            64 columns of which none is named.
        BridgeError: the Spark job failed.
        KeyboardInterrupt: Ctrl-C; the job was cancelled, and finished tables are stored.

    Example:
        >>> pyjoinopt.analyze(spark, ["orders", "customers"])    # doctest: +SKIP
    """
    check_session(spark)
    frames = _frames(spark, what)
    if columns is not None and (isinstance(columns, str) or not all(isinstance(name, str) for name in columns)):
        raise TypeError(f"columns is a list of names, not {columns!r}")
    check_progress(progress)
    if type(sample_rows) is not int:
        raise TypeError(f"sample_rows is an int, not {type(sample_rows).__name__}")
    if not 1 <= sample_rows <= _MOST_SAMPLE_ROWS:
        raise ValueError(f"sample_rows is {sample_rows}, but must be between 1 and {_MOST_SAMPLE_ROWS}")
    with ExitStack() as stack:
        gateways = [stack.enter_context(Py4jGateway(bridge_for(df), df._jdf)) for df, _ in frames]
        conf = gateways[0].export.conf
        options = resolve_call({} if store is None else {"store": store}, conf)
        kept = open_store(options.store, options.store_folder)
        works, done = _plan(gateways, [named for _, named in frames], columns, kept)
        with _Bar(len(works), progress) as bar:
            for work in works:
                done.append(_one(work, sample_rows, kept, bar))
    for one in done:
        if one.refused:
            warnings.warn(f"{one.relation} is not analysed: {one.refused}", RuntimeWarning, stacklevel=2)
    return done


def _frames(spark: Any, what: Any) -> list[tuple[Any, bool]]:
    """The DataFrames, each with whether it was given as a table name."""
    several = list(what) if isinstance(what, (list, tuple)) else [what]
    if not several:
        raise ValueError("there is nothing to analyse: name a table, or pass a DataFrame")
    frames = []
    for one in several:
        if isinstance(one, str):
            frames.append((spark.table(one), True))
        elif hasattr(one, "schema") and hasattr(one, "select"):
            frames.append((one, False))
        else:
            raise TypeError(
                f"analyze takes names of tables, DataFrames, or a list of these, not {kind_of(one)}"
            )
    return frames


def _plan(
    gateways: list[Py4jGateway], named: list[bool], columns: Sequence[str] | None, store: Store | None
) -> tuple[list[_Work], list[Analysed]]:
    """The relations to analyse, each set of files once, and the refused relations."""
    works: dict[tuple[str, str], _Work] = {}
    refused: dict[str, Analysed] = {}
    found: set[str] = set()
    for gateway, is_table in zip(gateways, named):
        nodes = gateway.export.nodes
        leaves = [node for node in nodes if not node.children and node.kind not in _KNOWN_ANYWAY]
        for relation, known in LeafStatistics(gateway.statistics, leaves, "auto", nodes, store).known():
            leaf = relation.leaf
            if leaf is None or relation.files is None:
                refused[relation.name] = Analysed(relation.name, refused=_why_not(relation))
                continue
            wanted = _columns(relation, is_table, columns, found)
            key = (relation.files.id, relation.files.schema)
            work = works.setdefault(key, _Work(gateway, leaf, relation, relation.files, known))
            bits = {attribute.name: attribute.bit for attribute in work.leaf.output}
            work.columns.update((name, bits[name]) for name in wanted if name in bits)
    missing = set(columns or ()) - found
    if missing:
        raise ValueError(f"no relation has a column {', '.join(map(repr, sorted(missing)))}")
    for work in works.values():
        if len(work.columns) > MOST_COLUMNS:
            raise ValueError(
                f"{work.relation.name}: {len(work.columns)} columns are too many for one pass; name at most "
                f"{MOST_COLUMNS} that queries filter or join by: columns=[...]"
            )
    return list(works.values()), list(refused.values())


def _columns(relation: Relation, is_table: bool, columns: Sequence[str] | None, found: set[str]) -> list[str]:
    if columns is not None:
        own = {name.lower(): name for name in relation.columns}
        found.update(name for name in columns if name.lower() in own)
        return [own[name.lower()] for name in columns if name.lower() in own]
    if not is_table:
        return [name for name in relation.columns if name in relation.needed]
    if len(relation.columns) > WIDE:
        raise ValueError(
            f"{relation.name} has {len(relation.columns)} columns; name those that queries filter or join by: "
            "columns=[...], or pass a DataFrame that uses them"
        )
    return list(relation.columns)


def _why_not(relation: Relation) -> str:
    kinds = {"jdbc": "a JDBC source", "v2": "a DSv2 source", "rdd": "an RDD", "memory": "cached data", "hive": "Hive"}
    kind = kinds.get(relation.kind, relation.format or relation.kind)
    return f"statistics are stored for files only (Parquet, ORC, CSV, JSON, text), and it reads {kind}"


def _one(work: _Work, sample_rows: int, store: Store | None, bar: _Bar) -> Analysed:
    started = time.perf_counter()
    name = work.relation.name
    result: dict[str, Any] = {}
    for state in _states(work, sample_rows, store is not None):
        bar.show(name, state["completed"], state["tasks"])
        if "error" in state:
            raise BridgeError(f"the analysis of {name} failed: {state['error']}")
        result = state.get("result", {})
    entry = result["known"]
    known = replace(known_from(entry, work.leaf.output), gathered=time.time())
    files = relation_of(work.leaf, 0, entry.get("files")).files
    if files is not None:
        analyzed_tables.remember(files, known, store)
        if store is not None and result.get("blob"):
            store.put_blob(files, samples.BLOB, base64.b64decode(result["blob"]))
            for column, content in result["keySamples"].items():
                store.put_blob(files, blob_kind(column), base64.b64decode(content))
    bar.next()
    seconds = time.perf_counter() - started
    return Analysed(name, known.rows, tuple(work.columns), int(result["sampled"]), seconds)


def _states(work: _Work, sample_rows: int, return_sample: bool) -> Iterator[dict[str, Any]]:
    """Start the job and poll its state until it has ended. Closing the iterator cancels the job."""
    number = work.gateway.start_analysis(
        work.leaf, columns=list(work.columns.values()), rows=sample_rows, expected=work.known.rows or 1.0,
        keys=[work.columns[name] for name in work.keys], keyRows=KEY_ROWS, give=return_sample,
        description=f"pyjoinopt.analyze {work.relation.name}",
    )  # fmt: skip
    ended = False
    try:
        while not ended:
            state = work.gateway.analysis(number)
            ended = "result" in state or "error" in state
            yield state
            if not ended:
                time.sleep(_PAUSE)
    finally:
        if not ended:
            _cancel(work.gateway, number)


def _cancel(gateway: Py4jGateway, number: int) -> None:
    """Cancel a job; repeats the request, because a job that has not started ignores it."""
    until = time.monotonic() + _CANCEL_SECONDS
    while time.monotonic() < until:
        gateway.cancel_analysis(number)
        state = gateway.analysis(number)
        if "result" in state or "error" in state:
            return
        time.sleep(_PAUSE)


class _Bar:
    """A progress bar over tables; does nothing if it is switched off."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        self._bar: Any = None
        if wanted is None:
            wanted = sys.stderr.isatty() and find_spec("tqdm") is not None
        if wanted:
            from tqdm import tqdm  # type: ignore[import-untyped]

            self._bar = tqdm(total=total, desc="analyze", unit="table", file=sys.stderr)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, name: str, completed: int, tasks: int) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"{name} {completed}/{tasks} tasks")

    def next(self) -> None:
        if self._bar is not None:
            self._bar.update(1)
