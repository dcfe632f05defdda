"""The tools `load_skill` and `read_skill_file`, offered where an agent may have skills."""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from fast_agent.errors import FastAgentError
from fast_agent.messages.message import ImageContent, TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.resources.resource import media_type
from fast_agent.resources.skill_client.catalog import MismatchError
from fast_agent.resources.skill_client.entry import (
    FORK,
    SkillCall,
    SkillError,
    path_in,
)
from fast_agent.resources.skill_client.text import (
    call_of,
    origin_attributes,
    summary,
    wrapped_entry,
    wrapped_file,
)
from fast_agent.tools.result import SKILL_MODEL, said
from fast_agent.tools.tool import RuntimeTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.resources.skill_client.catalog import SkillCatalog
    from fast_agent.resources.skill_client.source import NamedSkill
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.allowed_calls import SkillPermits
    from fast_agent.tools.skills.gate import SkillGate
    from fast_agent.tools.tool import Tool, ToolContext

LOAD = "load_skill"
READ = "read_skill_file"
MAX_CHARACTERS = 60_000
"""Most characters of one answer; the rest is read by `offset`."""

MAX_ENUM = 100
MAX_REMEMBERED = 1_000

Fork: TypeAlias = "Callable[[SkillCall, ToolContext], Awaitable[tuple[Content, ...]]]"
"""Has another instance of an agent carry out a skill, and returns its answer."""

_ARGUMENTS: Final[JsonObject] = {
    "type": "string",
    "description": "The task, for a skill that runs in a separate conversation.",
}

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class OfferedSkills(Protocol):
    """What an agent is offered of skills."""

    async def tools(self) -> Sequence[Tool]:
        """Return the current tools; the same sequence while nothing changed."""
        ...

    def block(self) -> str:
        """Return the block of a prompt as of the last check of the tools."""
        ...


class SkillTools:
    """The two tools; none if there can be no skill.

    Args:
        catalog: The agent's skills.
        gate: Asks before a skill of a server is used; None where all are of this machine.
        describe: Whether the tool says what each skill is for, as nothing else does.
        permits: Records what loaded skills allow; None if they allow nothing.
        fork: Has another instance of the agent carry out a skill, and returns its answer.
        runs: Whether the agent runs commands, for which approved skills of servers are copied.
    """

    def __init__(
        self,
        catalog: SkillCatalog,
        gate: SkillGate | None = None,
        *,
        describe: bool,
        permits: SkillPermits | None = None,
        fork: Fork | None = None,
        runs: bool = False,
    ) -> None:
        self._catalog = catalog
        self._gate = gate
        self._describe = describe
        self._permits = permits
        self._fork = fork
        self._runs = runs
        self._made_of: object = None
        self._tools: tuple[Tool, ...] = ()
        self._given: OrderedDict[tuple[object, ...], None] = OrderedDict()

    async def tools(self) -> Sequence[Tool]:
        """Return the current tools; the same sequence while the skills are the same."""
        skills = await self._catalog.scan()
        unlisted = await self._catalog.has_unlisted()
        made_of = (skills, unlisted)
        if self._made_of is None or self._made_of != made_of:
            self._made_of = made_of
            self._tools = self._make(skills, unlisted=unlisted)
        return self._tools

    async def load(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer `load_skill`."""
        # Other programs call the argument so, and models remember it.
        name = call.arguments.get("name", call.arguments.get("skillName"))
        if not isinstance(name, str):
            return ToolResult.error(call.id, "`name` must be the name of a skill, as a string")
        gate = self._gate
        admit = None if gate is None else partial(gate.admit, context=context)
        try:
            skill, data = await self._catalog.load(name, admit)
            text = decoded(data, "SKILL.md")
            directory, note = await self._directory_of(skill, context)
        except FastAgentError as problem:
            return ToolResult.error(call.id, said(problem))
        if skill.local and self._fork is not None and skill.entry.fields.forks:
            return await self._in_fork(call, skill, text, context, self._fork)
        if self._was_given(skill, data, context):
            note = f"the skill `{skill.name}` was loaded above in this turn and has not changed"
            return ToolResult(call.id, (TextContent(note),))
        fields = skill.entry.fields
        if skill.local and self._permits is not None:
            self._permits.add(context.turn_id, fields.allowed_tools)
        body = part_of(body_of(text), 0, "SKILL.md")
        wrapped = wrapped_entry(skill, body, directory)
        chosen = {} if not skill.local or fields.model is None else {SKILL_MODEL: fields.model}
        return ToolResult(call.id, (TextContent(wrapped + note),), extra=chosen)

    async def _directory_of(
        self, skill: NamedSkill, context: ToolContext
    ) -> tuple[str | None, str]:
        """Return where a loaded skill is on this machine, and a note for the model.

        Raises:
            MismatchError: A file of it is not what its server lists.
            ToolError: Its server cannot be reached.
        """
        gate = self._gate
        if skill.local or gate is None or not self._runs or not gate.is_approved(skill, context):
            return skill.entry.directory, ""
        try:
            place = await gate.copies.copy(skill, partial(self._catalog.read_all, skill))
        except MismatchError:
            raise
        except SkillError as problem:
            return None, f"\n[its files are not on this machine: {problem.message}]"
        return place, "\n[its files cannot be executed themselves; run them by an interpreter]"

    async def _in_fork(
        self, call: ToolCall, skill: NamedSkill, text: str, context: ToolContext, fork: Fork
    ) -> ToolResult:
        """Answer `load_skill` of a skill that is carried out in a separate conversation."""
        arguments = call.arguments.get("arguments", "")
        if not isinstance(arguments, str):
            return ToolResult.error(call.id, "`arguments` must be a string")
        try:
            answer = await fork(call_of(skill, body_of(text), arguments), context)
        except FastAgentError as problem:
            return ToolResult.error(call.id, said(problem))
        note = f"the skill `{skill.name}` ran in a separate conversation, which ended with:"
        return ToolResult(call.id, (TextContent(note), *answer))

    async def read(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer `read_skill_file`."""
        name, path = call.arguments.get("skill"), call.arguments.get("path")
        offset = call.arguments.get("offset", 0)
        if not isinstance(name, str) or not isinstance(path, str):
            return ToolResult.error(call.id, "`skill` and `path` must be strings")
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            return ToolResult.error(call.id, "`offset` must be a number of characters")
        try:
            skill, file, data = await self._catalog.read(name, path)
            if self._gate is not None:
                await self._gate.admit_once(skill, context)
            inner = path_in(skill.entry.head.uri, file.uri) or path
            origin = origin_attributes(skill.label, file.uri.text, local=skill.local)
            kind = media_type(inner)
            if kind in _IMAGES:
                about = wrapped_file(skill.name, inner, origin, "the image below", local=True)
                image = ImageContent(b64encode(data).decode(), kind)
                return ToolResult(call.id, (TextContent(about), image))
            place = skill.entry.directory
            if place is None and self._gate is not None:
                place = self._gate.copies.place(skill)
            text = part_of(_text_of(data, inner, place), offset, inner)
        except FastAgentError as problem:
            return ToolResult.error(call.id, said(problem))
        wrapped = wrapped_file(skill.name, inner, origin, text, local=skill.local)
        return ToolResult(call.id, (TextContent(wrapped),))

    def _was_given(self, skill: NamedSkill, data: bytes, context: ToolContext) -> bool:
        """Whether the same text stands in the same turn; in another it may be out of sight."""
        key = (context.turn_id, skill.key, hash(data))
        known = key in self._given
        self._given[key] = None
        if len(self._given) > MAX_REMEMBERED:
            self._given.popitem(last=False)
        return known

    def _make(self, skills: Sequence[NamedSkill], *, unlisted: bool) -> tuple[Tool, ...]:
        if not skills and not unlisted:
            return ()
        names = [skill.name for skill in skills]
        name: dict[str, JsonValue] = {"type": "string", "description": "The name of a skill."}
        if unlisted:
            name["description"] = "The name of a skill, or the URI of its `SKILL.md`."
        elif len(names) <= MAX_ENUM:
            name["enum"] = list(names)
        parameters: dict[str, JsonValue] = {"name": name}
        if self._fork is not None and any(map(_may_fork, skills)):
            parameters["arguments"] = _ARGUMENTS
        about = "Read the instructions of a skill, when what it is for fits the task."
        if self._describe and skills:
            lines = [_line(skill) for skill in skills[:MAX_ENUM]]
            about = "\n".join([about, "The skills, with what they say of themselves:", *lines])
        load = ToolSpec(LOAD, about, _object(parameters, "name"))
        read = ToolSpec(
            READ,
            "Read a file of a skill that was loaded, by its path as `load_skill` lists it.",
            _object(
                {
                    "skill": {"type": "string", "description": "The name of the skill."},
                    "path": {"type": "string", "description": "The file's path in the skill."},
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Characters to skip, to continue a long file.",
                    },
                },
                "skill",
                "path",
            ),
        )
        return SkillTool(load, self), SkillTool(read, self)


class SkillTool(RuntimeTool):
    """One of the two tools.

    Args:
        spec: How the model sees it.
        tools: What answers it.
    """

    __slots__ = ("_spec", "_tools")

    def __init__(self, spec: ToolSpec, tools: SkillTools) -> None:
        self._spec = spec
        self._tools = tools

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return self._spec

    @property
    def repeatable(self) -> bool:
        """Always True: reading changes nothing."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Read a skill, or a file of one."""
        answer = self._tools.load if self._spec.name == LOAD else self._tools.read
        return await answer(call, context)


def decoded(data: bytes, path: str) -> str:
    """Decode the text of a file.

    Raises:
        SkillError: It is not text.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        kind = media_type(path)
        raise SkillError(f"`{path}` is not text ({kind}, {len(data):,} bytes)") from None


def _text_of(data: bytes, path: str, directory: str | None) -> str:
    """Decode the text of a file; one that is not text is named by its place on this machine."""
    try:
        return decoded(data, path)
    except SkillError as error:
        hint = f"it is at `{directory}/{path}`" if directory is not None else None
        raise SkillError(error.message, hint=hint) from None


def body_of(text: str) -> str:
    """Return the text below the frontmatter."""
    from fast_agent.text.frontmatter import FrontmatterError, split_frontmatter
    from fast_agent.text.source import Source

    try:
        found = split_frontmatter(Source.of("SKILL.md", text))
    except FrontmatterError:
        return text
    return text if found is None else found.body


def part_of(text: str, offset: int, path: str) -> str:
    """Cut a long text, and describe how to get the rest."""
    end = offset + MAX_CHARACTERS
    if len(text) <= end:
        return text[offset:]
    rest = f"[{len(text) - end:,} characters follow; read `{path}` on at offset {end}]"
    return f"{text[offset:end]}\n{rest}"


def _object(properties: dict[str, JsonValue], *required: str) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _may_fork(skill: NamedSkill) -> bool:
    fields = skill.entry.frontmatter
    return skill.local and fields is not None and fields.get("context") == FORK


def _line(skill: NamedSkill) -> str:
    server = "" if skill.local else f" (server {skill.label}, untrusted)"
    return f"- {skill.name}{server}: {summary(skill.entry.description)}"
