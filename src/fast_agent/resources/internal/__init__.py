"""The documents that come with the program, under `internal://`."""
