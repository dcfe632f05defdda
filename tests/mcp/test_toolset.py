from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from fast_agent.mcp.pool import is_skill_tool
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolCall,
)
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.tools.tool import ToolContext

pytestmark = pytest.mark.anyio


@pytest.mark.spec("TOOL-1", "TOOL-11")
async def test_lists_tools_under_the_name_of_their_server(servers: Any, each: str) -> None:
    tools = {
        tool.listed.name: tool for tool in await servers.pool.toolset(each, ServerFilter()).tools()
    }
    add = tools["add"]
    assert add.spec.name == f"{each}__add"
    assert add.spec.description == "Add two numbers."
    assert set(add.spec.input_schema["properties"]) == {"a", "b"}
    assert add.spec.output_schema["type"] == "object"
    assert (add.source, add.server_name, add.repeatable) == ("mcp", each, True)
    assert (tools["echo"].repeatable, tools["echo"].listed.destructive) == (False, False)
    assert tools["secret"].listed.destructive
    assert tools["echo"].spec.title == "Echo it"


async def test_gives_names_no_provider_takes_a_fitting_form(
    servers: Any, make_context: Any
) -> None:
    tools = await servers.pool.toolset("stdio-new", ServerFilter()).tools()
    odd = next(tool for tool in tools if tool.listed.name == "odd.name/with space")
    assert odd.spec.name.replace("_", "").replace("-", "").isalnum()
    assert (await odd.call(ToolCall("1", odd.spec.name), make_context())).text == "odd"


@pytest.mark.spec("TOOL-11")
async def test_calls_a_tool(
    servers: Any, each: str, make_context: Callable[..., ToolContext]
) -> None:
    tools = await servers.pool.toolset(each, ServerFilter()).tools()
    add = next(tool for tool in tools if tool.listed.name == "add")
    result = await add.call(ToolCall("id-7", add.spec.name, {"a": 2, "b": 3}), make_context())
    assert (result.id, result.text, result.is_error) == ("id-7", "5", False)
    assert result.structured == {"result": 5}


@pytest.mark.spec("RUN-15")
async def test_a_call_carries_its_idempotency_key(
    servers: Any, each: str, make_context: Callable[..., ToolContext]
) -> None:
    tools = await servers.pool.toolset(each, ServerFilter()).tools()
    meta = next(tool for tool in tools if tool.listed.name == "meta")
    context = make_context(turn_id="turn-9", call_id="call\n9")
    result = await meta.call(ToolCall("call\n9", meta.spec.name, {}), context)
    assert result.structured == {"key": context.idempotency_key}
    assert make_context(turn_id="turn-8", call_id="call\n9").idempotency_key not in result.text


async def test_keeps_every_block_with_all_it_carries(servers: Any, each: str) -> None:
    result = await servers.call(each, "blocks")
    assert result.content == (
        TextContent(
            "words", {"annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": "v"}}
        ),
        ImageContent("aW1n", "image/png"),
        AudioContent("c25k", "audio/wav"),
        ResourceLink("note://a", "a", "text/plain", {"size": 3}),
        EmbeddedResource("note://b", "text/plain", text="b", resource_extra={"_meta": {"m": 1}}),
        EmbeddedResource("note://c", blob="Yg=="),
    )
    assert result.structured == {"n": [1, None]}
    assert result.extra["_meta"]["trace"] == "t"


async def test_a_failing_tool_is_an_error_result(servers: Any, each: str) -> None:
    result = await servers.call(each, "fail")
    assert result.is_error
    assert "no such luck" in result.text


async def test_an_unknown_tool_and_wrong_arguments_are_error_results(
    servers: Any, each: str
) -> None:
    unknown = await servers.call(each, "nothing")
    assert unknown.is_error
    assert "nothing" in unknown.text
    wrong = await servers.call(each, "add", a="two", b=1)
    assert wrong.is_error
    assert "a" in wrong.text


@pytest.mark.spec("CARD-63", "TOOL-2")
async def test_a_filter_holds_when_tools_are_listed_and_when_they_are_called(
    servers: Any, each: str, make_context: Callable[..., ToolContext]
) -> None:
    toolset = servers.pool.toolset(each, ServerFilter(tools={each: ("a*", "echo")}))
    assert [tool.listed.name for tool in await toolset.tools()] == ["add", "echo"]
    hidden = await toolset.call_tool("secret", ToolCall("1", "x"), make_context())
    assert hidden.is_error
    assert hidden.text == f"the tool `secret` of server `{each}` is not open to agent `tester`"
    # A tool that was taken from the list of an agent with more rights does not widen the filter.
    open_tools = await servers.pool.toolset(each, ServerFilter()).tools()
    secret = next(tool for tool in open_tools if tool.listed.name == "secret")
    assert (await secret.call(ToolCall("1", "x"), make_context())).text == "the secret"


async def test_an_empty_filter_allows_nothing_and_others_are_left_alone(servers: Any) -> None:
    allowed = ServerFilter(tools={"stdio-new": ()})
    assert await servers.pool.toolset("stdio-new", allowed).tools() == ()
    assert len(await servers.pool.toolset("stdio-old", allowed).tools()) > 5


async def test_the_list_is_the_same_value_until_it_changes(
    servers: Any, each: str, eventually: Any
) -> None:
    toolset = servers.pool.toolset(each, ServerFilter())
    await toolset.tools()

    async def listening() -> bool:
        return servers.pool.connection(each).notifies_changes

    await eventually(listening)
    before = await toolset.tools()
    assert await toolset.tools() is before
    name = f"grown_{each}"
    assert (await servers.call(each, "grow", name=name)).text == "grown"

    async def grown() -> bool:
        return name in {tool.listed.name for tool in await toolset.tools()}

    await eventually(grown)
    assert await toolset.tools() is not before
    assert (await servers.call(each, name)).text == f"I am {name}"


async def test_progress_reaches_the_context(
    servers: Any, each: str, make_context: Callable[..., ToolContext]
) -> None:
    reported: list[tuple[float, float | None, str | None]] = []

    def tell(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    toolset = servers.pool.toolset(each, ServerFilter())
    call = ToolCall("1", "slow", {"key": f"progress {each}", "seconds": 0.06, "steps": 3})
    result = await toolset.call_tool("slow", call, make_context(progress=tell))
    assert result.text == "done"
    assert reported == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_cancelled_call_is_cancelled_at_the_server_too(
    servers: Any, each: str, eventually: Any
) -> None:
    key = f"cancel {each}"

    async def seen(what: str) -> bool:
        return (await servers.call(each, "seen", key=key)).structured[what]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: servers.call(each, "slow", key=key, seconds=60))
        await eventually(lambda: seen("started"))
        tasks.cancel_scope.cancel()
    await eventually(lambda: seen("cancelled"))
    assert (await servers.call(each, "add", a=1, b=1)).text == "2"


async def test_twenty_calls_at_once(servers: Any, each: str) -> None:
    answers: dict[int, str] = {}

    async def call(number: int) -> None:
        answers[number] = (await servers.call(each, "echo", text=f"text {number}")).text

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(call, number)
    assert answers == {number: f"text {number}" for number in range(20)}


async def test_a_large_result_arrives_whole_and_a_huge_one_is_cut_with_a_notice(
    servers: Any, each: str
) -> None:
    whole = await servers.call(each, "large", size=900_000)
    assert whole.text == "x" * 900_000
    huge = await servers.call(each, "large", size=1_300_000)
    assert "[300,000 of 1,300,000 characters were left out]" in huge.text
    assert len(huge.text) < 1_000_200
    assert huge.structured is None


async def test_log_messages_of_servers_are_logged(
    servers: Any, each: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "fast_agent.mcp.server"):
        await servers.call(each, "log_it", text="one\nline\x1b[31m")
        with anyio.fail_after(60):
            while not caplog.records:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == [f"server `{each}`: one line[31m"]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("server", ["stdio-new", "stdio-old"])
async def test_a_line_that_is_no_message_does_no_harm(servers: Any, server: str) -> None:
    assert (await servers.call(server, "babble")).text == "babbled"
    assert (await servers.call(server, "add", a=1, b=2)).text == "3"


@pytest.mark.parametrize("server", ["stdio-new"])
async def test_servers_get_a_small_environment_and_their_directory(
    servers: Any, server: str
) -> None:
    names = (await servers.call(server, "environment")).structured["result"]
    assert {"EXPLICIT", "PATH"} <= set(names)
    # pytest sets this one in our own environment, as a shell would set a provider's key.
    assert "PYTEST_CURRENT_TEST" in os.environ
    allowed = {"EXPLICIT", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
    added = {"LC_CTYPE", "FAST_AGENT_STARTED_BY"}
    certificates = {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"}
    proxies = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
    network = certificates | proxies | {name.lower() for name in proxies}
    assert set(names) <= allowed | added | network
    assert (await servers.call(server, "where")).text.endswith("tests/mcp/servers")


@pytest.mark.parametrize(
    "name",
    [
        "load_skill",
        "read_skill_file",
        "getSkill",
        "list-skills",
        "Use Skill",
        "skill",
        "loadSkills",
        "skill_list",
    ],
)
def test_tools_that_give_skills_are_known_by_their_names(name: str) -> None:
    assert is_skill_tool(name)


@pytest.mark.parametrize("name", ["create_skill", "skilled", "read_file", "load", "upskill_team"])
def test_other_tools_are_not_taken_for_them(name: str) -> None:
    assert not is_skill_tool(name)
