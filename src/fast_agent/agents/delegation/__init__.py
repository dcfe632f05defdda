"""Delegation: agents as tools, and the histories they share."""
