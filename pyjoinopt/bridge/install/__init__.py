"""The jar for the Spark at hand, and what is needed to make one: Java, Spark's own Scala compiler, a cache."""
