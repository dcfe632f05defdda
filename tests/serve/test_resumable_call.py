"""Calls that wait for their client's answers over several requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.patience import PATIENCE
from tests.serve.agent_world import AgentWorld, connected, text_of, until

from fast_agent.serve import agent_call
from fast_agent.serve.agent_server import SESSION_ID

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.client import Client

pytestmark = pytest.mark.anyio
MODERN = "2026-07-28"
QUESTION = '***CALL_TOOL request_human_input {"message": "Which?"}'


@pytest.fixture
def world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann", human_input="true")
    world.card("bob", human_input="true")
    return world


BLUE = {"action": "accept", "content": {"text": "blue"}}


async def never(context: object, params: Any) -> Any:
    raise AssertionError((context, params))


async def step(client: Client, agent: str = "ann", **more: Any) -> Any:
    return await client.session.call_tool(
        agent, {"message": QUESTION}, allow_input_required=True, **more
    )


@pytest.mark.spec("SERVE-7")
async def test_a_token_goes_on_with_its_own_call_and_once_only(world: AgentWorld) -> None:
    async with (
        world.serving() as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):
        first = await step(client)
        (name,) = first.input_requests
        assert first.input_requests[name].params.message == "agent `ann` asks:\nWhich?"
        token = first.request_state
        answer = {name: {"action": "accept", "content": {"text": "blue"}}}
        for state, agent in ((token, "bob"), ("x", "ann"), ("", "ann")):
            with pytest.raises(MCPError, match="unknown to this server"):
                await step(client, agent, request_state=state, input_responses=answer)
        again = await step(client, request_state=token)  # asked, and not answered
        assert list(again.input_requests) == [name]
        with pytest.raises(MCPError, match="unknown to this server"):
            await step(client, request_state=token, input_responses=answer)
        done = await step(client, request_state=again.request_state, input_responses=answer)
        assert text_of(done) == "blue"
        for state in (token, again.request_state):
            with pytest.raises(MCPError, match="unknown to this server"):
                await step(client, request_state=state, input_responses=answer)


@pytest.mark.spec("SERVE-7")
async def test_a_call_whose_client_never_answers_ends(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "ANSWER_SECONDS", 0.05)
    async with (
        world.serving() as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):
        first = await step(client)
        assert server.scopes.in_use == 1
        await until(lambda: server.scopes.in_use == 0)
        with pytest.raises(MCPError, match="unknown to this server"):
            await step(client, request_state=first.request_state)


@pytest.mark.spec("SERVE-7")
async def test_the_next_call_in_a_conversation_replaces_one_whose_question_was_left(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "TOGETHER_SECONDS", -1.0)
    async with (
        world.serving(scope="connection") as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):

        async def ask(agent: str, text: str, session: str | None, **more: Any) -> Any:
            meta: Any = {SESSION_ID: session} if session else None
            return await client.session.call_tool(
                agent, {"message": text}, allow_input_required=True, meta=meta, **more
            )

        first = await ask("ann", "hello", None)
        mine, theirs = first.meta[SESSION_ID], (await ask("ann", "hi", None)).meta[SESSION_ID]
        left = await ask("ann", QUESTION, mine)
        others = [await ask("ann", QUESTION, theirs), await ask("bob", QUESTION, mine)]
        assert text_of(await ask("ann", "never mind", mine)) == "never mind"
        with pytest.raises(MCPError, match="unknown to this server"):
            await ask("ann", QUESTION, mine, request_state=left.request_state)
        for agent, session, one in zip(("ann", "bob"), (theirs, mine), others, strict=True):
            answers = dict.fromkeys(one.input_requests, BLUE)
            state = one.request_state
            done = await ask(agent, "", session, request_state=state, input_responses=answers)
            assert text_of(done) == "blue"
        again = await ask("ann", QUESTION, mine)
        last = await ask("ann", QUESTION, mine)
        assert again.request_state != last.request_state
        answers = dict.fromkeys(last.input_requests, BLUE)
        done = await ask("ann", "", mine, request_state=last.request_state, input_responses=answers)
        assert text_of(done) == "blue"


@pytest.mark.spec("SERVE-7")
@pytest.mark.parametrize(
    ("left", "later", "is_cancelled"),
    [
        ("ann", "both", True),
        ("both", "ann", True),
        ("both", "bob", False),
        ("ann", "bob", False),
        ("outer", "ann", True),
    ],
)
async def test_a_question_that_was_left_does_not_block_a_call_that_needs_the_same_agent(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch, left: str, later: str, is_cancelled: bool
) -> None:
    monkeypatch.setattr(agent_call, "TOGETHER_SECONDS", -1.0)
    world.card("both", type="chain", sequence="[ann, bob]")
    world.card("outer", type="parallel", fan_out="[both]")
    async with (
        world.serving(scope="connection") as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):
        begun = await client.session.call_tool("bob", {"message": "hello"})
        meta: Any = {SESSION_ID: (begun.meta or {})[SESSION_ID]}
        asking = await step(client, left, meta=meta)
        with anyio.fail_after(PATIENCE):
            called = await client.session.call_tool(later, {"message": "never mind"}, meta=meta)
        assert not called.is_error
        answers = dict.fromkeys(asking.input_requests or {}, BLUE)
        more: Any = {"request_state": asking.request_state, "input_responses": answers}
        if is_cancelled:
            with pytest.raises(MCPError, match="unknown to this server"):
                await step(client, left, meta=meta, **more)
        else:
            assert not (await step(client, left, meta=meta, **more)).is_error


@pytest.mark.spec("SERVE-7")
async def test_calls_that_were_sent_together_wait_for_the_questions_of_one_another(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "TOGETHER_SECONDS", PATIENCE)
    async with (
        world.serving(scope="connection") as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):
        begun = await client.session.call_tool("ann", {"message": "hello"})
        meta: Any = {SESSION_ID: (begun.meta or {})[SESSION_ID]}
        first = await step(client, meta=meta)
        second: list[Any] = []

        async def ask_again() -> None:
            second.append(await step(client, meta=meta))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_again)
            await anyio.wait_all_tasks_blocked()
            assert second == []
            answers = dict.fromkeys(first.input_requests or {}, BLUE)
            state = first.request_state
            done = await step(client, meta=meta, request_state=state, input_responses=answers)
            assert text_of(done) == "blue"
        assert second[0].input_requests


@pytest.mark.spec("SERVE-7", "TR-N2.1c")
async def test_abandoned_questions_give_way_to_new_ones(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "MAX_WAITING", 2)
    async with (
        world.serving(scope="connection") as server,
        connected(server, MODERN, elicitation_callback=never) as client,
    ):
        first, second, third = [await step(client) for _ in range(3)]
        assert None not in {one.request_state for one in (first, second, third)}
        await until(lambda: server.scopes.in_use == 2)
        with pytest.raises(MCPError, match="unknown to this server"):
            await step(client, request_state=first.request_state)
        for one in (second, third):
            answers = dict.fromkeys(one.input_requests or {}, BLUE)
            state = one.request_state
            answered = await step(client, request_state=state, input_responses=answers)
            assert text_of(answered) == "blue"
