"""Agents: a turn, its tools, its memory, and agents as tools of others."""
