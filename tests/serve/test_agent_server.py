"""Agents as tools and prompts of a server, for clients of both eras."""

from __future__ import annotations

import socket
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from tests.runners import every_runner
from tests.serve.agent_world import AgentWorld, ask, call_agent, connected, heard, text_of, until

from fast_agent.errors import ConfigError
from fast_agent.models.providers import provider
from fast_agent.rpc.message import RemoteError
from fast_agent.serve.agent_server import ServedClient
from fast_agent.serve.agent_serving import ServeOptions, serve
from fast_agent.serve.http_access import HttpSettings
from fast_agent.tools.human import HumanAnswer, HumanRequest

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio
ERAS = ("legacy", "2026-07-28")
EVERYTHING = Path(__file__).parents[1] / "mcp/servers/everything.py"


@pytest.fixture
def world(tmp_path: Path) -> AgentWorld:
    return AgentWorld(tmp_path)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.spec("SERVE-1", "SERVE-2")
async def test_every_agent_is_a_tool_unless_it_is_only_one(world: AgentWorld, era: str) -> None:
    world.card("ann", description="Says it back.")
    world.card(
        "form", tool_input_schema="{type: object, properties: {n: {type: integer}}, required: [n]}"
    )
    world.card("hidden", tool_only="true")
    async with world.serving() as server, connected(server, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["ann", "form"]
        assert tools["ann"].description == "Says it back."
        assert tools["ann"].input_schema["required"] == ["message"]
        assert tools["form"].input_schema["required"] == ["n"]
        assert text_of(await client.call_tool("form", {"n": 3})) == '{"n": 3}'
        refused = await client.call_tool("form", {"n": "x"})
        assert refused.is_error
        assert "do not match its schema" in text_of(refused)
        refused = await client.call_tool("ann", {"words": "x"})
        assert text_of(refused) == "the one argument of `ann` is `message`, a string"
        with pytest.raises(MCPError, match="unknown tool `hidden`"):
            await ask(client, "hidden", "hello")


@pytest.mark.spec("SERVE-3")
async def test_an_answer_is_text_and_structured(world: AgentWorld, era: str) -> None:
    world.card("ann")
    world.card("talk", type="chain", sequence="[ann]")
    async with world.serving(scope="shared") as server, connected(server, era) as client:
        answer = await call_agent(client, "talk", "hello")
        assert text_of(answer) == "hello"
        assert answer.structured_content is not None
        assert answer.structured_content["text"] == "hello"
        assert answer.structured_content["usage"]["requests"] == 1
        assert answer.structured_content["workflow"]["type"] == "chain"
        prompts = (await client.list_prompts()).prompts
        assert [one.name for one in prompts] == ["ann_history", "talk_history"]
        assert await heard(client, "ann") == ["hello", "hello"]
        with pytest.raises(MCPError, match="no prompt `bob_history`"):
            await heard(client, "bob")


@pytest.mark.spec("SERVE-4")
async def test_what_goes_wrong_is_said_without_paths(world: AgentWorld, era: str) -> None:
    (world.directory / "tools.py").write_text("raise OSError('/very/secret/place')\ndef f(): ...\n")
    world.card("bad", function_tools='["tools.py:f"]')
    world.program.load_agents(world.directory / "bad.md")
    async with world.serving() as server, connected(server, era) as client:
        answer = await call_agent(client, "bad", "hello")
        assert answer.is_error
        assert "failed while it was imported" in text_of(answer)
        assert str(world.directory) not in text_of(answer)
        assert "/very/secret" not in text_of(answer)
        assert "Traceback" not in text_of(answer)


@pytest.mark.spec("SERVE-5")
async def test_a_client_hears_how_far_an_agent_is(world: AgentWorld) -> None:
    world.card("bob")
    world.card("ann", agents="[bob]")
    steps: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        steps.append((progress, message))

    async with world.serving() as server, connected(server) as client:
        message = '***CALL_TOOL agent__bob {"message": "hi"}'
        answer = await client.call_tool("ann", {"message": message}, progress_callback=hear)
        assert text_of(answer) == "hi"
        await until(lambda: bool(steps))
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})
    assert all(message and message.split(":")[0] in {"ann", "bob"} for _, message in steps)


@pytest.mark.spec("SERVE-6")
async def test_a_call_that_is_called_off_ends_and_leaves_a_history_to_go_on_from(
    world: AgentWorld,
) -> None:
    world.card("ann", model="slow?seconds=3")
    async with world.serving() as server, connected(server) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client, "ann", "first")
            await until(lambda: server.scopes.in_use == 1)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        await until(lambda: server.scopes.in_use == 0)
        assert (await heard(client, "ann"))[0] == "first"
        world.card("ann")
        world.program.reload()
        assert await ask(client, "ann", "second") == "second"
        assert (await heard(client, "ann"))[-2:] == ["second", "second"]


async def answering(action: Any, **content: Any) -> Any:
    async def answer(ctx: object, params: Any) -> types.ElicitResult:
        del ctx
        asked.append(params.message)
        return types.ElicitResult(action=action, content=content or None)

    asked: list[str] = []
    return answer, asked


@pytest.mark.spec("SERVE-7")
async def test_a_question_of_an_agent_reaches_the_person_behind_its_client(
    world: AgentWorld, era: str
) -> None:
    world.card("ann", human_input="true")
    call = '***CALL_TOOL request_human_input {"message": "Which colour?"}'
    async with world.serving() as server:
        answer, asked = await answering("accept", text="blue")
        async with connected(server, era, elicitation_callback=answer) as client:
            assert await ask(client, "ann", call) == "blue"
            assert asked == ["agent `ann` asks:\nWhich colour?"]
        answer, _ = await answering("decline")
        async with connected(server, era, elicitation_callback=answer) as client:
            assert "declined" in await ask(client, "ann", call)
        async with connected(server, era) as client:
            assert "no user is connected" in await ask(client, "ann", call)


@pytest.mark.spec("SERVE-7", "SERVE-8")
async def test_servers_of_an_agent_ask_the_client_of_the_call(world: AgentWorld, era: str) -> None:
    command = f'["{EVERYTHING}", stdio]'
    (world.directory / "fastagent.config.yaml").write_text(
        f"mcp:\n  servers:\n    all: {{command: '{sys.executable}', args: {command}}}\n"
    )
    world.card("ann", servers="[all]")

    async def sample(ctx: object, params: Any) -> types.CreateMessageResult:
        del ctx, params
        text = types.TextContent(type="text", text="of the client")
        return types.CreateMessageResult(role="assistant", content=text, model="theirs")

    answer, asked = await answering("accept", name="Zoe")
    async with (
        world.serving() as server,
        connected(server, era, elicitation_callback=answer, sampling_callback=sample) as client,
    ):
        assert "Zoe" in await ask(client, "ann", "***CALL_TOOL all__greet_person {}")
        assert "server `all` asks, for agent `ann`:" in asked[0]
        call = '***CALL_TOOL all__consult {"question": "Why?"}'
        assert "of the client" in await ask(client, "ann", call)
        async with connected(server, era) as other:
            assert "of the client" not in await ask(other, "ann", call)


NO_NAMES = ("x" * 5_000, "x/" * 2_500, "x/" + "\N{GREEK SMALL LETTER OMEGA}" * 300)
"""Paths that no file can have."""


@pytest.mark.spec("SERVE-9", "SERVE-10")
async def test_cards_are_loaded_below_allowed_directories_only(world: AgentWorld, era: str) -> None:
    world.disown()
    world.card("ann")
    world.program.load_agents(world.directory / "ann.md")
    world.card("more/bob")
    world.card("more/code", shell="true")
    (world.directory / "more/link").symlink_to(world.directory)
    outside = world.card("out")
    async with world.serving(allow_load=("more",)) as server, connected(server, era) as client:
        assert "load_agents" in [tool.name for tool in (await client.list_tools()).tools]
        for path in (
            "../out.md",
            str(outside),
            "link/out.md",
            "http://127.0.0.1:1/x.md",
            "a\0b",
            *NO_NAMES,
        ):
            refused = await client.call_tool("load_agents", {"path": path})
            assert refused.is_error
            assert "may be loaded" in text_of(refused)
            assert len(text_of(refused)) < 1_000
        refused = await client.call_tool("load_agents", {"path": "code.md"})
        assert refused.is_error
        assert "`code` may not act until the operator approves it" in text_of(refused)
        assert str(world.directory) not in text_of(refused)
        loaded = await client.call_tool("load_agents", {"path": "bob.md"})
        assert loaded.structured_content == {"agents": ["bob"]}
        assert await ask(client, "bob", "hello") == "hello"
    async with world.serving() as server, connected(server, era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ann", "bob"]
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("load_agents", {"path": "bob.md"})


@pytest.mark.spec("SERVE-10", "SERVE-11")
async def test_the_tool_list_follows_the_cards_and_clients_are_reported(world: AgentWorld) -> None:
    world.card("ann")
    names: list[str] = []

    async def on_message(message: object) -> None:
        names.append(type(message).__name__)

    async with (
        world.serving(reload=True) as server,
        connected(server, message_handler=on_message) as client,
        connected(server, "2026-07-28") as modern,
        modern.listen(tools_list_changed=True, prompts_list_changed=True) as events,
    ):
        await client.list_tools()
        world.card("bob")
        done = await client.call_tool("reload", {})
        assert text_of(done) == "AgentCards reloaded: +1 ~0 -0"
        await until(lambda: "ToolListChangedNotification" in names)
        await until(lambda: "PromptListChangedNotification" in names)
        seen = {type(await anext(aiter(events))).__name__ for _ in range(2)}
        assert seen == {"ToolsListChanged", "PromptsListChanged"}
        for one in (client, modern):
            assert "bob" in [tool.name for tool in (await one.list_tools()).tools]
        (world.directory / "bob.md").write_text("---\nnonsense: 1\n---\n")
        done = await client.call_tool("reload", {})
        assert done.is_error
        assert "not reloaded" in text_of(done)
        assert str(world.directory) not in text_of(done)
        assert await ask(client, "bob", "still") == "still"


@pytest.mark.spec("SERVE-11")
async def test_a_watched_card_is_taken_as_it_changes(world: AgentWorld) -> None:
    world.card("ann", description="One.")
    async with world.serving(watch=True) as server, connected(server) as client:
        assert (await client.list_tools()).tools[0].description == "One."
        world.card("ann", description="Two.")
        await until(lambda: world.reported != [])
        assert world.reported == ["AgentCards reloaded: +0 ~1 -0"]

        await until(lambda: server.scopes.version == world.program.snapshot.version)
        assert (await client.list_tools()).tools[0].description == "Two."


async def test_an_agent_named_as_a_tool_of_the_server_is_left_out(
    world: AgentWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.card("reload")
    world.card("ann")
    async with world.serving(reload=True) as server, connected(server) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["ann", "reload"]
        assert text_of(await client.call_tool("reload", {})) == "nothing changed"
    assert "agent `reload` is not offered" in caplog.text


@pytest.mark.spec("LOOP-8")
@every_runner
async def test_a_program_serves_its_agents(world: AgentWorld, runner: str) -> None:
    world.card("ann")
    world.program.load_agents(world.directory)
    addresses: list[str] = []
    options = ServeOptions(http=HttpSettings(port=0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, world.program, options, ready=addresses.append))
        await until(lambda: bool(addresses))
        async with Client(addresses[0]) as client:
            assert await ask(client, "ann", "hello") == "hello"
        tasks.cancel_scope.cancel()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = HttpSettings(port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="cannot listen on"):
            await world.program.serve(ServeOptions(http=settings))


async def test_what_the_first_call_needs_is_imported_once_it_listens(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(provider, "warm", imported.append)
    for name, model in (("ann", "passthrough"), ("bob", "generic.m"), ("cid", "generic.other")):
        world.card(name, model=model)
    world.program.load_agents(world.directory)
    options = ServeOptions(http=HttpSettings(port=0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, world.program, options))
        await until(lambda: imported == ["generic"])
        tasks.cancel_scope.cancel()


@pytest.mark.spec("SERVE-17")
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_server_has_a_name_and_says_what_the_operator_wants(
    world: AgentWorld, era: str
) -> None:
    world.card("ann")
    async with world.serving(description="Ask ann.") as server, connected(server, era) as client:
        assert client.server_info is not None
        assert client.server_info.name == "fast-agent-mcp"
        assert client.instructions == "Ask ann."


@pytest.mark.spec("RELOAD-10")
async def test_nothing_watches_unless_asked_to(world: AgentWorld) -> None:
    world.card("ann")
    before = set(threading.enumerate())  # those of tests before may take a moment to end
    async with world.serving(reload=True) as server, connected(server) as client:
        begun = set(threading.enumerate()) - before
        assert [one for one in begun if one.name == "watch"] == []
        world.card("eve")
        assert "eve" not in [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("reload", {})
        assert await ask(client, "eve", "hello") == "hello"


@pytest.mark.parametrize(
    ("capabilities", "url"),
    [({"sampling": {}}, None), ({"elicitation": {}}, "https://example.com")],
)
async def test_a_client_that_cannot_show_a_question_cancels_it(
    capabilities: JsonObject, url: str | None
) -> None:
    async def ask(method: str, _params: JsonObject) -> JsonObject:
        raise AssertionError(method)

    request = HumanRequest(message="May I?", agent_name="ann", url=url)
    assert await ServedClient(ask, capabilities).ask(request) == HumanAnswer(action="cancel")


@pytest.mark.parametrize(
    "answer",
    [RemoteError("no"), {}, {"action": "maybe"}, {"action": "accept", "content": "yes"}],
)
async def test_a_question_that_a_client_cannot_answer_is_cancelled(
    answer: RemoteError | JsonObject,
) -> None:
    async def ask(_method: str, _params: JsonObject) -> JsonObject:
        if isinstance(answer, RemoteError):
            raise answer
        return answer

    request = HumanRequest(message="May I?", agent_name="ann")
    assert await ServedClient(ask, {"elicitation": {}}).ask(request) == HumanAnswer(action="cancel")


@pytest.mark.parametrize(
    ("capabilities", "plain", "with_tools"),
    [
        ({"elicitation": {}}, False, False),
        ({"sampling": {}}, True, False),
        ({"sampling": {"tools": {}}}, True, True),
    ],
)
def test_a_client_answers_for_a_model_as_it_declared(
    capabilities: JsonObject, plain: bool, with_tools: bool
) -> None:
    async def ask(_method: str, _params: JsonObject) -> JsonObject:
        return {}

    client = ServedClient(ask, capabilities)
    asked = types.CreateMessageRequestParams(messages=[], max_tokens=1)
    assert client.offers_model(asked) is plain
    tool = types.Tool(name="t", input_schema={"type": "object"})
    asked = types.CreateMessageRequestParams(messages=[], max_tokens=1, tools=[tool])
    assert client.offers_model(asked) is with_tools


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RemoteError("declined", -1, {"why": "cost"}), -1, "declined"),
        (RemoteError("the connection ended"), types.INTERNAL_ERROR, "the connection ended"),
        (None, types.INTERNAL_ERROR, "the answer is malformed"),
    ],
)
async def test_a_client_whose_model_does_not_answer_is_an_error(
    error: RemoteError | None, code: int, message: str
) -> None:
    async def ask(_method: str, _params: JsonObject) -> JsonObject:
        if error is not None:
            raise error
        return {"role": "assistant"}

    asked = types.CreateMessageRequestParams(messages=[], max_tokens=1)
    answer = await ServedClient(ask, {"sampling": {}}).sample(asked)
    assert isinstance(answer, types.ErrorData)
    assert (answer.code, answer.message) == (code, message)
    assert answer.data == (None if error is None else error.data)
