"""What can go wrong with a resource, in words for people and codes for MCP.

ResourceError
├── InvalidUri      the text is no URI
├── NotFound        nothing has this name
├── Ambiguous       several things do
├── TooLarge        a limit was passed
├── Unavailable     it is there and cannot be read now
└── RequestRefused  a request of the protocol was wrong, and not about one resource
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.errors import ResourceError
from fast_agent.rpc.message import INTERNAL_ERROR, INVALID_PARAMS
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.text.json_value import JsonObject, JsonValue

Era: TypeAlias = Literal["handshake", "modern"]
"""How a client opens: `initialize` (up to 2025-11-25), or nothing, with `_meta` on each request."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

NOT_FOUND_BEFORE_2026 = -32002
UNSUPPORTED_VERSION = -32022
_MAX_NAMED = 10
_MAX_SHOWN = 200


class InvalidUri(ResourceError):  # noqa: N818  (problems are called by their names here)
    """The text is no URI of ours.

    Args:
        uri: The text as it came.
        reason: Why, in words that follow the URI: `has a fragment`.
    """

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"`{shown(uri)}` is not a resource URI: it {reason}")
        self.uri = uri
        self.reason = reason


class NotFound(ResourceError):  # noqa: N818
    """Nothing has this URI.

    Args:
        uri: What was asked for.
        suggestions: URIs that may have been meant, the likeliest first; ten are kept.
        what: What there is none of: `resource`, `skill`, `directory`.
    """

    def __init__(
        self, uri: str, suggestions: Sequence[str] = (), *, what: str = "resource"
    ) -> None:
        self.uri = uri
        self.suggestions = tuple([one for one in suggestions if one != uri][:_MAX_NAMED])
        hint = f"close to it: {_named(self.suggestions)}" if self.suggestions else None
        super().__init__(f"there is no {what} `{shown(uri)}`", hint=hint)


class AmbiguousName(ResourceError):  # noqa: N818
    """Several things have this name.

    Args:
        uri: What was asked for.
        candidates: What it can mean, in order; ten are kept.
        what: What these are: `resources`, `sections`.
    """

    def __init__(self, uri: str, candidates: Sequence[str], *, what: str = "resources") -> None:
        self.uri = uri
        self.candidates = tuple(candidates[:_MAX_NAMED])
        super().__init__(
            f"`{shown(uri)}` can mean {len(candidates)} {what}",
            hint=f"ask for one of {_named(self.candidates)}",
        )


class TooLarge(ResourceError):  # noqa: N818
    """An answer, or what it is made of, passes a limit.

    Args:
        uri: What was asked for.
        count: How much there is.
        limit: How much is allowed.
        unit: What is counted: `bytes`, `parts`, `files`.
        samples: A few URIs of what is inside; ten are kept.
    """

    def __init__(
        self, uri: str, count: int, limit: int, *, unit: str = "bytes", samples: Sequence[str] = ()
    ) -> None:
        self.uri = uri
        self.count = count
        self.limit = limit
        self.unit = unit
        self.samples = tuple(samples[:_MAX_NAMED])
        super().__init__(
            f"`{shown(uri)}` holds {count} {unit}, more than the limit of {limit}",
            hint=f"ask for less, such as {_named(self.samples)}" if self.samples else None,
        )


class UnavailableResource(ResourceError):  # noqa: N818
    """The resource is known and cannot be read now.

    Args:
        uri: What was asked for.
        reason: Why, in words that follow the URI: `may not be read by this user`. Never a path.
    """

    def __init__(self, uri: str, reason: str) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(f"`{shown(uri)}` {reason}")


class RequestRefused(ResourceError):  # noqa: N818
    """A request of the protocol cannot be answered.

    Args:
        code: The JSON-RPC error code.
        message: Why.
        data: The error's `data`, or None.
    """

    def __init__(
        self, code: int, message: str, data: Mapping[str, JsonValue] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def bad_params(message: str) -> RequestRefused:
    """Refuse a request for its parameters."""
    return RequestRefused(INVALID_PARAMS, message)


def error_object(problem: ResourceError, era: Era) -> JsonObject:
    """Convert a problem to a JSON-RPC error.

    Args:
        problem: Any of this module's.
        era: The protocol's: before 2026-07-28, "not found" had its own code.

    Returns:
        `code`, `message` and, where there is any, `data`.
    """
    message = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
    if isinstance(problem, RequestRefused):
        error: dict[str, JsonValue] = {"code": problem.code, "message": message}
        return error if problem.data is None else {**error, "data": problem.data}
    return {"code": _code(problem, era), "message": message, "data": _data(problem)}


def _code(problem: ResourceError, era: Era) -> int:
    if isinstance(problem, NotFound):
        return INVALID_PARAMS if era == "modern" else NOT_FOUND_BEFORE_2026
    if isinstance(problem, (InvalidUri, AmbiguousName, TooLarge)):
        return INVALID_PARAMS
    return INTERNAL_ERROR


def _data(problem: ResourceError) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = {}
    if isinstance(problem, (InvalidUri, NotFound, AmbiguousName, TooLarge, UnavailableResource)):
        data["uri"] = shown(problem.uri)
    if isinstance(problem, NotFound) and problem.suggestions:
        data["suggestions"] = problem.suggestions
    elif isinstance(problem, AmbiguousName):
        data["candidates"] = problem.candidates
    elif isinstance(problem, TooLarge):
        data.update(count=problem.count, limit=problem.limit, unit=problem.unit)
        if problem.samples:
            data["samples"] = problem.samples
    return data


def shown(text: str) -> str:
    """Make text that came from outside fit for a message: one line, bounded, encodable."""
    if len(text) > _MAX_SHOWN:
        text = text[:_MAX_SHOWN] + "…"
    return visible(text)


def _named(uris: Sequence[str]) -> str:
    return ", ".join(f"`{shown(uri)}`" for uri in uris)
