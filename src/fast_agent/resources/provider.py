"""What a source of resources offers: the seam between the core and `internal`, `guide`, `skill`.

A provider answers from an immutable snapshot that it swaps whole, because requests, the watcher
and the search index ask from several threads. The small values here and nearby are named tuples:
making a dataclass costs a millisecond at each start of a server.

An `Answer` is the result of a method: data and JSON bytes, each made from the other when asked for.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

from fast_agent.rpc.message import NOTHING, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.errors import ResourceError
    from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
    from fast_agent.resources.session import Change, Session
    from fast_agent.resources.uri import Uri
    from fast_agent.text.json_value import JsonObject, JsonValue


class Answer:
    """The result of a request.

    Args:
        data: The result as data, or None where `json` has it.
        json: The result as JSON, or None where `data` has it.
        cacheable: Whether the newest protocol wants `ttlMs` and `cacheScope` on it.
    """

    __slots__ = ("_data", "_json", "cacheable")

    def __init__(
        self,
        data: JsonObject | None = None,
        json: bytes | None = None,
        *,
        cacheable: bool = False,
    ) -> None:
        self._data = data
        self._json = json
        self.cacheable = cacheable

    @classmethod
    def of_list(
        cls, key: str, items: Iterable[bytes], cursor: str | None = None, *, cacheable: bool = True
    ) -> Answer:
        """Make an answer of a list whose entries are JSON already.

        Args:
            key: The list's name, such as `resources`.
            items: The entries.
            cursor: The `nextCursor`, or None on the last page.
            cacheable: As for the class.
        """
        end = b"]}" if cursor is None else b'],"nextCursor":' + encode(cursor) + b"}"
        json = b"".join((b'{"', key.encode(), b'":[', b",".join(items), end))
        return cls(json=json, cacheable=cacheable)

    @property
    def data(self) -> JsonObject:
        """The result as data, which must not be changed."""
        if self._data is None:
            from json import loads

            self._data = cast("JsonObject", loads(self._json or b"{}"))
        return self._data

    @property
    def json(self) -> bytes:
        """The result as JSON on one line."""
        if self._json is None:
            self._json = encode(self._data or {})
        return self._json

    def with_fields(self, more: Answer) -> Answer:
        """Join two answers; where both are data, their `_meta` are merged.

        Args:
            more: Fields that are not here yet. An answer given as JSON has no `_meta`.
        """
        if self._json is not None:
            head, tail = self._json[:-1], more.json[1:]
            joint = b"" if head == b"{" else b","
            return Answer(json=b"".join((head, joint, tail)), cacheable=self.cacheable)
        data = self.data
        merged = {**data, **more.data}
        if (meta := data.get("_meta")) is not None:
            merged["_meta"] = {
                **cast("JsonObject", meta),
                **cast("JsonObject", more.data.get("_meta", {})),
            }
        return Answer(merged, cacheable=self.cacheable)


EMPTY = Answer({})


class Document(NamedTuple):
    """A text that search may index, read only when it is due.

    Args:
        uri: Where its text reads from.
        title: What people call it, or None to take its first heading.
        stamp: Any value that differs when the text may have changed; compared, never read.
        text: Returns the text, or None if it is not text or cannot be read now.
    """

    uri: Uri
    title: str | None
    stamp: str
    text: Callable[[], str | None]


class Provider(Protocol):
    """All resources of one scheme."""

    @property
    def scheme(self) -> str:
        """The scheme, lower case, without `://`."""
        ...

    @property
    def revision(self) -> int:
        """A number that grows when `resources()` or `templates()` would answer differently.

        Asked on every list, so it is the place to notice cheaply (a stat of the roots) that the
        disk has changed.
        """
        ...

    def resources(self) -> Mapping[str, Resource]:
        """The resources worth listing, by canonical URI; the same object until `revision` grows.

        Looking an entry up may take reading a file, so look up those that are shown.
        """
        ...

    def templates(self) -> Sequence[ResourceTemplate]:
        """The templates of resources that are not listed; asked for often, so never slow."""
        ...

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read a resource.

        Returns:
            One content or more, each under its canonical URI. The same read returns the same bytes.

        Raises:
            ResourceError: `NotFound`, `AmbiguousName`, `TooLarge` or `UnavailableResource`.
        """
        ...

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete an argument of one of this provider's templates.

        Args:
            template: The template, as listed.
            argument: The argument's name.
            value: What is written of it so far.
            given: Arguments already chosen, by name.

        Returns:
            Every value, best first; the service cuts them to a hundred and says how many there are.

        Raises:
            NotFound: The template has no such argument.
        """
        ...

    def documents(self) -> Iterable[Document]:
        """The texts search should find."""
        ...

    def places(self) -> Sequence[str]:
        """The directories and files that resources are read from; none if they are fixed."""
        ...

    def fingerprint(self, uri: Uri) -> str:
        """Identify the state of a resource: the result differs when a read would.

        Asked for URIs that clients follow, derived ones (manifests, collections, patterns)
        included, when they are first followed and after each `refresh`. It reads very little
        and never raises; a URI that reads nothing has the fingerprint `""`.
        """
        ...

    def refresh(self) -> Change:
        """Look at the disk again, because the watcher saw something change below `places()`.

        Returns:
            Nothing, for most providers: the service compares revisions, tools and fingerprints. A
            provider that knows of a further change says so.
        """
        ...


class ToolAnswer(NamedTuple):
    """The result of a tool call: MCP content blocks, and data if there is any."""

    content: tuple[JsonObject, ...]
    is_error: bool = False
    structured: JsonObject | None = None

    @classmethod
    def of_text(cls, text: str, *, is_error: bool = False) -> ToolAnswer:
        """Answer with one block of text."""
        return cls(({"type": "text", "text": text},), is_error)

    @classmethod
    def of_problem(cls, problem: ResourceError) -> ToolAnswer:
        """Report a problem to a model, and what to try."""
        hint = f"\n{problem.hint}" if problem.hint else ""
        return cls.of_text(problem.message + hint, is_error=True)

    @property
    def data(self) -> JsonObject:
        """The answer with MCP's field names."""
        data: dict[str, JsonValue] = {"content": self.content, "isError": self.is_error}
        return data if self.structured is None else {**data, "structuredContent": self.structured}


class ServedTool(NamedTuple):
    """A tool that a server of resources offers.

    Args:
        name: Its name.
        description: What it does, for the model.
        input_schema: JSON Schema of its arguments, an object.
        call: Answers a call. A `ResourceError` it raises becomes an answer with `isError`.
        title: A name for people, or None.
        annotations: MCP's hints, such as `readOnlyHint`, or None.
    """

    name: str
    description: str
    input_schema: JsonObject
    call: Callable[[JsonObject], ToolAnswer]
    title: str | None = None
    annotations: JsonObject | None = None

    @property
    def data(self) -> JsonObject:
        """The tool with MCP's field names."""
        data: dict[str, JsonValue] = {"name": self.name}
        if self.title is not None:
            data["title"] = self.title
        data |= {"description": self.description, "inputSchema": self.input_schema}
        return data if self.annotations is None else {**data, "annotations": self.annotations}


Method: TypeAlias = "Callable[[Session, JsonObject], Answer]"
"""Answers one method: the client's session and the request's `params` (`_meta` included)."""


def _no_tools() -> Sequence[ServedTool]:
    return ()


class Addition(NamedTuple):
    """What a provider adds to a server in addition to resources.

    Args:
        methods: Further methods by name: `skills/list`.
        extensions: What `capabilities.extensions` declares, by extension id.
        tools: Returns the current tools.
        instructions: A paragraph for the server's `instructions`, or None.
        capabilities: Further declared capabilities, such as `prompts`.
    """

    methods: Mapping[str, Method] = MappingProxyType({})
    extensions: JsonObject = NOTHING
    tools: Callable[[], Sequence[ServedTool]] = _no_tools
    instructions: str | None = None
    capabilities: JsonObject = NOTHING
