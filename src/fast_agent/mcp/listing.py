"""What servers list: tools, resources, templates and prompts, page by page, kept until they change.

`check` starts no server. What it says of a context window that the tools of servers fill rests on
the sizes that earlier runs recorded here.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast

import anyio

from fast_agent.errors import ToolError, os_reason
from fast_agent.mcp.content import DESCRIPTION_LIMIT, NAME_LIMIT, block, one_line, rest, wire
from fast_agent.mcp.server import HttpTarget
from fast_agent.messages.message import NOTHING
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mcp import types

    from fast_agent.mcp.server import ServerSpec
    from fast_agent.text.json_value import JsonObject

_TOOL = frozenset({"name", "title", "description", "inputSchema", "outputSchema"})
_RESOURCE = frozenset({"uri", "name", "title", "description", "mimeType", "size"})
_TEMPLATE = frozenset({"uriTemplate", "name", "title", "description", "mimeType"})
_PROMPT = frozenset({"name", "title", "description", "arguments"})


PAGE_LIMIT = 250
ITEM_LIMIT = 10_000
"""Most entries of one list; what comes after them is left out with a warning."""

MIN_SECONDS = 1.0
"""How long a list is kept at least, whatever the server says of its freshness."""

T = TypeVar("T")

_log = logging.getLogger(__name__)

SIZES_FILE: Final = "tool-sizes.json"
"""Where the sizes of tools are kept, in the home."""

_MAX_FILE: Final = 4 << 20
_MAX_SERVERS: Final = 200
_MAX_TOOLS: Final = 1_000


@frozen(kw_only=True)
class ListedTool:
    """A tool as its server lists it.

    Args:
        name: Its name at the server.
        title: Its name for people.
        description: What it does; bounded.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured results.
        read_only: The server says that it changes nothing.
        destructive: The server says that it may destroy something, or does not say.
        idempotent: The server says that calling it again changes nothing more.
        extra: The other fields, such as `annotations`, `icons`, `_meta`.
    """

    name: str
    title: str | None
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    read_only: bool
    destructive: bool
    idempotent: bool
    extra: JsonObject = NOTHING

    @property
    def digest(self) -> str:
        """Distinguishes it from the same tool with other words or arguments."""
        facts = (self.title, self.description, self.input_schema, self.output_schema, self.extra)
        text = json.dumps(facts, sort_keys=True, default=dict)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @classmethod
    def of(cls, tool: types.Tool) -> ListedTool:
        """Read the SDK's value."""
        hints = tool.annotations
        read_only = bool(hints and hints.read_only_hint)
        title = tool.title or (hints.title if hints else None)
        return cls(
            name=tool.name,
            title=_title(title),
            description=block(tool.description or "", DESCRIPTION_LIMIT),
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            read_only=read_only,
            destructive=not read_only and (hints is None or hints.destructive_hint is not False),
            idempotent=bool(hints and hints.idempotent_hint),
            extra=rest(wire(tool), _TOOL),
        )


@frozen(kw_only=True)
class ListedResource:
    """A resource as its server lists it; `size` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    size: int | None = None
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, resource: types.Resource) -> ListedResource:
        """Read the SDK's value."""
        return cls(
            uri=resource.uri,
            name=one_line(resource.name, NAME_LIMIT),
            title=_title(resource.title),
            description=block(resource.description or "", DESCRIPTION_LIMIT),
            mime_type=resource.mime_type,
            size=resource.size,
            extra=rest(wire(resource), _RESOURCE),
        )


@frozen(kw_only=True)
class ListedTemplate:
    """A resource template as its server lists it."""

    uri_template: str
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, template: types.ResourceTemplate) -> ListedTemplate:
        """Read the SDK's value."""
        return cls(
            uri_template=template.uri_template,
            name=one_line(template.name, NAME_LIMIT),
            title=_title(template.title),
            description=block(template.description or "", DESCRIPTION_LIMIT),
            mime_type=template.mime_type,
            extra=rest(wire(template), _TEMPLATE),
        )


@frozen(kw_only=True)
class PromptArgument:
    """An argument a prompt takes."""

    name: str
    description: str = ""
    required: bool = False


@frozen(kw_only=True)
class ListedPrompt:
    """A prompt as its server lists it."""

    name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    extra: JsonObject = NOTHING

    @classmethod
    def of(cls, prompt: types.Prompt) -> ListedPrompt:
        """Read the SDK's value."""
        return cls(
            name=prompt.name,
            title=_title(prompt.title),
            description=block(prompt.description or "", DESCRIPTION_LIMIT),
            arguments=tuple(
                PromptArgument(
                    name=argument.name,
                    description=block(argument.description or "", DESCRIPTION_LIMIT),
                    required=bool(argument.required),
                )
                for argument in prompt.arguments or ()
            ),
            extra=rest(wire(prompt), _PROMPT),
        )


def _title(title: str | None) -> str | None:
    return one_line(title, NAME_LIMIT) if title else None


@frozen
class Page(Generic[T]):
    """One page.

    Args:
        items: What it lists.
        cursor: Where the next page starts, or None on the last.
        fresh_seconds: How long it stays fresh; infinite if changes are notified.
    """

    items: Sequence[T]
    cursor: str | None
    fresh_seconds: float = inf


Fetch: TypeAlias = Callable[[str | None], Awaitable[Page[T]]]


class Listing(Generic[T]):
    """A whole list, fetched when it is first needed and after each change.

    Args:
        what: The server and what it lists, for messages.
        fetch: Fetches the page at a cursor.
        clock: Seconds that never go back.
        seconds: Longest wait for all pages together.
    """

    def __init__(
        self, what: str, fetch: Fetch[T], clock: Callable[[], float], *, seconds: float = inf
    ) -> None:
        self._what = what
        self._seconds = seconds
        self._fetch = fetch
        self._clock = clock
        self._lock = anyio.Lock()
        self._items: tuple[T, ...] | None = None
        self._fresh_until = -inf
        self._changes = 0
        self._is_cut = False

    def changed(self) -> None:
        """Fetch it again at the next use."""
        self._changes += 1
        self._fresh_until = -inf

    async def items(self) -> tuple[T, ...]:
        """Return the list; the same tuple while nothing changed.

        Raises:
            ToolError: The server cannot be reached, or its pages do not end.
        """
        if self._items is not None and self._clock() < self._fresh_until:
            return self._items
        async with self._lock:
            if self._items is not None and self._clock() < self._fresh_until:
                return self._items
            changes = self._changes
            items, fresh_seconds = await self._in_time()
            if items != self._items:
                self._items = items
            # A change notified while the pages came in makes them outdated already.
            if changes == self._changes:
                self._fresh_until = self._clock() + max(fresh_seconds, MIN_SECONDS)
            return self._items or ()

    async def _in_time(self) -> tuple[tuple[T, ...], float]:
        with anyio.move_on_after(self._seconds):
            return await self._fetch_all()
        raise ToolError(f"{self._what}: its pages did not end within {self._seconds:g} s")

    async def _fetch_all(self) -> tuple[tuple[T, ...], float]:
        items: list[T] = []
        seen: set[str] = set()
        cursor: str | None = None
        fresh_seconds = inf
        for _ in range(PAGE_LIMIT):
            page = await self._fetch(cursor)
            items.extend(page.items)
            fresh_seconds = min(fresh_seconds, page.fresh_seconds)
            cursor = page.cursor
            if len(items) > ITEM_LIMIT:
                self._warn_of_cut()
                return tuple(items[:ITEM_LIMIT]), fresh_seconds
            if cursor is None:
                return tuple(items), fresh_seconds
            if cursor in seen:
                raise ToolError(f"{self._what}: the pages do not end: a cursor was repeated")
            seen.add(cursor)
        raise ToolError(f"{self._what}: over {PAGE_LIMIT} pages")

    def _warn_of_cut(self) -> None:
        if not self._is_cut:
            self._is_cut = True
            _log.warning(
                "%s has over %s entries; the first ones are used", self._what, f"{ITEM_LIMIT:,}"
            )


class ToolSizes:
    """The lengths of servers' tools, by what starts or reaches the server.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, int, int], dict[str, dict[str, int]]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no tools are recorded."""
        return not self._read()

    def of(self, spec: ServerSpec) -> Mapping[str, int]:
        """Return the length of each tool in characters, by name; empty for an unknown server."""
        return self._read().get(_key(spec), {})

    def remember(self, spec: ServerSpec, tools: Iterable[ListedTool]) -> None:
        """Record the tools of a server; a home that cannot be written keeps none."""
        sizes = {tool.name: _length(tool) for tool in list(tools)[:_MAX_TOOLS]}
        known, key = self._read().copy(), _key(spec)
        if known.get(key) == sizes:
            return
        known.pop(key, None)
        known[key] = sizes
        while len(known) > _MAX_SERVERS:
            del known[next(iter(known))]
        from fast_agent.text.safe_file import write_atomic

        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self._path, json.dumps(known).encode("utf-8", "surrogatepass"))
        except OSError as error:
            reason = os_reason(error)
            _log.info("the sizes of tools are not kept: %s", reason)

    def _read(self) -> dict[str, dict[str, int]]:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - fast
        except OSError:
            return {}
        stamp = found.st_ino, found.st_size, found.st_mtime_ns
        if self._known is None or self._known[0] != stamp:
            self._known = stamp, self._parsed()
        return self._known[1]

    def _parsed(self) -> dict[str, dict[str, int]]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self._path.parent, self._path.name, _MAX_FILE).data
            value: object = json.loads(data)
        except (RefusedFileError, ValueError, RecursionError):
            return {}
        return cast("dict[str, dict[str, int]]", value) if _is_table(value) else {}


def _length(tool: ListedTool) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema, default=dict))


def _key(spec: ServerSpec) -> str:
    """Identify a server without writing down its arguments, which may hold a secret."""
    from fast_agent.trust.programs import is_launcher

    target = spec.target
    if isinstance(target, HttpTarget):
        facts = (target.url,)
    else:
        # Where a launcher starts is decided at each start, and does not change what it starts.
        moves = is_launcher(target.command, target.args)
        place = "" if moves else os.path.abspath(target.cwd or "")  # noqa: PTH100
        facts = (place, target.command, *target.args)
    return sha256("\0".join(facts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _is_table(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    servers = cast("dict[str, object]", value).values()
    return all(
        isinstance(tools, dict)
        and all(type(size) is int for size in cast("dict[str, object]", tools).values())
        for tools in servers
    )
