"""`fast-agent test`: cases next to cards, run against recordings."""
