"""Findings about queries that ran, from the records of `eventlog`: what could be won, and how sure that is.

* `operators`: what operators of a physical plan do, their rows and sizes. `physical_joins`: a join's keys and sides.
  `plan_shape`: plans that differ in constants only. `relation_names`: names for people.
* `join_groups`: inner joins that may be ordered together, with the rows that each returned. `true_estimates`: a join
  graph with these rows.
* Findings, one idea a file: `multiplied_rows`, `existence_checks`, `better_order`, `broadcast_sides`,
  `repeated_subplans`, `outer_joins`, `uneven_work`, `missing_statistics`. `finding`: what they share. `examine`: all
  findings of an execution.
* `ranking`: runs of the same shape together, by the task hours that could be won. `workload`: the data of
  the result. `render_text`, `render_html`: for people; `wording`: their figures and names. `result`: all of it.
* `read_logs`: from logs to the result.
"""
