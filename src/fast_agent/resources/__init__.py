"""Resources: one core behind `internal://`, `guide://` and `skill://`, in process and over MCP."""
