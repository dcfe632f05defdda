from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.processes import ended
from tests.sessions.session_world import store_in

from fast_agent.agents.events import Event, ToolStarted
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import (
    AgentConfig,
    CardType,
    ChildHistory,
    RequestParams,
    UsageLimits,
)
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import (
    McpSettings,
    ServerSettings,
    Settings,
    ShellSettings,
    StatedFacts,
)
from fast_agent.errors import CardError, HistoryError, LimitError, ModelError, RunError, ToolError
from fast_agent.messages.message import Message
from fast_agent.models.offline import PassthroughModel
from fast_agent.runtime.runtime import Runtime
from fast_agent.steps.steps import NullSteps
from fast_agent.tools.human import HumanAnswer, HumanRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.models.model import ModelRequest, ModelResponse

    NewRuntime: TypeAlias = Callable[..., Runtime]

pytestmark = pytest.mark.anyio

ECHO_SERVER = """
import os
from typing import Annotated

from mcp.server.mcpserver import MCPServer, Resolve, Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent

server = MCPServer("echo", instructions="Say it twice.")


@server.tool()
def shout(text: str) -> str:
    "Say it loudly."
    return text.upper()


@server.tool()
def process() -> int:
    "Name the process."
    return os.getpid()


@server.tool()
def whisper(text: str) -> str:
    "Say it softly."
    return text.lower()


async def ask(question: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text=question))], max_tokens=9)


@server.tool()
async def consult(question: str, answer: Annotated[CreateMessageResult, Resolve(ask)]) -> str:
    "Ask the client's model."
    return f"{answer.model} says {answer.content.text}"


@server.resource("note://{name}")
def note(name: str) -> str:
    return f"a note on {name}"


server.run()
"""


def agent(name: str = "alice", **fields: object) -> AgentConfig:
    return replace(AgentConfig(name=name, instruction="Be brief.", model="passthrough"), **fields)


@pytest.fixture(name="new_runtime")
def _new_runtime(tmp_path: Path) -> NewRuntime:
    def make(*configs: AgentConfig, settings: Settings | None = None, **fields: object) -> Runtime:
        cards = [
            Card(replace(config, source=tmp_path / f"{config.name}.md"), f"{config.name}.md")
            for config in configs
        ]
        options = replace(RuntimeOptions(workspace=tmp_path, environ={}), **fields)
        return Runtime(LoadSet.of(cards), settings or Settings(), options)

    return make


def echo_settings(tmp_path: Path) -> Settings:
    script = tmp_path / "echo_server.py"
    script.write_text(ECHO_SERVER)
    server = ServerSettings(
        name="echo", transport="stdio", command=sys.executable, args=(str(script),)
    )
    return Settings(mcp=McpSettings(servers={"echo": server}))


async def test_a_problem_of_closing_is_raised_unless_another_came_first(
    new_runtime: NewRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stay_open(self: object) -> None:
        raise RunError("it stays open")

    monkeypatch.setattr(LlmAgent, "aclose", stay_open)

    async def use(problem: Exception | None) -> None:
        async with new_runtime(agent()) as runtime:
            runtime.agent("alice")
            if problem is not None:
                raise problem

    with pytest.raises(RunError, match="it stays open"):
        await use(None)
    with pytest.raises(LookupError, match="the first"):
        await use(LookupError("the first"))


async def test_the_default_agent_answers(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent("alice"), agent("bob", default=True)) as runtime:
        assert runtime.default.name == "bob"
        result = await runtime.default.generate("hi")
        assert result.text == "hi"
        assert runtime.usage == result.usage
        assert runtime.names == ("alice", "bob")


async def test_an_agent_is_made_once_and_clones_are_fresh(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent()) as runtime:
        shared = runtime.agent("alice")
        assert runtime.agent("alice") is shared
        await shared.generate("hi")
        clone = runtime.clone("alice")
        assert len(clone.history) == 0
        await clone.generate("ho")
        await clone.aclose()
        assert [one.text for one in shared.history] == ["hi", "hi"]
        assert runtime.usage.requests == 2


async def test_an_unknown_agent_is_an_error_with_a_suggestion(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent()) as runtime:
        with pytest.raises(RunError, match="no agent is named `alicia`") as caught:
            runtime.agent("alicia")
        assert caught.value.hint == "did you mean `alice`?"
        with pytest.raises(RunError) as caught:
            runtime.agent("someone")
        assert caught.value.hint == "there are `alice`"


@pytest.mark.parametrize("kind", ["chain", "parallel", "router", "MAKER"])
async def test_a_type_without_a_builder_is_named(new_runtime: NewRuntime, kind: CardType) -> None:
    async with new_runtime(agent(type=kind)) as runtime:
        expected = f"of type `{kind}`; only cards of type `agent`, `smart` can"
        with pytest.raises(RunError, match=expected):
            runtime.agent("alice")


async def test_without_an_agent_to_talk_to(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent(tool_only=True)) as runtime:
        with pytest.raises(RunError, match="no agent to talk to"):
            _ = runtime.default


async def test_function_tools_of_a_card_are_called(new_runtime: NewRuntime, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(
        "async def add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
    )
    async with new_runtime(agent(function_tools=("sums.py:add",))) as runtime:
        result = await runtime.default.generate('***CALL_TOOL add {"a": 2, "b": 3}')
        assert result.text == "5"
        assert (result.usage.requests, result.usage.tool_calls) == (2, 1)


async def test_a_function_that_is_not_there_is_a_card_error(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent(function_tools=("none.py:add",))) as runtime:
        with pytest.raises(CardError, match="agent `alice`") as caught:
            runtime.agent("alice")
        assert caught.value.diagnostics


async def test_a_person_is_asked_where_the_card_says_so(new_runtime: NewRuntime) -> None:
    asked: list[HumanRequest] = []

    class Person:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request)
            return HumanAnswer(action="accept", content={"text": "blue"})

    call = '***CALL_TOOL request_human_input {"message": "Which colour?"}'
    async with new_runtime(agent(human_input=True), agent("other"), human=Person()) as runtime:
        assert (await runtime.agent("alice").generate(call)).text == "blue"
        assert (asked[0].message, asked[0].agent_name) == ("Which colour?", "alice")
        assert "unknown tool" in (await runtime.agent("other").generate(call)).text
    async with new_runtime(agent(human_input=True)) as runtime:
        nobody = await runtime.default.generate(call)
        assert nobody.messages[2].tool_results[0].is_error


@pytest.mark.spec("TOOL-6")
async def test_the_shell_is_there_only_when_asked_for(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    call = '***CALL_TOOL execute {"command": "pwd; exit 3"}'
    settings = Settings(shell=ShellSettings(timeout_seconds=7, max_output_bytes=4))
    async with new_runtime(agent("with", shell=True, cwd="here"), agent("without")) as runtime:
        result = await runtime.agent("with").generate(call)
        assert result.text == f"{tmp_path}/here\n[exit code 3]"
        assert result.messages[2].tool_results[0].is_error
        refused = await runtime.agent("without").generate(call)
        assert "unknown tool `execute`" in refused.text
    async with new_runtime(agent("without"), settings=settings, shell=True) as runtime:
        one = runtime.agent("without")
        assert "left out" in (await one.generate('***CALL_TOOL execute {"command": "ls /"}')).text
        result = await one.generate(
            '***CALL_TOOL execute {"command": "sleep 9", "timeout_seconds": 0.05}'
        )
        assert "ran longer than 0.05 s" in result.text


@pytest.mark.parametrize(
    ("card", "given", "names"),
    [
        (None, None, ()),
        ("read", None, ("read_file",)),
        (None, "read", ("read_file",)),
        ("write", "read", ("read_file", "write_file")),
        ("read", "write", ("read_file", "write_file")),
    ],
)
async def test_files_are_open_as_far_as_the_card_or_the_run_allows(
    new_runtime: NewRuntime,
    card: FileAccess | None,
    given: FileAccess | None,
    names: tuple[str, ...],
) -> None:
    async with new_runtime(agent(files=card), files=given) as runtime:
        one = runtime.agent("alice")
        assert isinstance(one, LlmAgent)
        offered = {tool.name for tool in await one.list_tools()}
        assert offered & {"read_file", "write_file"} == set(names)


async def test_a_chosen_model_is_taken_back(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent()) as runtime:
        await runtime.choose_model("alice", "slow?seconds=0")
        one = runtime.agent("alice")
        assert isinstance(one, LlmAgent)
        assert (one.model_name, runtime.wanted_model("alice")) == ("slow", "slow?seconds=0")
        await runtime.choose_model("alice", None)
        one = runtime.agent("alice")
        assert isinstance(one, LlmAgent)
        assert (one.model_name, runtime.wanted_model("alice")) == ("passthrough", None)


async def test_tool_hooks_stand_around_functions_children_and_servers(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "sums.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (tmp_path / "hooks.py").write_text(
        "async def tag(ctx, args, call_next):\n"
        "    result = await call_next(args)\n"
        "    return f'{ctx.tool_source}: {result.text}'\n"
    )
    config = agent(
        function_tools=("sums.py:add",),
        tool_hooks=("hooks.py:tag",),
        agents=("kid",),
        servers=("echo",),
    )
    calls = (
        '***CALL_TOOL add {"a": 2, "b": 3}\n'
        '***CALL_TOOL agent__kid {"message": "draw"}\n'
        '***CALL_TOOL echo__shout {"text": "hey"}'
    )
    settings = echo_settings(tmp_path)
    async with new_runtime(config, agent("kid"), settings=settings) as runtime:
        result = await runtime.agent("alice").generate(calls)
        assert result.text == "function: 5\nagent: draw\nmcp: HEY"
        assert result.tree_usage.requests == 3


async def test_turn_hooks_of_a_card_are_called(new_runtime: NewRuntime, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "from fast_agent.messages.message import Message\n"
        "async def loud(ctx):\n"
        "    ctx.message = Message.assistant(ctx.message.text.upper())\n"
    )
    config = agent(tool_hooks={"after_llm_call": ("hooks.py:loud",)})
    async with new_runtime(config) as runtime:
        assert (await runtime.default.generate("hi")).text == "HI"


@pytest.mark.spec("CARD-55", "HIST-7")
async def test_messages_of_a_card_are_templates_of_every_instance(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "shots.md").write_text("---USER\nq\n---ASSISTANT\na\n")
    async with new_runtime(agent(messages=("shots.md",))) as runtime:
        for one in (runtime.default, runtime.clone("alice")):
            assert [(shot.text, shot.is_template) for shot in one.history] == [
                ("q", True),
                ("a", True),
            ]
            await one.generate("hi")
            one.clear()
            assert len(one.history) == 2
        assert len(runtime.clone("alice", ()).history) == 0


async def test_a_card_from_the_web_gets_no_messages_from_files_here(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "private.md").write_text("---USER\nq\n---ASSISTANT\na\n")
    remote = agent(messages=("private.md",), remote="https://example.com/card.md")
    async with new_runtime(remote) as runtime:
        assert list(runtime.default.history) == []


async def test_a_messages_file_that_is_not_there(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent(messages=("none.json",))) as runtime:
        with pytest.raises(HistoryError, match=r"none\.json"):
            runtime.agent("alice")


async def test_playback_answers_from_the_messages_of_the_card(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "shots.md").write_text(
        "---USER\nq\n---ASSISTANT\nfirst\n---USER\nr\n---ASSISTANT\nsecond\n"
    )
    async with new_runtime(agent(messages=("shots.md",), model="playback")) as runtime:
        answers = [(await runtime.default.generate("next")).text for _ in range(3)]
        assert answers == ["first", "second", "MESSAGES EXHAUSTED (list size 4) (1 overage)"]


@pytest.mark.spec("CARD-67", "PREC-1")
async def test_the_model_is_chosen_by_override_card_configuration(
    new_runtime: NewRuntime,
) -> None:
    settings = Settings(default_model="slow?seconds=0")
    named, unnamed = agent("named"), agent("unnamed", model=None)
    async with new_runtime(named, unnamed, settings=settings) as runtime:
        assert runtime.model_of("named").source == "card"
        assert runtime.model_of("unnamed").source == "configuration"
        shared = runtime.agent("unnamed")
        assert isinstance(shared, LlmAgent)
        assert shared.model_name == "slow"
    async with new_runtime(named, settings=settings, model="playback") as runtime:
        assert runtime.model_of("named").text == "playback"
    async with new_runtime(unnamed) as runtime:
        chosen = runtime.model_of("unnamed")
        assert (chosen.text, chosen.source) == ("local", "fallback")


async def test_a_reload_keeps_the_configuration_or_takes_another_one(
    new_runtime: NewRuntime,
) -> None:
    unnamed = agent("unnamed", model=None)
    cards = LoadSet.of([Card(unnamed, "unnamed.md")])
    async with new_runtime(unnamed, settings=Settings(default_model="slow?seconds=0")) as runtime:
        await runtime.refresh(cards, ["unnamed"])
        assert runtime.model_of("unnamed").text == "slow?seconds=0"
        await runtime.refresh(cards, (), Settings(default_model="passthrough"))
        assert runtime.model_of("unnamed").text == "passthrough"
        assert await runtime.agent("unnamed").send("hi") == "hi"


async def test_a_card_may_go_when_the_configuration_changes(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent("ann"), agent("bob")) as runtime:
        for name in ("ann", "bob"):
            assert await runtime.agent(name).send("hi") == "hi"
        await runtime.refresh(LoadSet.of([Card(agent("ann"), "ann.md")]), (), Settings())
        assert await runtime.agent("ann").send("again") == "again"
        with pytest.raises(RunError, match="no agent is named `bob`"):
            runtime.agent("bob")


async def test_a_changed_card_that_cannot_run_is_refused_as_a_whole(
    new_runtime: NewRuntime,
) -> None:
    async with new_runtime(agent("ann"), agent("bob")) as runtime:
        assert await runtime.agent("ann").send("hi") == "hi"
        broken = LoadSet.of([Card(agent("ann", function_tools=("none.py:f",)), "ann.md")])
        with pytest.raises(CardError, match=r"none\.py"):
            await runtime.refresh(broken, ["ann"])
        assert await runtime.agent("ann").send("again") == "again"


THREE_CALLS = """
steps:
  - call: {name: echo__process}
  - call: {name: request_human_input, arguments: {message: "Which?"}}
  - call: {name: echo__process}
  - text: done
"""


@pytest.mark.spec("LIVE-8")
async def test_a_turn_uses_the_servers_that_it_began_with_until_it_ends(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    asked, may_answer = anyio.Event(), anyio.Event()

    class SlowUser:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            del request
            asked.set()
            await may_answer.wait()
            return HumanAnswer(action="cancel")

    (tmp_path / "steps.yaml").write_text(THREE_CALLS)
    settings = echo_settings(tmp_path)
    other = replace(settings.mcp.servers["echo"], env={"OTHER": "1"})
    changed = replace(settings, mcp=McpSettings(servers={"echo": other}))
    config = agent(servers=("echo",), human_input=True, model="scripted?file=steps.yaml")
    async with new_runtime(config, settings=settings, human=SlowUser()) as runtime:
        one = runtime.default
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.send, "hi")
            await asked.wait()
            await runtime.refresh(LoadSet.of([Card(agent(), "alice.md")]), ["alice"], changed)
            may_answer.set()
        first, last = one.history[2].tool_results[0].text, one.history[6].tool_results[0].text
        assert first == last
        await ended(int(first))
        assert await runtime.default.send("hi") == "hi"


async def test_a_skill_that_a_user_calls_is_the_message(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "skills/maker").mkdir(parents=True)
    text = "---\nname: maker\ndescription: Makes.\n---\nMake $ARGUMENTS.\n"
    (tmp_path / "skills/maker/SKILL.md").write_text(text)
    async with new_runtime(agent(skills=("skills",))) as runtime:
        skill = await runtime.call_skill("alice", "maker", "socks")
        assert skill is not None
        assert "Make socks." in skill.text
        assert await runtime.call_skill("alice", "baker", "socks") is None


async def test_an_unknown_model_is_an_error(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent(model="passthru")) as runtime:
        with pytest.raises(ModelError, match="passthru"):
            runtime.agent("alice")


@pytest.mark.spec("CARD-67")
async def test_request_params_go_from_caller_over_card_over_configuration(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "sums.py").write_text("def add() -> int:\n    return 1\n")
    card = RequestParams(max_iterations=5, usage_limits=UsageLimits(max_requests=1))
    settings = Settings(request_params=RequestParams(usage_limits=UsageLimits(max_tool_calls=0)))
    config = agent(request_params=card, function_tools=("sums.py:add",))
    override = RequestParams(max_iterations=1)
    async with new_runtime(config, settings=settings, params=override) as runtime:
        result = await runtime.default.generate("***CALL_TOOL add")
        assert result.stop_reason == "maxIterations"
        with pytest.raises(LimitError, match="max_requests"):
            await runtime.default.generate("hi")
    async with new_runtime(config, settings=settings) as runtime:
        with pytest.raises(LimitError, match="max_tool_calls"):
            await runtime.default.generate("***CALL_TOOL add")


async def test_money_bounds_only_models_whose_price_is_known(new_runtime: NewRuntime) -> None:
    bounded = RequestParams(usage_limits=UsageLimits(max_cost=1.0))
    config = agent(model="generic.m", request_params=bounded)
    priced = StatedFacts(input_cost=1.0, output_cost=1.0)
    for settings, problem in (
        (Settings(), RunError),
        (Settings(model_facts={"generic.m": priced}), ModelError),  # it is asked, and has no key
    ):
        async with new_runtime(config, settings=settings) as runtime:
            with pytest.raises(problem):
                await runtime.default.generate("hi")


async def test_children_run_on_clones_of_their_cards(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "shots.md").write_text("---USER\nq\n---ASSISTANT\na\n")
    kid = agent("kid", description="Draws.", tool_only=True, messages=("shots.md",))
    async with new_runtime(agent(agents=("kid",)), kid) as runtime:
        result = await runtime.default.generate('***CALL_TOOL agent__kid {"message": "hi"}')
        assert result.text == "hi"
        assert [one.text for one in runtime.agent("kid").history] == ["q", "a"]
        assert (result.usage.requests, result.tree_usage.requests) == (2, 3)


async def test_an_instruction_lists_children_and_servers(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    seen: list[str] = []

    class Watching(PassthroughModel):
        async def request(self, request: ModelRequest, on_delta: object = None) -> ModelResponse:
            seen.append(request.system)
            return await super().request(request)

    config = agent(
        instruction="{{agents}}{{serverInstructions}}", agents=("kid",), servers=("echo",)
    )
    kid = agent("kid", description="Draws.")
    async with new_runtime(config, kid, settings=echo_settings(tmp_path)) as runtime:
        one = runtime.agent("alice")
        assert isinstance(one, LlmAgent)
        one._setup = replace(one._setup, model=Watching())
        await one.generate("hi")
    assert "kid" in seen[0]
    assert "Draws." in seen[0]
    assert "Say it twice." in seen[0]


@pytest.mark.spec("CARD-63", "TOOL-2")
async def test_filters_hold_when_tools_and_resources_are_used(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    events: list[Event] = []
    config = agent(servers=("echo",), tools={"echo": ("whi*",)}, resources={"echo": ("note://a*",)})
    async with new_runtime(
        config, settings=echo_settings(tmp_path), listener=events.append
    ) as runtime:
        one = runtime.default
        assert isinstance(one, LlmAgent)
        assert (await one.generate('***CALL_TOOL echo__whisper {"text": "HI"}')).text == "hi"
        refused = await one.generate('***CALL_TOOL echo__shout {"text": "hi"}')
        assert "unknown tool `echo__shout`" in refused.text
        assert [report.state for report in runtime.server_reports()] == ["connected"]

        assert await one.with_resource("sum up", "echo", "note://ants") == "sum up"
        assert "a note on ants" in repr(one.history[-2].content[1])
        with pytest.raises(ToolError, match="not open to this agent"):
            await one.with_resource("sum up", "echo", "note://bees")
        with pytest.raises(RunError, match="agent `alice` has no server `ech`"):
            await one.with_resource("sum up", "ech", "note://ants")
    started = [event for event in events if isinstance(event, ToolStarted)]
    assert [(one.source, one.server_name) for one in started] == [("mcp", "echo")]


async def test_a_server_that_asks_for_an_answer_gets_one_of_the_agents_model(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    call = '***CALL_TOOL echo__consult {"question": "why"}'
    once = RequestParams(usage_limits=UsageLimits(max_requests=1))
    config = agent(servers=("echo",))
    limited = agent("limited", servers=("echo",), request_params=once)
    async with new_runtime(config, limited, settings=echo_settings(tmp_path)) as runtime:
        result = await runtime.agent("alice").generate(call)
        assert result.text == "passthrough says why"
        assert (result.usage.requests, result.tree_usage.requests) == (2, 3)
        assert runtime.usage.requests == 3
        one = runtime.agent("limited")
        with pytest.raises(LimitError):
            await one.generate(call)
        assert "agent `limited` reached its usage limit" in one.history[2].tool_results[0].text


@pytest.mark.spec("TOOL-12")
async def test_a_server_that_is_down_fails_the_turn_and_is_reported(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    gone = ServerSettings(name="gone", transport="stdio", command=str(tmp_path / "nothing"))
    settings = Settings(mcp=McpSettings(servers={"gone": gone}))
    config, well = agent(servers=("gone",)), agent("well")
    async with new_runtime(config, well, settings=settings) as runtime:
        reports = await runtime.open_servers(["alice", "well"])
        assert [(report.name, report.state) for report in reports] == [("gone", "failed")]
        with pytest.raises(ToolError, match="agent `alice` needs server `gone`"):
            await runtime.agent("alice").generate("hi")
        assert len(runtime.agent("alice").history) == 0
        assert (await runtime.agent("well").generate("hi")).text == "hi"


async def test_an_unused_script_is_reported_at_the_end(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    (tmp_path / "steps.yaml").write_text("steps:\n  - text: one\n  - text: two\n")
    async with new_runtime(agent(model="scripted?file=steps.yaml")) as runtime:
        assert (await runtime.default.generate("hi")).text == "one"
        with pytest.raises(ModelError):
            runtime.finish_scripts()


async def test_agents_are_closed_with_the_runtime(new_runtime: NewRuntime) -> None:
    async with new_runtime(agent()) as runtime:
        one = runtime.default
    with pytest.raises(RunError, match="is closed"):
        await one.generate(Message.user("hi"))


class CountingSteps(NullSteps):
    """Steps that count the turns they carry."""

    turns = 0

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        self.turns += 1
        return super().turn(agent, message, call_id)


@pytest.mark.parametrize("is_recorded", [False, True])
async def test_a_recording_carries_turns_before_the_journal_does(
    new_runtime: NewRuntime, tmp_path: Path, *, is_recorded: bool
) -> None:
    recording, durable = CountingSteps(), CountingSteps()
    fields = {"steps": recording} if is_recorded else {}
    with store_in(tmp_path).create() as session:
        session.journal.steps = durable
        async with new_runtime(agent(), journal=session.journal, **fields) as runtime:
            await runtime.default.generate("hi")
    assert (recording.turns, durable.turns) == ((1, 0) if is_recorded else (0, 1))


async def test_a_conversation_may_have_steps_and_a_journal_of_its_own(
    new_runtime: NewRuntime, tmp_path: Path
) -> None:
    usual, durable, own = CountingSteps(), CountingSteps(), CountingSteps()
    with store_in(tmp_path).create() as session:
        session.journal.steps = durable
        async with new_runtime(agent(), steps=usual) as runtime:
            for conversation in (
                runtime.new_conversation(),
                runtime.new_conversation(journal=session.journal),
                runtime.new_conversation(steps=own),
            ):
                await conversation.agent("alice").generate("hi")
        async with new_runtime(agent()) as runtime:
            await runtime.new_conversation(journal=session.journal).agent("alice").generate("hi")
    assert (usual.turns, durable.turns, own.turns) == (2, 1, 1)


@pytest.mark.parametrize("is_reported", [False, True])
async def test_the_window_is_not_looked_up_again_for_a_card_whose_user_was_warned(
    new_runtime: NewRuntime, *, is_reported: bool
) -> None:
    settings = Settings(model_facts={"passthrough": StatedFacts(context_window=1_000)})
    reported = frozenset({"alice.md"}) if is_reported else frozenset[str]()
    async with new_runtime(agent(), settings=settings, reported=reported) as runtime:
        shared = runtime.agent("alice")
        assert isinstance(shared, LlmAgent)
        assert shared.setup.known_window() == (None if is_reported else 1_000)


async def test_a_call_merges_its_messages_into_the_history_of_the_caller(
    new_runtime: NewRuntime,
) -> None:
    wanted = ChildHistory(merge_target="orchestrator")
    async with new_runtime(agent("lead", agents=("kid",)), agent("kid")) as runtime:
        result = await runtime.call("lead", "kid", "hi", wanted=wanted)
        assert result.text == "hi"
        assert [message.text for message in runtime.agent("lead").history] == ["hi", "hi"]


@pytest.mark.parametrize("most", [1000, 1001])
async def test_half_of_a_long_output_of_commands_is_its_end(
    new_runtime: NewRuntime, most: int
) -> None:
    settings = Settings(shell=ShellSettings(max_output_bytes=most))
    async with new_runtime(agent(shell=True), settings=settings) as runtime:
        shared = runtime.agent("alice")
        assert isinstance(shared, LlmAgent)
        command = "printf %03000d 0"
        call = f'***CALL_TOOL execute {{"command": "{command}"}}'
        await shared.send(call)
        (result,) = [one for message in shared.history for one in message.tool_results]
    head, _, tail = result.text.partition("\n[… ")
    assert (len(head), len(tail.partition("…]\n")[2].partition("\n")[0])) == (
        most - most // 2, most // 2,
    )  # fmt: skip
