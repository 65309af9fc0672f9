"""How each operator is written in SQL (the same for Spark and DuckDB) and in PySpark.

Left out of these on purpose, because the two databases mean different things by them: integer division, comparing
strings with numbers, LIKE with an escape, NaN, and the order of NULLs unless it is specified. Operators that only
Spark's results are checked for are in `SPARK_ONLY`; their DuckDB text is only good enough to count rows.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

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
#: name -> (Spark's SQL, PySpark, DuckDB's SQL). The first group fails on some values in ANSI mode, the second group
#: distinguishes equal values, the third is folded to a constant.
SPARK_ONLY = {
    "100 /": ("(100 / {0})", "(F.lit(100) / {0})", "(100 / {0})"),
    "12 div": ("(12 DIV {0})", "F.call_function('div', F.lit(12), {0})", "(12 // {0})"),
    "10 %": ("(10 % {0})", "(F.lit(10) % {0})", "(10 % {0})"),
    "large product": ("({0} * 100000000)", "({0} * F.lit(100000000))", "(CAST({0} AS BIGINT) * 100000000)"),
    "large sum": ("({0} + 4611686018427387904)", "({0} + F.lit(4611686018427387904))", "CAST({0} AS DOUBLE)"),
    "to int": ("CAST({0} AS INT)", "{0}.cast('int')", "TRY_CAST({0} AS INT)"),
    "to date": ("CAST({0} AS DATE)", "{0}.cast('date')", "TRY_CAST({0} AS DATE)"),
    "text >": ("({0} > {1})", "({0} > {1})", "(TRY_CAST({0} AS INT) > {1})"),
    "fourth": ("{0}[3]", "{0}[3]", "{0}[4]"),
    "element": ("element_at({0}, 4)", "F.element_at({0}, 4)", "{0}[4]"),
    "pick": ("array(5, 3, 1, 4, 2, 6, 0)[{0}]", "F.array(*map(F.lit, (5, 3, 1, 4, 2, 6, 0)))[{0}]",
             "([5, 3, 1, 4, 2, 6, 0])[{0} + 1]"),
    "as text": ("CAST({0} AS STRING)", "{0}.cast('string')", "CAST({0} AS VARCHAR)"),
    "angle": ("atan2({0}, -1.0D)", "F.atan2({0}, F.lit(-1.0))", "atan2({0}, -1.0)"),
    "hash": ("hash({0})", "F.hash({0})", "(hash({0}) % 1000)::INT"),
    "binary": ("hex(CAST({0} AS BINARY))", "F.hex({0}.cast('binary'))", "hex({0}::VARCHAR)"),
    "joined text": ("array_join(CAST({0} AS ARRAY<STRING>), ',')", "F.array_join({0}.cast('array<string>'), ',')",
                    "array_to_string({0}, ',')"),
    "field text": ("CAST({0}.g AS STRING)", "{0}['g'].cast('string')", "CAST({0}.g AS VARCHAR)"),
    "today": ("(current_date() - INTERVAL '60' MONTH)", "F.expr(\"current_date() - INTERVAL '60' MONTH\")",
              "CAST(current_date - INTERVAL '60' MONTH AS DATE)"),
    "days after": ("({0} + INTERVAL 60 DAYS)", "({0} + F.expr('interval 60 days'))",
                   "CAST({0} + INTERVAL 60 DAYS AS DATE)"),
    "days added": ("date_add({0}, 90)", "F.date_add({0}, 90)", "({0} + 90)"),
    "year text": ("(year({0}) >= {1})", "(F.year({0}) >= {1})", "(year({0}) >= CAST({1} AS INT))"),
}  # fmt: skip
SQL_TYPES: dict[Type, str] = {
    "int": "INT", "str": "STRING", "dbl": "DOUBLE", "date": "DATE", "bool": "BOOLEAN",
    "big": "BIGINT", "flt": "FLOAT", "dec": "DECIMAL(6,1)", "amt": "DECIMAL(8,2)", "ts": "TIMESTAMP",
    "chr": "STRING", "chw": "STRING", "lcs": "STRING",
}  # fmt: skip
#: Values of these DuckDB and Spark compare, print or order in different ways.
SHARED_TYPES = frozenset({"int", "str", "dbl", "date", "bool", "big"})


#: The SQL dialect of a text.
Dialect = Literal["spark", "duckdb"]


def sql_call(op: str, args: list[str], dialect: Dialect = "spark") -> str:
    """The SQL text of one operator over the texts of its arguments."""
    if op in ("in", "not in"):
        return f"({args[0]} {op.upper()} ({', '.join(args[1:])}))"
    if op in SPARK_ONLY:
        return SPARK_ONLY[op][0 if dialect == "spark" else 2].format(*args)
    return SQL[op].format(*args)


def pyspark_call(op: str, args: list[str]) -> str:
    """The PySpark text of one operator over the texts of its arguments."""
    if op in ("in", "not in"):
        return f"({'~' if op == 'not in' else ''}{args[0]}.isin({', '.join(args[1:])}))"
    return SPARK_ONLY[op][1].format(*args) if op in SPARK_ONLY else PYSPARK[op].format(*args)


def sql_constant(value: object, kind: Type, dialect: Dialect = "spark") -> str:
    """A literal that both databases give the same type.

    >>> sql_constant("it's", "str"), sql_constant(None, "int"), sql_constant(0.25, "dbl")
    ("'it''s'", 'CAST(NULL AS INT)', 'CAST(0.25 AS DOUBLE)')
    >>> sql_constant(-0.0, "flt"), sql_constant([1.0], "adbl", "duckdb")
    ("CAST('-0.0' AS FLOAT)", "[CAST('1.0' AS DOUBLE)]")
    """
    if kind in ELEMENTS:
        return _nested_constant(value, kind, dialect)
    if value is None:
        return f"CAST(NULL AS {SQL_TYPES[kind]})"
    if isinstance(value, str) and SQL_TYPES[kind] == "STRING":
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind == "dbl" and value == value and str(value) != "-0.0":
        return f"CAST({value!r} AS DOUBLE)"
    return f"({value})" if kind == "int" else f"CAST('{value}' AS {SQL_TYPES[kind]})"


#: The types of what is inside arrays and structs.
ELEMENTS: dict[Type, Type] = {"arr": "int", "adbl": "dbl", "rec": "dbl"}


def _nested_constant(value: object, kind: Type, dialect: Dialect) -> str:
    spark, element = dialect == "spark", ELEMENTS[kind]
    name = SQL_TYPES[element]
    if value is None and kind == "rec":
        return f"CAST(NULL AS {f'STRUCT<g: {name}>' if spark else f'STRUCT(g {name})'})"
    if value is None:
        return f"CAST(NULL AS {f'ARRAY<{name}>' if spark else f'{name}[]'})"
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{value!r} is no {kind}")
    if not value:
        return f"CAST({'array()' if spark else '[]'} AS {f'ARRAY<{name}>' if spark else f'{name}[]'})"
    inside = ", ".join(f"CAST('{item}' AS {name})" for item in value)
    if kind == "rec":
        return f"named_struct('g', {inside})" if spark else f"{{'g': {inside}}}"
    return f"array({inside})" if spark else f"[{inside}]"


def pyspark_constant(value: object, kind: Type) -> str:
    """The same literal in PySpark."""
    if kind in ELEMENTS or kind in ("flt", "dec", "amt", "big", "ts"):
        return f"F.expr({sql_constant(value, kind)!r})"
    if value is None:
        return f"F.lit(None).cast({SQL_TYPES[kind].lower()!r})"
    if isinstance(value, date):
        return f"F.lit({value.isoformat()!r}).cast('date')"
    return "F.lit(float('nan'))" if value != value else f"F.lit({value!r})"
