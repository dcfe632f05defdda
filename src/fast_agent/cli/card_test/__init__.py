"""`fast-agent test`: cases beside cards, run against recordings."""
