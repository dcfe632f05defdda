from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import ResourceError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.resource import Limits
from fast_agent.resources.session import Change
from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

from tests.patience import Rounds
from tests.resources.served_world import META, Memory, World, make, uris

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


@pytest.fixture
def world() -> World:
    return make()


def test_two_providers_of_one_scheme() -> None:
    with pytest.raises(ValueError, match="one scheme"):
        Catalog([Memory("mem", {}), Memory("mem", {})])


def test_a_client_hears_what_it_follows(world: World) -> None:
    client, other = world.client(), world.client()
    client.ask("resources/subscribe", {"uri": "MEM://001"})
    assert world.watch.started == [["/mem", "/a"]]
    world.watch.change()
    assert client.reported == []
    world.memory.texts |= {"mem://001": "new", "mem://002": "new"}
    world.watch.change()
    world.watch.change()
    assert client.reported == [("notifications/resources/updated", {"uri": "MEM://001"})]
    assert other.reported == []


def test_the_watcher_lives_while_someone_listens(world: World) -> None:
    first, second = world.client(), world.client()
    assert not world.service.following.is_watching
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
    assert client.reported == [("notifications/resources/list_changed", {})]
    assert blind.reported == []


def test_a_change_that_a_list_noticed_first_is_reported_all_the_same(world: World) -> None:
    client, other = world.client(), world.client()
    client.ask("resources/list")
    world.memory.texts["mem://new"] = "new"
    world.memory.revision += 1
    assert "mem://new" in uris(other.ask("resources/list"))
    world.watch.change()
    world.watch.change()
    for one in (client, other):
        assert one.reported == [("notifications/resources/list_changed", {})]


def test_tools_that_change_are_reported(world: World) -> None:
    client, new = world.client(), world.client(modern=True)
    client.ask("tools/list")
    new.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 1)
    world.words.append("Or not.")
    world.watch.change()
    world.watch.change()
    assert client.reported == [("notifications/tools/list_changed", {})]
    assert [method for method, _ in new.reported[1:]] == ["notifications/tools/list_changed"]


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
    assert client.reported == [
        ("notifications/subscriptions/acknowledged", {"notifications": granted, **mark})
    ]
    client.reported.clear()
    world.memory.texts |= {"mem://001": "new", "mem://later": "here"}
    world.memory.lists_differ = True
    world.watch.change()
    assert client.reported == [
        ("notifications/resources/list_changed", mark),
        ("notifications/resources/updated", {"uri": "mem://%3001", **mark}),
        ("notifications/resources/updated", {"uri": "mem://later", **mark}),
    ]
    client.reported.clear()
    world.service.notice(client.session, "notifications/cancelled", {"requestId": "s"})
    assert not world.watch.running
    world.memory.texts["mem://001"] = "newer"
    world.service.following.refresh()
    assert client.reported == []
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
    assert not world.service.following.is_watching


@pytest.mark.parametrize(
    "notifications", [None, 7, [], {"resourceSubscriptions": "a"}, {"resourceSubscriptions": [7]}]
)
def test_a_wrong_listen(world: World, notifications: JsonValue) -> None:
    client = world.client(modern=True)
    error = client.error("subscriptions/listen", {"notifications": notifications})
    assert error["code"] == -32602
    assert client.reported == []


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
        rounds, gone = Rounds(0), 0
        while rounds.more(enough=gone >= 200 and heard):
            gone += 1
            client = world.client()
            client.ask("resources/subscribe", {"uri": "mem://001"})
            client.ask("resources/list")
            time.sleep(0.0005)
            world.service.close(client.session)
            heard += len(client.reported)
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert heard
    assert not world.service.following.is_watching
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
    assert not world.service.following.is_watching
    assert not world.watch.running
