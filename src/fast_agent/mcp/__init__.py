"""Connections to MCP servers: filters, sampling, elicitation, roots."""
