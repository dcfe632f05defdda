"""Workflows: agents that have other agents do the work, one file a type."""
