"""Defaults of Spark's settings that several rooms need, as `SQLConf` has them."""

from __future__ import annotations

#: [bytes] `spark.sql.autoBroadcastJoinThreshold`: a side up to this size is broadcast.
BROADCAST_THRESHOLD = 10485760
#: [passes] `spark.sql.optimizer.maxIterations`: of a batch of rules until its fixed point.
MAX_ITERATIONS = 100
