"""The formats of other tools, a module each."""
