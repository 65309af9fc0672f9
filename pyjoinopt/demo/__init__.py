"""`python -m pyjoinopt demo`: queries on generated data as written and optimised, and the tools for such a comparison.

`shop` generates the data of the command with Spark itself, and `queries` has its five queries. `measure` times a query
as written and optimised, and `show` prints the results. `tpch` generates TPC-H for the notebooks and for `make demo`;
it needs the extra `pyjoinopt[demo]`.
"""
