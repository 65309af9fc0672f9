"""Runs folders of SQL files as written, through `optimize_joins`, and in a session that optimises every query."""
