"""How each operator is written in SQL (the same for Spark and DuckDB) and in PySpark.

Left out on purpose, because the two databases mean different things by them: integer division, comparing strings with
numbers, LIKE with an escape, NaN, and the order of NULLs unless it is written down.
"""

from __future__ import annotations

from datetime import date

from tests.support.querytree import Type

BINARY = {
    "=": "==",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "+": "+",
    "-": "-",
    "*": "*",
    "and": "&",
    "or": "|",
}
SQL = {
    **{op: f"({{0}} {op.upper()} {{1}})" for op in BINARY},
    "<=>": "({0} IS NOT DISTINCT FROM {1})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
    "is not null": "({0} IS NOT NULL)",
    "like": "({0} LIKE {1})",
    "coalesce": "coalesce({0}, {1})",
    "case": "CASE WHEN {0} THEN {1} ELSE {2} END",
    "concat": "({0} || {1})",
    "upper": "upper({0})",
    "length": "length({0})",
    "abs": "abs({0})",
    "year": "year({0})",
    "count": "count({0})",
    "count rows": "count(*)",
    "count distinct": "count(DISTINCT {0})",
    "sum": "sum({0})",
    "min": "min({0})",
    "max": "max({0})",
    "avg": "avg({0})",
    "sum over": "sum({0}) OVER (PARTITION BY {1})",
    "count over": "count({0}) OVER (PARTITION BY {1})",
    "rank over": "rank() OVER (PARTITION BY {1} ORDER BY {0} ASC NULLS FIRST)",
}
PYSPARK = {
    **{op: f"({{0}} {python} {{1}})" for op, python in BINARY.items()},
    "<=>": "{0}.eqNullSafe({1})",
    "not": "(~{0})",
    "is null": "{0}.isNull()",
    "is not null": "{0}.isNotNull()",
    "like": "F.like({0}, {1})",
    "coalesce": "F.coalesce({0}, {1})",
    "case": "F.when({0}, {1}).otherwise({2})",
    "concat": "F.concat({0}, {1})",
    "upper": "F.upper({0})",
    "length": "F.length({0})",
    "abs": "F.abs({0})",
    "year": "F.year({0})",
    "count": "F.count({0})",
    "count rows": "F.count(F.lit(1))",
    "count distinct": "F.countDistinct({0})",
    "sum": "F.sum({0})",
    "min": "F.min({0})",
    "max": "F.max({0})",
    "avg": "F.avg({0})",
    "sum over": "F.sum({0}).over(Window.partitionBy({1}))",
    "count over": "F.count({0}).over(Window.partitionBy({1}))",
    "rank over": "F.rank().over(Window.partitionBy({1}).orderBy({0}.asc_nulls_first()))",
}
SQL_TYPES: dict[Type, str] = {"int": "INT", "str": "STRING", "dbl": "DOUBLE", "date": "DATE", "bool": "BOOLEAN"}


def sql_call(op: str, args: list[str]) -> str:
    """The SQL text of one operator over the texts of its arguments."""
    if op in ("in", "not in"):
        return f"({args[0]} {op.upper()} ({', '.join(args[1:])}))"
    return SQL[op].format(*args)


def pyspark_call(op: str, args: list[str]) -> str:
    """The PySpark text of one operator over the texts of its arguments."""
    if op in ("in", "not in"):
        return f"({'~' if op == 'not in' else ''}{args[0]}.isin({', '.join(args[1:])}))"
    return PYSPARK[op].format(*args)


def sql_constant(value: object, kind: Type) -> str:
    """A literal that both databases give the same type.

    >>> sql_constant("it's", "str"), sql_constant(None, "int"), sql_constant(0.25, "dbl")
    ("'it''s'", 'CAST(NULL AS INT)', 'CAST(0.25 AS DOUBLE)')
    """
    if value is None:
        return f"CAST(NULL AS {SQL_TYPES[kind]})"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f"CAST({value!r} AS DOUBLE)" if kind == "dbl" else f"({value})"


def pyspark_constant(value: object, kind: Type) -> str:
    """The same literal in PySpark."""
    if value is None:
        return f"F.lit(None).cast({SQL_TYPES[kind].lower()!r})"
    if isinstance(value, date):
        return f"F.lit({value.isoformat()!r}).cast('date')"
    return f"F.lit({value!r})"
