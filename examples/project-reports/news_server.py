"""A small MCP server with a few headlines, so that the example needs no network."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

HEADLINES = {
    "harbour": ["New quay opens for electric ferries"],
    "library": ["Reading room doubles its opening hours"],
    "tramway": ["Line 28 gets quieter rails"],
    "archive": ["City archive puts a million pages online"],
}

server = MCPServer("news", instructions="Search by the name of one project at a time.")


@server.tool()
def search_headlines(project: str) -> list[str]:
    """Find today's headlines about a project."""
    return HEADLINES.get(project.lower(), [])


@server.tool()
def delete_headlines(project: str) -> str:
    """Remove the headlines about a project; the example's card does not allow this tool."""
    HEADLINES.pop(project.lower(), None)
    return f"removed the headlines about {project}"


if __name__ == "__main__":
    server.run()
