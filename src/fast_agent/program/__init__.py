"""A loaded program: its configuration, its agents, and what it keeps secret."""
