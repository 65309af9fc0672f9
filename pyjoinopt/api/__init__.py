"""What a user calls; internal errors end here.

* `dataframe`: `optimize_joins`, `explain_joins`, `join_report`. `compare`, `analyze`, `sessions`, `doctor`.
* `known_statistics`, `rule_by_rule`: behind `pyjoinopt.statistics` and `pyjoinopt.rules`. `unknown_keys`: a warning.
"""
