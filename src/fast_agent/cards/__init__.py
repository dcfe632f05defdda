"""AgentCards: parse, validate, check together, describe as JSON Schema, dump."""
