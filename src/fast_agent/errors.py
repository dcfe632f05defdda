"""The one exception tree of the project.

FastAgentError
├── CardError       a card, a load-set, or a file a card names is wrong
├── ConfigError     a configuration file, an argument or a secret is wrong or missing
├── HistoryError    a history file cannot be read or written
├── ResourceError   a resource cannot be named, found or read
├── ModelError      a model is unknown, unreachable, or answered with an error
│   └── ContextError  the conversation is longer than the model's context window
├── ToolError       a tool or an MCP server cannot be used
│   └── ToolRetry     a tool asks the model to call it again, with a message
├── RunError        a turn or a workflow could not be finished
│   └── LimitError  a usage limit of the agent, or of one above it, was reached
├── SessionError    a session cannot be opened, resumed or written
│   └── SessionInUseError  another process is using it
└── TrustError      what a found project would do is not approved
    └── UnapprovedError  the same, with all that it would do, for a user to approve
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.diagnostics.diagnostic import Diagnostic

__all__ = [
    "CardError",
    "ConfigError",
    "ContextError",
    "FastAgentError",
    "HistoryError",
    "LimitError",
    "ModelError",
    "ResourceError",
    "RunError",
    "SessionError",
    "SessionInUseError",
    "ToolError",
    "ToolRetry",
    "TrustError",
    "UnapprovedError",
]


class FastAgentError(Exception):
    """Something a user can act on.

    Args:
        message: What went wrong, lower-case start, no trailing period.
        hint: What to do about it, or None.
        diagnostics: Every located problem found, in file order; may be empty.
        code: The rule it breaks, such as FA801, where it has no place; else None.

    Attributes:
        status: Exit status of a command that ends with it.
    """

    status: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        diagnostics: Iterable[Diagnostic] = (),
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        if hint is not None and not self.diagnostics:  # which hold their own
            self.add_note(f"hint: {hint}")  # for a traceback

    def __str__(self) -> str:
        """Return the message; with diagnostics, the whole report: each with its place and hint."""
        if not self.diagnostics:
            return self.message
        lines = [str(one) for one in self.diagnostics]
        if all(one.message != self.message for one in self.diagnostics):
            lines.insert(0, self.message)
        return "\n".join(lines)

    def hide(self, redact: Callable[[str], str]) -> None:
        """Hide secrets in what the error says, and leave out the cause where it names one.

        Args:
            redact: Returns text without secrets.
        """
        from dataclasses import replace
        from traceback import format_exception

        self.message = redact(self.message)
        self.args = (self.message,)
        self.hint = None if self.hint is None else redact(self.hint)
        if notes := getattr(self, "__notes__", None):
            self.__notes__ = [redact(note) for note in notes]
        self.diagnostics = tuple(
            replace(
                one,
                message=redact(one.message),
                hint=None if one.hint is None else redact(one.hint),
                source_line=None if one.source_line is None else redact(one.source_line),
            )
            for one in self.diagnostics
        )
        cause = self.__cause__ or self.__context__
        if cause is not None:
            trace = "".join(format_exception(cause))
            if redact(trace) != trace:
                self.__cause__, self.__suppress_context__ = None, True


class CardError(FastAgentError):
    """A card, a load-set, or a file a card names is wrong; `diagnostics` holds the whole list."""


class ConfigError(FastAgentError):
    """A configuration file, an argument or a secret is wrong or missing."""


class HistoryError(FastAgentError):
    """A history file cannot be read or written."""


class ResourceError(FastAgentError):
    """A resource cannot be named, found or read."""


class ModelError(FastAgentError):
    """A model is unknown, unreachable, or answered with an error.

    Attributes:
        is_passing: Whether the same request may be answered later, as after a rate limit.
        is_quota: Whether the quota or the credit of the account is used up.
        retry_after: Seconds the provider asked to wait, or None.
    """

    is_passing: bool = False
    is_quota: bool = False
    retry_after: float | None = None


class ContextError(ModelError):
    """The conversation is longer than the model's context window; a shorter one may be answered."""


class ToolError(FastAgentError):
    """A tool or an MCP server cannot be used."""


class ToolRetry(ToolError):  # noqa: N818 (what a tool asks for, not what went wrong)
    """A tool asks the model to call it again: `raise ToolRetry("the date must be in 2026")`.

    The model reads the message, without a type or a traceback. How often it may try again in one
    turn is the tool's `retries`.
    """


class RunError(FastAgentError):
    """A turn or a workflow could not be finished."""


class LimitError(RunError):
    """A usage limit of the agent, or of one above it, was reached."""


class SessionError(FastAgentError):
    """A session cannot be opened, resumed or written."""


class SessionInUseError(SessionError):
    """Another process is using the session.

    Attributes:
        retry_after: Seconds until the session is free if that process stopped without a word; None
            where it is free as soon as the process ends.
    """

    retry_after: int | None = None


class TrustError(FastAgentError):
    """What a found project would do is not approved, and no user can be asked."""

    status: ClassVar[int] = 3


class UnapprovedError(TrustError):
    """What a found project would do, in whole: a user approves what they read here.

    Nothing in it was interpolated, and secrets in files of the project are masked where effects are
    made. Hiding more would let a project hide a command behind what looks like a secret.
    """

    def hide(self, redact: Callable[[str], str]) -> None:
        """Hide nothing."""
        del redact


def os_reason(error: OSError) -> str:
    """Return why the system refused, in lower case, such as `permission denied`."""
    certificate: str | None = getattr(error, "verify_message", None)
    if certificate is not None:
        return f"its certificate is not trusted: {certificate}"
    named: object = getattr(error, "reason", None)
    if isinstance(named, str):  # of TLS, whose own text names a place in its source
        return named.replace("_", " ").lower()
    reason = error.strerror
    if error.errno and (isinstance(error, ConnectionError) or not reason):
        reason = os.strerror(error.errno)  # asyncio writes the address in place of the reason
    return (reason or str(error)).lower()
