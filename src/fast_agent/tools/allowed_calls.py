"""Calls that need no permission: what the user permits with `--allow`, and skills allow.

What `--allow` says answers the questions about calls that a card marks and about pages of a private
network. It answers none about what is run or loaded later (`create_agent_card`, files of cards and
settings), about files named as secrets, or about skills of servers.

The `allowed-tools` of a skill need no permission in the turn that loaded it. Only skills of the
user's home, of directories outside the workspace that the user named, and found skills that the
user approved have an effect: an agent can write in its workspace, and an approval ends with a
change. Skills of MCP servers have none, approved or not. Tools that a card lists under `confirm`
need permission as before.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fast_agent.messages.message import ToolCall
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

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
        return f"`{within}` is not a command; a `*` must come last, after a space"
    if tool == "fetch":
        return f"`{within}` is not the address of a site"
    return f"`{tool}` takes nothing in parentheses; only `execute` and `fetch` do"


def _site(url: str) -> str | None:
    from fast_agent.trust.address import address_of

    found = None if "${" in url else address_of(url.strip())
    return str(found) if found is not None and found.scheme in {"http", "https"} else None


MAX_TURNS: Final = 1_000
"""Turns whose skills are remembered; older ones ask again."""
MAX_PATTERNS: Final = 100
"""Tools one skill may name; the rest has no effect."""
_TOOL_RULE = re.compile(r"([^\s,()]+)(?:\(([^()]*)\))?")
_IN_SHELLS = re.compile(r"[;&|<>$`\\(){}\n\r]")
"""Characters by which one command could start another one."""
_OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bash": ("execute",),
        "read": ("read_text_file",),
        "write": ("write_file", "write_text_file"),
        "edit": ("edit_file",),
    }
)
"""Names in Claude Code, and the tools of the runtime that do the same."""
Patterns = tuple[tuple[str, str | None], ...]


def read_patterns(value: JsonValue) -> Patterns:
    """Read `allowed-tools`.

    Args:
        value: The field: names separated by spaces or commas, or a list of them. A name may have a
            pattern of commands behind it, such as `Bash(git:*)`.

    Returns:
        Names of tools of this program, each with its pattern of commands or None.
    """
    texts = value if isinstance(value, list | tuple) else (value,)
    found = (one for text in texts if isinstance(text, str) for one in _permits_of(text))
    return tuple(one for one, _ in zip(found, range(MAX_PATTERNS), strict=False))


def _permits_of(text: str) -> Iterator[tuple[str, str | None]]:
    # One unclosed parenthesis would turn the words of a pattern into names of tools.
    if _TOOL_RULE.sub("", text).strip(" \t\r\n,"):
        return
    for match in _TOOL_RULE.finditer(text):
        name, commands = match.groups()
        for own in _OWN_NAMES.get(name.lower(), (name.removeprefix("mcp__"),)):
            yield own, None if commands in (None, "*", ":*") else commands


class SkillPermits:
    """What the skills loaded in each turn allow; the agents of a card share it."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, Patterns] = OrderedDict()

    def add(self, turn_id: str, allowed: JsonValue) -> None:
        """Allow what a skill names, for the rest of the turn that uses it.

        Args:
            turn_id: The turn.
            allowed: The field `allowed-tools` of a skill that may have an effect.
        """
        patterns = read_patterns(allowed)
        if patterns:
            self._turns[turn_id] = (*self._turns.get(turn_id, ()), *patterns)
            if len(self._turns) > MAX_TURNS:
                self._turns.popitem(last=False)

    def allows(self, call: ToolCall, context: ToolContext) -> bool:
        """Return whether a call needs no permission."""
        return any(
            name == call.name and (commands is None or fits_command(commands, call))
            for name, commands in self._turns.get(context.turn_id, ())
        )


def fits_command(pattern: str, call: ToolCall) -> bool:
    """Return whether a call of `execute` runs one command, and that command fits.

    Args:
        pattern: The whole command, or its first words followed by ` *` or `:*`.
        call: The call.
    """
    command = call.arguments.get("command")
    if call.name != "execute" or not isinstance(command, str) or _IN_SHELLS.search(command):
        return False
    prefix = re.fullmatch(r"([^*]+?)(?::| )\*", pattern.strip())
    if prefix is None:
        return command.strip() == pattern.strip()
    return command.strip() == prefix[1] or command.lstrip().startswith(f"{prefix[1]} ")
