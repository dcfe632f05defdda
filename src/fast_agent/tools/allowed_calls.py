"""Allowed calls: what the user permits in advance with `--allow`, for unattended runs.

They answer the questions about calls that a card marks and about pages of a private network. They
answer none about what is run or loaded later (`create_agent_card`, files of cards and settings),
about files named as secrets, or about skills of servers.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.message import ToolCall

_NEVER: Final = "create_agent_card"
_PATTERN: Final = re.compile(r"([\w.*?-]+)(?:\((.*)\))?", re.DOTALL)
_COMMAND: Final = re.compile(r"[^*]*[^*\s:](?:[ :]\*)?")
_HINT: Final = "write the name of a tool, `execute(git *)` or `fetch(http://localhost:8080)`"


@frozen
class AllowedCall:
    """One pattern.

    Args:
        tool: The name of a tool, with `*` and `?`.
        within: The command of `execute`, or the site of `fetch`; None for every call.
    """

    tool: str
    within: str | None = None

    def fits(self, call: ToolCall) -> bool:
        """Return whether the pattern permits a call."""
        if call.name == _NEVER or not fnmatchcase(call.name, self.tool):
            return False
        if self.within is None:
            return True
        if call.name == "fetch":
            url = call.arguments.get("url")
            return isinstance(url, str) and _site(url) == self.within
        from fast_agent.tools.skills.permits import fits_command

        return fits_command(self.within, call)


@frozen
class AllowedCalls:
    """What is permitted without a question.

    Args:
        patterns: The patterns; without any, every question is asked.
    """

    patterns: tuple[AllowedCall, ...] = ()

    @classmethod
    def read(cls, texts: Iterable[str]) -> AllowedCalls:
        """Read patterns: `TOOL`, `execute(COMMAND)`, `execute(COMMAND *)` or `fetch(SITE)`.

        Raises:
            ConfigError: One of them is not a pattern.
        """
        return cls(tuple(map(_read, texts)))

    def permits(self, call: ToolCall) -> bool:
        """Return whether a call needs no question."""
        return any(pattern.fits(call) for pattern in self.patterns)


NOTHING_ALLOWED: Final = AllowedCalls()


def _read(text: str) -> AllowedCall:
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--allow: `{text}` is not a pattern of calls", hint=_HINT)
    tool, within = match.groups()
    if tool == _NEVER:
        raise ConfigError(
            f"--allow: `{tool}` decides what later runs load, and is not permitted by a pattern",
            hint="--trust lets the agent write cards without a question",
        )
    if within is None or within.strip() in {"*", ":*"}:
        return AllowedCall(tool)
    within = within.strip()
    if tool == "execute" and _COMMAND.fullmatch(within):
        return AllowedCall(tool, within)
    if tool == "fetch" and _site(within) is not None:
        return AllowedCall(tool, _site(within))
    raise ConfigError(f"--allow: {_fault(tool, within)}", hint=_HINT)


def _fault(tool: str, within: str) -> str:
    if tool == "execute":
        return f"`{within}` is not a command; a `*` stands at its end, behind a blank"
    if tool == "fetch":
        return f"`{within}` is not the address of a site"
    return f"`{tool}` takes nothing in parentheses; only `execute` and `fetch` do"


def _site(url: str) -> str | None:
    from fast_agent.trust.address import address_of

    found = None if "${" in url else address_of(url.strip())
    return str(found) if found is not None and found.scheme in {"http", "https"} else None
