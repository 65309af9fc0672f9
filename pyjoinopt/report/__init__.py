"""What was done, and how it is shown.

* `model`: plain data. `join_report`: the public `JoinReport`. `advice`: what would make the estimates better.
  `executed_run`: what a run counted. `rule_trace`: the steps of `pyjoinopt.rules.trace`. `render/`: text, HTML,
  pictures.
"""
