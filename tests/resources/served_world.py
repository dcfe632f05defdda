"""A small world for tests of the service: providers in memory, a watch, clients."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.problem import NotFound, TooLarge, error_object
from fast_agent.resources.provider import Addition, Answer, Document, ServedTool, ToolAnswer
from fast_agent.resources.resource import Limits, Resource, ResourceContent, ResourceTemplate
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.session import Change
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject

META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@dataclass
class Memory:
    """A provider of texts held in memory."""

    scheme: str
    texts: dict[str, str]
    revision: int = 1
    lists_differ: bool = False

    def resources(self) -> Mapping[str, Resource]:
        return {
            uri: Resource(Uri.parse(uri), uri, mime_type="text/plain", size=len(text.encode()))
            for uri, text in reversed(self.texts.items())
        }

    def templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate(f"{self.scheme}://{{name}}", "by name")]

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        if uri.text not in self.texts:
            raise NotFound(uri.text, sorted(self.texts))
        return [ResourceContent.of_bytes(uri, "text/plain", self.texts[uri.text].encode())]

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        if argument != "name":
            raise NotFound(argument, ["name"], what="argument")
        names = [Uri.parse(uri).path for uri in self.texts]
        return [name for name in names if name.startswith(value)]

    def documents(self) -> Iterable[Document]:
        return ()

    def places(self) -> Sequence[str]:
        return [f"/{self.scheme}"]

    def fingerprint(self, uri: Uri) -> str:
        return self.texts.get(uri.text, "")

    def refresh(self) -> Change:
        differ, self.lists_differ = self.lists_differ, False
        return Change(resources=differ)


@dataclass
class Watch:
    """Stands in for the disk: says when something changed."""

    running: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"])
    started: list[Sequence[str]] = field(default_factory=list["Sequence[str]"])

    def __call__(self, places: Sequence[str], on_change: Callable[[], None]) -> Callable[[], None]:
        self.started.append(places)
        self.running.append(on_change)
        return lambda: self.running.remove(on_change)

    def change(self) -> None:
        for on_change in self.running:
            on_change()


class Client:
    """A client of the service: asks, and keeps its notifications."""

    def __init__(self, service: ResourceService, *, modern: bool) -> None:
        self.reported: list[tuple[str, JsonObject]] = []
        self.service = service
        self.modern = modern
        self.session: Session = service.open(self.tell)
        if not modern:
            self.ask("initialize", HELLO)

    def tell(self, method: str, params: JsonObject) -> None:
        self.reported.append((method, params))

    def ask(
        self, method: str, params: JsonObject | None = None, request_id: int | str = 1
    ) -> dict[str, Any]:
        params = {**(params or {}), "_meta": META} if self.modern else params or {}
        answer = self.service.answer(self.session, method, params, request_id)
        if answer is None:
            return {}
        found = json.loads(answer.json)
        assert found == json.loads(json.dumps(answer.data))
        assert b"\n" not in answer.json
        return found

    def error(self, method: str, params: JsonObject | None = None) -> JsonObject:
        with pytest.raises(ResourceError) as caught:
            self.ask(method, params)
        return error_object(caught.value, self.session.era)


@dataclass
class World:
    service: ResourceService
    memory: Memory
    watch: Watch
    words: list[str]
    """What the tool says of itself."""

    def client(self, *, modern: bool = False) -> Client:
        return Client(self.service, modern=modern)


def make(limits: Limits | None = None, count: int = 5, tools: bool = True) -> World:
    memory = Memory("mem", {f"mem://{n:03}": f"text {n}" for n in range(count)})
    other = Memory("a", {"a://one": "1"})
    watch = Watch()

    def load(arguments: JsonObject) -> ToolAnswer:
        if arguments.get("name") == "big":
            raise TooLarge("mem://big", 9, 3, samples=["mem://000"])
        return ToolAnswer.of_text(f"loaded {arguments.get('name')}")

    def extra(session: Session, params: JsonObject) -> Answer:
        return Answer({"skills": [], "_meta": {"x": 1}}, cacheable=True)

    words = ["Load it."]

    def offered() -> list[ServedTool]:
        return [ServedTool("load", " ".join(words), {"type": "object"}, load, title="Load")]

    addition = Addition(
        {"skills/list": extra}, {"io.x/skills": {}}, offered if tools else list, "Use load."
    )
    service = ResourceService(
        Catalog([memory, other], limits or Limits()),
        ServerInfo("test", "1.0", instructions="Ask."),
        [addition],
        watch=watch,
    )
    return World(service, memory, watch, words)


def uris(answer: dict[str, Any]) -> list[str]:
    return [one["uri"] for one in answer["resources"]]
