"""Avoided joins: fused aggregates over the same rows, and self-joins used only as an existence check."""
