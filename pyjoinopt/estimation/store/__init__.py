"""What was counted once is kept for these very files: `store`, in a file of SQLite (`sqlite_file`)."""
