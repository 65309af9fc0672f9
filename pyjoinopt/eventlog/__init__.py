"""Reads Spark's event logs: SQL executions with their plans, actual rows, stages and task times; needs no Spark.

* `files`: which files of a folder are logs, and the order of the parts of a rolling log. `history_server`, `sources`:
  logs of a server. `codecs`: the bytes of a log without compression. `lz4_blocks`, `snappy_blocks`, `lzf_chunks`: the
  framings that Spark's compression streams write; `framing`: what they share.
* `lines`: the events of a log, one line each. `deep_json`: one of them, nested deeply. `executions`: SQL
  executions, gathered from events.
* `physical_plan`: a plan as a tree of immutable records. `stages`: what the tasks of a stage did. `settings`: of an
  execution. `planned_scans`: what Spark's optimizer knew of a relation; `reported_relations`: what pyjoinopt did.
  `execution`: the record of one execution.
"""
