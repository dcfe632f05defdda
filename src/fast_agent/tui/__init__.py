"""The terminal: the interactive `fast-agent go`."""
