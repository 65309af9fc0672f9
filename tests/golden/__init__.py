"""Folders of SQL files, run as written, through `optimize_joins`, and in a session that optimises every query."""
