"""A demonstration on TPC-H: queries in the orders people write, before and after ``optimize_joins()``."""
