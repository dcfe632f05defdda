"""Problems: what is answered in the place of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fast_agent.errors import FastAgentError
    from fast_agent.text.json_value import JsonObject, JsonValue

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CANCELLED: Final = -32800
NOT_FOUND: Final = -32002


class Refused(Exception):  # noqa: N818 (it is said of a request)
    """A request that is not answered with a result.

    Args:
        code: The code of the error.
        message: What is wrong, lower-case start, no trailing period.
        hint: What to do about it, or None.
    """

    def __init__(self, code: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def wire(self) -> JsonObject:
        """The error as it is sent."""
        error: dict[str, JsonValue] = {"code": self.code, "message": self.message}
        if self.hint is not None:
            error["data"] = {"hint": self.hint}
        return error


class ClientRefused(Exception):  # noqa: N818 (it is said of a request)
    """The client did not do what it was asked.

    Args:
        message: Why.
        code: The code it gave; None where the connection ended.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def refused(error: FastAgentError, code: int = INTERNAL_ERROR) -> Refused:
    """Make the answer of an error of the program, with the first places it names."""
    found = [one for one in error.diagnostics if one.severity == "error" and one.path]
    lines = [error.message]
    lines += [f"{one.path}: {one.message}" for one in found[:10] if one.message != error.message]
    return Refused(code, "\n".join(lines), hint=error.hint)
