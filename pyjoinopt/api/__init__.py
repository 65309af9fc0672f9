"""The functions that users call. They check arguments, and catch internal errors of the optimizer.

* `dataframe`: `optimize_joins`, `explain_joins`, `join_report`. `compare`, `analyze`, `sessions`, `doctor`.
* `known_statistics`, `rule_by_rule`: the implementation of `pyjoinopt.statistics` and `pyjoinopt.rules`.
* `unknown_keys`: the warning about misspelled settings.
"""
