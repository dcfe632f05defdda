"""Sessions in SQLite, each in its own file."""
