"""Agents of other tools, read into cards and written back."""
