"""Problems: what is answered instead of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.rpc.message import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
)

if TYPE_CHECKING:
    from fast_agent.errors import FastAgentError

__all__ = [
    "CANCELLED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "RequestError",
    "refused",
]

NOT_FOUND: Final = -32002


class RequestError(RpcError):
    """A request that is not answered with a result.

    Args:
        code: The code of the error.
        message: What is wrong, lower-case start, no trailing period.
        hint: What to do about it, or None.
    """

    def __init__(self, code: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(code, message, None if hint is None else {"hint": hint})


def refused(error: FastAgentError, code: int = INTERNAL_ERROR) -> RequestError:
    """Make the answer of an error of the program, with the first places it names."""
    found = [one for one in error.diagnostics if one.severity == "error" and one.path]
    lines = [error.message]
    lines += [f"{one.path}: {one.message}" for one in found[:10] if one.message != error.message]
    return RequestError(code, "\n".join(lines), hint=error.hint)
