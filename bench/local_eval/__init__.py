"""Measurements of what local models answer."""
