"""What a failed request says, read from the SDK's exceptions."""

from __future__ import annotations

from dataclasses import dataclass

from mcp import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST
from pydantic import ValidationError

from fast_agent.mcp.untrusted import one_line

_SESSION_GONE = "Session terminated"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no result.

    Args:
        text: The end of a sentence that starts with the method.
        closed: The connection may have ended.
        gone: The server has forgotten the session, so it never took the request.
        code: The JSON-RPC error code, where there is one.
    """

    text: str
    closed: bool = False
    gone: bool = False
    code: int | None = None


def refusal(problem: Exception) -> Refusal | None:
    """Read an exception of the SDK; None for one that is no answer of a server."""
    match problem:
        case MCPError():
            closed = problem.code == CONNECTION_CLOSED
            return Refusal(
                f"{'got no answer' if closed else 'was refused'}: {one_line(problem.message)}",
                closed=closed,
                gone=problem.code == INVALID_REQUEST and problem.message == _SESSION_GONE,
                code=problem.code,
            )
        case ValidationError():
            return Refusal("was answered outside the protocol")
        case InputRequiredRoundsExceededError():
            return Refusal("never came to an end: the server kept asking for more")
        case RuntimeError():
            # The SDK's way to say that structured content does not fit the output schema.
            return Refusal(f"was answered wrongly: {one_line(str(problem))}")
        case _:
            return None
