"""Trust: what a found project would do on this machine, and what a person allowed it."""
