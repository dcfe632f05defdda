"""Skills as they are on disk and as they are served under `skill://`."""
