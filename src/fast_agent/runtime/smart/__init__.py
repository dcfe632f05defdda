"""Smart agents: they write, check and run cards."""
