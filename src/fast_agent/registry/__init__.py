"""Load-sets: which cards there are, where they came from, which is the default."""
