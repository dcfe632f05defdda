"""Durable runs: runs whose steps are kept, so that they go on after their process was killed."""
