"""The process that orders the joins of a JVM's plans: `python -m pyjoinopt.worker`.

* `serve`: requests and answers over a pipe. `guarded_planning`: our plan, or the written one if that took less time.
  `plan_cache`: the latest answers, for repeated plans. `parent`: ends the worker when its JVM has ended.
"""
