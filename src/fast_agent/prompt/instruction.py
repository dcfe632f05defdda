"""Instructions: a card's text with its placeholders filled in, when a turn needs it.

A template is parsed once. Rendering reads what may have changed (the date, files, servers, agents),
and rewrites the text only where something did. What comes out of a placeholder is put in as it
is and never expanded again, so a fetched page cannot name a file to read. Texts of web pages are
fetched once and kept for a while.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from fast_agent.cards.placeholder import Placeholder
from fast_agent.errors import ResourceError
from fast_agent.prompt.named_file import NamedFile, ProjectInstructions
from fast_agent.steps.steps import Step, here, text_by_digest
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date, datetime
    from pathlib import Path

    from anyio import Lock

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.grant import CardGrant
    from fast_agent.cards.placeholder import Template
    from fast_agent.mcp.web_page import Judge
    from fast_agent.resources.internal.provider import InternalDocument, InternalProvider

    Reader: TypeAlias = Callable[[], str]

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ATTRIBUTE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;"}
)


@frozen
class ServerInstructions:
    """What an MCP server says about its use."""

    name: str
    text: str


@frozen
class AgentListing:
    """A child agent as a prompt shows it.

    Args:
        name: Its card's name.
        description: What it does; empty where nothing says so.
        servers: The names of its MCP servers.
    """

    name: str
    description: str = ""
    servers: tuple[str, ...] = ()


def servers_block(servers: Iterable[ServerInstructions]) -> str:
    """Write one element for each server with instructions; empty if there is none."""
    return "\n".join(
        [
            f"<mcp-server{attribute('name', server.name)}>\n"
            f"{escaped(server.text.strip())}\n</mcp-server>"
            for server in servers
            if server.text.strip()
        ]
    )


def agents_block(agents: Iterable[AgentListing]) -> str:
    """Write a list of agents with names, servers and descriptions; empty for none."""
    lines = [_agent_line(agent) for agent in agents]
    return "\n".join(["<agents>", *lines, "</agents>"]) if lines else ""


def environment_block(*, date: str, platform: str, python: str, workspace: str) -> str:
    """Write where and when an agent runs."""
    return "\n".join(
        [
            "<environment>",
            f"<date>{escaped(date)}</date>",
            f"<platform>{escaped(platform)}</platform>",
            f"<python>{escaped(python)}</python>",
            f"<workspace>{escaped(workspace)}</workspace>",
            "</environment>",
        ]
    )


def escaped(text: str) -> str:
    """Escape text that goes between two tags, so that it cannot close or open one."""
    return text.translate(_IN_TEXT)


def attribute(name: str, value: str) -> str:
    """Write an attribute of a tag, with a space before it."""
    return f' {name}="{value.translate(_IN_ATTRIBUTE)}"'


def _agent_line(agent: AgentListing) -> str:
    attributes = attribute("name", agent.name)
    if agent.servers:
        attributes += attribute("servers", ", ".join(agent.servers))
    description = escaped(agent.description.strip())
    return f"<agent{attributes}>{description}</agent>" if description else f"<agent{attributes}/>"


def resources_block(documents: Iterable[InternalDocument]) -> str:
    """Write an index of documents: URI, what it holds, why to read it, and its size in tokens.

    Args:
        documents: What to list, in order.

    Returns:
        The block; empty for none.
    """
    entries = [
        f"<resource>\n<uri>{escaped(one.uri.text)}</uri>\n"
        f"<description>{escaped(one.description)}</description>\n"
        f"<why>{escaped(one.why)}</why>\n<tokens>{one.tokens}</tokens>\n</resource>"
        for one in documents
    ]
    if not entries:
        return ""
    return "\n".join(["<available_resources>", *entries, "</available_resources>"])


@cache
def internal_index() -> str:
    """Write the index of the packaged documents; single skills are left to the list of skills.

    Raises:
        ResourceError: They are missing from this installation.
    """
    return resources_block(_provider().index)


@cache
def internal_text(document_id: str) -> str:
    """Read a packaged document.

    Args:
        document_id: What stands in `{{internal:ID}}`.

    Raises:
        ResourceError: There is none; the hint names the closest.
    """
    provider = _provider()
    return provider.text_of(provider.find(document_id))


@cache
def _provider() -> InternalProvider:
    # Imported when a card speaks of it, so that other cards do not wait for it.
    from fast_agent.resources.internal.provider import InternalProvider

    return InternalProvider()


T = TypeVar("T")


def _none() -> tuple[()]:
    return ()


@frozen(kw_only=True)
class InstructionContext:
    """What an instruction may speak of.

    Args:
        workspace: The workspace's root directory, absolute.
        now: The clock, in local time.
        platform: The operating system, as returned by `host_platform()`.
        python: The Python version, as returned by `python_version()`.
        servers: The current instructions of the agent's MCP servers.
        agents: The agent's current children.
        skills: The block of the agent's skills; None for none.
        resources: The block of the internal resources; None for none.
        internal: Reads one internal document by its id; raises ResourceError. None where there are
            no internal documents.
        urls: Fetched pages; None where fetching is not allowed.
        reads_project: Returns whether the agent may have the instructions of the project it works
            in, which it did not bring.
    """

    workspace: Path
    now: Callable[[], datetime]
    platform: str
    python: str
    servers: Callable[[], Sequence[ServerInstructions]] = _none
    agents: Callable[[], Sequence[AgentListing]] = _none
    skills: Callable[[], str] | None = None
    resources: Callable[[], str] | None = None
    internal: Callable[[str], str] | None = None
    urls: UrlTexts | None = None
    reads_project: Callable[[], bool] = lambda: True


class Instruction:
    """The system prompt of one agent instance.

    Args:
        template: The parsed instruction of the card; instances share it.
        config: What the instance is made from.
        context: What the text may speak of.
    """

    def __init__(
        self, template: Template, config: AgentConfig, context: InstructionContext
    ) -> None:
        constants = _constants(config, context)
        changing = _ChangingReaders(config, context)
        self._fetched: list[_UrlText] = []
        self._parts: list[str | Reader] = []
        for segment in template.segments:
            if not isinstance(segment, Placeholder):
                self._parts.append(segment)
            elif segment.name in constants:
                self._parts.append(constants[segment.name])
            elif segment.name == "url":
                page = _UrlText(segment, context.urls, config.grant)
                self._fetched.append(page)
                self._parts.append(page.read)
            else:
                self._parts.append(changing.reader(segment))
        self._readers = [part for part in self._parts if not isinstance(part, str)]
        self._values: list[str] | None = None
        self._text = ""

    async def render(self) -> str:
        """Return the current text.

        Returns:
            The system prompt; the very same string while nothing it speaks of has changed.

        Raises:
            CardError: A file it names is missing, leaves its directory, or is not text.
            ResourceError: A page or an internal document cannot be had.
        """
        for page in self._fetched:
            if not page.is_fresh():
                await page.fetch()
        values = [read() for read in self._readers]
        if values != self._values:
            filled = iter(values)
            self._text = "".join(
                [part if isinstance(part, str) else next(filled) for part in self._parts]
            )
            self._values = values
        return self._text


def host_platform() -> str:
    """Name the operating system, its release and the machine."""
    facts = os.uname()
    return f"{facts.sysname} {facts.release} {facts.machine}"


def python_version() -> str:
    """Name the version of this Python, such as `3.12.1`."""
    import sys

    return ".".join(map(str, sys.version_info[:3]))


def _constants(config: AgentConfig, context: InstructionContext) -> dict[str, str]:
    directory = config.directory
    path = str(config.source or config.remote or "")
    return {
        "hostPlatform": context.platform,
        "pythonVer": context.python,
        "workspaceRoot": str(context.workspace),
        "agentName": config.name,
        "agentType": config.type,
        "agentCardPath": path,
        "agentCardDir": "" if directory is None else str(directory),
    }


class _ChangingReaders:
    """Makes the readers of what may change between two turns; placeholders share them."""

    def __init__(self, config: AgentConfig, context: InstructionContext) -> None:
        self._config = config
        self._context = context
        self._made: dict[tuple[str, str], Reader] = {}

    def reader(self, placeholder: Placeholder) -> Reader:
        key = (placeholder.name, placeholder.argument)
        if key not in self._made:
            self._made[key] = self._make(placeholder)
        return self._made[key]

    def _make(self, placeholder: Placeholder) -> Reader:
        context = self._context
        match placeholder.name:
            case "currentDate":
                return _DatedText(context.now, lambda day: day.isoformat()).read
            case "env":
                return _DatedText(context.now, self._environment).read
            case "serverInstructions":
                return _ListedText(context.servers, servers_block).read
            case "agents":
                return _ListedText(context.agents, agents_block).read
            case "agentSkills":
                return context.skills or str
            case "agentInternalResources":
                return context.resources or str
            case "projectInstructions":
                if not context.reads_project():
                    return str
                return ProjectInstructions(self._config, context.workspace).read
            case "internal":
                return _InternalText(placeholder, context.internal).read
            case _:
                return NamedFile(placeholder, self._config, context.workspace).read

    def _environment(self, day: date) -> str:
        context = self._context
        return environment_block(
            date=day.isoformat(),
            platform=context.platform,
            python=context.python,
            workspace=str(context.workspace),
        )


class _DatedText:
    """Text that changes with the day."""

    def __init__(self, now: Callable[[], datetime], write: Callable[[date], str]) -> None:
        self._now = now
        self._write = write
        self._day: date | None = None
        self._text = ""

    def read(self) -> str:
        day = self._now().date()
        if day != self._day:
            self._day, self._text = day, self._write(day)
        return self._text


class _ListedText(Generic[T]):
    """Text made from a list that may change."""

    def __init__(
        self, look: Callable[[], Sequence[T]], write: Callable[[Sequence[T]], str]
    ) -> None:
        self._look = look
        self._write = write
        self._seen: Sequence[T] | None = None
        self._text = ""

    def read(self) -> str:
        listed = self._look()
        if listed is not self._seen:
            seen = tuple(listed)
            if seen != self._seen:
                self._text = self._write(seen)
            self._seen = listed if isinstance(listed, tuple) else seen
        return self._text


class _InternalText:
    """The text of an internal document; its reader keeps what is worth keeping."""

    def __init__(self, placeholder: Placeholder, find: Callable[[str], str] | None) -> None:
        self._placeholder = placeholder
        self._find = find

    def read(self) -> str:
        if self._find is None:
            message = f"`{self._placeholder}` names an internal document, and there are none"
            raise ResourceError(message)
        return self._find(self._placeholder.argument)


class _UrlText:
    """The text of a page."""

    def __init__(
        self, placeholder: Placeholder, urls: UrlTexts | None, grant: CardGrant | None
    ) -> None:
        self._placeholder = placeholder
        self._urls = urls
        self._grant = grant
        self._name = f"page {placeholder.argument}"
        self._text: str | None = None

    def is_fresh(self) -> bool:
        # A page another agent may fetch is not one that this one may read.
        urls = None if self._grant is not None and self._text is None else self._urls
        cached = None if urls is None else urls.cached(self._placeholder.argument)
        if cached is not None:
            self._text = cached
        return cached is not None

    async def fetch(self) -> None:
        url = self._placeholder.argument
        if not is_web_address(url):
            raise ResourceError(f"`{self._placeholder}` is not an `http` or `https` address")
        if self._urls is None:
            raise ResourceError(f"`{self._placeholder}` cannot be fetched here")
        try:
            if self._grant is None:
                self._text = await self._urls.get(url)
            else:
                self._grant.check_connect(url)
                self._text = await self._urls.get(url, self._grant.check_connect)
            place = here()
            if not place.silent:
                place.steps.places.answers[self._name] = self._text
        except ResourceError as error:
            message = f"the page of `{self._placeholder}` cannot be fetched: {error.message}"
            raise ResourceError(message, hint=error.hint) from error

    def read(self) -> str:
        place = here()
        if place.silent:
            return self._text or ""
        return str(place.steps.places.answers.get(self._name, ""))


class Fetch(Protocol):
    """Gets the text at a URL."""

    async def __call__(
        self, url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
    ) -> str:
        """Fetch text from an address.

        Args:
            url: An `http` or `https` URL.
            max_bytes: Most bytes the answer may hold.
            timeout: Most seconds the whole fetch may take.
            check: Called before each connection, redirects included; None allows all.

        Raises:
            ResourceError: There is no such page, or it is too large, too slow or not text.
        """
        ...


class UrlTexts:
    """Fetched texts, each kept for `ttl` seconds; several askers of one URL share one fetch.

    Args:
        fetch: Fetches text from an address.
        monotonic: A clock that only goes forward, in seconds.
        ttl: How long a text is kept, in seconds.
        max_bytes: Maximum size of a text in bytes.
        timeout: Most seconds a fetch may take.
    """

    def __init__(
        self,
        fetch: Fetch,
        monotonic: Callable[[], float],
        *,
        ttl: float = 300.0,
        max_bytes: int = 1024 * 1024,
        timeout: float = 20.0,
    ) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._kept: dict[str, tuple[float, str]] = {}
        self._failed: dict[str, tuple[float, ResourceError]] = {}
        self._locks: dict[str, Lock] = {}

    def cached(self, url: str) -> str | None:
        """Return the text of a recently fetched URL; None when it must be fetched."""
        if not here().silent:
            return None  # every turn's reading is a step
        found = self._kept.get(url)
        return found[1] if found is not None and self._monotonic() < found[0] else None

    async def get(self, url: str, check: Judge | None = None) -> str:
        """Return the text of a URL, as a step of the run it is asked in; see `fetch`."""
        place = here()
        if place.silent:
            return await self.fetch(url, check)

        async def work() -> str:
            return await self.fetch(url, check)

        return await place.steps.ask(Step("read", url), work, text_by_digest(place.steps))

    async def fetch(self, url: str, check: Judge | None = None) -> str:
        """Return the text of a URL, fetching it if it is not cached.

        Args:
            url: An `http` or `https` URL.
            check: Asked before each connection, where the card that names the URL was found.

        Returns:
            The text.

        Raises:
            ResourceError: It cannot be fetched; a text fetched earlier does not replace it.
        """
        from anyio import Lock

        asked = self._monotonic()
        async with self._locks.setdefault(url, Lock()):
            kept = self._kept.get(url)
            if kept is not None and (self._monotonic() < kept[0] or asked < kept[0] - self._ttl):
                return kept[1]  # fresh, or fetched by another caller while this one waited
            failed = self._failed.get(url)
            if failed is not None and asked < failed[0]:
                raise ResourceError(failed[1].message, hint=failed[1].hint)
            try:
                text = await self._fetch(
                    url, max_bytes=self._max_bytes, timeout=self._timeout, check=check
                )
            except ResourceError as error:
                self._failed[url] = (self._monotonic(), error)
                raise
            self._kept[url] = (self._monotonic() + self._ttl, text)
            return text


def is_web_address(url: str) -> bool:
    """Return whether a URL is one that can be fetched."""
    return url.lower().startswith(("http://", "https://"))


async def fetch_text(
    url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
) -> str:
    """Fetch text over HTTP; see `fetch_page`."""
    from fast_agent.mcp.web_page import fetch_page

    return (await fetch_page(url, max_bytes=max_bytes, timeout=timeout, check=check)).text
