"""Trust: what a found project would do on this machine, and what a user allowed it."""
