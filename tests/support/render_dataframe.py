"""A query tree as PySpark code: run by the tests, and printed whole in a failure so that it can be pasted and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.operators import pyspark_call, pyspark_constant
from tests.support.querytree import (
    Aggregate,
    Call,
    Chain,
    Column,
    Constant,
    Expression,
    Filter,
    Join,
    Node,
    Project,
    Query,
    Table,
    Union_,
    output,
)
from tests.support.render_sql import expression_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = {"inner": "inner", "left": "left", "right": "right", "full": "full", "semi": "left_semi", "anti": "left_anti"}


def to_pyspark(query: Query) -> str:
    """Statements that leave the result in `df`; they need `spark`, `F` and `Window`."""
    writer = _Writer()
    for name, node in query.definitions:
        writer.lines.append(f"{name} = {writer.frame(node)}")
        writer.definitions.add(name)
    writer.lines.append(f"df = {writer.frame(query.root)}")
    return "\n".join(writer.lines)


def run_pyspark(spark: SparkSession, code: str) -> DataFrame:
    """The frame that such statements build."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    names: dict[str, Any] = {"spark": spark, "F": F, "Window": Window}
    exec(code, names)
    df: DataFrame = names["df"]
    return df


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.definitions: set[str] = set()

    def frame(self, node: Node) -> str:
        """Write the code that builds this node; returns the name of its variable."""
        text = self.build(node)
        name = f"f{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def build(self, node: Node) -> str:
        if isinstance(node, Table):
            source = node.name if node.name in self.definitions else f"spark.table({node.name!r})"
            return f"{source}.alias({node.alias!r})"
        if isinstance(node, Join):
            return self.join(node)
        if isinstance(node, Union_):
            union = f"{self.frame(node.left)}.unionAll({self.frame(node.right)})"
            return f"{union}{'.distinct()' if node.distinct else ''}.alias({node.alias!r})"
        if isinstance(node, Chain):
            first, *rest = (self.frame(part) for part in node.parts)
            joins = (f".join({part}, ['k'], {KINDS[kind]!r})" for part, kind in zip(rest, node.kinds))
            return f"{first}{''.join(joins)}.alias({node.alias!r})"
        child = self.frame(node.child)
        if isinstance(node, Filter):
            return child + "".join(f".filter({self.expression(part)})" for part in node.conjuncts)
        if isinstance(node, Project):
            distinct = ".distinct()" if node.distinct else ""
            return f"{child}.select({self.named(node.items)}){distinct}.alias({node.alias!r})"
        if isinstance(node, Aggregate):
            return f"{child}.groupBy({self.named(node.keys)}).agg({self.named(node.values)}).alias({node.alias!r})"
        order = ", ".join(f"{self.expression(column)}.asc_nulls_first()" for column in output(node))
        return f"{child}.orderBy({order}).limit({node.count})"

    def join(self, node: Join) -> str:
        left, right = self.frame(node.left), self.frame(node.right)
        if node.hint:
            right += f".hint({node.hint!r})"
        if node.kind == "cross":
            return f"{left}.crossJoin({right})"
        condition = " & ".join(self.expression(part) for part in node.condition) or "F.lit(True)"
        return f"{left}.join({right}, {condition}, {KINDS[node.kind]!r})"

    def named(self, items: tuple[tuple[str, Expression], ...]) -> str:
        return ", ".join(f"{self.expression(item)}.alias({name!r})" for name, item in items)

    def expression(self, expression: Expression) -> str:
        if isinstance(expression, Column):
            return f"F.col('{expression.qualifier}.{expression.name}')"
        if isinstance(expression, Constant):
            return pyspark_constant(expression.value, expression.type)
        if isinstance(expression, Call):
            return pyspark_call(expression.op, [self.expression(arg) for arg in expression.args])
        return f"F.expr({expression_sql(expression)!r})"
