"""A conversation is a workflow: `go` and `serve` have their turns run by workers."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode
from tests.engine.batch_world import ModelServer, Reply, call_reply, text_reply
from tests.engine.temporal.temporal_world import TemporalWorld, eventually, temporal_world
from tests.patience import until
from tests.telemetry.collector import receiver, spans_of
from tests.temporal_server import TemporalServer

from fast_agent.cli.running.temporal import PinnedProgram
from fast_agent.engine.edition import EditionChoices
from fast_agent.engine.temporal import conversation
from fast_agent.engine.temporal import runs as temporal_runs
from fast_agent.engine.temporal.connection import TemporalOptions
from fast_agent.engine.temporal.conversation import TemporalCarrier, _CarriedConversation
from fast_agent.engine.temporal.runs import TemporalRuns
from fast_agent.engine.temporal.workflow import READ_AT_ONCE, _read
from fast_agent.errors import ModelError, RunError
from fast_agent.messages.json_message import message_to_wire
from fast_agent.messages.message import Message
from fast_agent.steps.parts import Parts, StepRedactor
from fast_agent.tools.human import HumanAnswer, HumanRequest, question_to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from temporalio.client import WorkflowHandle

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.live_agent import TurnCarrier
    from fast_agent.engine.part_store import PartStore
    from fast_agent.engine.temporal.conversation import PinCards
    from fast_agent.engine.temporal.workflow import WorkflowSteps
    from fast_agent.tools.human import Human

pytestmark = pytest.mark.anyio

MAX_EVENTS = 120
_WAITING_TOOL = '''\
import asyncio

from fast_agent import tool


@tool(repeatable=False)
async def wait(seconds: int) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"
'''
AGENT = "type: agent\nmodel: generic.m\ninstruction: You answer.\ndefault: true\n"


@pytest.fixture(scope="module")
def server() -> Generator[TemporalServer]:
    """A server that has workflows continue in a new history after few events."""
    values = {"limit.historyCount.suggestContinueAsNew": MAX_EVENTS}
    with TemporalServer(in_memory=True, values=values) as started:
        yield started


@asynccontextmanager
async def talking(
    world: TemporalWorld, human: Human | None = None, *, heartbeat_seconds: float = 60.0
) -> AsyncGenerator[AgentApp]:
    """Make the agents live here, and have workers run their turns.

    No step counts as lost while a machine is busy: tests count requests.
    """
    world.runs.heartbeat_seconds = heartbeat_seconds
    program = world.program()
    program.load_agents(".")

    def new_carrier(human: Human | None) -> AbstractAsyncContextManager[TurnCarrier]:
        pin = partial(world.runs.pin, program, EditionChoices())
        return TemporalCarrier(world.runs, PinnedProgram(program, pin), human)

    program.new_carrier = new_carrier
    async with program.run(human=human) as app:
        yield app


def count_messages(body: dict[str, Any]) -> Reply:
    """Answer with how many messages of the user there are, and the first of them."""
    said = [one["content"] for one in body["messages"] if one["role"] == "user"]
    return text_reply(f"{len(said)} since {said[0]}")


def use_model(world: TemporalWorld, models: ModelServer) -> None:
    """Have the models of the cards answered by a server."""
    text = f"generic: {{base_url: '{models.url}', api_key: sk-key-of-the-tests}}\n"
    (world.directory / "config.yaml").write_text(text)


async def conversations(world: TemporalWorld) -> list[tuple[str, int]]:
    """Return the state and the number of events of each history of the world's queue."""
    return [
        (one.status.name if one.status else "", one.history_length)
        async for one in world.client.list_workflows(world.query)
    ]


@pytest.mark.spec("TEMPORAL-6")
async def test_a_conversation_continues_in_a_new_history_when_one_grows_long(
    tmp_path: Path, server: TemporalServer
) -> None:
    turns = 40
    async with temporal_world(tmp_path, server) as world, world.worker(max_cached_runs=0):
        with ModelServer(count_messages) as models:
            use_model(world, models)
            world.write(one=AGENT)
            async with talking(world) as app:
                for number in range(1, turns + 1):
                    assert await app.one(f"message {number}") == f"{number} since message 1"
                assert app.usage.requests == turns
                assert len(app.one.history) == 2 * turns
            assert sum(models.asked.values()) == turns

            async def all_are_closed() -> bool:
                found = await conversations(world)
                return len(found) > 1 and {state for state, _ in found} == {
                    "CONTINUED_AS_NEW",
                    "COMPLETED",
                }

            await eventually(all_are_closed)
            # A turn that began below the limit ends in the same history.
            assert max(length for _, length in await conversations(world)) < 2 * MAX_EVENTS


@pytest.mark.spec("OTEL-7")
async def test_a_turn_is_one_trace_whose_spans_are_made_once_however_often_it_is_replayed(
    tmp_path: Path, server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        said = body["messages"][-1]
        if said["role"] == "user" and said["content"] == "go":
            return call_reply("agent__kid", {"message": "help"}, "call-1")
        return text_reply("done")

    with ModelServer(reply) as models, receiver() as (address, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        async with temporal_world(tmp_path, server) as world:
            world.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
            use_model(world, models)
            world.write(one=f"{AGENT}agents: [kid]\n", kid=AGENT.replace("default: true\n", ""))
            # Without a cache, the workflow begins anew at each of its steps.
            async with world.worker(max_cached_runs=0), talking(world) as app:
                assert await app.one("go") == "done"
        assert sum(models.asked.values()) == 3
    spans = spans_of(taken)
    assert sorted(one.name for one in spans) == ["chat generic.m"] * 3 + ["invoke_agent one"]
    (turn,) = (one for one in spans if one.name == "invoke_agent one")
    for span in spans:
        assert span.trace_id == turn.trace_id
        assert span is turn or span.parent_span_id == turn.span_id


@pytest.mark.spec("TEMPORAL-19")
async def test_a_continued_conversation_sends_only_what_is_new(
    tmp_path: Path, server: TemporalServer
) -> None:
    """All of a conversation of 8,000 turns at once takes longer than the server allows."""
    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(one=AGENT.replace("generic.m", "passthrough"))
        async with talking(world) as app:
            for number in range(40):
                assert await app.one(f"message {number}") == f"message {number}"
        parts = [one async for one in world.client.list_workflows(world.query)]
        assert len(parts) > 1
        for one in parts:
            handle = world.client.get_workflow_handle(one.id, run_id=one.run_id)
            history = await handle.fetch_history()
            sent = [
                json.loads(event.activity_task_scheduled_event_attributes.input.payloads[0].data)
                for event in history.events
                if event.HasField("activity_task_scheduled_event_attributes")
            ]
            # The instruction, the tools, and two messages with a joint each.
            assert max(len(step["pieces"]) for step in sent) <= 6
            await world.replay(history)


@pytest.mark.spec("TEMPORAL-19")
async def test_a_long_conversation_is_read_with_pauses(
    tmp_path: Path, server: TemporalServer
) -> None:
    count = 2 * READ_AT_ONCE + 2
    long = [Message.user("question"), Message.assistant("answer")] * (count // 2)
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(count_messages) as models:
            use_model(world, models)
            world.write(one=AGENT)
            async with talking(world) as app:
                app.one.load_history(long)
                assert await app.one("next") == f"{count // 2 + 1} since question"
                assert await app.one("last") == f"{count // 2 + 2} since question"
                assert len(app.one.history) == count + 4
            (run,) = [one async for one in world.client.list_workflows(world.query)]
            history = await world.client.get_workflow_handle(run.id).fetch_history()
            pauses = [
                event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
                for event in history.events
                if event.HasField("timer_started_event_attributes")
            ]
            assert sum(one.total_seconds() < 1 for one in pauses) == 2
            await world.replay(history)


@pytest.mark.parametrize(
    ("calls", "problem", "hint"),
    [(60, "exceeds limit", "divide the task"), (1, "terminated by user", None)],
)
async def test_a_turn_whose_workflow_is_terminated_fails_with_the_reason(
    tmp_path: Path, calls: int, problem: str, hint: str | None
) -> None:
    values = {"limit.historyCount.error": 100, "limit.historyCount.warn": 50}
    with TemporalServer(in_memory=True, values=values) as server:
        async with temporal_world(tmp_path, server) as world, world.worker(max_cached_runs=0):
            (tmp_path / "tools.py").write_text(_WAITING_TOOL)
            world.write(
                one="type: agent\nmodel: passthrough\ninstruction: x\ndefault: true\n"
                "function_tools: [tools.py:wait]\n"
            )

            async def waiting() -> list[Any]:
                found = world.client.list_workflows(world.query)
                runs: list[Any] = [world.client.get_workflow_handle(one.id) async for one in found]
                return [one for one in runs if "wait" in str(await one.query("progress"))]

            async def terminate() -> None:
                (run,) = await eventually(waiting)
                await run.terminate()

            call = f'***CALL_TOOL wait {{"seconds": {0 if hint else 60}}}'
            async with talking(world, heartbeat_seconds=2) as app, asyncio.TaskGroup() as group:
                if hint is None:
                    group.create_task(terminate())
                with pytest.raises(RunError, match=f"was terminated: .*{problem}") as caught:
                    await app.one("\n".join([call] * calls))
                assert (hint or "") in (caught.value.hint or "")
            # It is not tried again: what it did would be repeated.
            assert len(await conversations(world)) == 1


async def test_turns_at_the_same_time_ask_each_question_once(
    tmp_path: Path, server: TemporalServer
) -> None:
    asked: list[str] = []

    class Slow:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request.agent_name)
            await asyncio.sleep(3 * conversation.QUESTION_SECONDS)
            return HumanAnswer(action="accept", content={"text": f"for {request.agent_name}"})

    async with temporal_world(tmp_path, server) as world, world.worker():
        card = "type: agent\nmodel: passthrough\nhuman_input: true\ninstruction: x\n"
        world.write(one=card, two=card)
        call = '***CALL_TOOL request_human_input {"message": "which one?"}'
        async with talking(world, Slow()) as app:
            answers = await asyncio.gather(app.one(call), app.two(call))
            assert answers == ["for one", "for two"]
            assert await app.one(call) == "for one"
        assert sorted(asked) == ["one", "one", "two"]


def carrier_of(query: object, signal: object) -> tuple[TemporalCarrier, _CarriedConversation]:
    """Make a carrier of a conversation whose workflow answers as the functions do."""
    run: Any = SimpleNamespace(id="run", query=query, signal=signal)
    client: Any = SimpleNamespace(get_workflow_handle={"run": run}.__getitem__)
    runs = TemporalRuns(client, TemporalOptions(address="there"), cast("PartStore", None))
    return TemporalCarrier(runs, cast("PinCards", None)), _CarriedConversation(None, run)


async def test_a_question_answered_while_a_user_thinks_about_another_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversation, "QUESTION_SECONDS", 0.0)
    listed = {
        name: question_to_json(HumanRequest(message=name, agent_name="one"))
        for name in ("first", "second")
    }
    asked: list[str] = []
    looks = 0
    decided = asyncio.Event()

    async def query(_: str) -> dict[str, Any]:
        nonlocal looks
        looks += 1
        return dict(listed)

    async def signal(_: str, *, args: list[Any]) -> None:
        del listed[args[0]]

    class Thinking:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request.message)
            if request.message == "first":
                await decided.wait()
            return HumanAnswer(action="accept", content={})

    carrier, carried = carrier_of(query, signal)
    async with asyncio.TaskGroup() as group:
        turns = [group.create_task(carrier._ask_user(carried, Thinking())) for _ in range(2)]
        await until(lambda: "second" not in listed)
        before = looks
        await until(lambda: looks > before + 1)
        decided.set()
        await until(lambda: not listed)
        before = looks
        await until(lambda: looks > before + 1)
        for turn in turns:
            turn.cancel()
    assert asked == ["first", "second"]


class LateLook:
    """A conversation with one question, of which one look is answered late.

    Attributes:
        listed: The open questions.
        asked: The questions a user was asked.
        decided: Lets the user answer.
        holds: Whether the next look is answered once it is released, as it was when it began.
        held: Whether a look waits for that.
        released: Lets it be answered.
    """

    def __init__(self) -> None:
        self.listed: dict[str, Any] = {}
        self.asked: list[str] = []
        self.decided = asyncio.Event()
        self.holds = False
        self.held = False
        self.released = asyncio.Event()
        self.carrier, self.carried = carrier_of(self._query, self._signal)

    def open(self) -> None:
        """Open the question."""
        self.listed["1"] = question_to_json(HumanRequest(message="which?", agent_name="one"))

    def turn(self) -> asyncio.Task[None]:
        """Start to ask what a turn asks."""
        return asyncio.create_task(self.carrier._ask_user(self.carried, self))

    async def thinking(self) -> asyncio.Task[None]:
        """Open the question, and start a turn whose user thinks about it."""
        self.open()
        turn = self.turn()
        await until(lambda: self.asked == ["which?"])
        return turn

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request.message)
        await self.decided.wait()
        return HumanAnswer(action="accept", content={})

    async def _query(self, _: str) -> dict[str, Any]:
        now = dict(self.listed)
        if self.holds:
            self.holds, self.held = False, True
            await self.released.wait()
        return now

    async def _signal(self, _: str, *, args: list[Any]) -> None:
        self.listed.pop(args[0], None)


@pytest.fixture(name="late")
def _late(monkeypatch: pytest.MonkeyPatch) -> LateLook:
    monkeypatch.setattr(conversation, "QUESTION_SECONDS", 0.0)
    return LateLook()


async def settled() -> None:
    """Have other tasks do what they can."""
    for _ in range(1000):
        await asyncio.sleep(0)


async def ended(*turns: asyncio.Task[None]) -> None:
    """End the turns."""
    for turn in turns:
        turn.cancel()
    await asyncio.gather(*turns, return_exceptions=True)


async def test_a_look_that_began_before_a_question_does_not_have_it_asked_again(
    late: LateLook,
) -> None:
    late.holds = True
    first = late.turn()
    await until(lambda: late.held)
    late.open()
    second = late.turn()
    await settled()
    late.released.set()
    await settled()
    assert late.asked == ["which?"]
    late.decided.set()
    await until(lambda: not late.listed)
    await ended(first, second)


async def test_a_look_that_began_before_an_answer_does_not_have_it_asked_again(
    late: LateLook,
) -> None:
    first = await late.thinking()
    late.holds = True
    second = late.turn()
    await until(lambda: late.held)
    late.decided.set()
    await until(lambda: not late.listed)
    await ended(first)
    late.released.set()
    await settled()
    assert late.asked == ["which?"]
    await ended(second)


async def test_a_turn_ends_though_its_question_was_closed_meanwhile(late: LateLook) -> None:
    first = await late.thinking()
    second = late.turn()
    late.listed.clear()
    await until(lambda: not late.carried.asked)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await ended(second)


async def test_a_question_of_a_turn_that_ends_is_asked_by_the_other(late: LateLook) -> None:
    first = await late.thinking()
    second = late.turn()
    await settled()
    assert late.asked == ["which?"]
    await ended(first)
    await until(lambda: late.asked == ["which?"] * 2)
    late.decided.set()
    await until(lambda: not late.listed)
    await ended(second)
    # A later history uses the key again.
    late.open()
    third = late.turn()
    await until(lambda: late.asked == ["which?"] * 3)
    await ended(third)


async def test_a_user_is_asked_though_a_look_for_questions_or_a_question_before_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(temporal_runs, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(conversation, "QUESTION_SECONDS", 0.0)
    away = RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
    looks: list[Exception] = [WorkflowQueryFailedError("deadlocked"), away]
    answers: list[Exception] = [away]
    sent: list[tuple[str, str]] = []
    asked = {
        name: question_to_json(HumanRequest(message=name, agent_name="one"))
        for name in ("bad", "good")
    }

    async def query(_: str) -> dict[str, Any]:
        if looks:
            raise looks.pop()
        return asked

    async def signal(_: str, *, args: list[Any]) -> None:
        if answers:
            raise answers.pop()
        sent.append((args[0], args[1]))

    class Window:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            if request.message == "bad":
                raise ValueError("no window")
            return HumanAnswer(action="accept", content={})

    carrier, carried = carrier_of(query, signal)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(carrier._ask_user(carried, Window()))
        await until(lambda: len(sent) == 2)
        asking.cancel()
    assert sent == [("bad", "cancel"), ("good", "accept")]


@pytest.mark.parametrize("seconds", [60.0, 0.0])
async def test_a_workflow_whose_tasks_failed_is_asked_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The server refuses turns after three failed tasks in a row, and goes on trying these."""
    monkeypatch.setattr(temporal_runs, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(temporal_runs, "READY_SECONDS", seconds)
    refused = [
        RPCError("Workflow Task in failed state", RPCStatusCode.FAILED_PRECONDITION, b"")
        for _ in range(3)
    ]

    async def execute_update(*_: object, **__: object) -> dict[str, str]:
        if refused:
            raise refused.pop()
        return {"is": "done"}

    carried = cast("WorkflowHandle[Any, Any]", SimpleNamespace(execute_update=execute_update))
    carrier = TemporalCarrier(cast("TemporalRuns", None), cast("PinCards", None))
    if seconds:
        assert await carrier._update(carried, "key", {}) == {"is": "done"}
        return
    with pytest.raises(RunError, match="rejects the request: Workflow Task in failed state"):
        await carrier._update(carried, "key", {})


async def test_what_many_agents_remember_is_read_with_pauses_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten agents with less than the bound each have more than it together."""
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    parts = Parts(StepRedactor(), lambda digest, value: None)
    steps = cast("WorkflowSteps", SimpleNamespace(parts=parts))
    lines = [message_to_wire(Message.user("hi"))]
    cases: list[tuple[list[int], int]] = [
        ([], 0),
        ([0, READ_AT_ONCE], 0),
        ([READ_AT_ONCE, 1], 1),
        ([READ_AT_ONCE - 1, 1, 1], 1),
        ([READ_AT_ONCE // 2] * 5, 2),
        ([3 * READ_AT_ONCE], 2),
    ]
    for sizes, pauses in cases:
        sleeps.clear()
        read = await _read({str(n): lines * size for n, size in enumerate(sizes)}, steps)
        assert [len(messages) for messages in read.values()] == sizes
        assert len(sleeps) == pauses, sizes


async def test_what_the_client_forgets_or_loads_is_what_the_workers_remember(
    tmp_path: Path, server: TemporalServer
) -> None:
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(count_messages) as models:
            use_model(world, models)
            world.write(one=AGENT)
            async with talking(world) as app:
                assert await app.one("first") == "1 since first"
                before = tuple(app.one.history)
                assert await app.one("second") == "2 since first"
                app.one.clear()
                assert await app.one("third") == "1 since third"
                app.one.load_history(before)
                assert await app.one("fourth") == "2 since first"


async def test_a_failed_turn_leaves_nothing_and_the_conversation_continues(
    tmp_path: Path, server: TemporalServer
) -> None:
    replies: list[Reply] = [
        text_reply("hello"),
        (401, {}, {"error": {"message": "bad key"}}),
        text_reply("again"),
    ]
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(lambda _: replies.pop(0)) as models:
            use_model(world, models)
            world.write(one=AGENT)
            async with talking(world) as app:
                assert await app.one("first") == "hello"
                with pytest.raises(ModelError):
                    await app.one("second")
                assert len(app.one.history) == 2
                assert await app.one("third") == "again"


@pytest.mark.spec("TEMPORAL-13", "TEMPORAL-14")
async def test_calls_of_tools_and_answers_of_the_user_are_in_the_history_of_the_client(
    tmp_path: Path, server: TemporalServer
) -> None:
    asked: list[str] = []

    class User:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request.message)
            return HumanAnswer(action="accept", content={"text": "the blue one"})

    def reply(body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return text_reply(f"it is {last['content']}")
        return call_reply("request_human_input", {"message": "which one?"}, "call")

    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(reply) as models:
            use_model(world, models)
            world.write(one=f"{AGENT}human_input: true\n")
            async with talking(world, User()) as app:
                result = await app.one.generate("choose")
                assert "the blue one" in result.text
                assert asked == ["which one?"]
                assert [len(one.tool_calls) for one in app.one.history] == [0, 1, 0, 0]
                assert result.usage.requests == 2
                assert result.usage.tool_calls == 1


@pytest.mark.spec("TEMPORAL-14")
async def test_a_cancelled_turn_is_cancelled_at_the_workers_and_the_next_one_runs(
    tmp_path: Path, server: TemporalServer
) -> None:
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(count_messages) as models:
            use_model(world, models)
            world.write(one=AGENT, slow="type: agent\nmodel: slow?seconds=600\ninstruction: x\n")
            async with talking(world, heartbeat_seconds=2.0) as app:
                turn = asyncio.create_task(app.slow("wait"))

                async def is_asked() -> bool:
                    query = world.query
                    async for one in world.client.list_workflows(query):
                        described = await world.client.get_workflow_handle(one.id).describe()
                        return len(described.raw_description.pending_activities) == 1
                    return False

                await eventually(is_asked)
                turn.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await turn
                assert app.slow.history[-1].stop_reason == "cancelled"

                async def nothing_runs() -> bool:
                    return not await is_asked()

                await eventually(nothing_runs)
                assert await app.one("first") == "1 since first"


@pytest.mark.spec("TEMPORAL-6")
async def test_members_of_a_workflow_remember_in_the_next_history(
    tmp_path: Path, server: TemporalServer
) -> None:
    async with temporal_world(tmp_path, server) as world, world.worker():
        with ModelServer(count_messages) as models:
            use_model(world, models)
            world.write(
                team="type: chain\nsequence: [a, b]\ndefault: true\n",
                a="type: agent\nmodel: generic.m\ninstruction: x\n",
                b="type: agent\nmodel: generic.m\ninstruction: y\n",
            )
            async with talking(world) as app:
                for number in range(1, 25):
                    answer = await app.team(f"message {number}")
                    assert answer == f"{number} since 1 since message 1"
                assert app.usage.requests == 48
            assert len(await conversations(world)) > 1
