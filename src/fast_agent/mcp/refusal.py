"""What a failed request says, read from the SDK's exceptions."""

from __future__ import annotations

from dataclasses import dataclass

from mcp import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
    ElicitationRequiredErrorData,
    ElicitRequestURLParams,
)
from pydantic import ValidationError

from fast_agent.mcp.untrusted import one_line

_UNREADABLE = "Failed to parse"
"""How transports report an answer they cannot read, with the code of a parse error."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no result.

    Args:
        text: The end of a sentence that starts with the method.
        closed: The connection may have ended.
        addresses: Addresses a person has to open before the request can be served.
    """

    text: str
    closed: bool = False
    addresses: tuple[ElicitRequestURLParams, ...] = ()


def refusal(problem: Exception) -> Refusal | None:
    """Read an exception of the SDK; None for one that is no answer of a server."""
    match problem:
        case MCPError():
            closed = problem.code == CONNECTION_CLOSED
            if problem.code == PARSE_ERROR and problem.message.startswith(_UNREADABLE):
                said = problem.message.partition(": ")[2]
                return Refusal(f"got an answer that cannot be decoded: {one_line(said)}")
            return Refusal(
                f"{'got no answer' if closed else 'was refused'}: {one_line(problem.message)}",
                closed=closed,
                addresses=_addresses(problem),
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


def _addresses(problem: MCPError) -> tuple[ElicitRequestURLParams, ...]:
    if problem.code != URL_ELICITATION_REQUIRED:
        return ()
    try:
        data = ElicitationRequiredErrorData.model_validate(problem.error.data)
    except ValidationError:
        return ()
    return tuple(data.elicitations)
