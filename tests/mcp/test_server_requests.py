from __future__ import annotations

from typing import Any

import pytest
from tests.patience import pass_seconds

from fast_agent.mcp.client_side import ClientSide
from fast_agent.mcp.pool import ServerPool
from fast_agent.messages.message import ToolCall
from fast_agent.tools.human import HumanAnswer
from fast_agent.tools.toolbox import ServerFilter

pytestmark = pytest.mark.anyio


@pytest.mark.spec("TOOL-9")
async def test_a_server_gets_the_persons_answer(servers: Any, each: str) -> None:
    servers.person.answers = [HumanAnswer(action="accept", content={"name": "Ada"})]
    assert (await servers.call(each, "greet_person")).text == "hello Ada"
    (question,) = servers.person.asked
    assert (question.message, question.server_name) == ("What is your name?", each)
    assert question.agent_name == "tester"
    assert set(question.schema["properties"]) == {"name"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_refuse(servers: Any, each: str, action: Any) -> None:
    servers.person.answers = [HumanAnswer(action=action)]
    assert (await servers.call(each, "greet_person")).text == f"no name: {action}"


async def test_an_answer_that_does_not_fit_is_asked_for_again(servers: Any, each: str) -> None:
    servers.person.answers = [
        HumanAnswer(action="accept", content={"name": "A"}),
        HumanAnswer(action="accept", content={"name": "Ada", "password": "x"}),
        HumanAnswer(action="accept", content={"name": "Ada"}),
    ]
    assert (await servers.call(each, "greet_person")).text == "hello Ada"
    first, second, third = (question.message for question in servers.person.asked)
    assert first == "What is your name?"
    assert "`name`" in second
    assert "password" in third


async def test_three_wrong_answers_are_a_cancel(servers: Any, each: str) -> None:
    servers.person.answers = [HumanAnswer(action="accept", content={})] * 3
    assert (await servers.call(each, "greet_person")).text == "no name: cancel"


OLD = pytest.mark.parametrize("old", ["stdio-old", "http-old"])


@OLD
async def test_a_person_is_asked_to_open_an_address(servers: Any, old: str) -> None:
    servers.person.answers = [HumanAnswer(action="accept")]
    page = "https://example.com/sign-in"
    assert (await servers.call(old, "open_page", url=page)).text == "accept"
    (question,) = servers.person.asked
    assert (question.url, question.schema, question.message) == (page, None, "Please sign in.")


@pytest.mark.parametrize("new", ["stdio-new", "http-new"])
async def test_a_server_that_asks_in_the_old_way_is_distinguished(servers: Any, new: str) -> None:
    """The reference server cannot ask so over the newest protocol; a setting lets it."""
    refused = await servers.call(new, "open_page", url="https://example.com")
    assert refused.is_error
    assert "`protocol: legacy`" in refused.text


@OLD
async def test_only_web_addresses_are_shown(servers: Any, old: str) -> None:
    for page in (
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://bank.com@evil.com/",
        "https://",
    ):
        assert (await servers.call(old, "open_page", url=page)).text == "decline"
    assert servers.person.asked == []


@OLD
async def test_a_call_that_needs_an_address_opened_is_made_again(servers: Any, old: str) -> None:
    servers.person.answers = [HumanAnswer(action="decline"), HumanAnswer(action="accept")]
    first = f"https://example.com/{old}/first"
    refused = await servers.call(old, "signed_in", url=first)
    assert refused.is_error
    assert "URL elicitation required" in refused.text
    page = f"https://example.com/{old}/second"
    assert (await servers.call(old, "signed_in", url=page)).text == "welcome"
    assert [question.url for question in servers.person.asked] == [first, page]


@pytest.mark.spec("TOOL-9")
async def test_a_server_gets_a_models_answer(servers: Any, each: str) -> None:
    assert (await servers.call(each, "consult", question="why?")).text == "oracle says WHY?"
    (request,) = servers.oracle.requests
    assert (request.server_name, request.agent_names) == (each, ("tester",))
    assert request.system == "Be brief."
    assert (request.params.max_tokens, request.params.temperature) == (77, 0.5)
    assert [message.text for message in request.messages] == ["why?"]


@pytest.mark.spec("TOOL-9")
async def test_a_server_gets_its_roots(servers: Any, each: str) -> None:
    roots = (await servers.call(each, "show_roots")).structured["result"]
    assert roots == ["space=file:///srv/space"]


async def test_what_is_not_offered_is_refused(
    http_server: Any, make_context: Any, http_spec: Any
) -> None:
    """Without a person a question is declined; without a sampler or roots the server learns so."""
    for protocol in ("2026-07-28", "legacy"):
        spec = http_spec(http_server.url, protocol=protocol)
        async with ServerPool([spec], offered=ClientSide()) as pool:
            toolset = pool.toolset("web", ServerFilter())

            async def call(tool: str, toolset: Any = toolset, **arguments: Any) -> Any:
                return await toolset.call_tool(tool, ToolCall("1", tool, arguments), make_context())

            assert (await call("greet_person")).text == "no name: decline"
            for refused in (await call("consult", question="q"), await call("show_roots")):
                assert refused.is_error


async def test_settings_switch_a_servers_requests_off(
    http_server: Any, make_context: Any, http_spec: Any, shared: Any
) -> None:
    spec = http_spec(http_server.url, sampling=False, elicitation=False)
    offered = ClientSide(sampler=shared.oracle, human=shared.person)
    shared.oracle.requests.clear()
    shared.person.asked.clear()
    async with ServerPool([spec], offered=offered) as pool:
        toolset = pool.toolset("web", ServerFilter())
        for tool, arguments in (("consult", {"question": "q"}), ("greet_person", {})):
            result = await toolset.call_tool(tool, ToolCall("1", tool, arguments), make_context())
            assert result.is_error
    assert shared.oracle.requests == []
    assert shared.person.asked == []


async def test_sampling_can_be_subject_to_approval(
    http_server: Any, make_context: Any, http_spec: Any, shared: Any
) -> None:
    class Never:
        async def approve(self, request: Any) -> bool:
            assert request.server_name == "web"
            return False

    shared.oracle.requests.clear()
    offered = ClientSide(sampler=shared.oracle, approval=Never())
    async with ServerPool([http_spec(http_server.url)], offered=offered) as pool:
        toolset = pool.toolset("web", ServerFilter())
        call = ToolCall("1", "consult", {"question": "q"})
        result = await toolset.call_tool("consult", call, make_context())
    assert result.is_error
    assert "declined" in result.text
    assert shared.oracle.requests == []


async def test_the_time_a_person_takes_is_not_the_servers(
    http_server: Any, make_context: Any, http_spec: Any
) -> None:

    class Slow:
        async def ask(self, request: Any) -> HumanAnswer:
            pass_seconds(70)
            return HumanAnswer(action="accept", content={"name": "Ada"})

    for protocol in ("2026-07-28", "legacy"):
        spec = http_spec(http_server.url, read_timeout_seconds=60, protocol=protocol)
        async with ServerPool([spec], offered=ClientSide(human=Slow())) as pool:
            toolset = pool.toolset("web", ServerFilter())
            result = await toolset.call_tool(
                "greet_person", ToolCall("1", "greet_person"), make_context()
            )
        assert result.text == "hello Ada"
