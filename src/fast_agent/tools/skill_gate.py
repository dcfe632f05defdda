"""Consent to what server skills do: loading one, and what agents do once it is loaded.

Commands are asked about after any skill of a server is loaded. The functions and server tools of an
agent are asked about if a loaded skill is not approved: approving a skill lets the
agent use what its card provides.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import anyio

from fast_agent.errors import ResourceError
from fast_agent.resources.skill_client.entry import ACTING_FIELDS, SkillError
from fast_agent.resources.skill_client.text import folded_line, summary
from fast_agent.tools.human import HumanRequest, ask_human
from fast_agent.tools.result import error_result
from fast_agent.tools.skill_copies import SkillCopies
from fast_agent.tools.wrapped_tool import WrappedTool, WrappedToolset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.resources.skill_client.approvals import SkillApprovals, Standing
    from fast_agent.resources.skill_client.source import NamedSkill
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human
    from fast_agent.tools.tool import Tool, ToolContext, Toolset

MAX_COMMAND = 2_000

_log = logging.getLogger(__name__)

_YES = {"type": "string", "enum": ["yes", "no"]}


@dataclass(slots=True)
class _Loaded:
    """The server skills loaded in one conversation, by skill, as questions name them."""

    acting: dict[tuple[bool, str, str], str] = field(default_factory=dict[Any, str])
    unapproved: dict[tuple[bool, str, str], str] = field(default_factory=dict[Any, str])
    asking: anyio.Lock = field(default_factory=anyio.Lock)


class SkillGate:
    """Asks the person of a conversation, for all agents in it.

    What a skill says may travel between the agents of a conversation, and to no other.

    Args:
        human: The way to the user if a conversation has none; None if there is
            no user then.
        approvals: What was approved before.

    Attributes:
        copies: The copies of approved skills on this machine.
    """

    def __init__(self, human: Human | None, approvals: SkillApprovals) -> None:
        self.copies = SkillCopies()
        self._human = human
        self._approvals = approvals
        self._alone = _Loaded()
        self._loaded: WeakKeyDictionary[object, _Loaded] = WeakKeyDictionary()

    def close(self) -> None:
        """Remove the copies of skills; safe to call twice."""
        self.copies.close()

    def acting(self, context: ToolContext) -> tuple[str, ...]:
        """The skills of servers that were loaded in a conversation, for people."""
        return tuple(self._in(context).acting.values())

    def unapproved(self, context: ToolContext) -> tuple[str, ...]:
        """Those of them that are not approved, as questions name them."""
        return tuple(self._in(context).unapproved.values())

    def is_approved(self, skill: NamedSkill, context: ToolContext) -> bool:
        """Return whether a skill of a server was loaded in a conversation, and approved."""
        loaded = self._in(context)
        return skill.key in loaded.acting and skill.key not in loaded.unapproved

    async def admit(self, skill: NamedSkill, context: ToolContext) -> None:
        """Let an agent read the text of a skill.

        A skill of a directory is let through. For one of a server the person is asked, once for
        the files it has; without a user, its text may be read, as no text permits
        anything, unless the person approved other files of it.

        Raises:
            SkillError: The person does not want it, or has to be asked and cannot be.
        """
        if skill.local:
            return
        loaded = self._in(context)
        async with loaded.asking:
            standing = self._approvals.standing(skill.label, skill.entry)
            approved = standing == "approved" or await self._ask(skill, context, standing)
            name = f"`{skill.entry.name}` of server `{skill.label}`"
            loaded.acting[skill.key] = name
            if not approved:
                loaded.unapproved[skill.key] = name

    async def admit_once(self, skill: NamedSkill, context: ToolContext) -> None:
        """Like `admit`, unless the skill was loaded in this conversation already.

        Agents of several conversations share what was loaded, and one of them may read on in what
        another one asked for.
        """
        if skill.key not in self._in(context).acting:
            await self.admit(skill, context)

    async def allows(self, call: ToolCall, context: ToolContext) -> bool:
        """Return whether a command may run although a skill of a server was loaded."""
        loaded = self._in(context)
        if not loaded.acting:
            return True
        async with loaded.asking:
            command = summary(str(call.arguments.get("command", call.arguments)), MAX_COMMAND)
            return await self._agrees(
                f"agent `{context.agent_name}` has loaded {', '.join(self.acting(context))},"
                f" which is from outside, and wants to run:\n{command}",
                context,
                "run",
            )

    async def allows_use(self, call: ToolCall, context: ToolContext) -> bool:
        """Return whether a function or a server tool may be called given what was loaded.

        It may, unless one of the skills was not approved: then the person is asked.
        """
        loaded = self._in(context)
        if not loaded.unapproved:
            return True
        async with loaded.asking:
            arguments = summary(str(dict(call.arguments)), MAX_COMMAND)
            return await self._agrees(
                f"agent `{context.agent_name}` has loaded {', '.join(self.unapproved(context))},"
                f" which nobody approved, and wants to call `{summary(call.name)}` with:\n"
                f"{arguments}",
                context,
                "call",
            )

    def _in(self, context: ToolContext) -> _Loaded:
        key = context.conversation
        return self._alone if key is None else self._loaded.setdefault(key, _Loaded())

    def _human_of(self, context: ToolContext) -> Human | None:
        return context.human or self._human

    async def _ask(self, skill: NamedSkill, context: ToolContext, standing: Standing) -> bool:
        """Ask about a load; False if it is allowed without approval."""
        if self._human_of(context) is None:
            if standing == "changed":
                raise SkillError(
                    f"the skill `{skill.name}` of server `{skill.label}` changed since it was"
                    " approved; it needs approval again, and there is no person to ask",
                    hint="go on without it",
                )
            return False
        question = _question(skill, context.agent_name, standing)
        if not await self._agrees(question, context, "load"):
            if standing == "changed":
                self._approvals.revoke(skill.label, skill.entry)
            raise SkillError(
                f"the person does not want the skill `{skill.name}` of server `{skill.label}`",
                hint="go on without it",
            )
        try:
            self._approvals.approve(skill.label, skill.entry)
        except ResourceError as problem:
            # It was allowed all the same; the next load asks again.
            _log.warning("%s", problem.message)
        return True

    async def _agrees(self, message: str, context: ToolContext, key: str) -> bool:
        human = self._human_of(context)
        if human is None:
            return False
        form: JsonObject = {"type": "object", "properties": {key: _YES}, "required": [key]}
        request = HumanRequest(message=message, agent_name=context.agent_name, schema=form)
        answer = await ask_human(human, request, "skills")
        return answer.action == "accept" and (answer.content or {}).get(key) == "yes"


class GatedTool(WrappedTool):
    """A tool that acts, asked about once a skill of a server was loaded.

    Args:
        tool: The tool.
        gate: Asks.
        commands: Whether it runs commands of the model's own making; else it does what a function
            or a server does, and is asked about with unapproved skills.
    """

    __slots__ = ("_commands", "_gate")

    def __init__(self, tool: Tool, gate: SkillGate, *, commands: bool = True) -> None:
        super().__init__(tool)
        self._gate = gate
        self._commands = commands

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Do the work where it is allowed; an error result where it is not."""
        gate = self._gate
        if self._commands:
            if await gate.allows(call, context):
                return await self._tool.call(call, context)
            who, what = f"{', '.join(gate.acting(context))} is from outside", "the command"
        else:
            if await gate.allows_use(call, context):
                return await self._tool.call(call, context)
            who, what = (
                f"{', '.join(gate.unapproved(context))} was loaded without approval",
                "the call",
            )
        return error_result(
            call.id, f"`{self.spec.name}` was not run: {who}, and no person allowed {what}"
        )


def gated_toolset(toolset: Toolset, gate: Callable[[], SkillGate]) -> Toolset:
    """Ask about the tools of a server while unapproved skills are loaded.

    Args:
        toolset: The tools.
        gate: Gives what asks, the same at every call.
    """

    def wrap(tools: Sequence[Tool]) -> tuple[Tool, ...]:
        asks = gate()
        return tuple([GatedTool(tool, asks, commands=False) for tool in tools])

    return WrappedToolset(toolset, wrap)


def _question(skill: NamedSkill, agent: str, standing: Standing) -> str:
    entry = skill.entry
    if standing == "changed":
        first = "changed since it was approved and needs approval again"
    else:
        first = "was not approved yet"
    if entry.files is None:
        inventory = "its server makes its files as they are asked for, so that none can be checked"
    else:
        size = sum(file.size or 0 for file in entry.files.values())
        inventory = f"{len(entry.files)} files, {size:,} bytes"
    shown = [f"`{name}`" for name in sorted(ACTING_FIELDS.intersection(entry.frontmatter or ()))]
    ignored = f"\nits {', '.join(shown)} have no effect" if shown else ""
    return (
        f"agent `{agent}` wants to load the skill `{entry.name}` of server `{skill.label}`"
        f" (`{folded_line(entry.uri)}`), which {first}\n"
        f"it says of itself: {summary(entry.description)}\n"
        f"{inventory}; its text would be read as untrusted, and would permit nothing{ignored}"
    )
