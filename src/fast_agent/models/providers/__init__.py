"""Models of providers, through one library."""
