"""Skills as tools, and what a loaded skill allows."""
