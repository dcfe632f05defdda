from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import error_object
from fast_agent.resources.resource import Limits

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

from tests.resources.served_world import HELLO, META, World, make, uris


@pytest.fixture
def world() -> World:
    return make()


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
    assert loud.reported == [
        (
            "notifications/message",
            {"level": "warning", "logger": "test", "data": "a skill was left out"},
        )
    ]
    assert quiet.reported == silent.reported == []
