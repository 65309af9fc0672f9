"""The process that orders the joins of a JVM's plans: `python -m pyjoinopt.worker`.

* `serve`: requests and answers over a pipe. `plan_cache`: the latest answers, for plans that come again. `parent`: the
  end of the worker when its JVM ends.
"""
