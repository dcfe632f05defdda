from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import ResourceError
from fast_agent.resources.answer import Answer
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.changes import Change
from fast_agent.resources.encoding import encode
from fast_agent.resources.limits import Limits
from fast_agent.resources.problem import NotFound, TooLarge, error_object
from fast_agent.resources.provider import Addition, Document, ServedTool, ToolAnswer
from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject, JsonValue

META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


NAMES = st.sampled_from(
    [
        "uri",
        "cursor",
        "ref",
        "argument",
        "context",
        "arguments",
        "name",
        "value",
        "type",
        "level",
        "notifications",
        "resourceSubscriptions",
        "resourcesListChanged",
        "protocolVersion",
        "capabilities",
        "clientInfo",
        "_meta",
    ]
)


@dataclass
class Memory:
    """A provider of texts held in memory."""

    scheme: str
    texts: dict[str, str]
    revision: int = 1
    lists_differ: bool = False

    def resources(self) -> Sequence[Resource]:
        return [
            Resource(Uri.parse(uri), uri, mime_type="text/plain", size=len(text.encode()))
            for uri, text in reversed(self.texts.items())
        ]

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
    """A client of the service: asks, and keeps what it is told."""

    def __init__(self, service: ResourceService, *, modern: bool) -> None:
        self.told: list[tuple[str, JsonObject]] = []
        self.service = service
        self.modern = modern
        self.session: Session = service.open(self.tell)
        if not modern:
            self.ask("initialize", HELLO)

    def tell(self, method: str, params: JsonObject) -> None:
        self.told.append((method, params))

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


@pytest.fixture
def world() -> World:
    return make()


def uris(answer: dict[str, Any]) -> list[str]:
    return [one["uri"] for one in answer["resources"]]


def test_initialize(world: World) -> None:
    session = world.service.open(lambda method, params: None)
    answer = world.service.answer(session, "initialize", HELLO)
    assert answer is not None
    assert answer.data == {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "test", "version": "1.0"},
        "capabilities": {
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
            "logging": {},
            "tools": {"listChanged": True},
            "extensions": {"io.x/skills": {}},
        },
        "instructions": "Ask.\n\nUse load.",
    }
    assert session.client == {"name": "test", "version": "1"}


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ],
)
def test_version_negotiation(world: World, asked: str, got: str) -> None:
    session = world.service.open(lambda method, params: None)
    answer = world.service.answer(session, "initialize", {**HELLO, "protocolVersion": asked})
    assert answer is not None
    assert answer.data["protocolVersion"] == got
    assert session.protocol == got


def test_nothing_before_initialize(world: World) -> None:
    session = world.service.open(lambda method, params: None)
    ask = world.service.answer
    assert ask(session, "ping", {}) is not None
    for method, code in (
        ("resources/list", -32602),
        ("no/such", -32601),
        ("server/discover", -32601),
    ):
        with pytest.raises(ResourceError) as caught:
            ask(session, method, {})
        assert error_object(caught.value, "handshake")["code"] == code
    for wrong in ({}, {**HELLO, "protocolVersion": 1}, {**HELLO, "clientInfo": "x"}):
        with pytest.raises(ResourceError) as caught:
            ask(session, "initialize", wrong)
        assert error_object(caught.value, "handshake")["code"] == -32602
    assert session.protocol is None


def test_discover(world: World) -> None:
    answer = world.client(modern=True).ask("server/discover")
    assert answer["supportedVersions"] == ["2026-07-28"]
    assert answer["resultType"] == "complete"
    assert answer["ttlMs"] == 0
    assert answer["cacheScope"] == "private"
    assert answer["_meta"] == {
        "io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1.0"}
    }
    assert "logging" not in str(answer["capabilities"])


def test_the_eras_do_not_mix(world: World) -> None:
    old, new = world.client(), world.client(modern=True)
    assert old.error("resources/list", {"_meta": META})["code"] == -32600
    assert old.error("subscriptions/listen")["code"] == -32601
    new.ask("resources/list")
    for method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        assert new.error(method)["code"] == -32601
    refused = new.error("initialize", HELLO)
    assert refused["code"] == -32022
    assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}, -32022),
        ({**META, "io.modelcontextprotocol/protocolVersion": 7}, -32602),
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
    ],
)
def test_a_wrong_envelope(world: World, meta: JsonObject, code: int) -> None:
    session = world.service.open(lambda method, params: None)
    with pytest.raises(ResourceError) as caught:
        world.service.answer(session, "resources/list", {"_meta": meta})
    assert error_object(caught.value, session.era)["code"] == code
    assert session.opened == "modern"


def test_lists_are_sorted_and_merged(world: World) -> None:
    client = world.client()
    assert uris(client.ask("resources/list")) == ["a://one", *(f"mem://{n:03}" for n in range(5))]
    assert client.ask("resources/list")["resources"][1] == {
        "uri": "mem://000",
        "name": "mem://000",
        "mimeType": "text/plain",
        "size": 6,
    }
    templates = client.ask("resources/templates/list")
    assert templates == {
        "resourceTemplates": [
            {"uriTemplate": "a://{name}", "name": "by name"},
            {"uriTemplate": "mem://{name}", "name": "by name"},
        ]
    }
    assert "ttlMs" in world.client(modern=True).ask("resources/templates/list")


@pytest.mark.parametrize("modern", [False, True])
def test_pages_survive_changes(modern: bool) -> None:
    world = make(Limits(page=2))
    client = world.client(modern=modern)
    first = client.ask("resources/list")
    assert uris(first) == ["a://one", "mem://000"]
    del world.memory.texts["mem://000"]
    world.memory.texts["mem://0005"] = "new"
    world.memory.revision += 1
    second = client.ask("resources/list", {"cursor": first["nextCursor"]})
    assert uris(second) == ["mem://0005", "mem://001"]
    third = client.ask("resources/list", {"cursor": second["nextCursor"]})
    assert uris(third) == ["mem://002", "mem://003"]
    last = client.ask("resources/list", {"cursor": third["nextCursor"]})
    assert uris(last) == ["mem://004"]
    assert "nextCursor" not in last
    wrong: list[JsonValue] = ["x", "", 7, [], "é", "A" * 10_000, f"{first['nextCursor']}A"]
    for cursor in wrong:
        assert client.error("resources/list", {"cursor": cursor})["code"] == -32602
    stolen = {"cursor": first["nextCursor"]}
    assert client.error("resources/templates/list", stolen)["code"] == -32602


def test_a_kept_page_is_renewed(world: World) -> None:
    client = world.client()
    client.ask("resources/list")
    world.memory.texts["mem://x"] = "x"
    assert "mem://x" not in uris(client.ask("resources/list"))
    world.memory.revision += 1
    assert "mem://x" in uris(client.ask("resources/list"))


def test_read(world: World) -> None:
    content = {"uri": "mem://001", "mimeType": "text/plain", "text": "text 1"}
    old, new = world.client(), world.client(modern=True)
    assert old.ask("resources/read", {"uri": "MEM://00%31"}) == {"contents": [content]}
    answer = new.ask("resources/read", {"uri": "mem://001"})
    assert answer["contents"] == [content]
    assert answer["resultType"] == "complete"


def test_read_errors(world: World) -> None:
    old, new = world.client(), world.client(modern=True)
    missing = {"uri": "mem://nothing"}
    assert old.error("resources/read", missing)["code"] == -32002
    refused = new.error("resources/read", missing)
    assert refused["code"] == -32602
    assert refused["data"] == {
        "uri": "mem://nothing",
        "suggestions": tuple(f"mem://{n:03}" for n in range(5)),
    }
    assert old.error("resources/read", {"uri": "other://x"})["code"] == -32002
    for params in ({}, {"uri": 7}, {"uri": "mem://../x"}, {"uri": "mem://a%00"}):
        assert old.error("resources/read", params)["code"] == -32602


def test_complete(world: World) -> None:
    client = world.client()

    def params(value: str, name: str = "name", template: str = "mem://{name}") -> JsonObject:
        return {
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": name, "value": value},
            "context": {"arguments": {"x": "y"}},
        }

    answer = client.ask("completion/complete", params("00"))
    assert answer == {
        "completion": {"values": [f"{n:03}" for n in range(5)], "total": 5, "hasMore": False}
    }
    assert client.error("completion/complete", params("", template="mem://{x}"))["code"] == -32002
    assert client.error("completion/complete", params("", name="y"))["code"] == -32002
    wrong: list[JsonObject] = [
        {},
        {**params(""), "ref": {"type": "ref/prompt", "name": "x"}},
        {**params(""), "argument": {"name": "name"}},
        {**params(""), "context": []},
    ]
    for one in wrong:
        assert client.error("completion/complete", one)["code"] == -32602
    many = make(count=250).client()
    found = many.ask("completion/complete", params(""))["completion"]
    assert len(found["values"]) == 100
    assert (found["total"], found["hasMore"]) == (250, True)


def test_tools(world: World) -> None:
    client = world.client()
    assert client.ask("tools/list") == {
        "tools": [
            {
                "name": "load",
                "title": "Load",
                "description": "Load it.",
                "inputSchema": {"type": "object"},
            }
        ]
    }
    good = client.ask("tools/call", {"name": "load", "arguments": {"name": "x"}})
    assert good == {"content": [{"type": "text", "text": "loaded x"}], "isError": False}
    bad = client.ask("tools/call", {"name": "load", "arguments": {"name": "big"}})
    assert bad["isError"] is True
    assert "ask for less, such as `mem://000`" in str(bad["content"])
    assert client.ask("tools/call", {"name": "load"})["isError"] is False
    assert client.error("tools/call", {"name": "nothing"})["code"] == -32602
    assert client.error("tools/call", {"name": "load", "arguments": 7})["code"] == -32602
    without = make(tools=False).client()
    assert without.error("tools/list")["code"] == -32601


def test_added_methods_are_sealed_like_others(world: World) -> None:
    assert world.client().ask("skills/list") == {"skills": [], "_meta": {"x": 1}}
    answer = world.client(modern=True).ask("skills/list")
    assert answer["ttlMs"] == 0
    assert answer["_meta"] == {
        "x": 1,
        "io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1.0"},
    }
    assert "skills/list" in world.service.methods


def test_small_methods(world: World) -> None:
    client = world.client()
    assert client.ask("ping") == {}
    assert client.ask("logging/setLevel", {"level": "info"}) == {}
    assert client.session.level == "info"
    assert client.error("logging/setLevel", {"level": "loud"})["code"] == -32602
    error = client.error("no/such\n" + "x" * 1000)
    assert error["code"] == -32601
    assert len(str(error["message"])) < 300
    assert "\n" not in str(error["message"])


def test_log_messages_reach_those_who_asked(world: World) -> None:
    loud, quiet, silent = world.client(), world.client(), world.client()
    loud.ask("logging/setLevel", {"level": "debug"})
    quiet.ask("logging/setLevel", {"level": "error"})
    world.service.log("warning", "a skill was left out")
    assert loud.told == [
        (
            "notifications/message",
            {"level": "warning", "logger": "test", "data": "a skill was left out"},
        )
    ]
    assert quiet.told == silent.told == []


def test_two_providers_of_one_scheme() -> None:
    with pytest.raises(ValueError, match="one scheme"):
        Catalog([Memory("mem", {}), Memory("mem", {})])


def test_a_client_hears_what_it_follows(world: World) -> None:
    client, other = world.client(), world.client()
    client.ask("resources/subscribe", {"uri": "MEM://001"})
    assert world.watch.started == [["/mem", "/a"]]
    world.watch.change()
    assert client.told == []
    world.memory.texts |= {"mem://001": "new", "mem://002": "new"}
    world.watch.change()
    world.watch.change()
    assert client.told == [("notifications/resources/updated", {"uri": "MEM://001"})]
    assert other.told == []


def test_the_watcher_lives_while_someone_listens(world: World) -> None:
    first, second = world.client(), world.client()
    assert not world.service.following.watching
    first.ask("resources/subscribe", {"uri": "mem://001"})
    first.ask("resources/subscribe", {"uri": "mem://001"})
    second.ask("resources/subscribe", {"uri": "mem://001"})
    assert len(world.watch.started) == 1
    first.ask("resources/unsubscribe", {"uri": "mem://%30%301"})
    first.ask("resources/unsubscribe", {"uri": "mem://001"})
    assert world.watch.running
    world.service.close(second.session)
    assert not world.watch.running
    first.ask("resources/subscribe", {"uri": "mem://001"})
    assert len(world.watch.started) == 2


def test_a_client_that_saw_a_list_hears_when_it_changes(world: World) -> None:
    client, blind = world.client(), world.client()
    client.ask("resources/list")
    world.memory.lists_differ = True
    world.watch.change()
    assert client.told == [("notifications/resources/list_changed", {})]
    assert blind.told == []


def test_a_change_that_a_list_noticed_first_is_told_all_the_same(world: World) -> None:
    client, other = world.client(), world.client()
    client.ask("resources/list")
    world.memory.texts["mem://new"] = "new"
    world.memory.revision += 1
    assert "mem://new" in uris(other.ask("resources/list"))
    world.watch.change()
    world.watch.change()
    for one in (client, other):
        assert one.told == [("notifications/resources/list_changed", {})]


def test_tools_that_change_are_told(world: World) -> None:
    client, new = world.client(), world.client(modern=True)
    client.ask("tools/list")
    new.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 1)
    world.words.append("Or not.")
    world.watch.change()
    world.watch.change()
    assert client.told == [("notifications/tools/list_changed", {})]
    assert [method for method, _ in new.told[1:]] == ["notifications/tools/list_changed"]


def test_listen(world: World) -> None:
    client = world.client(modern=True)
    wanted: JsonObject = {
        "notifications": {
            "resourcesListChanged": True,
            "promptsListChanged": True,
            "toolsListChanged": False,
            "resourceSubscriptions": ["mem://%3001", "bad", "other://x", "mem://later"],
        }
    }
    mark = {"_meta": {"io.modelcontextprotocol/subscriptionId": "s"}}
    assert client.ask("subscriptions/listen", wanted, "s") == {}
    granted = {
        "resourcesListChanged": True,
        "resourceSubscriptions": ["mem://%3001", "mem://later"],
    }
    assert client.told == [
        ("notifications/subscriptions/acknowledged", {"notifications": granted, **mark})
    ]
    client.told.clear()
    world.memory.texts |= {"mem://001": "new", "mem://later": "here"}
    world.memory.lists_differ = True
    world.watch.change()
    assert client.told == [
        ("notifications/resources/list_changed", mark),
        ("notifications/resources/updated", {"uri": "mem://%3001", **mark}),
        ("notifications/resources/updated", {"uri": "mem://later", **mark}),
    ]
    client.told.clear()
    world.service.notice(client.session, "notifications/cancelled", {"requestId": "s"})
    assert not world.watch.running
    world.memory.texts["mem://001"] = "newer"
    world.service.following.refresh()
    assert client.told == []
    assert world.service.close(client.session) == []


def test_listen_ends_gracefully(world: World) -> None:
    client = world.client(modern=True)
    client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 7)
    [(request_id, answer)] = world.service.close(client.session)
    assert request_id == 7
    assert answer.data["resultType"] == "complete"
    meta = answer.data["_meta"]
    assert isinstance(meta, dict)
    assert meta["io.modelcontextprotocol/subscriptionId"] == 7
    assert not world.service.following.watching


@pytest.mark.parametrize(
    "notifications", [None, 7, [], {"resourceSubscriptions": "a"}, {"resourceSubscriptions": [7]}]
)
def test_a_wrong_listen(world: World, notifications: JsonValue) -> None:
    client = world.client(modern=True)
    error = client.error("subscriptions/listen", {"notifications": notifications})
    assert error["code"] == -32602
    assert client.told == []


def test_floods_are_bounded_and_cost_nobody_else() -> None:
    world = make(Limits(session_subscriptions=3, subscriptions=5, listens=2))
    greedy, modest, new = world.client(), world.client(), world.client(modern=True)
    for n in range(3):
        greedy.ask("resources/subscribe", {"uri": f"mem://{n}"})
    assert greedy.error("resources/subscribe", {"uri": "mem://3"})["code"] == -32602
    greedy.ask("resources/subscribe", {"uri": "mem://2"})  # again is no more
    modest.ask("resources/subscribe", {"uri": "mem://1"})
    modest.ask("resources/subscribe", {"uri": "mem://2"})
    assert modest.error("resources/subscribe", {"uri": "mem://3"})["code"] == -32602
    world.service.close(greedy.session)
    modest.ask("resources/subscribe", {"uri": "mem://3"})
    assert modest.error("resources/subscribe", {"uri": "no-uri"})["code"] == -32602
    assert modest.error("resources/subscribe", {"uri": "other://x"})["code"] == -32002
    for n in range(2):
        new.ask("subscriptions/listen", {"notifications": {}}, n)
    with pytest.raises(ResourceError, match="2 streams"):
        new.ask("subscriptions/listen", {"notifications": {}}, 2)
    too_many = {"notifications": {"resourceSubscriptions": [f"mem://{n}" for n in range(9)]}}
    other = world.client(modern=True)
    assert other.error("subscriptions/listen", too_many)["code"] == -32602
    assert not other.session.listens


def test_the_bus_hears_everything(world: World) -> None:
    heard: list[Change] = []
    stop = world.service.following.bus.listen(heard.append)
    world.memory.lists_differ = True
    assert world.service.following.refresh() == Change(resources=True)
    world.service.following.refresh()
    assert heard == [Change(resources=True)]
    stop()
    stop()
    world.memory.lists_differ = True
    world.service.following.refresh()
    assert len(heard) == 1


def test_many_clients_come_and_go_while_things_change(world: World) -> None:
    """The lock is held by nobody for good, and a client that left hears nothing."""
    stop = threading.Event()

    def change() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            world.memory.texts["mem://001"] = str(n)
            world.service.following.refresh()

    thread = threading.Thread(target=change)
    thread.start()
    heard = 0
    try:
        for _ in range(200):
            client = world.client()
            client.ask("resources/subscribe", {"uri": "mem://001"})
            client.ask("resources/list")
            time.sleep(0.0005)
            world.service.close(client.session)
            heard += len(client.told)
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()
    assert heard
    assert not world.service.following.watching
    assert not world.service.following.sessions


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["mem://001", "mem://{name}", "name", "ref/resource", "load", "2025-11-25"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(make().service.methods)) | st.text(max_size=5),
            st.dictionaries(NAMES, JSON, max_size=5),
            st.booleans(),
            st.integers(0, 3) | st.text(max_size=2),
        ),
        max_size=6,
    )
)
def test_whatever_is_asked_is_answered_or_refused(
    requests: list[tuple[str, dict[str, JsonValue], bool, int | str]],
) -> None:
    world = make(Limits(page=2))

    def send(method: str, params: JsonObject) -> None:
        encode(params)

    session = world.service.open(send)
    for method, params, enveloped, request_id in requests:
        if enveloped:
            params["_meta"] = META
        with contextlib.suppress(ResourceError):
            answer = world.service.answer(session, method, params, request_id)
            assert answer is None or json.loads(answer.json) is not None
        world.service.notice(session, "notifications/cancelled", {"requestId": request_id})
    world.service.close(session)
    assert not world.service.following.watching
    assert not world.watch.running
