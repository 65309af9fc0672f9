"""Spark's cache of the classes that it generates for queries.

Spark compiles a query's code once in a JVM; a later query that comes to the same code finds it compiled, and run in by
the JVM as well. In an ordinary driver that is a later run of the same query. In a benchmark it would be another
variant with the same plan, which then has an advantage over one that has a plan of its own.
"""

from __future__ import annotations

from typing import Any

_GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$"


class GeneratedCode:
    """The cache of a session's JVM, Spark 4.3's.

    Args:
        spark: a session.
    """

    def __init__(self, spark: Any) -> None:
        jvm, gateway = spark._jvm, spark.sparkContext._gateway
        generator = jvm.java.lang.Class.forName(_GENERATOR)
        getter = generator.getDeclaredMethod("cache", gateway.new_array(jvm.java.lang.Class, 0))
        getter.setAccessible(True)
        module = generator.getField("MODULE$").get(None)
        self._cache = getter.invoke(module, gateway.new_array(jvm.java.lang.Object, 0))

    def __len__(self) -> int:
        """How many classes are there; their number is limited (`spark.sql.codegen.cache.maxEntries`)."""
        return int(self._cache.size())

    def forget(self) -> None:
        """What runs next is compiled anew, as if no query had come to the same code before."""
        self._cache.invalidateAll()
