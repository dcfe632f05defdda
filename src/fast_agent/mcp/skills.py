"""The skills of one server: by the skills extension, or by how servers listed them before it.

What the extension calls an entry is believed only after `skill_client/entry.py` checked it.
Only lists are read here; a file is read when it is asked for, and only from its own server.
"""

from __future__ import annotations

import json
import logging
from math import inf
from typing import TYPE_CHECKING, Any, Literal, cast

from fast_agent.errors import ToolError
from fast_agent.mcp.content import one_line
from fast_agent.mcp.listing import Listing, Page
from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.skill_client.catalog import MismatchError, most_bytes
from fast_agent.resources.skill_client.entry import (
    EXTENSION,
    SkillEntry,
    SkillError,
    SkillResource,
    head_uri,
    path_in,
    read_entry,
    read_manifest,
)
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.client import Client

    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.listing import ListedResource
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.toolbox import ServerFilter

RETRY_SECONDS = 60.0
"""How long a list that could not be had counts as empty."""

UNTOLD_SECONDS = 60.0
"""How long a list without a lifetime is valid if changes are not notified."""

MANIFEST = "_manifest"
MAX_MANIFEST = 1 << 20
MAX_REPORTED = 20

_log = logging.getLogger(__name__)


class ServerSkills:
    """The skills of one server, as one agent may use them.

    Args:
        connection: The server.
        allowed: The agent's filters of resources hold for skills too.
        clock: Seconds that never go back.
    """

    local = False

    def __init__(
        self, connection: Connection, allowed: ServerFilter, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._allowed = allowed
        self._clock = clock
        self._list = Listing(
            f"server `{connection.name}`: `skills/list`",
            self._page,
            clock,
            seconds=connection.spec.read_timeout_seconds,
        )
        self._changes = -1
        self._listed: Sequence[object] | None = None
        self._entries: tuple[SkillEntry, ...] = ()
        self._inventories: dict[str, SkillResource] = {}
        self._reported: set[str] = set()

    @property
    def label(self) -> str:
        """The server's name."""
        return self._connection.name

    async def skills(self) -> Sequence[SkillEntry]:
        """List the skills; the same sequence while nothing changed.

        A list that cannot be had counts as empty for a while, and is reported in the log: an agent
        has other things to do than skills.
        """
        if self._clock() < self._connection.catalog.no_skills_until:
            return ()
        try:
            extended = await self._has_extension()
            if extended:
                listed: Sequence[object] = await self._list.items()
            else:
                listed = await self._connection.catalog.resources()
        except ToolError as problem:
            self._connection.catalog.no_skills_until = self._clock() + RETRY_SECONDS
            self._report(f"its skills cannot be listed: {problem.message}")
            return ()
        if listed is not self._listed:
            self._listed = listed
            entries = (
                self._of_entries(cast("Sequence[JsonValue]", listed))
                if extended
                else self._of_resources(cast("Sequence[ListedResource]", listed))
            )
            if entries != self._entries:
                self._entries = entries
        return self._entries

    async def has_unlisted(self) -> bool:
        """Return whether the server may have skills it does not list, as the extension allows."""
        if self._clock() < self._connection.catalog.no_skills_until:
            return False
        try:
            return await self._has_extension()
        except ToolError:
            return False

    async def has_any(self) -> bool:
        """Return whether the server has skills, or declares that it may, even with none listed."""
        try:
            return await self._has_extension() or bool(await self.skills())
        except ToolError:
            return False

    async def complete(self, listed: SkillEntry, *, fresh: bool) -> SkillEntry:
        """Return an entry with its inventory."""
        if await self._has_extension():
            if not fresh:
                return listed
            # What was listed is outdated; the next check lists again.
            self._list.changed()
            return await self._get(listed.head.sent)
        if fresh:
            self._connection.catalog.resources_changed()
            await self.skills()
            listed = next((one for one in self._entries if one.uri == listed.uri), listed)
        return await self._inventoried(listed)

    async def unlisted(self, uri: str) -> SkillEntry | None:
        """Ask for a skill by its URI; None where the server has none of it."""
        if not await self.has_unlisted() or not self._allowed.allows_resource(self.label, uri):
            return None
        try:
            return await self._get(uri)
        except ToolError as problem:
            _log.debug("server `%s` returned no skill `%s`: %s", self.label, uri, problem)
            return None

    async def read(self, file: SkillResource) -> bytes:
        """Read a file from this server, and from nowhere else."""
        return await self._read(file.sent, file.uri, most_bytes(file))

    async def _has_extension(self) -> bool:
        """Whether the server declares the extension."""
        session = await self._connection.open()
        # Opening a session counts as a change of all its lists.
        changes = self._connection.catalog.resource_changes
        if changes != self._changes:
            self._changes = changes
            self._list.changed()
        declared: dict[str, Any] | None = session.client.server_capabilities.extensions
        return declared is not None and EXTENSION in declared

    async def _page(self, cursor: str | None) -> Page[JsonValue]:
        params = {} if cursor is None else {"cursor": cursor}
        answer = await self._ask("skills/list", params)
        skills, following = answer.get("skills"), answer.get("nextCursor")
        if not isinstance(skills, list):
            raise ToolError(f"server `{self.label}`: `skills/list` returned no list of skills")
        if following is not None and not isinstance(following, str):
            raise ToolError(
                f"server `{self.label}`: `skills/list` returned a cursor that is not a string"
            )
        fresh = answer.get("ttlMs")
        known = isinstance(fresh, int | float) and not isinstance(fresh, bool)
        # A change of resources announces changed skills; if it is not notified, and the list has no
        # lifetime, it is asked for again after a while.
        notifies = self._connection.notifies_changes
        seconds = fresh / 1000 if known else inf if notifies else UNTOLD_SECONDS
        return Page(cast("list[JsonValue]", skills), following, seconds)

    async def _get(self, uri: str) -> SkillEntry:
        answer = await self._ask("skills/get", {"uri": uri})
        value = answer.get("skill", answer)
        try:
            entry = read_entry(cast("JsonValue", value))
        except SkillError as problem:
            raise SkillError(
                f"server `{self.label}`: its skill `{one_line(uri)}` cannot be used:"
                f" {problem.message}"
            ) from None
        if entry.uri != head_uri(uri).text:
            raise SkillError(f"server `{self.label}` returned another skill than `{one_line(uri)}`")
        return entry

    async def _ask(self, method: Literal["skills/list", "skills/get"], params: Any) -> Any:
        """Make a request the SDK has no method for, and return the bare answer."""
        from mcp.types import Request
        from pydantic import RootModel

        request = Request[dict[str, Any], str](method=method, params=params)

        async def send(client: Client) -> RootModel[dict[str, Any]]:
            return await client.session.send_request(request, RootModel[dict[str, Any]])

        return (await self._connection.list_page(method, send)).root

    def _of_entries(self, listed: Sequence[JsonValue]) -> tuple[SkillEntry, ...]:
        found: dict[str, SkillEntry] = {}
        for value in listed:
            try:
                entry = read_entry(value)
            except SkillError as problem:
                name = value.get("uri") if isinstance(value, dict) else None
                self._report(f"the skill `{one_line(str(name))}` is left out: {problem.message}")
                continue
            if not self._allowed.allows_resource(self.label, entry.head.sent):
                continue
            if entry.uri in found:
                self._report(f"the skill `{one_line(entry.uri)}` is listed twice")
                continue
            if entry.frontmatter is None or _is_for_models(entry.frontmatter):
                found[entry.uri] = entry
        return tuple(found.values())

    def _of_resources(self, listed: Sequence[ListedResource]) -> tuple[SkillEntry, ...]:
        """Find `skill://…/SKILL.md` among resources; only what is listed of them is used."""
        found: dict[str, SkillEntry] = {}
        self._inventories = {}
        for resource in listed:
            if not resource.uri.startswith("skill://"):
                continue
            try:
                uri = Uri.parse(resource.uri)
            except InvalidUri as problem:
                self._report(f"`{one_line(resource.uri)}` is skipped: it {problem.reason}")
                continue
            self._inventories[uri.text] = SkillResource(uri, resource.uri)
            if uri.segments[-1] != "SKILL.md" or len(uri.segments) < 2:
                continue
            name = uri.segments[-2]
            if not is_name(name):
                self._report(f"`{one_line(resource.uri)}` is skipped: its name is not a skill name")
                continue
            if self._allowed.allows_resource(self.label, resource.uri):
                head = SkillResource(uri, resource.uri)
                found[uri.text] = SkillEntry(head, name, resource.description, None, None)
        return tuple(found.values())

    async def _inventoried(self, listed: SkillEntry) -> SkillEntry:
        """Find out the files of a skill that was found among the resources."""
        root = Uri.of(listed.head.uri.scheme, listed.head.uri.segments[:-1])
        manifest = self._inventories.get(root.child(MANIFEST).text)
        if manifest is not None:
            data = await self._read(manifest.sent, manifest.uri, MAX_MANIFEST)
            try:
                files = read_manifest(json.loads(data), listed.head)
            except (ValueError, SkillError) as problem:
                reason = problem.message if isinstance(problem, SkillError) else "it is not JSON"
                raise SkillError(
                    f"server `{self.label}`: the skill `{listed.name}` cannot be used: {reason}"
                ) from None
            return SkillEntry(files["SKILL.md"], listed.name, listed.description, None, files)
        listed_files: dict[str, SkillResource] = {"SKILL.md": listed.head}
        for file in self._inventories.values():
            path = path_in(listed.head.uri, file.uri)
            if path is not None:
                listed_files[path] = file
        return SkillEntry(listed.head, listed.name, listed.description, None, listed_files)

    async def _read(self, sent: str, uri: Uri, most: int) -> bytes:
        if not self._allowed.allows_resource(self.label, sent):
            raise SkillError(
                f"`{one_line(sent)}` of server `{self.label}` is not open to this agent",
                hint="its card's `resources` filter does not allow it",
            )
        result = await self._connection.request(
            "resources/read", lambda client, _call: client.read_resource(sent), repeatable=True
        )
        if len(result.contents) != 1:
            raise SkillError(
                f"server `{self.label}` returned {len(result.contents)} contents for"
                f" `{one_line(sent)}`"
            )
        content = result.contents[0]
        if not _names(content.uri, uri):
            raise MismatchError(
                f"server `{self.label}` returned `{one_line(content.uri)}` for `{one_line(sent)}`"
            )
        text = cast("str | None", getattr(content, "text", None))
        data = _bytes(text, cast("str | None", getattr(content, "blob", None)), most)
        if data is None:
            raise MismatchError(
                f"`{one_line(sent)}` exceeds the limit of {most:,} bytes, or has no content"
            )
        return data

    def _report(self, what: str) -> None:
        if what not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(what)
            _log.warning("server `%s`: %s", self.label, what)


def _bytes(text: str | None, blob: str | None, most: int) -> bytes | None:
    """Return the bytes of a content; None if there are too many, before it is decoded."""
    if text is not None:
        return text.encode("utf-8", "surrogatepass") if len(text) <= most else None
    if blob is None or len(blob) > (most + 2) // 3 * 4:
        return None
    import binascii

    try:
        return binascii.a2b_base64(blob, strict_mode=True)
    except binascii.Error:
        return None


def _names(text: str, uri: Uri) -> bool:
    try:
        return Uri.parse(text) == uri
    except InvalidUri:
        return False


def _is_for_models(frontmatter: Any) -> bool:
    """Whether a model may load a skill: not where its author kept it for people."""
    return frontmatter.get("disable-model-invocation") is not True
