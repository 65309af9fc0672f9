"""Times the bridge: export and rebuild of a plan of 200 nodes, compared with Spark's own `toJSON` of it.

    python -m benchmarks.bridge [--nodes 200] [--repeat 100]

Export is one call: JSON is written, and decoded into the mirror. Rebuild is one call with one replaced node, so that
every node above it is built again, checked, and made a DataFrame. The target is 20 ms for both together, warm.
"""

from __future__ import annotations

import argparse

from benchmarks.common import machine, measure, session, spread
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.nodes import Join
from pyjoinopt.plan.traversal import transform_up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=100)
    arguments = parser.parse_args()
    spark = session()
    from pyspark.sql import functions as F

    def table(i: int):
        columns = [(F.col("id") % (j + 2)).alias(f"c{i}_{j}") for j in range(8)]
        return spark.range(100).select(F.col("id").alias(f"k{i}"), *columns).alias(f"t{i}")

    df = table(0)
    i = 0
    while True:
        i += 1
        df = df.join(table(i), F.col(f"k{i - 1}") == F.col(f"k{i}")).where(F.col(f"c{i}_0") > 0)
        shim = bridge_for(df)
        with Py4jGateway(shim, df._jdf) as gateway:
            count = len(gateway.export.nodes)
        if count >= arguments.nodes:
            break

    def round_trip() -> None:
        with Py4jGateway(shim, df._jdf) as gateway:
            root = gateway.export.root
            lowest = next(node for node in gateway.export.nodes if isinstance(node, Join))

            def swap(node):
                return Join(node.left, node.right, "Cross", node.condition) if node is lowest else node

            gateway.rebuild(transform_up(root, swap))

    def export_only() -> None:
        with Py4jGateway(shim, df._jdf):
            pass

    print(f"{machine()}, Spark {spark.version}, a plan of {count} nodes, {arguments.repeat} runs")
    print("export            ", spread(measure(export_only, arguments.repeat, warm=30)))
    print("export + rebuild  ", spread(measure(round_trip, arguments.repeat, warm=30)))
    to_json = measure(lambda: df._jdf.queryExecution().analyzed().toJSON(), arguments.repeat, warm=30)
    print("analyzed().toJSON ", spread(to_json))
    print("handles left open ", shim.openHandles())
    spark.stop()


if __name__ == "__main__":
    main()
