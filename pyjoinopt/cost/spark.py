"""What Spark pays for a join.

Whatever the operator, each row of both inputs is read once (hashed, probed or merged) and each result row is made.
On top of that comes how the rows meet:

* **broadcast**, if the smaller side is within `spark.sql.autoBroadcastJoinThreshold`: its bytes travel to every
  executor and become a hash table there;
* **shuffle** otherwise: the bytes of both sides are written, sent and read, and both are sorted.

The constants are in rows: sending a hundred bytes is about as much work as handing on three rows, sorting a row as
handing it on one and a half times. They only have to be right in order of magnitude: a shuffled row costs a few times
as much as one that streams past a broadcast table, and that is what decides between orders.

Broadcasting never costs more than shuffling the same inputs would, so the step at the threshold goes upwards and the
model is monotone.
"""

from __future__ import annotations

from pyjoinopt.statistics.relation import Size

#: spark.sql.autoBroadcastJoinThreshold as Spark comes.
DEFAULT_THRESHOLD = 10485760.0
#: Rows' worth of one byte that is written to and read from a shuffle, or broadcast.
PER_BYTE = 0.03
#: Rows' worth of sorting one row for a merge join.
PER_SORTED_ROW = 1.5


class SparkCost:
    """Rows read and made, bytes moved, rows sorted.

    Args:
        threshold: bytes up to which Spark broadcasts; negative for never.
    """

    name = "spark"

    def __init__(self, threshold: float = DEFAULT_THRESHOLD) -> None:
        self.threshold = threshold

    def join(self, left: Size, right: Size, output: Size) -> float:
        """Cost of one join.

        >>> big, small = Size(1e6, 1e8), Size(10, 1000)
        >>> SparkCost().join(big, small, big) < SparkCost(threshold=-1).join(big, small, big)
        True
        """
        l_rows, l_bytes = left
        r_rows, r_bytes = right
        rows = l_rows + r_rows
        smaller = l_bytes if l_bytes < r_bytes else r_bytes
        if smaller <= self.threshold:
            return rows + output[0] + smaller * PER_BYTE
        return rows * (1.0 + PER_SORTED_ROW) + output[0] + (l_bytes + r_bytes) * PER_BYTE
