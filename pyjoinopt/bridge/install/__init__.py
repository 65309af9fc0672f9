"""Finds or compiles the jar for a version of Spark, with Java, Spark's own Scala compiler and a cache folder."""
