"""What several of Catalyst's rules share: pushdown policy, alias substitution, pruned operators, reordered joins."""
