"""OAuth: authorization of this program at remote MCP servers."""
