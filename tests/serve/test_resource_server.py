"""The SDK edge in memory: subscriptions in both eras, clients that leave, work that takes long."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from tests.patience import until
from tests.serve.in_process import client_of
from tests.whole_file import write_whole

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.provider import Addition, ServedTool, ToolAnswer
from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.serve import resource_server
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.client import Client

    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio
ONE = "skill://one/SKILL.md"


def write_skill(root: Path, name: str, body: str = "Do it.") -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: About {name}.\n---\n{body}\n"
    write_whole(folder / "SKILL.md", text)


@pytest.fixture
def service(tmp_path: Path) -> ResourceService:
    write_skill(tmp_path, "one")
    return ResourceRoots((str(tmp_path),)).open().service("test", "1")


async def test_a_handshake_client_hears_and_is_forgotten(
    service: ResourceService, tmp_path: Path
) -> None:
    reported: list[str] = []

    async def on_message(message: Any) -> None:
        reported.append(type(message).__name__)

    server = ResourceServer(service)
    async with client_of(server, mode="legacy", message_handler=on_message) as client:
        await client.list_resources()
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(ONE)  # pyright: ignore[reportDeprecated]
        assert service.following.is_watching
        await anyio.sleep(0.2)
        write_skill(tmp_path, "one", "Do so.")
        await until(lambda: "ResourceUpdatedNotification" in reported)
        write_skill(tmp_path, "two")
        await until(lambda: "ResourceListChangedNotification" in reported)
        await until(lambda: "ToolListChangedNotification" in reported)
    assert not service.following.is_watching


async def test_a_modern_client_listens_and_leaves(service: ResourceService, tmp_path: Path) -> None:
    server = ResourceServer(service)
    async with client_of(server) as client:
        assert client.protocol_version == "2026-07-28"
        async with client.listen(resource_subscriptions=[ONE]) as events:
            assert service.following.is_watching
            await anyio.sleep(0.2)
            write_skill(tmp_path, "one", "Do so.")
            with anyio.fail_after(60):
                assert ONE in str(await anext(aiter(events)))
        await until(lambda: not service.following.is_watching)
        assert (await client.read_resource(ONE)).contents


async def test_streams_are_capped(
    service: ResourceService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_server, "MAX_STREAMS", 2)
    async with (
        client_of(ResourceServer(service)) as client,
        client.listen(resources_list_changed=True),
        client.listen(resources_list_changed=True),
    ):
        with pytest.raises(MCPError, match="streams open"):
            async with client.listen(resources_list_changed=True):
                pass
        assert (await client.list_resources()).resources


async def test_a_stream_that_ended_makes_room_for_another(
    service: ResourceService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_server, "MAX_STREAMS", 1)
    server = ResourceServer(service)
    async with client_of(server) as client:
        for _ in range(3):
            async with client.listen(resources_list_changed=True):
                assert server._listening == 1
            await until(lambda: server._listening == 0)
    assert not server._streams


async def test_streams_end_when_the_server_does(service: ResourceService) -> None:
    server = ResourceServer(service)
    async with (
        client_of(server) as client,
        client.listen(resources_list_changed=True) as events,
    ):
        server.end_streams()
        with anyio.fail_after(60):
            assert [event async for event in events] == []


async def test_slow_work_does_not_hold_up_others(service: ResourceService) -> None:
    goes_on = threading.Event()

    def slow(arguments: JsonObject) -> ToolAnswer:
        goes_on.wait(60)
        return ToolAnswer.of_text("done")

    tool = ServedTool("slow", "Takes its time.", {"type": "object"}, slow)
    made = ResourceService(
        Catalog(service.catalog.providers), ServerInfo("t", "1"), [Addition(tools=lambda: [tool])]
    )
    answers: list[str] = []

    async def call(client: Client) -> None:
        await client.call_tool("slow", {})
        answers.append("slow")

    server = ResourceServer(made)
    async with (
        client_of(server) as one,
        client_of(server) as other,
        anyio.create_task_group() as group,
    ):
        group.start_soon(call, one)
        await anyio.wait_all_tasks_blocked()
        for client in (one, other):
            with anyio.fail_after(60):
                await client.read_resource(ONE)
        assert answers == []
        await to_thread.run_sync(goes_on.set)
    assert answers == ["slow"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_bug_is_reported_without_its_details(
    service: ResourceService,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: Any,
) -> None:
    def broken(uri: object) -> float:
        return 1 / 0

    monkeypatch.setattr(service.catalog, "read", broken)
    with caplog.at_level(logging.ERROR):
        async with client_of(ResourceServer(service), mode=mode) as client:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(ONE)
    assert (caught.value.code, caught.value.message) == (-32603, "internal error")
    assert "ZeroDivisionError" in caplog.text
