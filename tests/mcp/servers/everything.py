"""A real MCP server with something of everything; `stdio`, `http` or `sse` as its argument.

With `http` and `sse` it listens on a free loopback port and prints it as its first line.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    ContentBlock,
    CreateMessageResult,
    ElicitRequestURLParams,
    EmbeddedResource,
    ImageContent,
    ListRootsResult,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer(
    "everything", version="1.0", instructions="Use\x1b[31m the tools.", log_level="ERROR"
)
started: list[str] = []
cancelled: list[str] = []
opened: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(destructive_hint=False, title="Echo \x07it"))
def echo(text: str) -> str:
    """Return a text."""
    return text


@server.tool()
def meta(ctx: Context[Any]) -> dict[str, Any]:
    """Return what came along with the request."""
    return {"key": (ctx.request_context.meta or {}).get("idempotencyKey")}


@server.tool()
def secret() -> str:
    """Something a filter hides."""
    return "the secret"


@server.tool(name="odd.name/with space")
def odd() -> str:
    """Have a name no provider takes."""
    return "odd"


@server.tool(structured_output=False)
def blocks() -> CallToolResult:
    """Return every kind of block."""
    content: list[ContentBlock] = [
        TextContent(
            text="words", annotations=Annotations(audience=["user"], priority=0.5), _meta={"k": "v"}
        ),
        ImageContent(data="aW1n", mime_type="image/png"),
        AudioContent(data="c25k", mime_type="audio/wav"),
        ResourceLink(uri="note://a", name="a", mime_type="text/plain", size=3),
        EmbeddedResource(
            resource=TextResourceContents(
                uri="note://b", mime_type="text/plain", text="b", _meta={"m": 1}
            )
        ),
        EmbeddedResource(resource=BlobResourceContents(uri="note://c", blob="Yg==")),
    ]
    return CallToolResult(
        content=content, structured_content={"n": [1, None]}, _meta={"trace": "t"}
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("no such luck")


@server.tool()
def large(size: int) -> str:
    """Return a text of `size` characters."""
    return "x" * size


@server.tool()
async def slow(ctx: Context[Any], key: str, seconds: float, steps: int = 1) -> str:
    """Work for a while, reporting progress."""
    started.append(key)
    try:
        for step in range(steps):
            await anyio.sleep(seconds / steps)
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    except anyio.get_cancelled_exc_class():
        cancelled.append(key)
        raise
    return "done"


@server.tool()
def seen(key: str) -> dict[str, bool]:
    """Return whether a slow call began and was cancelled."""
    return {"started": key in started, "cancelled": key in cancelled}


@server.tool()
async def grow(ctx: Context[Any], name: str) -> str:
    """Add a tool, and notify of it in both ways."""

    def grown() -> str:
        return f"I am {name}"

    server.add_tool(grown, name=name, description="Grown.")
    await ctx.notify_tools_changed()
    if ctx.protocol_version != "2026-07-28":
        await ctx.session.send_tool_list_changed()
    return "grown"


class Name(BaseModel):
    name: str = Field(min_length=2)


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool()
async def greet_person(answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Ask the person for a name."""
    if isinstance(answer, AcceptedElicitation):
        return f"hello {answer.data.name}"
    return f"no name: {answer.action}"


@server.tool()
async def open_page(ctx: Context[Any], url: str) -> str:
    """Ask the person to open an address, in the way of 2025-11-25."""
    return (await ctx.elicit_url("Please sign in.", url, "page-1")).action


@server.tool()
def signed_in(url: str) -> str:
    """Refuse until the person has opened an address."""
    if url not in opened:
        opened.append(url)
        page = ElicitRequestURLParams(message="Sign in first.", url=url, elicitation_id="page-2")
        raise UrlElicitationRequiredError([page])
    return "welcome"


async def ask_model(question: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text=question))
    return Sample([message], max_tokens=77, system_prompt="Be brief.", temperature=0.5)


@server.tool()
async def consult(question: str, answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask the client's model."""
    text = answer.content.text if isinstance(answer.content, TextContent) else "?"
    return f"{answer.model} says {text}"


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def show_roots(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    """List the client's roots."""
    return [f"{root.name}={root.uri}" for root in roots.roots]


@server.tool()
def environment() -> list[str]:
    """List the names of the environment."""
    return sorted(os.environ)


@server.tool()
def where() -> str:
    """Return the working directory."""
    return str(Path.cwd())


@server.tool()
def spawn() -> int:
    """Start a child that outlives a polite end, and give its process id."""
    code = "import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL).pid


@server.tool()
def die(status: int) -> str:
    """End the process in the middle of a call."""
    print("last\x1b[31m words", file=sys.stderr, flush=True)
    time.sleep(0.02)
    os._exit(status)


@server.tool()
def babble() -> str:
    """Write something that is no message to standard output."""
    os.write(1, b"this is not a message\n")
    return "babbled"


@server.tool()
async def log_it(ctx: Context[Any], text: str) -> str:
    """Send a log message."""
    await ctx.request_context.session.send_log_message("warning", text)  # pyright: ignore[reportDeprecated]
    return "logged"


@server.resource("note://a", name="a", mime_type="text/plain")
def note_a() -> str:
    """The first note."""
    return "note a"


@server.resource("note://hidden", name="hidden", mime_type="text/plain")
def note_hidden() -> str:
    """A note a filter hides."""
    return "hidden"


@server.resource("file:///{name}.bin", name="binary", mime_type="application/octet-stream")
def binary(name: str) -> bytes:
    """Bytes by name."""
    return name.encode()


@server.prompt()
def review(code: str, style: str = "plain") -> list[UserMessage]:
    """Review some code."""
    return [UserMessage(f"review {code}"), UserMessage(f"be {style}")]


@server.prompt()
def hidden_prompt() -> str:
    """A prompt a filter hides."""
    return "hidden"


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    """Complete a style by the code it is for, and the names of binaries."""
    if isinstance(ref, ResourceTemplateReference):
        names = ["report", "result", "bad\x1b[2J"]
    else:
        code = (context.arguments or {}).get("code", "") if context else ""
        names = ["strict", f"style of {code}"] if argument.name == "style" else []
    return Completion(values=[one for one in names if one.startswith(argument.value)])


async def serve_http(kind: str) -> None:
    import uvicorn

    # With the protocol named, the event loop sends small answers at once instead of after 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        if port:  # who started this holds it, so that nobody else is given it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        print(listener.getsockname()[1], flush=True)
        app = server.sse_app() if kind == "sse" else server.streamable_http_app()
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=0)
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1] in {"http", "sse"}:
        anyio.run(serve_http, sys.argv[1])
    else:
        server.run("stdio")
