"""Serving: resources and agents over MCP's network transport."""
