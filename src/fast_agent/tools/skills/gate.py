"""Consent to what server skills do: loading one, and what agents do once it is loaded.

Commands are asked about after any skill of a server is loaded. The functions and server tools of an
agent are asked about if a loaded skill is not approved: approving a skill lets the
agent use what its card provides.

An approved skill is also copied when an agent that has a shell loads it, file by file as it was
verified, so that its scripts can be run by path. The copies are in a directory of temporary files,
where no skill is searched for, and are removed with the run that made them. Only the user may read
them, and nothing is executable: a script is run by its interpreter, as a command that needs
approval like any other.

`SkillApprovals` keeps which skills a user approved, each bound to the very files it had then.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from weakref import WeakKeyDictionary

import anyio
from anyio import Lock

from fast_agent.errors import ResourceError, os_reason
from fast_agent.messages.message import ToolResult
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.skill.snapshot import digest_of
from fast_agent.resources.skill_client.entry import ACTING_FIELDS, SkillError
from fast_agent.resources.skill_client.text import folded_line, summary
from fast_agent.text.safe_file import (
    RefusedFileError,
    confined_parts,
    folded_name,
    read_confined,
    write_atomic,
    write_confined,
)
from fast_agent.tools.human import HumanRequest, ask_human
from fast_agent.tools.toolbox import WrappedTool, WrappedToolset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from fast_agent.messages.message import ToolCall
    from fast_agent.resources.skill_client.entry import SkillEntry
    from fast_agent.resources.skill_client.source import NamedSkill
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human
    from fast_agent.tools.tool import Tool, ToolContext, Toolset

Standing: TypeAlias = Literal["new", "approved", "changed"]
"""`changed` was approved with other files than it has now."""
APPROVALS_FILE = "skill-approvals.json"
MAX_FILE = 4 << 20


class SkillApprovals:
    """Approvals, kept in a file that only its owner may read.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def standing(self, label: str, entry: SkillEntry) -> Standing:
        """Return the approval state of a skill of a server.

        Args:
            label: The server's name.
            entry: The current state of the skill.
        """
        approved = self._read().get(label, {}).get(entry.uri)
        if approved is None:
            return "new"
        return "approved" if approved == entry.fingerprint else "changed"

    def approve(self, label: str, entry: SkillEntry) -> None:
        """Store an approval; one of a skill without a file list cannot be bound, and is not stored.

        Raises:
            ResourceError: The file cannot be written.
        """
        if entry.fingerprint is None:
            return
        known = self._read()
        known.setdefault(label, {})[entry.uri] = entry.fingerprint
        self._write(known)

    def revoke(self, label: str, entry: SkillEntry) -> None:
        """Forget an approval.

        Raises:
            ResourceError: The file cannot be written.
        """
        known = self._read()
        if known.get(label, {}).pop(entry.uri, None) is not None:
            self._write(known)

    def _read(self) -> dict[str, dict[str, str]]:
        """Read the file again: another process may have written it."""
        try:
            data = read_confined(self._path.parent, self._path.name, MAX_FILE).data
        except RefusedFileError as refusal:
            if not refusal.missing:
                _log.warning("`%s` %s; no skill counts as approved", self._path, refusal.message)
            return {}
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        if not _is_table(value):
            _log.warning("`%s` is not a file of approvals; no skill counts as approved", self._path)
            return {}
        return cast("dict[str, dict[str, str]]", value)

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self._path, json.dumps(known, indent=2, sort_keys=True).encode() + b"\n")
        except OSError as error:
            reason = os_reason(error)
            raise ResourceError(f"the approval cannot be saved: {reason.lower()}") from error


def _is_table(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    inner = cast("dict[str, object]", value).values()
    return all(
        isinstance(one, dict)
        and all(isinstance(text, str) for text in cast("dict[str, object]", one).values())
        for one in inner
    )


MAX_COMMAND = 2_000
_log = logging.getLogger(__name__)
_YES = {"type": "string", "enum": ["yes", "no"]}


@dataclass(slots=True)
class _LoadedSkills:
    """The server skills loaded in one conversation, by skill, as questions name them."""

    acting: dict[tuple[bool, str, str], str] = field(default_factory=dict[Any, str])
    unapproved: dict[tuple[bool, str, str], str] = field(default_factory=dict[Any, str])
    asking: anyio.Lock = field(default_factory=anyio.Lock)


class SkillGate:
    """Asks the user of a conversation, for all agents in it.

    What a skill says may travel between the agents of a conversation, and to no other.

    Args:
        human: Asks the user if a conversation has none; None if there is
            no user then.
        approvals: What was approved before.

    Attributes:
        copies: The copies of approved skills on this machine.
    """

    def __init__(self, human: Human | None, approvals: SkillApprovals) -> None:
        self.copies = SkillCopies()
        self._human = human
        self._approvals = approvals
        self._alone = _LoadedSkills()
        self._loaded: WeakKeyDictionary[object, _LoadedSkills] = WeakKeyDictionary()

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
        """Authorize an agent to read the text of a skill.

        A skill of a directory is let through. For one of a server the user is asked, once for
        the files it has; without a user, its text may be read, as no text permits
        anything, unless the user approved other files of it.

        Raises:
            SkillError: The user does not want it, or has to be asked and cannot be.
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

        It may, unless one of the skills was not approved: then the user is asked.
        """
        loaded = self._in(context)
        if not loaded.unapproved:
            return True
        async with loaded.asking:
            arguments = summary(str(dict(call.arguments)), MAX_COMMAND)
            return await self._agrees(
                f"agent `{context.agent_name}` has loaded {', '.join(self.unapproved(context))},"
                f" which is not approved, and wants to call `{summary(call.name)}` with:\n"
                f"{arguments}",
                context,
                "call",
            )

    def _in(self, context: ToolContext) -> _LoadedSkills:
        key = context.conversation
        return self._alone if key is None else self._loaded.setdefault(key, _LoadedSkills())

    def _human_of(self, context: ToolContext) -> Human | None:
        return context.human or self._human

    async def _ask(self, skill: NamedSkill, context: ToolContext, standing: Standing) -> bool:
        """Ask about a load; False if it is allowed without approval."""
        if self._human_of(context) is None:
            if standing == "changed":
                raise SkillError(
                    f"the skill `{skill.name}` of server `{skill.label}` changed since it was"
                    " approved; it needs approval again, and no user is connected",
                    hint="continue without it",
                )
            return False
        question = _question(skill, context.agent_name, standing)
        if not await self._agrees(question, context, "load"):
            if standing == "changed":
                self._approvals.revoke(skill.label, skill.entry)
            raise SkillError(
                f"the user does not allow the skill `{skill.name}` of server `{skill.label}`",
                hint="continue without it",
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
        return ToolResult.error(
            call.id, f"`{self.spec.name}` was not run: {who}, and the user did not allow {what}"
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


_UNSAFE: Final = re.compile(
    r'[<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)', re.IGNORECASE
)
"""Names that mean something else on some system."""
_MAX_NAME_BYTES: Final = 255


class SkillCopies:
    """The copies of one run, by server, skill and digest."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._places: dict[tuple[bool, str, str], Path] = {}
        self._lock = Lock()

    def place(self, skill: NamedSkill) -> str | None:
        """Return the directory of a skill that was copied; None where it was not."""
        place = self._places.get(skill.key)
        return None if place is None else str(place)

    async def copy(
        self, skill: NamedSkill, read: Callable[[], Awaitable[Mapping[str, bytes]]]
    ) -> str:
        """Copy a skill, unless its copy is there and holds what it should.

        Args:
            skill: The skill; a user approved it.
            read: Reads all its files, and verifies them.

        Returns:
            The directory of the copy.

        Raises:
            SkillError: Its files have no digests, a name is not safe, or they cannot be written.
            ToolError: Its server cannot be reached.
        """
        digest, files = skill.entry.fingerprint, skill.entry.files
        if digest is None or files is None:
            raise SkillError("its server makes its files as they are asked for")
        check_names(files)
        async with self._lock:
            name = skill.entry.name if is_name(skill.entry.name) else "skill"
            folder = sha256(f"{skill.label}\0{skill.entry.uri}\0{digest}".encode())
            place = self._opened() / folder.hexdigest()[:32] / name
            if not _holds(place, {path: one.digest for path, one in files.items()}):
                _write(place, await read())
            self._places[skill.key] = place
            return str(place)

    def close(self) -> None:
        """Remove all copies; safe to call twice."""
        root, self._root = self._root, None
        self._places.clear()
        if root is not None:
            _remove(root)

    def _opened(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="fast-agent-skills-")).resolve()
        return self._root


def check_names(paths: Iterable[str]) -> None:
    """Check that files can be written under their names on any system.

    Args:
        paths: Their paths in the skill, with `/` between names.

    Raises:
        SkillError: One of them is not safe, or two would be the same file on some system.
    """
    seen: dict[str, str] = {}
    for path in paths:
        try:
            parts = confined_parts(path)
        except RefusedFileError as error:
            raise SkillError(f"the name of its file `{path!r}` {error}") from None
        if any(_UNSAFE.search(one) or len(os.fsencode(one)) > _MAX_NAME_BYTES for one in parts):
            raise SkillError(f"the name of its file `{path!r}` is not one on every system")
        for end in range(1, len(parts) + 1):
            inner = "/".join(parts[:end])
            other = seen.setdefault(folded_name(inner), inner)
            if other != inner:
                raise SkillError(f"its files `{other}` and `{inner}` differ only in their spelling")


def _holds(place: Path, digests: Mapping[str, str | None]) -> bool:
    """Return whether a copy has the files it should; a command may have changed them."""
    found = {
        str(file.relative_to(place)): file
        for file in place.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }
    if found.keys() != digests.keys() or any(file.is_symlink() for file in found.values()):
        return False
    try:
        return all(digest_of(found[path].read_bytes()) == digests[path] for path in digests)
    except OSError:
        return False


def _write(place: Path, files: Mapping[str, bytes]) -> None:
    if place.exists():
        _remove(place)
    try:
        place.mkdir(parents=True, mode=0o700)
        for path, data in files.items():
            write_confined(str(place), confined_parts(path), data)
        for file in place.rglob("*"):
            file.chmod(0o500 if file.is_dir() else 0o400)
        place.chmod(0o500)
    except (OSError, RefusedFileError) as error:
        raise SkillError(f"its files cannot be written to `{place}`: {error}") from None


def _remove(place: Path) -> None:
    """Remove a directory whose directories may not be written."""
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
