"""`allowed-tools` of skills: calls that need no permission in the turn that loaded the skill.

Only skills of the user's home, of directories outside the workspace that the user named, and found
skills that the user approved have an effect: an agent can write in its workspace, and an approval
ends with a change. Skills of MCP servers have none, approved or not. Tools that a card lists under
`confirm` need permission as before.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fast_agent.messages.message import ToolCall
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

MAX_TURNS: Final = 1_000
"""Turns whose skills are remembered; older ones ask again."""

MAX_PATTERNS: Final = 100
"""Tools one skill may name; the rest has no effect."""

_PATTERN = re.compile(r"([^\s,()]+)(?:\(([^()]*)\))?")
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
    found = (one for text in texts if isinstance(text, str) for one in _read(text))
    return tuple(one for one, _ in zip(found, range(MAX_PATTERNS), strict=False))


def _read(text: str) -> Iterator[tuple[str, str | None]]:
    # One unclosed parenthesis would turn the words of a pattern into names of tools.
    if _PATTERN.sub("", text).strip(" \t\r\n,"):
        return
    for match in _PATTERN.finditer(text):
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
