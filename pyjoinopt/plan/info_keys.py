"""The keys of `LogicalPlan.info` and `Expression.info`: whatever only some kinds have.

Most of them are the export's own (`jvm_shim/src/common/export`: PlanExporter, NodeDetails, LeafDetails, ExceptSides,
ExpressionDetails); the decoder and rewrites add a few. A number is the JVM's number of a node or an expression, a bit
that of a column.
"""

from __future__ import annotations

#: Key -> the operators that have it, and its meaning, as the JVM exports it.
EXPORTED_OF_NODES = {
    "c": "all: the name of Catalyst's class; the mirror has it as `kind`",
    "k": "all: numbers of the children",
    "o": "all: bits of the output",
    "x": "all: numbers of the expressions, in the order of the mirror's",
    "cached": "all: True if the session holds cached data for exactly this sub-plan, which must not be changed",
    "reads": "all but a few: bits that Catalyst's `references` holds, where the expressions read others",
    "all": "Intersect, Except: True for INTERSECT ALL, EXCEPT ALL",
    "alike": "leaf: a number that leaves share which read the same under other column ids",
    "allowMissing": "Union: True if a branch may lack columns",
    "agg": "Aggregate: numbers of the aggregate expressions",
    "below": "below an Except with `sides`: numbers of the children, names between (aliases, views, hints) left out",
    "byName": "Union: True if branches are matched by column name",
    "cond": "Join, Filter: number of the condition",
    "cte": "CTERelationDef, CTERelationRef: the id of the common table expression",
    "early": "Join: made of an IN or EXISTS by an early rule of Spark; the decoder puts the join's own number here",
    "exists": "Join: bit of the column that an existence join adds",
    "fraction": "Sample: share of the rows that are drawn",
    "items": "MightContain: how many different keys are expected",
    "generated": "Generate: bits of the columns that the generator makes",
    "generator": "Generate: number of the generator",
    "global": "Sort: False for a sort of each partition by itself",
    "group": "Aggregate: numbers of the grouping expressions",
    "hidden": "Project: bits of columns that a join USING them hides, but that names may still mean",
    "hint": "Join: strategies for the left and the right side. ResolvedHint: the strategy. Aggregate: its own hint",
    "keys": "Deduplicate: bits of the columns that rows are compared by",
    "limit": "GlobalLimit, LocalLimit: rows; None if it is no literal",
    "list": "Project: numbers of the projections",
    "name": "SubqueryAlias, View, UnresolvedHint, leaf: its name",
    "outer": "Generate: True if a row without generated ones is kept",
    "parts": "Window: how many of the expressions are window functions, partition columns, sort orders",
    "projections": "Expand: numbers of its lists of expressions",
    "rel": "leaf: what it reads: kind, name, format, path, rows, bytes, partitionCols (bits), buckets, catalog",
    "replacement": "Sample: True if a row may be drawn several times",
    "rows": "Range, LocalRelation: how many",
    "sides": "Except: numbers of each side and of the relation below its filters, if the JVM found both sides equal",
    "slices": "Range: partitions",
    "t": "Join: the name of its type",
    "temp": "View: True for a temporary one",
    "unrequired": "Generate: positions of child columns that are not in its output",
}

#: Key -> the operators that have it, and its meaning, as the decoder, a rule or a rewrite sets it.
SET_OF_NODES = {
    "again": "CTERelationRef, LogicalRelation: another reading of the same, with columns of its own; built anew",
    "held": "Join: a semi or anti join that Spark's optimizer must not push down (`joins.emit.pinned_semi_joins`)",
    "lists": "Expand: `projections` as expressions",
    "narrowed": "Expand, Generate, Window, CTERelationRef, LogicalRelation: a copy with other columns; sent as lists",
    "reads_set": "all but a few: `reads` as a set of bits",
    "early_reads": "Join: the columns that the IN or EXISTS reads",
    "subquery": "Join: built as the IN or EXISTS filter that it was; the number of the join that has `early`",
}

#: Key -> the expressions that have it, and its meaning.
OF_EXPRESSIONS = {
    "a": "AttributeReference, Alias, OuterReference: bit of the column",
    "as": "Cast made here: the expression whose type it casts to (number)",
    "asc": "SortOrder: True for ascending",
    "cast": "a kind that holds a Cast: True",
    "distinct": "AggregateExpression: True for count(DISTINCT ...) and the like",
    "filtered": "AggregateExpression made here: its last child is a FILTER that was added",
    "fn": "AggregateExpression: the name of the function's class",
    "hset": "InSet: how many values",
    "id": "CommonExpressionDef, CommonExpressionRef: which one",
    "like": "Alias made here: number of an alias whose metadata it takes",
    "n": "Alias: the column's name",
    "name": "user-defined function: its name",
    "offset": "Cast between timestamps and dates: the time zone's offset in seconds, if it has one offset",
    "ordinal": "GetStructField, GetArrayStructFields: position of the field",
    "outer": "subquery: numbers of the outer expressions that it reads, its first children",
    "outer_references": "subquery: the columns that these read, as a set of bits; set by the decoder",
    "parameters": "AggregateExpression: what Catalyst prints of the function's other parameters",
    "plan": "subquery: number of its plan's root",
    "s": "Literal: its text in SQL",
    "to": "Cast: the type",
    "typed_like": "CastLike, MakeDecimal: an expression of their type; AverageOf: the average that it replaces",
    "tz": "Cast: the time zone",
    "v": "Literal, constant: the value, if it was exported",
    "values": "InSet: the values, if there are few",
    "within": "AttributeReference: a range of its values (`plan.fallible.value_ranges.within`)",
}

NODE_KEYS = frozenset(EXPORTED_OF_NODES) | frozenset(SET_OF_NODES)
EXPRESSION_KEYS = frozenset(OF_EXPRESSIONS)
