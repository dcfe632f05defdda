"""Slash commands: one table that feeds the shells, their help, completion, and the docs."""
