"""The process that a JVM asks for the order of a plan: `python -m pyjoinopt.worker`.

* `serve`: requests and answers over a pipe. `plan_cache`: the latest answers, for plans that come again. `parent`: the
  end of the worker when its JVM ends.
"""
