"""The benchmark: figures of the program beside their goals, limits and a peer."""
