"""The mirror of Spark's analysed plan: expressions, nodes, and walks over both. Nothing here knows Spark."""
