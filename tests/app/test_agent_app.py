from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import pytest
from pydantic import BaseModel

from fast_agent.agents.events import ToolStarted, TurnFinished
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError, RunError, ToolError
from fast_agent.messages.message import EmbeddedResource, Message, TextContent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.card_writer import WriteCard

    from fast_agent import FastAgent
    from fast_agent.agents.events import Event

    NewProgram: TypeAlias = Callable[..., FastAgent]

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int


@dataclass
class Town:
    name: str
    people: int


CITY = '{"name": "Oslo", "people": 709037}'


@pytest.mark.spec("PY-2", "MODEL-4")
async def test_the_ways_to_an_agent(new_program: NewProgram) -> None:
    program = new_program()
    assert repr(program.agent("ann", model="passthrough")) == "<DeclaredAgent 'ann'>"
    program.agent("my-helper", model="passthrough", default=True)
    async with program.run() as app:
        assert (repr(app), repr(app.ann)) == ("<AgentApp: ann, my-helper>", "<LlmAgent 'ann'>")
        assert app.agent_names() == ["ann", "my-helper"] == list(app)
        assert await app("hello") == "hello"
        assert await app("hello", "ann") == "hello"
        assert await app.send(Message.user("hi")) == "hi"
        assert await app.ann.send("hi") == "hi"
        assert await app["my-helper"].send("hi") == "hi"
        assert app.my_helper is app["my-helper"]
        assert app.default_name == "my-helper"
        assert "ann" in app
        assert "bob" not in app
        assert len(app.ann.history) == 4
        assert app.usage.requests == 5


async def test_agents_are_closed_with_the_block(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough")
    program.agent("bob", model="passthrough")
    async with program.run() as app:
        ann = app.ann
        assert await ann.send("hello") == "hello"
    with pytest.raises(RunError, match="agent `ann` is closed"):
        await ann.send("hello")
    for name in ("ann", "bob"):
        with pytest.raises(RunError, match="the agents are closed"):
            await app("hello", name)


async def test_names_that_python_cannot_tell_apart(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("a-b")
    program.agent("a.b")
    program.agent("c_d", model="passthrough")
    program.agent("c-d")
    async with program.run(model="passthrough") as app:
        with pytest.raises(AttributeError, match="may be several agents"):
            _ = app.a_b
        assert app.c_d is app["c_d"]


async def test_an_unknown_agent(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("writer")
    async with program.run(model="passthrough") as app:
        with pytest.raises(AttributeError, match="did you mean `writer`"):
            _ = app.wirter
        with pytest.raises(RunError, match="no agent is named `wirter`") as raised:
            _ = app["wirter"]
        assert raised.value.hint == "did you mean `writer`?"
        with pytest.raises(RunError, match="no agent is named `nobody`"):
            await app("hi", "nobody")
        assert not hasattr(app, "__nothing__")


@pytest.mark.spec("CARD-74", "CARD-72", "CARD-7")
async def test_an_agent_that_is_a_tool_only_is_hidden_but_can_be_reached(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("ann.md", "model: passthrough")
    write_card("code_formatter.md", "tool_only: true", "model: passthrough")
    program = new_program()
    program.load_agents(".")
    async with program.run() as app:
        assert app.agent_names() == ["ann"]
        assert "code_formatter" in app
        assert await app["code_formatter"].send("x = 1") == "x = 1"


@pytest.mark.spec("PY-3")
async def test_structured_answers(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough")
    schema = {"type": "object", "properties": {"people": {"type": "integer"}}}
    async with program.run() as app:
        city = await app.ann.structured(CITY, City)
        assert city == City(name="Oslo", people=709037)
        assert await app.ann.structured(CITY, Town) == Town("Oslo", 709037)
        assert await app.ann.structured(CITY, schema) == {"name": "Oslo", "people": 709037}
        with pytest.raises(RunError, match="invalid structured answer"):
            await app.ann.structured("no JSON", City)
        with pytest.raises(RunError, match="schema"):
            await app.ann.structured("x", {"type": "objec"})


async def test_what_is_no_message_is_an_error_that_says_so(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough")

    def given(value: object) -> Any:
        return value

    async with program.run() as app:
        with pytest.raises(RunError, match="a string or a `Message`, not `int`") as caught:
            await app.ann(given(42))
        assert "Prompt.user" in str(caught.value.hint)
        with pytest.raises(RunError, match="a tuple of blocks, not `str`"):
            await app.ann(Message("user", given("hi")))
        with pytest.raises(RunError, match="consists of `Message`s, not `dict`"):
            app.ann.load_history([Message.user("hi"), given({"role": "user"})])
        assert not app.ann.history
        with pytest.raises(RunError, match="a dictionary, not `str`"):
            await app.ann.call_tool("add", given("x"))
        with pytest.raises(
            RunError, match=r"`5` cannot be the type .*: no JSON Schema can be made"
        ):
            await app.ann.structured("hi", given(5))


@pytest.mark.spec("PY-3", "CARD-62", "CARD-63", "CARD-64")
async def test_resources_and_tools_of_a_real_server(
    new_program: NewProgram, server_url: str
) -> None:
    servers = f"mcp: {{servers: {{all: {{url: '{server_url}'}}, other: {{url: '{server_url}'}}}}}}"
    program = new_program(servers)
    program.agent(
        "ann",
        model="passthrough",
        servers=["all", "other"],
        tools={"all": ["a*"]},
        resources={"all": ["note://a"]},
    )
    async with program.run() as app:
        assert await app.ann.with_resource("look", "all", "note://a") == "look"
        assert app.ann.history[0].content == (
            TextContent("look"),
            EmbeddedResource("note://a", "text/plain", text="note a"),
        )
        assert await app('***CALL_TOOL all__add {"a": 1, "b": 2}') == "3"
        assert "secret" in await app("***CALL_TOOL other__secret {}")
        refused = await app("***CALL_TOOL all__secret {}")
        assert "the secret" not in refused
        with pytest.raises(ToolError, match="hidden"):
            await app.ann.with_resource("look", "all", "note://hidden")
        with pytest.raises(RunError, match="has no server `nope`"):
            await app.ann.with_resource("look", "nope", "note://a")


@pytest.mark.spec("TOOL-12")
async def test_a_server_that_is_down_stops_only_who_needs_it(new_program: NewProgram) -> None:
    program = new_program("mcp: {servers: {down: {command: no-such-program-anywhere}}}")
    program.agent("ann", model="passthrough")
    program.agent("bob", model="passthrough", servers=["down"])
    async with program.run() as app:
        assert await app.ann.send("hi") == "hi"
        with pytest.raises(ToolError, match="needs server `down`"):
            await app.bob.send("hi")
        assert await app.ann.send("still here") == "still here"


@pytest.mark.spec("MODEL-3")
async def test_a_missing_key_is_reported_before_the_first_turn(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", agents=["bob"])
    program.agent("bob", model="anthropic.claude-sonnet-5", agents=["cid"])
    program.agent("cid", model="openai.gpt-5")
    program.agent("dan", model="passthrough")
    events: list[Event] = []
    async with program.run(listener=events.append) as app:
        with pytest.raises(ModelError) as raised:
            await app("hi", "ann")
        assert await app("hi", "dan") == "hi"
    reported = [f"{found.message} {found.hint}" for found in raised.value.diagnostics]
    assert len(reported) == 2
    assert "`ANTHROPIC_API_KEY`" in reported[0]
    assert "`anthropic.api_key`" in reported[0]
    assert "`OPENAI_API_KEY`" in reported[1]
    assert {event.origin.agent for event in events} == {"dan"}


async def test_a_key_of_the_environment_configuration_or_card_is_enough(
    new_program: NewProgram,
) -> None:
    for configuration, environ, key in (
        ("", {"ANTHROPIC_API_KEY": "k"}, None),
        ("anthropic: {api_key: k}", {}, None),
        ("", {}, "k"),
    ):
        program = new_program(configuration, **environ)
        program.agent("ann", model="anthropic.claude-sonnet-5", api_key=key)
        async with program.run() as app:
            assert app.ann.name == "ann"


async def test_an_unknown_model_of_the_caller(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann")
    async with program.run(model="passthrogh") as app:
        with pytest.raises(ModelError, match="unknown model `passthrogh`") as raised:
            _ = app.ann
    assert "`passthrough`" in (raised.value.hint or "")


async def test_the_fallback_says_how_to_get_it_or_another(new_program: NewProgram) -> None:
    reported: list[str] = []
    program = new_program()
    program.agent("ann")
    async with program.run(notify=reported.append) as app:
        with pytest.raises(ModelError, match="no model is configured") as raised:
            _ = app.ann
    assert "fast-agent models pull smollm2" in (raised.value.hint or "")
    assert reported == []


async def test_the_fallback_is_reported_once(new_program: NewProgram, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    weights = tmp_path / "w.gguf"
    weights.write_bytes(b"GGUF")
    reported: list[str] = []
    program = new_program(f"local: {{path: {weights}}}")
    program.agent("ann")
    program.agent("bob")
    async with program.run(notify=reported.append) as app:
        _ = app.ann, app.bob, app.ann
    assert len(reported) == 1
    assert "no model is configured" in reported[0]
    assert "--model" in reported[0]


@pytest.mark.spec("PY-6")
async def test_without_a_card_there_is_one_plain_agent(new_program: NewProgram) -> None:
    program = new_program()
    async with program.run(model="passthrough") as app:
        assert await app("hello") == "hello"
        assert app.agent_names() == ["agent"]


async def test_a_program_may_run_twice_and_starts_afresh(new_program: NewProgram) -> None:
    program = new_program()
    for _ in range(2):
        async with program.run(model="passthrough") as app:
            await app("one")
            assert len(app[app.default_name].history) == 2


async def test_agents_that_do_not_agree_stop_the_run(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", agents=["nobody"])
    with pytest.raises(Exception, match="no agent is named `nobody`"):
        async with program.run():
            pytest.fail("it ran")


@pytest.mark.spec("CARD-22")
async def test_only_tools_leave_nobody_to_talk_to(
    new_program: NewProgram, write_card: WriteCard
) -> None:
    write_card("tool.md", "tool_only: true", "model: passthrough")
    program = new_program()
    program.load_agents(".")
    async with program.run() as app:
        # A plain agent is there to talk to, as without any card.
        assert app.agent_names() == ["agent"]
        assert await app["tool"].send("hi") == "hi"


async def test_fifty_agents_and_fifty_messages_at_once(new_program: NewProgram) -> None:
    program = new_program()
    names = [f"agent{number}" for number in range(50)]
    waiting = 0
    met = anyio.Event()

    async def meet() -> str:
        nonlocal waiting
        waiting += 1
        if waiting == len(names):
            met.set()
        await met.wait()
        return "all are here"

    for name in names:
        program.agent(name, model="passthrough", function_tools=[meet])
    program.agent("one", model="passthrough")
    answers: dict[str, str] = {}

    async def ask(name: str) -> None:
        answers[name] = await app("***CALL_TOOL meet {}", name)

    async with program.run() as app:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(ask, name)
        assert answers == dict.fromkeys(names, "all are here")

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(app.one.send, f"message {number}")
        said = [message.text for message in app.one.history]
        assert said[::2] == said[1::2]
        assert sorted(said[::2]) == sorted(f"message {number}" for number in range(50))


@pytest.mark.spec("CARD-67", "CARD-66")
async def test_request_parameters_of_the_caller_go_over_card_over_configuration(
    new_program: NewProgram,
) -> None:
    program = new_program("request_params: {max_tokens: 1, temperature: 0.1, top_p: 0.5}")
    program.agent(
        "ann", model="passthrough", request_params={"temperature": 0.2, "max_iterations": 3}
    )
    async with program.run(params=RequestParams(max_iterations=4)) as app:
        ann = app.ann
        assert isinstance(ann, LlmAgent)
        params = ann._setup.params
        assert params.max_iterations == 4
        assert params.temperature == 0.2
        assert params.max_tokens == 1


async def test_events_are_heard(new_program: NewProgram) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    program = new_program()
    program.agent("ann", model="passthrough", function_tools=[add])
    events: list[Event] = []
    async with program.run(listener=events.append) as app:
        assert await app('***CALL_TOOL add {"a": 1, "b": 2}') == "3"
    started = [event for event in events if isinstance(event, ToolStarted)]
    assert [event.call.name for event in started] == ["add"]
    assert isinstance(events[-1], TurnFinished)


@pytest.mark.spec("FLOW-CHAIN-3")
async def test_a_conversation_goes_on_with_the_last_agent_of_a_chain(
    new_program: NewProgram,
) -> None:
    program = new_program()
    for name in ("one", "two"):
        program.agent(name, model="passthrough")
    program.chain("line", sequence=["one", "two"])
    program.chain("longer", sequence=["one", "line"])
    program.chain("stays", sequence=["one", "line"], continue_with_final=False)
    program.parallel("fan", fan_out=["line"])
    async with program.run() as app:
        names = ("one", "line", "longer", "stays", "fan")
        assert [app.goes_on_with(name) for name in names] == ["one", "two", "two", "stays", "fan"]
        assert await app.longer.send("hi") == "hi"
        assert await app[app.goes_on_with("longer")].send("and now?") == "and now?"
        texts = [one.text for one in app["two"].history]
    assert texts == ["hi", "hi", "and now?", "and now?"]
