"""Shell commands, and the groups of processes they run in."""
