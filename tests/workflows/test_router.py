from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.workflows.scripted_world import World, agent, agents, card

from fast_agent.agents.output import JsonOutput
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.config.settings import McpSettings, ServerSettings, Settings
from fast_agent.errors import LimitError, ModelError, RunError
from fast_agent.messages.message import Message
from fast_agent.models.script import Call, Fail, Together

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig

pytestmark = pytest.mark.anyio


def route(name: str, confidence: str = "high", reasoning: str = "it fits") -> str:
    return json.dumps({"agent": name, "confidence": confidence, "reasoning": reasoning})


def front(*names: str, **fields: object) -> AgentConfig:
    fields = {"use_history": False, "instruction": "Know your people.", **fields}
    return card("front", "router", agents=names, **fields)


@pytest.mark.spec("FLOW-ROUTER-1", "CARD-40")
async def test_the_model_chooses_and_the_chosen_agent_answers() -> None:
    world = World({"front": [route("two", "medium")], "two": ["deux"]})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        router = runtime.agent("front")
        result = await router.generate("what is <two>?")
        assert [one.text for one in runtime.agent("two").history] == ["what is <two>?", "deux"]
        assert len(router.history) == 0
        assert router.usage.requests == 1
        assert router.tree_usage.requests == 2
    assert result.text == "deux"
    chosen = {"agent": "two", "confidence": "medium", "reasoning": "it fits"}
    assert result.workflow == {"type": "router", **chosen}
    assert world.facts_of("route") == [chosen]
    asked = world.asked("front")[0]
    assert asked.structured
    assert asked.text == "<request>\nwhat is &lt;two&gt;?\n</request>"
    assert world.asked("one") == []
    assert (result.usage.requests, result.tree_usage.requests) == (1, 2)


@pytest.mark.spec("FLOW-ROUTER-2")
@pytest.mark.parametrize("instruction", ["Choose well.", "Here:\n{{agents}}\nChoose well."])
async def test_the_model_always_sees_the_agents(instruction: str) -> None:
    world = World({"front": [route("one")]})
    cards = (
        front("one", "two", instruction=instruction),
        agent("one", description="Knows <one>."),
        agent("two", instruction="You know two.\n\nAnd more.", servers=("time", "news")),
    )
    async with world.runtime(*cards) as runtime:
        await runtime.agent("front").generate("go")
    system = world.asked("front")[0].system
    listed = (
        '<agents>\n<agent name="one">Knows &lt;one&gt;.</agent>\n'
        '<agent name="two" servers="time, news">You know two.</agent>\n</agents>'
    )
    assert system.count("<agents>") == 1
    assert listed in system
    assert "Choose well." in system
    assert "You do not answer the request yourself." in system
    assert (system.index(listed) < system.index("Choose well.")) == ("{{" in instruction)


@pytest.mark.spec("FLOW-ROUTER-3")
@pytest.mark.parametrize(
    "wrong",
    [
        route("nobody"),
        "I would ask one.",
        "",
        '{"agent": "one"}',
        '["one"]',
        route("one", "rather"),
    ],
)
async def test_an_unusable_choice_is_asked_for_once_more(wrong: str) -> None:
    world = World({"front": [wrong, route("one")], "one": ["yes"]})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        assert await runtime.agent("front").send("go") == "yes"
    again = world.asked("front")[1].text
    assert "does not have the required form" in again
    if wrong == route("nobody"):
        assert "'nobody' is not one of ['one', 'two']" in again
    assert world.warnings == ["the structured answer was invalid and is requested again"]


@pytest.mark.spec("FLOW-ROUTER-3")
async def test_two_unknown_choices_are_an_error_that_names_the_agents() -> None:
    world = World({"front": [route("nobody"), route("noone")]})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        router = runtime.agent("front")
        with pytest.raises(
            RunError, match=r"`front` returned an invalid .*'noone' is not one of \['one"
        ):
            await router.generate("go")
        assert len(router.history) == 0
    assert {seen.agent for seen in world.seen} == {"front"}


@pytest.mark.spec("FLOW-ROUTER-4")
@pytest.mark.parametrize("names", [("one",), ("one", "one")])
async def test_one_agent_is_used_without_asking_the_model(names: tuple[str, ...]) -> None:
    world = World({"front": [], "one": ["yes"]})
    async with world.runtime(front(*names), agent("one")) as runtime:
        result = await runtime.agent("front").generate("go")
    assert result.text == "yes"
    assert result.workflow == {
        "type": "router",
        "agent": "one",
        "confidence": None,
        "reasoning": None,
    }


async def test_with_history_the_model_sees_the_conversation() -> None:
    world = World({"front": [route("one"), route("two")], "one": ["un"], "two": ["deux"]})
    cards = (front("one", "two", use_history=True), *agents(["one", "two"]))
    async with world.runtime(*cards) as runtime:
        router = runtime.agent("front")
        await router.send("first")
        await router.send("second")
        texts = [one.text for one in router.history]
    assert texts == ["first", "un", "second", "deux"]
    first, second = world.asked("front")
    assert [one.text for one in first.messages] == ["<request>\nfirst\n</request>"]
    assert [one.text for one in second.messages] == [
        "first",
        "un",
        "<request>\nsecond\n</request>",
    ]


async def test_a_cancelled_router_closes_the_model_that_was_choosing() -> None:
    asked = anyio.Event()

    async def pause(_agent: str) -> None:
        asked.set()
        await anyio.sleep_forever()

    world = World({"front": [route("one")]}, pause=pause)
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.agent("front").send, "go")
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert world.closed == ["front"]


async def test_templates_are_seen_and_kept_without_history() -> None:
    template = Message.user("for one: poems")
    world = World({"front": [route("one")] * 2})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        router = runtime.clone("front", [template, Message.assistant("noted")])
        await router.send("go")
        await router.send("go")
        assert [one.text for one in router.history] == ["for one: poems", "noted"]
        await router.aclose()
    assert [len(seen.messages) for seen in world.asked("front")] == [3, 3]


@pytest.mark.spec("FLOW-OUT-1")
async def test_the_chosen_agent_gives_the_structured_answer() -> None:
    world = World({"front": [route("one")], "one": ['{"n": 1}']})
    shape = JsonOutput({"type": "object", "required": ["n"]})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        result = await runtime.agent("front").generate("go", output=shape)
    assert result.structured == {"n": 1}
    assert [seen.structured for seen in world.seen] == [True, True]


async def test_a_model_that_fails_and_a_member_that_fails_are_errors() -> None:
    world = World({"front": [Fail("down"), route("one")], "one": [Fail("ill")]})
    async with world.runtime(front("one", "two"), *agents(["one", "two"])) as runtime:
        for reason in ("down", "ill"):
            with pytest.raises(ModelError, match=reason):
                await runtime.agent("front").generate("go")


@pytest.mark.spec("FLOW-LIMIT-1")
async def test_the_limits_of_the_router_hold_for_model_and_members() -> None:
    params = RequestParams(usage_limits=UsageLimits(max_requests=3))
    world = World({"front": [route("one")] * 2, "one": ["yes"] * 2})
    cards = (front("one", "two", request_params=params), *agents(["one", "two"]))
    async with world.runtime(*cards) as runtime:
        router = runtime.agent("front")
        await router.generate("go")
        with pytest.raises(LimitError, match="`front` reached its usage limit `max_requests` of 3"):
            await router.generate("go")
        assert router.tree_usage.requests == 3
        assert len(world.seen) == 3


async def test_the_shell_of_every_agent_is_not_the_routers() -> None:
    world = World({"front": [route("one")], "one": ["yes"]})
    cards = (front("one", "two", human_input=True), *agents(["one", "two"]))
    async with world.runtime(*cards, shell=True) as runtime:
        await runtime.agent("front").generate("go")
    tools = {seen.agent: [tool.name for tool in seen.tools] for seen in world.seen}
    assert tools == {"front": ["request_human_input"], "one": ["execute"]}


SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("desk")


@server.tool()
def who(topic: str) -> str:
    "Say who knows a topic."
    return f"two knows {topic}"


@server.tool()
def fire(name: str) -> str:
    "Fire somebody."
    return f"{name} is gone"


@server.resource("note://{name}")
def note(name: str) -> str:
    return f"a note on {name}"


server.run()
"""


@pytest.mark.spec("CARD-40", "TOOL-2")
async def test_the_model_of_a_router_may_use_its_servers_before_it_chooses(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    desk = ServerSettings(
        name="desk", transport="stdio", command=sys.executable, args=(str(tmp_path / "server.py"),)
    )
    calls = Together((Call("desk__who", {"topic": "rain"}), Call("desk__fire", {"name": "one"})))
    world = World({"front": [calls, route("two"), route("two")], "two": lambda _: "wet"})
    cards = (
        front("one", "two", servers=("desk",), tools={"desk": ("w*",)}, resources={"desk": ("*",)}),
        *agents(["one", "two"]),
    )
    settings = Settings(mcp=McpSettings(servers={"desk": desk}))
    async with world.runtime(*cards, settings=settings) as runtime:
        router = runtime.agent("front")
        result = await router.generate("rain?")
        assert await router.with_resource("look", "desk", "note://rain") == "wet"
    assert result.text == "wet"
    assert result.usage.tool_calls == 1
    first, second, third = world.asked("front")
    assert [tool.name for tool in first.tools] == ["desk__who"]
    who, fire = second.messages[-1].tool_results
    assert (who.text, who.is_error) == ("two knows rain", False)
    assert fire.is_error
    assert "gone" not in fire.text
    assert not third.messages[-1].tool_results
    assert world.asked("two")[0].tools == ()
    # The resource goes to the router's model and to the agent as it was read.
    assert third.messages[-1].content[1:] == world.asked("two")[1].messages[-1].content[1:]
    assert len(third.messages[-1].content) == 2


@pytest.mark.spec("FLOW-ROUTER-5")
@pytest.mark.parametrize("hand_off", [True, False])
async def test_a_follow_up_is_routed_with_the_conversation(hand_off: bool) -> None:
    world = World({"front": [route("one"), route("two")], "one": ["in May"], "two": ["snow"]})
    fields: dict[str, object] = {"use_history": None, "hand_off": hand_off}
    cards = (front("one", "two", **fields), *agents(["one", "two"]))
    async with world.runtime(*cards) as runtime:
        router = runtime.agent("front")
        await router.send("when to sail?")
        assert await router.send("and in winter?") == "snow"
        expert = runtime.agent("two").history[0].text
    seen = world.asked("front")[1]
    assert "when to sail?" in str(seen)
    assert expert.endswith("and in winter?")
    assert ("USER: when to sail?\n\nASSISTANT: in May" in expert) is hand_off


@pytest.mark.spec("FLOW-ROUTER-5")
def test_what_a_router_is_given_is_bounded() -> None:
    from fast_agent.messages.history import History
    from fast_agent.workflows.router import recent

    pair = (Message.user("q" * 5_000), Message.assistant("a"))
    said = recent(History(pair * 100))
    assert len(said) == 10
    assert max(len(one.text) for one in said) == 2_001
    assert [one.role for one in said] == ["user", "assistant"] * 5
