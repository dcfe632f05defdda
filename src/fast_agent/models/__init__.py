"""Models behind one protocol: offline ones of the project's own, providers through one adapter."""
