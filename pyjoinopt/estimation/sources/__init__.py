"""Where counts come from.

* `registry`: `StatisticsSource`, and `register` for one of your own. `builtin_sources`: those of the option
  `statistics`.
* `leaf_statistics` queries them, leaf by leaf; `jvm_questions` are the requests to the JVM, `json` their answers.
* `samples`: rows drawn from files. `sampled_selectivity`, `sampled_distinct`, `sampled_values`: what follows from them.
* `analyzed_tables`: what `pyjoinopt.analyze` counted. `declared_keys`, `proven_keys`: which columns are a key.
* `column_lineage`: columns in terms of the columns of leaves. `columns_of_interest`: which ones to request.
* `partition_pruning`: partitions that a filter leaves. `read_deadline`: how long a query waits for all that.
"""
