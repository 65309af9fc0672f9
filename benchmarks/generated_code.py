"""Access to Spark's cache of the classes that it generates for queries.

Spark compiles a query's code once per JVM. A later query with the same code finds it compiled, and optimised by the
JVM. In an ordinary driver this is a later run of the same query. In a benchmark it would be another variant with the
same plan, which then has an advantage over a variant with another plan.
"""

from __future__ import annotations

from typing import Any

_GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$"


class GeneratedCode:
    """The cache of a session's JVM, as in Spark 4.3.

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
        """The number of cached classes, which is limited (`spark.sql.codegen.cache.maxEntries`)."""
        return int(self._cache.size())

    def forget(self) -> None:
        """Clear the cache, so that the next query compiles its code again."""
        self._cache.invalidateAll()
