"""Configuration files, the home, precedence."""
