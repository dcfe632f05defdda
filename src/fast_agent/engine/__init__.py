"""Durable runs: runs whose steps are stored, so that they continue after a crash."""
