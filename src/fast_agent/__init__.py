"""fast-agent: agents written as text."""

__version__ = "0.1.0"
