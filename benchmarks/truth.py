"""Counts the rows of a sub-plan with DuckDB.

Spark computes the rows of each relation (a table under its filters, an aggregate, a subquery) once, with only the
columns that joins compare. DuckDB joins and counts them, within a limit of time and memory. No join is executed in
full: rows of a relation that are equal in the columns of the joins are grouped and counted first, and the counts are
multiplied, so that even a set with 10^12 rows is counted in moments.
"""

from __future__ import annotations

import datetime
import json
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.common import time_limit
from benchmarks.subplans import Group, applied, table_of
from pyjoinopt.bridge.decode import Export
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, OperatorEdge
from pyjoinopt.plan.expressions import Expression, reference, walk
from pyjoinopt.plan.nodes import OUTER, SEMI, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.bitset import members
from tests.oracles.catalyst.oracle import Oracle


class Unprintable(Exception):
    """A predicate that is not translated for DuckDB; the message names the kind of expression."""


def as_frame(oracle: Oracle, export: Export, plan: LogicalPlan, spark: Any) -> Any:
    """A DataFrame of any plan over the nodes of an export, with the common table expressions that it reads."""
    from pyspark.sql.classic.dataframe import DataFrame

    wanted = _expressions_read(plan)
    for node in export.nodes:
        if node.kind == "WithCTE" and wanted & {child.info.get("cte") for child in node.children[:-1]}:
            plan = node.with_children((*node.children[:-1], plan))
    built = oracle.applied(export, [], once=True, plan=plan)
    message: dict[str, Any] = {"exprs": [], "nodes": [], "root": built.root.number}
    return DataFrame(oracle.shim.rebuild(built.handle, json.dumps(message)), spark)


def _expressions_read(plan: LogicalPlan) -> set[Any]:
    wanted: set[Any] = set()
    waiting = [plan]
    while waiting:
        for node in post_order(waiting.pop()):
            if node.kind == "CTERelationRef":
                wanted.add(node.info.get("cte"))
            waiting += [part.plan for e in node.expressions for part in walk(e) if part.plan is not None]
    return wanted


def count_group(
    group: Group, spark: Any, files: Mapping[str, Sequence[Path]], truths: dict[str, Any], seconds: float = 30.0
) -> None:
    """Count the sets of a group.

    Args:
        group: the group.
        spark: the session of its query.
        files: table name in lower case -> its Parquet files; Spark reads other tables.
        truths: set as text -> its rows, or as a text the reason why they are not known. Missing sets are added.
        seconds: at most for one count, and for one relation that Spark computes.
    """
    with tempfile.TemporaryDirectory() as scratch, Oracle(spark) as oracle:
        limits = {"threads": 2, "memory_limit": "4GB", "temp_directory": scratch}
        with duckdb.connect(config=limits) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            unknown = materialise(oracle, group, connection, spark, files, Path(scratch), seconds)
            counter = Counter(group.graph, connection)
            for relations in group.sets:
                if str(relations) in truths:
                    continue
                reasons = [reason for v, reason in unknown.items() if relations >> v & 1]
                truths[str(relations)] = reasons[0] if reasons else _counted(counter, connection, relations, seconds)


def _counted(counter: Counter, connection: Any, relations: int, seconds: float) -> float | str:
    try:
        with time_limit(seconds, connection.interrupt):
            return counter.count(relations)
    except Unprintable as error:
        return f"DuckDB's query has no translation of {error}"
    except duckdb.InterruptException:
        return f"not counted within {seconds:g} s"
    except duckdb.OutOfMemoryException:
        return "not counted within 4 GB"
    except duckdb.Error as error:
        return f"DuckDB: {str(error).splitlines()[0]}"


def materialise(
    oracle: Oracle,
    group: Group,
    connection: Any,
    spark: Any,
    files: Mapping[str, Sequence[Path]],
    scratch: Path,
    seconds: float,
) -> dict[int, str]:
    """Put the relations of a group into DuckDB, each as table `v{i}`.

    Returns:
        The relations that are not there, with the reason.
    """
    unknown: dict[int, str] = {}
    for v, (plan, bits) in enumerate(zip(group.graph.relations, compared_columns(group.graph))):
        leaf = table_of(plan)
        by_bit = {a.bit: a.name for a in leaf.output} if leaf is not None else {}
        read = files.get(_table_name(leaf)) if leaf is not None else None
        if read and all(bit in by_bit for bit in bits):
            columns = ", ".join(f'"{by_bit[bit]}" AS c{bit}' for bit in bits)
            _create(connection, f"VIEW v{v}", columns, read)
            continue
        chosen = tuple(reference(a) for a in plan.output if a.bit in bits)
        df = as_frame(oracle, group.export, Project(chosen, plan), spark)
        folder = scratch / f"v{v}"
        reason = _write(df.toDF(*(f"c{e.attribute.bit}" for e in chosen if e.attribute)), folder, spark, seconds)
        if reason:
            unknown[v] = reason
        else:
            _create(connection, f"TABLE v{v}", "*", sorted(folder.glob("*.parquet")))
    return unknown


def _table_name(leaf: LogicalPlan) -> str:
    """The last part of a table's name, or the name of a file that is read without a table."""
    name: str = leaf.info["rel"]["name"]
    return name.removesuffix(".parquet").rpartition(".")[2].strip("`").lower()


def _create(connection: Any, what: str, columns: str, files: Sequence[Path]) -> None:
    listed = ", ".join("'" + file.as_posix().replace("'", "''") + "'" for file in files)
    rows = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
    connection.execute(f"CREATE OR REPLACE TEMP {what} AS SELECT {columns} FROM {rows}")


def _write(df: Any, folder: Path, spark: Any, seconds: float) -> str:
    """Write the rows of a relation; the reason if that fails, otherwise nothing."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    context, jobs = spark.sparkContext, uuid.uuid4().hex
    context.setJobGroup(jobs, "rows of a relation", interruptOnCancel=True)
    try:
        with time_limit(seconds, lambda: context.cancelJobGroup(jobs)) as over:
            df.write.parquet(folder.as_posix())
    except (PySparkException, Py4JJavaError) as error:
        if over.is_set():
            return f"a relation not computed within {seconds:g} s"
        return f"Spark cannot compute a relation: {str(error).splitlines()[0]}"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    return ""


_OPERATORS = {
    "And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "IS NOT DISTINCT FROM", "LessThan": "<",
    "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "Add": "+", "Subtract": "-",
    "Multiply": "*", "Divide": "/", "DateAdd": "+", "DateSub": "-",
}  # fmt: skip
_FUNCTIONS = {
    "Substring": "substr", "Upper": "upper", "Lower": "lower", "Coalesce": "coalesce", "Abs": "abs",
    "Concat": "concat", "Round": "round", "Year": "year",
}  # fmt: skip
_TYPES = {"string": "VARCHAR", "int": "INTEGER", "timestamp": "TIMESTAMP"}


def to_sql(root: Expression, column: Callable[[int], str]) -> str:
    """A predicate in DuckDB's SQL.

    Args:
        root: the predicate.
        column: number of an attribute -> its name.

    Raises:
        Unprintable: it holds something that is not translated.
    """
    done: list[str] = []
    for e in walk(root):
        n = len(e.children)
        parts = done[len(done) - n :]
        del done[len(done) - n :]
        done.append(_printed(e, parts, column))
    return done[0]


def _printed(e: Expression, parts: list[str], column: Callable[[int], str]) -> str:
    if e.kind == "AttributeReference" and e.attribute is not None:
        return column(e.attribute.bit)
    if e.kind == "Literal":
        return _constant(e)
    if e.kind in _OPERATORS and len(parts) == 2:
        return f"({parts[0]} {_OPERATORS[e.kind]} {parts[1]})"
    if e.kind in _FUNCTIONS:
        return f"{_FUNCTIONS[e.kind]}({', '.join(parts)})"
    match e.kind:
        case "Not":
            return f"(NOT {parts[0]})"
        case "IsNull" | "IsNotNull":
            return f"({parts[0]} IS {'NOT ' if e.kind == 'IsNotNull' else ''}NULL)"
        case "In":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "Between" | "UpCast" | "Alias" | "KnownNotNull" | "CheckOverflow" | "PromotePrecision" if len(parts) == 1:
            return parts[0]
        case "Cast":
            return f"CAST({parts[0]} AS {_TYPES.get(e.type, e.type)})"
        case "CaseWhen":
            pairs = "".join(f" WHEN {a} THEN {b}" for a, b in zip(parts[0::2], parts[1::2]))
            return f"CASE{pairs}{f' ELSE {parts[-1]}' if len(parts) % 2 else ''} END"
        case "If":
            return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"
    raise Unprintable(e.kind)


def _constant(e: Expression) -> str:
    value = e.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, (int, Decimal)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise Unprintable(f"a constant of type {e.type}")


class Counter:
    """True row counts of the sub-plans of one join group.

    Args:
        graph: the group.
        connection: a DuckDB connection that has table `v{i}` for relation *i*, its columns called `c{number}`.
    """

    def __init__(self, graph: JoinGraph, connection: Any) -> None:
        self._graph = graph
        self._connection = connection
        self._owner = {
            a.bit: v
            for v, plan in enumerate(graph.relations)
            if 1 << v not in graph.semi_rights
            for a in plan.output
        }

    def count(self, relations: int) -> float:
        """The number of rows of the join of a set.

        Raises:
            Unprintable: one of its predicates is not translated.
        """
        return float(self._connection.execute(self.query(relations)).fetchone()[0])

    def query(self, relations: int) -> str:
        """The query that counts."""
        if not relations & (relations - 1):
            return f"SELECT count(*) FROM v{relations.bit_length() - 1}"
        if any(edge.join_type in OUTER for edge in applied(self._graph, relations)):
            raise Unprintable("an outer join")
        looking = [edge for edge in applied(self._graph, relations) if isinstance(edge, OperatorEdge) and
        edge.semi_right]
        hidden = sum(edge.semi_right for edge in looking)
        compared: dict[int, set[int]] = {v: set() for v in members(relations & ~hidden)}

        def column(bit: int) -> str:
            compared[self._owner[bit]].add(bit)
            return f"v{self._owner[bit]}.c{bit}"

        tests = [to_sql(edge.predicate, column) for edge in applied(self._graph, relations) if not getattr(edge,
        "semi_right", 0)]
        for edge in looking:
            tests.append(self._looks(edge, column))
        sources = []
        for v, bits in compared.items():
            columns = ", ".join(f"c{bit}" for bit in sorted(bits))
            sources.append(f"(SELECT {columns}, CAST(count(*) AS DOUBLE) AS n FROM v{v} GROUP BY ALL) v{v}")
        counts = " * ".join(f"v{v}.n" for v in compared)
        return f"SELECT coalesce(sum({counts}), 0) FROM {', '.join(sources)} WHERE {' AND '.join(tests)}"

    def _looks(self, edge: Edge, column: Callable[[int], str]) -> str:
        right = edge.semi_right.bit_length() - 1
        inside = self._graph.relations[right].output_set

        def either(bit: int) -> str:
            return f"v{right}.c{bit}" if inside >> bit & 1 else column(bit)

        test = f"EXISTS (SELECT 1 FROM v{right} WHERE {to_sql(edge.predicate, either)})"
        return test if edge.join_type == SEMI else f"(NOT {test})"


def compared_columns(graph: JoinGraph) -> list[list[int]]:
    """For each relation the attributes that the group's predicates read, at least one."""
    reads = 0
    for edge in graph.edges:
        reads |= edge.predicate.references
    chosen = []
    for plan in graph.relations:
        columns = [a.bit for a in plan.output if reads >> a.bit & 1]
        chosen.append(columns or [a.bit for a in plan.output[:1]])
    return chosen
