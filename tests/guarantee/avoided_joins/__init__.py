"""Joins that are spared: aggregates of the same rows computed together, self-joins that only look for a partner."""
